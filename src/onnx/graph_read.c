// Reader of graph files (graph_file.h). The file is not trusted: the decoder has checked ids and
// counts, shape rules check the operations' inputs, and this file checks everything else before its
// use. A shape rule must itself check its assumptions about attributes: tests/fuzz/graph_file.c
// changes them all.
#include "onnx/graph_file.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "belfry/ops.h"
#include "onnx/graph_form.h"
#include "onnx/model.h"
#include "ops/kernels/elements.h"

typedef struct reader {
    const bel_onnx_model *model;
    bel_graph *graph;
    bel_value **values; // by value of the model; NULL: not a value of the graph
} reader;

// --- Attributes ----------------------------------------------------------------------------------

static const bel_onnx_attr *graph_read_find(const bel_onnx_node *node, const char *name)
{
    for (int a = 0; a < node->attr_count; a++)
        if (strcmp(node->attrs[a].name, name) == 0) return &node->attrs[a];
    return NULL;
}

static bel_status *node_lacks(const char *name, const char *what)
{
    return BEL_ERR(BEL_DATA_LOSS, "its attribute \"%s\" is missing, or no %s", name, what);
}

static bool number_of(const bel_onnx_attr *attr, double *out)
{
    bool is_whole = attr != NULL && attr->kind == BEL_ONNX_INT;
    bool is_tensor = attr != NULL && attr->kind == BEL_ONNX_TENSOR;
    if (is_whole) {
        *out = (double)attr->integer;
        return true;
    }
    if (!is_tensor || attr->tensor.dtype != BEL_DTYPE_F64 || attr->tensor.shape.rank != 0)
        return false;
    *out = bel_element_get(&attr->tensor, 0);
    return true;
}

static bel_status *read_whole(const bel_onnx_node *node, const char *name, int64_t most,
                              int64_t *out)
{
    const bel_onnx_attr *attr = graph_read_find(node, name);
    bool fits =
        attr != NULL && attr->kind == BEL_ONNX_INT && attr->integer >= 0 && attr->integer <= most;
    if (!fits) return node_lacks(name, "number of its range");
    *out = attr->integer;
    return NULL;
}

static bel_status *read_text(const bel_onnx_node *node, const char *name, const char **out)
{
    const bel_onnx_attr *attr = graph_read_find(node, name);
    bool fits = attr != NULL && attr->kind == BEL_ONNX_STRING && attr->text[0] != '\0' &&
                strlen(attr->text) < BEL_GRAPH_MAX_NAME;
    if (!fits) return node_lacks(name, "name");
    *out = attr->text;
    return NULL;
}

static bool ints_of(const bel_onnx_attr *attr, bel_shape *out)
{
    if (attr == NULL || attr->kind != BEL_ONNX_INTS || attr->list_count > BEL_MAX_RANK)
        return false;
    *out = (bel_shape){.rank = (int32_t)attr->list_count};
    for (size_t i = 0; i < attr->list_count; i++)
        out->dims[i] = attr->integers[i];
    return true;
}

static bel_status *read_attrs(const reader *r, const bel_onnx_node *node, bel_attr_list *out)
{
    *out = (bel_attr_list){.count = 0};
    if (node->attr_count > BEL_OP_MAX_ATTRS)
        return BEL_ERR(BEL_DATA_LOSS, "it has more than %d attributes", BEL_OP_MAX_ATTRS);
    for (int a = 0; a < node->attr_count; a++) {
        const bel_onnx_attr *from = &node->attrs[a];
        bel_attr *to = &out->items[out->count++];
        to->name = bel_arena_strdup(r->graph->arena, from->name);
        if (!number_of(from, &to->number) && !ints_of(from, &to->ints))
            return BEL_ERR(BEL_DATA_LOSS,
                           "its attribute \"%s\" is neither a number nor a list of up to %d",
                           from->name, BEL_MAX_RANK);
    }
    return NULL;
}

// --- Leaves --------------------------------------------------------------------------------------

static bel_status *check_counts(const bel_onnx_node *node, int inputs, int outputs)
{
    if (node->input_count == inputs && node->output_count == outputs) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "expected %d inputs and %d outputs, got %d and %d", inputs,
                   outputs, node->input_count, node->output_count);
}

// Applies a factor that the feeder applied before: in double, rounded once.
static bel_value *graph_read_scaled(bel_graph *graph, bel_value *value, double scale)
{
    bel_graph_push_scope(graph, "scale"); // cannot clash with the file's names
    bel_value *wide = bel_cast(graph, value, BEL_DTYPE_F64);
    bel_value *product = bel_mul(graph, wide, bel_scalar(graph, BEL_DTYPE_F64, scale));
    bel_value *narrow = bel_cast(graph, product, bel_value_dtype(value));
    bel_graph_pop_scope(graph);
    return narrow;
}

static bel_status *read_input(reader *r, const bel_onnx_node *node, bel_value **out)
{
    int64_t number = 0;
    bel_dtype dtype;
    bel_shape shape;
    double scale = 1;
    const bel_onnx_attr *scales = graph_read_find(node, "scale");
    BEL_TRY(check_counts(node, 1, 1));
    const bel_onnx_name *name = node->inputs[0] < 0 ? NULL : &r->model->names[node->inputs[0]];
    if (name == NULL || name->input < 0) return BEL_ERR(BEL_DATA_LOSS, "it reads no input");
    BEL_TRY(read_whole(node, "dtype", INT32_MAX, &number));
    BEL_TRY(bel_onnx_dtype(number, &dtype));
    if (!ints_of(graph_read_find(node, "shape"), &shape)) return node_lacks("shape", "shape");
    if (scales != NULL && (!number_of(scales, &scale) || !isfinite(scale)))
        return node_lacks("scale", "finite number");
    bel_value *value = bel_input_value(r->graph, name->text, dtype, &shape);
    *out = scales == NULL || value == NULL ? value : graph_read_scaled(r->graph, value, scale);
    return NULL;
}

static bel_status *read_variable(reader *r, const bel_onnx_node *node, bel_value **out)
{
    const char *name;
    bel_shape shape;
    int64_t kind = 0;
    BEL_TRY(check_counts(node, 0, 1));
    BEL_TRY(read_text(node, "variable", &name));
    BEL_TRY(read_whole(node, "kind", BEL_VARIABLE_REPLICA_FIRST, &kind));
    if (!ints_of(graph_read_find(node, "shape"), &shape)) return node_lacks("shape", "shape");
    bool taken =
        bel_graph_find_variable(r->graph, name) >= 0 || bel_graph_find_table(r->graph, name) >= 0;
    if (taken) return BEL_ERR(BEL_DATA_LOSS, "there are two variables \"%s\"", name);
    *out = bel_graph_add_variable(r->graph, name, &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                                  (bel_variable_kind)kind);
    return NULL;
}

static bel_status *read_lookup(reader *r, const bel_onnx_node *node, bel_value **out)
{
    const char *table;
    int64_t width = 0, start = 0;
    double start_value;
    BEL_TRY(check_counts(node, 1, 1));
    BEL_TRY(read_text(node, "table", &table));
    BEL_TRY(read_whole(node, "width", INT32_MAX, &width));
    BEL_TRY(read_whole(node, "start", BEL_INIT_ORTHOGONAL, &start));
    if (!number_of(graph_read_find(node, "start_value"), &start_value))
        return node_lacks("start_value", "number");
    bel_value *ids = node->inputs[0] < 0 ? NULL : r->values[node->inputs[0]];
    if (ids == NULL) return BEL_ERR(BEL_DATA_LOSS, "it has no ids");
    *out = bel_embedding(r->graph, table, ids, width,
                         (bel_initializer){.kind = (bel_init_kind)start, .value = start_value});
    return NULL;
}

// Copies, because elements in a file may be unaligned, and kernels read aligned vectors.
static bel_status *read_constant(reader *r, const bel_onnx_node *node, bel_value **out)
{
    const bel_onnx_attr *attr = graph_read_find(node, "value");
    BEL_TRY(check_counts(node, 0, 1));
    if (attr == NULL || attr->kind != BEL_ONNX_TENSOR) return node_lacks("value", "tensor");
    *out = bel_constant(r->graph, &attr->tensor);
    return NULL;
}

// --- Operations ----------------------------------------------------------------------------------

static int find_op(const char *name)
{
    for (int op = 0; op < BEL_OP_COUNT; op++)
        if (strcmp(bel_op_get((bel_op)op)->name, name) == 0) return op;
    return -1;
}

// Only passes make Fused, and its description is not in its attributes.
static bel_status *find_operation(const bel_onnx_node *node, bel_op *out_op)
{
    int op = find_op(node->op);
    if (op < 0) return BEL_ERR(BEL_UNIMPLEMENTED, "there is no such operation");
    const bel_op_def *def = bel_op_get((bel_op)op);
    if ((def->flags & (BEL_OP_LEAF | BEL_OP_COLLECTIVE)) != 0 || op == BEL_OP_FUSED)
        return BEL_ERR(BEL_DATA_LOSS, "no graph in a file has this operation");
    if (node->input_count < def->min_inputs || node->input_count > def->max_inputs ||
        node->output_count != def->output_count)
        return BEL_ERR(BEL_DATA_LOSS, "expected %d to %d inputs and %d outputs, got %d and %d",
                       def->min_inputs, def->max_inputs, def->output_count, node->input_count,
                       node->output_count);
    *out_op = (bel_op)op;
    return NULL;
}

static bel_status *read_operation(reader *r, const bel_onnx_node *node, bel_value **out_values)
{
    bel_op op = BEL_OP_COUNT;
    bel_attr_list attrs;
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    BEL_TRY(find_operation(node, &op));
    BEL_TRY(read_attrs(r, node, &attrs));
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = node->inputs[i] < 0 ? NULL : r->values[node->inputs[i]];
        if (inputs[i] == NULL)
            return BEL_ERR(BEL_DATA_LOSS, "its input %d is no value of the graph", i);
    }
    const bel_node *made =
        bel_graph_add_node(r->graph, node->name, op, &attrs, inputs, node->input_count);
    for (int o = 0; o < node->output_count && made != NULL; o++)
        out_values[o] = made->outputs[o];
    return NULL;
}

static bel_status *read_result(const reader *r, const bel_onnx_node *node, bel_value **out)
{
    BEL_TRY(check_counts(node, 1, 1));
    *out = node->inputs[0] < 0 ? NULL : r->values[node->inputs[0]];
    return *out != NULL ? NULL : BEL_ERR(BEL_DATA_LOSS, "it is of no value of the graph");
}

// --- Models --------------------------------------------------------------------------------------

static bel_status *read_node(reader *r, const bel_onnx_node *node)
{
    bel_value *values[BEL_OP_MAX_OUTPUTS] = {NULL};
    bel_status *status;
    if (strcmp(node->domain, BEL_GRAPH_FILE_DOMAIN) != 0)
        return BEL_ERR(BEL_DATA_LOSS, "it is not of domain \"%s\"", BEL_GRAPH_FILE_DOMAIN);
    if (node->version != BEL_GRAPH_FORM_VERSION)
        return BEL_ERR(BEL_UNIMPLEMENTED, "it is of version %d, expected %d", node->version,
                       BEL_GRAPH_FORM_VERSION);
    if (strcmp(node->op, BEL_GRAPH_FORM_INPUT) == 0) {
        status = read_input(r, node, values);
    } else if (strcmp(node->op, BEL_GRAPH_FORM_VARIABLE) == 0) {
        status = read_variable(r, node, values);
    } else if (strcmp(node->op, BEL_GRAPH_FORM_LOOKUP) == 0) {
        status = read_lookup(r, node, values);
    } else if (strcmp(node->op, BEL_GRAPH_FORM_RESULT) == 0) {
        status = read_result(r, node, values);
    } else if (strcmp(node->op, bel_op_get(BEL_OP_CONSTANT)->name) == 0) {
        status = read_constant(r, node, values);
    } else {
        status = read_operation(r, node, values);
    }
    if (status == NULL) status = bel_graph_check(r->graph);
    for (int o = 0; o < node->output_count && status == NULL; o++)
        if (node->outputs[o] >= 0) r->values[node->outputs[o]] = values[o];
    return status;
}

static bel_status *read_all(reader *r, bel_value **out_results)
{
    const bel_onnx_model *model = r->model;
    for (int n = 0; n < model->node_count; n++) {
        char label[BEL_ONNX_LABEL];
        BEL_TRY_CTX(read_node(r, &model->nodes[n]), "%s",
                    bel_onnx_node_label(&model->nodes[n], label));
    }
    for (int o = 0; o < model->output_count; o++)
        if (r->values[model->output_ids[o]] == NULL)
            return BEL_ERR(BEL_DATA_LOSS, "output \"%s\" is no value of the graph",
                           model->outputs[o].name);
    BEL_TRY(bel_graph_verify(r->graph));
    for (int o = 0; o < model->output_count; o++)
        out_results[o] = r->values[model->output_ids[o]];
    return NULL;
}

bool bel_graph_file_is(const bel_onnx_model *model)
{
    return model->node_count > 0 && strcmp(model->nodes->domain, BEL_GRAPH_FILE_DOMAIN) == 0;
}

bel_status *bel_graph_file_read(const bel_onnx_model *model, bel_graph **out_graph,
                                bel_value **out_results)
{
    reader r = {.model = model,
                .graph = bel_graph_create(),
                .values = bel_xcalloc((size_t)model->name_count + 1, sizeof(bel_value *))};
    bel_status *status = read_all(&r, out_results);
    bel_free(r.values);
    if (status == NULL) {
        *out_graph = r.graph;
    } else {
        bel_graph_destroy(r.graph);
    }
    return status;
}
