// Writer of graph files (graph_file.h). Values have the names of their nodes, only for people. All
// leaves except constants are written, even if no result needs them, because fields and parameters
// are numbered in their order.
#include "onnx/graph_file.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "onnx/graph_form.h"
#include "onnx/write_inner.h"

typedef struct writer {
    const bel_graph_file_source *source;
    bel_arena *arena;
    bel_onnx_emitter emitter;
    bool *needed;       // by node
    const char **names; // by value
    Onnx__GraphProto graph;
    Onnx__ModelProto model;
} writer;

static void find_needed(writer *w)
{
    const bel_graph *graph = w->source->graph;
    int count = w->source->result_count;
    bel_value **values = bel_xcalloc((size_t)count + 1, sizeof *values);
    for (int r = 0; r < count; r++)
        values[r] = graph->values[w->source->results[r].value->id];
    bel_graph_mark(graph, values, count, w->needed);
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n]->op == BEL_OP_INPUT || graph->nodes[n]->op == BEL_OP_VARIABLE)
            w->needed[n] = true;
    bel_free(values);
}

// --- Attributes ----------------------------------------------------------------------------------

// Integers are INT, other numbers a tensor F64, because ONNX's FLOAT has 24 bits.
static void put_number(writer *w, const char *name, double number)
{
    bool whole = number == floor(number) && fabs(number) < 0x1p53 && !signbit(number);
    if (whole) {
        bel_onnx_put_int(&w->emitter, name, (int64_t)number);
    } else {
        bel_onnx_put_f64(&w->emitter, name, number);
    }
}

static void put_shape(writer *w, const char *name, const bel_shape *shape)
{
    bel_onnx_put_ints(&w->emitter, name, shape->dims, shape->rank);
}

static void put_attrs(writer *w, const bel_attr_list *attrs)
{
    for (int a = 0; a < attrs->count; a++) {
        const bel_attr *attr = &attrs->items[a];
        if (attr->ints.rank > 0) {
            put_shape(w, attr->name, &attr->ints);
        } else {
            put_number(w, attr->name, attr->number);
        }
    }
}

// --- Nodes ---------------------------------------------------------------------------------------

// Emits a node with operation `op` and the outputs of the graph's node.
static void graph_write_emit(writer *w, const bel_node *node, const char *op,
                             const char *const *inputs, int input_count)
{
    const char *outputs[BEL_OP_MAX_OUTPUTS];
    for (int o = 0; o < node->output_count; o++)
        outputs[o] = w->names[node->outputs[o]->id];
    Onnx__NodeProto *message =
        bel_onnx_emit(&w->emitter, op, inputs, input_count, outputs, node->output_count);
    message->name = bel_arena_strdup(w->arena, node->name);
    message->domain = bel_arena_strdup(w->arena, BEL_GRAPH_FILE_DOMAIN);
}

static void write_lookup(writer *w, const bel_node *node, const bel_graph_lookup *lookup)
{
    const bel_graph *graph = w->source->graph;
    const bel_graph_table *table = &graph->tables[lookup->table];
    const char *ids = w->names[graph->inputs[lookup->ids].value->id];
    graph_write_emit(w, node, BEL_GRAPH_FORM_LOOKUP, &ids, 1);
    bel_onnx_put_text(&w->emitter, "table", table->name);
    put_number(w, "width", table->width);
    put_number(w, "start", table->initializer.kind);
    put_number(w, "start_value", table->initializer.value);
}

static void write_input(writer *w, const bel_node *node)
{
    const bel_graph_input *input = &w->source->graph->inputs[node->leaf];
    const bel_graph_lookup *lookup = bel_graph_lookup_of(w->source->graph, node->leaf);
    const bel_spec *spec = &input->value->spec;
    double scale = w->source->scales != NULL ? w->source->scales[node->leaf] : 1;
    if (lookup != NULL) {
        write_lookup(w, node, lookup);
        return;
    }
    w->graph.input[w->graph.n_input++] = bel_onnx_port_message(w->arena, input->name, spec);
    const char *name = input->name;
    graph_write_emit(w, node, BEL_GRAPH_FORM_INPUT, &name, 1);
    put_number(w, "dtype", bel_onnx_type_number(spec->dtype));
    put_shape(w, "shape", &spec->shape);
    if (scale != 1) put_number(w, "scale", scale);
}

static void write_variable(writer *w, const bel_node *node)
{
    const bel_graph_variable *variable = &w->source->graph->variables[node->leaf];
    bel_variable_kind kind =
        w->source->kinds != NULL ? w->source->kinds[node->leaf] : variable->kind;
    graph_write_emit(w, node, BEL_GRAPH_FORM_VARIABLE, NULL, 0);
    bel_onnx_put_text(&w->emitter, "variable", variable->name);
    put_shape(w, "shape", &variable->value->spec.shape);
    put_number(w, "kind", kind);
}

static bel_status *write_operation(writer *w, const bel_node *node)
{
    if (bel_op_is_collective(node->op)) {
        char text[BEL_COLLECTIVE_TEXT];
        int index = bel_collective_read(node->op, &node->attrs).index;
        return BEL_ERR(BEL_UNIMPLEMENTED, "%s: %s: there is no replica to exchange with",
                       node->name, bel_graph_collective_text(w->source->graph, index, text));
    }
    const char *inputs[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = w->names[node->inputs[i]->id];
    graph_write_emit(w, node, bel_op_get(node->op)->name, inputs, node->input_count);
    put_attrs(w, &node->attrs);
    return NULL;
}

static bel_status *write_node(writer *w, const bel_node *node)
{
    switch (node->op) {
    case BEL_OP_INPUT: write_input(w, node); return NULL;
    case BEL_OP_VARIABLE: write_variable(w, node); return NULL;
    case BEL_OP_CONSTANT:
        graph_write_emit(w, node, bel_op_get(node->op)->name, NULL, 0);
        bel_onnx_put_tensor(&w->emitter, "value", &node->constant);
        return NULL;
    default: return write_operation(w, node);
    }
}

// Inputs and results are named first, because their names must not change.
static bel_status *name_values(writer *w)
{
    const bel_graph *graph = w->source->graph;
    for (size_t i = 0; i < graph->input_count; i++)
        if (bel_graph_lookup_of(graph, (int)i) == NULL)
            (void)bel_onnx_new_name(&w->emitter, graph->inputs[i].name);
    for (int r = 0; r < w->source->result_count; r++) {
        const char *name = w->source->results[r].name;
        if (bel_names_find(w->emitter.names, name) >= 0)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "an input is called \"%s\"", name);
        (void)bel_onnx_new_name(&w->emitter, name);
    }
    for (size_t n = 0; n < graph->node_count; n++)
        for (int o = 0; w->needed[n] && o < graph->nodes[n]->output_count; o++)
            w->names[graph->nodes[n]->outputs[o]->id] =
                bel_onnx_new_name(&w->emitter, graph->nodes[n]->name);
    return NULL;
}

static void write_results(writer *w)
{
    for (int r = 0; r < w->source->result_count; r++) {
        const bel_onnx_result *result = &w->source->results[r];
        const char *from = w->names[result->value->id];
        Onnx__NodeProto *message =
            bel_onnx_emit(&w->emitter, BEL_GRAPH_FORM_RESULT, &from, 1, &result->name, 1);
        message->domain = bel_arena_strdup(w->arena, BEL_GRAPH_FILE_DOMAIN);
        w->graph.output[w->graph.n_output++] =
            bel_onnx_port_message(w->arena, result->name, &result->value->spec);
    }
}

static bel_status *write_graph(writer *w, bel_onnx_sink *sink, void *context)
{
    const bel_graph *graph = w->source->graph;
    bel_onnx_begin_model(&w->model, &w->graph, w->arena);
    w->graph.input = bel_arena_alloc(w->arena, (graph->input_count + 1) * sizeof *w->graph.input);
    w->graph.output =
        bel_arena_alloc(w->arena, ((size_t)w->source->result_count + 1) * sizeof *w->graph.output);
    find_needed(w);
    BEL_TRY(name_values(w));
    for (size_t n = 0; n < graph->node_count; n++)
        if (w->needed[n]) BEL_TRY(write_node(w, graph->nodes[n]));
    write_results(w);
    w->graph.node = w->emitter.nodes;
    w->graph.n_node = w->emitter.node_count;
    w->model.opset_import = bel_arena_alloc(w->arena, 2 * sizeof *w->model.opset_import);
    w->model.opset_import[0] = bel_onnx_opset_message(w->arena, "", BEL_ONNX_OPSET_HIGHEST);
    w->model.opset_import[1] =
        bel_onnx_opset_message(w->arena, BEL_GRAPH_FILE_DOMAIN, BEL_GRAPH_FORM_VERSION);
    w->model.n_opset_import = 2;
    return bel_onnx_pack(&w->model, w->arena, sink, context);
}

bel_status *bel_graph_file_write(const bel_graph_file_source *source, bel_onnx_sink *sink,
                                 void *context)
{
    BEL_TRY(bel_graph_check(source->graph));
    writer w = {.source = source,
                .arena = bel_arena_create(),
                .needed = bel_xcalloc(source->graph->node_count + 1, sizeof(bool)),
                .names = bel_xcalloc(source->graph->value_count + 1, sizeof(char *))};
    bel_onnx_emitter_init(&w.emitter, w.arena);
    bel_status *status = write_graph(&w, sink, context);
    bel_onnx_emitter_deinit(&w.emitter);
    bel_arena_destroy(w.arena);
    bel_free(w.needed);
    bel_free(w.names);
    return status;
}
