// Predictors of a learner: the graph of predictions with copies of the values, or of their averages
// if kept, matched by the variables' names. Rows of tables are copied too. A predictor does not
// point into the learner, because it runs on another thread and outlives it.
#include <string.h>

#include "base/alloc.h"
#include "learner/learner_inner.h"
#include "onnx/graph_file.h"
#include "predictor/predictor.h"
#include "ps/table/rows.h"

// Owner of a predictor's parts.
typedef struct copy {
    bel_onnx_model *model; // for the outputs' names
    bel_graph *graph;
    bel_port *inputs, *outputs;
    bel_value **results; // by output
    int *fields;         // by graph input
    float **values;      // by graph variable
    bel_rows rows;
} copy;

static void predict_release(void *owner)
{
    copy *c = owner;
    bel_rows_deinit(&c->rows);
    for (size_t v = 0; c->values != NULL && v < c->graph->variable_count; v++)
        bel_pages_destroy(c->values[v],
                          (size_t)bel_shape_elements(&c->graph->variables[v].value->spec.shape) *
                              sizeof(float));
    bel_free(c->values);
    bel_graph_destroy(c->graph);
    bel_onnx_destroy(c->model);
    bel_free(c->inputs);
    bel_free(c->outputs);
    bel_free(c->results);
    bel_free(c->fields);
    bel_free(c);
}

// --- Values --------------------------------------------------------------------------------------

static bel_status *copy_variable(const bel_learner *l, const bel_graph_variable *variable,
                                 float **out_values)
{
    const bel_shape *shape = &variable->value->spec.shape;
    int v = bel_layout_find(l->layout, variable->name);
    const bel_layout_variable *from = v < 0 ? NULL : bel_learner_variable(l, v);
    if (from == NULL || !bel_shape_equal(&from->shape, shape))
        return BEL_ERR(BEL_DATA_LOSS, "variable \"%s\" is not one of the training graph",
                       variable->name);
    bool averaged = l->averages != NULL && from->kind == BEL_VARIABLE_TRAINABLE;
    size_t bytes = (size_t)from->elements * sizeof(float);
    void *memory;
    BEL_TRY(bel_pages_create(bytes, false, variable->name, &memory));
    memcpy(memory, (averaged ? l->averages : l->values) + from->offset, bytes);
    *out_values = memory;
    return NULL;
}

enum { BLOCK = 1024 }; // rows

static bel_status *copy_rows(bel_table *from, int width, bel_table *to)
{
    int64_t keys[BLOCK], count = bel_table_snapshot_count(from);
    float *rows = bel_xmalloc((size_t)BLOCK * (size_t)width * sizeof *rows);
    bel_status *status = NULL;
    for (int64_t first = 0; first < count && status == NULL; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK;
        status = bel_table_snapshot_range(from, first, n, keys, rows, NULL);
        if (status == NULL) status = bel_table_load(to, keys, rows, NULL, n);
    }
    bel_free(rows);
    return status;
}

static bel_status *copy_table(const bel_learner *l, const bel_graph_table *table, bel_table *to)
{
    int t = bel_graph_find_table(l->file.graph, table->name);
    if (t < 0 || l->tables[t].width != table->width)
        return BEL_ERR(BEL_DATA_LOSS, "table \"%s\" is not one of the training graph", table->name);
    BEL_TRY(bel_table_snapshot(l->tables[t].table));
    bel_status *status = copy_rows(l->tables[t].table, table->width, to);
    bel_table_snapshot_end(l->tables[t].table);
    return status;
}

static bel_status *copy_values(const bel_learner *l, copy *c)
{
    const bel_graph *graph = c->graph;
    c->values = bel_xcalloc(graph->variable_count + 1, sizeof *c->values);
    for (size_t v = 0; v < graph->variable_count; v++)
        BEL_TRY(copy_variable(l, &graph->variables[v], &c->values[v]));
    BEL_TRY(bel_rows_init(&c->rows, graph, l->seed));
    for (size_t t = 0; t < graph->table_count; t++)
        BEL_TRY(copy_table(l, &graph->tables[t], c->rows.tables[t]));
    return NULL;
}

// --- Making --------------------------------------------------------------------------------------

static bel_status *read_graph(const bel_learner *l, copy *c)
{
    BEL_TRY(bel_onnx_read(l->file.prediction, l->file.prediction_bytes, &c->model));
    c->results = bel_xcalloc((size_t)bel_onnx_output_count(c->model) + 1, sizeof(bel_value *));
    return bel_graph_file_read(c->model, &c->graph, c->results);
}

static void list_ports(copy *c, bel_predictor_parts *parts)
{
    const bel_graph *graph = c->graph;
    int outputs = bel_onnx_output_count(c->model);
    c->inputs = bel_xcalloc(graph->input_count + 1, sizeof *c->inputs);
    c->outputs = bel_xcalloc((size_t)outputs + 1, sizeof *c->outputs);
    c->fields = bel_xcalloc(graph->input_count + 1, sizeof *c->fields);
    for (size_t i = 0; i < graph->input_count; i++) {
        const bel_graph_input *input = &graph->inputs[i];
        bool rows = bel_graph_lookup_of(graph, (int)i) != NULL;
        c->fields[i] = rows ? -1 : parts->input_count;
        if (rows) continue;
        c->inputs[parts->input_count++] =
            (bel_port){input->name, input->value->spec.dtype, input->value->spec.shape};
    }
    for (int o = 0; o < outputs; o++)
        c->outputs[o] = (bel_port){bel_onnx_output(c->model, o)->name, c->results[o]->spec.dtype,
                                   c->results[o]->spec.shape};
    parts->output_count = outputs;
    parts->inputs = c->inputs;
    parts->outputs = c->outputs;
    parts->values = c->results;
}

static bel_status *predict_make(const bel_learner *l, int threads, copy *c,
                                bel_predictor **out_predictor)
{
    BEL_TRY_CTX(read_graph(l, c), "the graph of predictions");
    BEL_TRY(copy_values(l, c));
    bel_predictor_parts parts = {.owner = c, .release = predict_release};
    list_ports(c, &parts);
    parts.forward = (bel_forward_config){.graph = c->graph,
                                         .fields = c->fields,
                                         .values = (const float *const *)c->values,
                                         .pull_rows = bel_rows_pull,
                                         .rows = &c->rows,
                                         .seed = l->seed,
                                         .step = l->step,
                                         .program = {.threads = threads > 0 ? threads : 1}};
    return bel_predictor_make(&parts, out_predictor);
}

bel_status *bel_learner_predictor(const bel_learner *l, int threads, bel_predictor **out_predictor)
{
    if (l->torn) return bel_learner_refuse_torn();
    BEL_TRY(bel_check_threads("a predictor", threads));
    copy *c = bel_xcalloc(1, sizeof *c);
    bel_status *status = predict_make(l, threads, c, out_predictor);
    if (status != NULL) predict_release(c);
    return status;
}
