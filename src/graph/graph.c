// Nodes, leaves, scopes, the first error, and inference of closed shapes. Nodes, values and names
// are in the graph's arena, so they keep their addresses while the arrays that list them grow, and
// are freed together. A node is named by scope, operation and index. Random operations draw by a
// hash of that name (and variables are initialized by theirs), so other node names change bits.
// Every shape, of leaves and inferred, is below 2^48 elements with open and empty dimensions
// counted as 1, which lets later code multiply sizes in int64. A shape rule runs again for closed
// shapes: it must depend only on attributes and input specs.
#include "graph/graph.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/ops.h"

bel_graph *bel_graph_create(void)
{
    bel_graph *graph = bel_xcalloc(1, sizeof *graph);
    graph->arena = bel_arena_create();
    return graph;
}

typedef struct bel_attached {
    void *owner;
    void (*release)(void *owner);
    struct bel_attached *next;
} bel_attached;

void bel_graph_attach(bel_graph *graph, void *owner, void (*release)(void *owner))
{
    bel_attached *attached = bel_arena_alloc(graph->arena, sizeof *attached);
    *attached = (bel_attached){owner, release, graph->attached};
    graph->attached = attached;
}

void bel_graph_destroy(bel_graph *graph)
{
    if (graph == NULL) return;
    for (bel_attached *a = graph->attached; a != NULL; a = a->next)
        a->release(a->owner);
    bel_arena_destroy(graph->arena);
    bel_free(graph->nodes);
    bel_free(graph->values);
    bel_free(graph->variables);
    bel_free(graph->inputs);
    bel_free(graph->tables);
    bel_free(graph->lookups);
    bel_free(graph->collectives);
    bel_index_deinit(&graph->variable_names);
    bel_index_deinit(&graph->input_names);
    bel_index_deinit(&graph->table_names);
    bel_free(graph->error);
    bel_free(graph);
}

// --- Errors and scopes ---------------------------------------------------------------------------

bel_status *bel_graph_check(const bel_graph *graph)
{
    return graph->error_code == BEL_OK ? NULL : BEL_ERR(graph->error_code, "%s", graph->error);
}

void bel_graph_fail(bel_graph *graph, bel_code code, const char *format, ...)
{
    if (graph->error_code != BEL_OK) return;
    char message[1024];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    graph->error_code = code == BEL_OK ? BEL_UNKNOWN : code;
    graph->error = bel_xstrdup(message);
}

bool bel_graph_ok(bel_graph *graph, bel_status *status)
{
    if (status == NULL) return true;
    bel_graph_fail(graph, bel_status_code(status), "%s", bel_status_message(status));
    bel_status_destroy(status);
    return false;
}

void bel_graph_push_scope(bel_graph *graph, const char *scope)
{
    size_t used = strlen(graph->scope), size = sizeof graph->scope;
    if (used + strlen(scope) + 2 > size || graph->scope_count == BEL_GRAPH_MAX_SCOPES) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "scope \"%s\" is nested too deeply", scope);
        return;
    }
    graph->scope_starts[graph->scope_count++] = (int)used;
    bel_snprintf(graph->scope + used, size - used, "%s/", scope);
}

void bel_graph_pop_scope(bel_graph *graph)
{
    if (graph->scope_count == 0) return;
    graph->scope[graph->scope_starts[--graph->scope_count]] = '\0';
}

// --- Nodes ---------------------------------------------------------------------------------------

// `name` NULL: by scope, operation and number.
static bel_node *new_node(bel_graph *graph, const char *name, bel_op op, const bel_attr_list *attrs)
{
    bel_node *node = bel_arena_alloc(graph->arena, sizeof *node);
    node->op = op;
    node->index = (int)graph->node_count;
    if (attrs != NULL) node->attrs = *attrs;
    char made[320];
    bel_snprintf(made, sizeof made, "%s%s_%d", graph->scope, bel_op_get(op)->name, node->index);
    node->name = bel_arena_strdup(graph->arena, name != NULL ? name : made);
    graph->nodes =
        bel_xgrow(graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
    graph->nodes[graph->node_count++] = node;
    return node;
}

static bel_value *new_output(bel_graph *graph, bel_node *node, const bel_spec *spec)
{
    bel_value *value = bel_arena_alloc(graph->arena, sizeof *value);
    *value = (bel_value){.graph = graph, .node = node, .output = node->output_count, .spec = *spec};
    value->id = (int)graph->value_count;
    graph->values = bel_xgrow(graph->values, &graph->value_capacity, graph->value_count + 1,
                              sizeof *graph->values);
    graph->values[graph->value_count++] = value;
    node->outputs[node->output_count++] = value;
    return value;
}

// Checks the result of a shape rule.
static bel_status *check_size(const bel_spec *spec)
{
    bel_shape counted = spec->shape;
    for (int32_t d = 0; d < counted.rank; d++)
        if (counted.dims[d] < 1) counted.dims[d] = 1;
    if (bel_shape_elements(&counted) <= BEL_GRAPH_MAX_ELEMENTS) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "a result of shape %s would have too many elements",
                   bel_shape_text(&spec->shape, text));
}

static bel_status *infer(const bel_op_def *def, const bel_attr_list *attrs, const bel_spec *inputs,
                         int input_count, bel_spec *out_outputs)
{
    if (def->infer == NULL)
        return BEL_ERR(BEL_UNIMPLEMENTED, "this library does not include the operation");
    BEL_TRY(def->infer(attrs, inputs, input_count, out_outputs));
    for (int i = 0; i < def->output_count; i++)
        BEL_TRY(check_size(&out_outputs[i]));
    return NULL;
}

// Checks inputs before a node is made; false if building must not continue.
static bool inputs_ok(bel_graph *graph, const bel_op_def *def, bel_value *const *inputs, int count)
{
    for (int i = 0; i < count && graph->error_code == BEL_OK; i++) {
        if (inputs[i] == NULL) {
            bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "%s%s: input %d is missing", graph->scope,
                           def->name, i);
        } else if (inputs[i]->graph != graph) {
            bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "%s%s: input %d belongs to another graph",
                           graph->scope, def->name, i);
        }
    }
    return graph->error_code == BEL_OK;
}

bel_node *bel_graph_add_node(bel_graph *graph, const char *name, bel_op op,
                             const bel_attr_list *attrs, bel_value *const *inputs, int input_count)
{
    static const bel_attr_list no_attrs = {.count = 0};
    const bel_op_def *def = bel_op_get(op);
    BEL_CHECK(input_count >= def->min_inputs && input_count <= def->max_inputs);
    if (attrs == NULL) attrs = &no_attrs;
    if (!inputs_ok(graph, def, inputs, input_count)) return NULL;

    bel_spec in[BEL_OP_MAX_INPUTS], out[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < input_count; i++)
        in[i] = inputs[i]->spec;
    bel_status *status = infer(def, attrs, in, input_count, out);
    if (status != NULL) {
        bel_graph_fail(graph, bel_status_code(status), "%s%s: %s", graph->scope, def->name,
                       bel_status_message(status));
        bel_status_destroy(status);
        return NULL;
    }
    bel_node *node = new_node(graph, name, op, attrs);
    node->input_count = input_count;
    if (input_count > 0) memcpy(node->inputs, inputs, (size_t)input_count * sizeof *inputs);
    for (int i = 0; i < def->output_count; i++)
        new_output(graph, node, &out[i]);
    return node;
}

bel_value *bel_graph_add(bel_graph *graph, bel_op op, const bel_attr_list *attrs,
                         bel_value *const *inputs, int input_count)
{
    bel_node *node = bel_graph_add_node(graph, NULL, op, attrs, inputs, input_count);
    return node == NULL ? NULL : node->outputs[0];
}

bel_value *bel_graph_output(const bel_value *value, int output)
{
    return value->node->outputs[output];
}

bel_shape bel_value_shape(const bel_value *value)
{
    return value == NULL ? bel_shape_scalar() : value->spec.shape;
}

bel_dtype bel_value_dtype(const bel_value *value)
{
    return value == NULL ? BEL_DTYPE_F32 : value->spec.dtype;
}

uint64_t bel_node_random_id(const bel_node *node)
{
    return bel_hash64(node->name, strlen(node->name));
}

// --- Leaves --------------------------------------------------------------------------------------

static void leaf_failed(bel_graph *graph, const char *kind, const char *name, bel_status *status)
{
    bel_graph_fail(graph, bel_status_code(status), "%s \"%s\": %s", kind, name,
                   bel_status_message(status));
    bel_status_destroy(status);
}

bel_value *bel_input_value(bel_graph *graph, const char *name, bel_dtype dtype,
                           const bel_shape *shape)
{
    if (graph->error_code != BEL_OK) return NULL;
    if (bel_graph_find_input(graph, name) != NULL) {
        bel_graph_fail(graph, BEL_ALREADY_EXISTS, "there is already an input \"%s\"", name);
        return NULL;
    }
    bel_spec spec = {dtype, *shape};
    bel_status *status = check_size(&spec);
    if (status != NULL) {
        leaf_failed(graph, "input", name, status);
        return NULL;
    }
    bel_node *node = new_node(graph, NULL, BEL_OP_INPUT, NULL);
    bel_value *value = new_output(graph, node, &spec);
    node->leaf = (int)graph->input_count;
    graph->inputs = bel_xgrow(graph->inputs, &graph->input_capacity, graph->input_count + 1,
                              sizeof *graph->inputs);
    bel_index_put_text(&graph->input_names, name, node->leaf);
    graph->inputs[graph->input_count++] =
        (bel_graph_input){.name = bel_arena_strdup(graph->arena, name), .value = value};
    return value;
}

const bel_value *bel_alias_root(const bel_value *value)
{
    while ((bel_op_get(value->node->op)->flags & BEL_OP_ALIAS) != 0)
        value = value->node->inputs[0];
    return value;
}

bel_value *bel_graph_find_input(const bel_graph *graph, const char *name)
{
    size_t at = 0;
    for (int i; (i = bel_index_next_text(&graph->input_names, name, &at)) >= 0;)
        if (strcmp(graph->inputs[i].name, name) == 0) return graph->inputs[i].value;
    return NULL;
}

int bel_graph_find_variable(const bel_graph *graph, const char *name)
{
    size_t at = 0;
    for (int v; (v = bel_index_next_text(&graph->variable_names, name, &at)) >= 0;)
        if (strcmp(graph->variables[v].name, name) == 0) return v;
    return -1;
}

int bel_graph_find_table(const bel_graph *graph, const char *name)
{
    size_t at = 0;
    for (int t; (t = bel_index_next_text(&graph->table_names, name, &at)) >= 0;)
        if (strcmp(graph->tables[t].name, name) == 0) return t;
    return -1;
}

bel_value *bel_graph_add_view(bel_graph *graph, const char *name, const bel_tensor *tensor)
{
    if (graph->error_code != BEL_OK) return NULL;
    bel_spec spec = {tensor->dtype, tensor->shape};
    bel_status *status = check_size(&spec);
    if (status != NULL) {
        leaf_failed(graph, "constant", name == NULL ? "" : name, status);
        return NULL;
    }
    if (tensor->dtype == BEL_DTYPE_STRING || bel_shape_elements(&tensor->shape) < 0) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sconstant: expected numbers in a closed shape, got %s %s", graph->scope,
                       bel_dtype_name(tensor->dtype), bel_shape_text(&tensor->shape, text));
        return NULL;
    }
    bel_node *node = new_node(graph, name, BEL_OP_CONSTANT, NULL);
    node->constant = *tensor;
    return new_output(graph, node, &spec);
}

bel_value *bel_constant(bel_graph *graph, const bel_tensor *tensor)
{
    bel_value *value = bel_graph_add_view(graph, NULL, tensor);
    if (value == NULL) return NULL;
    enum { LINE = BEL_GRAPH_CONSTANT_ALIGNMENT };
    size_t bytes = bel_tensor_bytes(tensor);
    char *room = bel_arena_alloc(graph->arena, bytes + LINE);
    room += (LINE - (uintptr_t)room % LINE) % LINE;
    if (bytes > 0) memcpy(room, tensor->data, bytes);
    value->node->constant.data = room;
    return value;
}

bel_value *bel_scalar(bel_graph *graph, bel_dtype dtype, double value)
{
    float narrow = (float)value;
    if (dtype != BEL_DTYPE_F32 && dtype != BEL_DTYPE_F64) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sscalar: expected f32 or f64, got %s; hint: bel_constant takes any type",
                       graph->scope, bel_dtype_name(dtype));
        return NULL;
    }
    bel_tensor tensor = {.dtype = dtype,
                         .data = dtype == BEL_DTYPE_F64 ? (void *)&value : (void *)&narrow};
    return bel_constant(graph, &tensor);
}

bool bel_graph_full_name(bel_graph *graph, const char *name, char out_full[BEL_GRAPH_MAX_NAME])
{
    if (strlen(graph->scope) + strlen(name) >= BEL_GRAPH_MAX_NAME) { // truncated, it could equal
                                                                     // another
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "the name \"%s%.40s…\" is longer than %d bytes",
                       graph->scope, name, BEL_GRAPH_MAX_NAME - 1);
        return false;
    }
    bel_snprintf(out_full, BEL_GRAPH_MAX_NAME, "%s%s", graph->scope, name);
    return true;
}

bel_value *bel_graph_add_variable(bel_graph *graph, const char *full, const bel_shape *shape,
                                  bel_initializer initializer, bel_variable_kind kind)
{
    bel_spec spec = {BEL_DTYPE_F32, *shape};
    bel_status *status = check_size(&spec);
    if (status != NULL) {
        leaf_failed(graph, "variable", full, status);
        return NULL;
    }
    if (bel_shape_elements(shape) <= 0) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "variable \"%s\" needs a closed, non-empty shape, got %s", full,
                       bel_shape_text(shape, text));
        return NULL;
    }
    bel_node *node = new_node(graph, NULL, BEL_OP_VARIABLE, NULL);
    bel_value *value = new_output(graph, node, &spec);
    node->leaf = (int)graph->variable_count;
    graph->variables = bel_xgrow(graph->variables, &graph->variable_capacity,
                                 graph->variable_count + 1, sizeof *graph->variables);
    bel_index_put_text(&graph->variable_names, full, node->leaf);
    graph->variables[graph->variable_count++] =
        (bel_graph_variable){.name = bel_arena_strdup(graph->arena, full),
                             .value = value,
                             .read = value,
                             .initializer = initializer,
                             .kind = kind};
    return value;
}

// --- Queries -------------------------------------------------------------------------------------

void bel_graph_mark(const bel_graph *graph, bel_value *const *values, int count, bool *out_needed)
{
    for (int i = 0; i < count; i++)
        out_needed[values[i]->node->index] = true;
    for (size_t n = graph->node_count; n-- > 0;) {
        const bel_node *node = graph->nodes[n];
        for (int i = 0; out_needed[n] && i < node->input_count; i++)
            out_needed[node->inputs[i]->node->index] = true;
    }
}

// --- Closed shapes -------------------------------------------------------------------------------

static bel_status *infer_node(const bel_node *node, bel_spec *specs)
{
    const bel_op_def *def = bel_op_get(node->op);
    bel_spec in[BEL_OP_MAX_INPUTS], out[BEL_OP_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; i++)
        in[i] = specs[node->inputs[i]->id];
    BEL_TRY_CTX(infer(def, &node->attrs, in, node->input_count, out), "%s", node->name);
    for (int i = 0; i < node->output_count; i++)
        specs[node->outputs[i]->id] = out[i];
    return NULL;
}

bel_status *bel_graph_infer(const bel_graph *graph, const bel_shape *input_shapes,
                            bel_spec *out_specs)
{
    BEL_TRY(bel_graph_check(graph));
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if ((bel_op_get(node->op)->flags & BEL_OP_LEAF) == 0) {
            BEL_TRY(infer_node(node, out_specs));
            continue;
        }
        const bel_value *value = node->outputs[0];
        out_specs[value->id] = value->spec;
        if (node->op != BEL_OP_INPUT) continue;
        const char *name = graph->inputs[node->leaf].name;
        out_specs[value->id].shape = input_shapes[node->leaf];
        if (bel_shape_elements(&out_specs[value->id].shape) < 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\" has an open dimension", name);
        }
        BEL_TRY_CTX(check_size(&out_specs[value->id]), "input \"%s\"", name);
    }
    return NULL;
}

bel_status *bel_graph_verify(const bel_graph *graph)
{
    BEL_TRY(bel_graph_check(graph));
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        const bel_op_def *def = bel_op_get(node->op);
        if (node->index != (int)n || node->output_count != def->output_count ||
            node->input_count < def->min_inputs || node->input_count > def->max_inputs) {
            return BEL_ERR(BEL_INTERNAL, "node %s is malformed", node->name);
        }
        bel_spec in[BEL_OP_MAX_INPUTS], out[BEL_OP_MAX_OUTPUTS];
        for (int i = 0; i < node->input_count; i++) {
            const bel_value *input = node->inputs[i];
            if (input == NULL || input->graph != graph || input->node->index >= node->index) {
                return BEL_ERR(BEL_INTERNAL, "node %s: input %d is not made before it", node->name,
                               i);
            }
            in[i] = input->spec;
        }
        if (def->infer == NULL) continue;
        BEL_TRY_CTX(def->infer(&node->attrs, in, node->input_count, out), "%s", node->name);
        for (int i = 0; i < node->output_count; i++) {
            const bel_spec *spec = &node->outputs[i]->spec;
            if (spec->dtype != out[i].dtype || !bel_shape_equal(&spec->shape, &out[i].shape)) {
                return BEL_ERR(BEL_INTERNAL, "node %s: output %d is not as its rule says",
                               node->name, i);
            }
        }
    }
    return NULL;
}
