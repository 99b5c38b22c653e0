// Builder: nodes → operations of a graph, in the order of the file.
//
// A value of the model becomes a value of the graph when a node first reads it. A node with only
// constant inputs is built into a separate graph and run at once with the plain kernels; its
// outputs are constants. So the chains that compute shapes end as attributes. If they contain sizes
// of open dimensions, sizes.c computes them symbolically.
#include <string.h>

#include "base/alloc.h"
#include "onnx/build.h"
#include "onnx/fold.h"
#include "onnx/sizes.h"
#include "onnx/weights.h"
#include "ops/kernels/elements.h"

enum { LONGEST_VARIABLE = 300 }; // variable's name with its scope

struct bel_onnx_builder {
    const bel_onnx_model *model;
    bel_graph *graph;
    const bel_onnx_options *options;
    bel_value **values;                // by value id; NULL: not made yet
    const bel_onnx_sizes **sizes;      // by value id; NULL: not sizes
    bel_arena *arena;                  // for sizes
    int *uses;                         // by value id: number of nodes and outputs that read it
    bool *taken;                       // by value id: an initializer counted in an earlier row
    const bel_onnx_binding **bindings; // by input; NULL: unbound
    int64_t spent;                     // elements of constants that nodes made
    size_t *ends;                      // by node of the model: graph nodes until after it; or NULL
};

// --- Values --------------------------------------------------------------------------------------

static const bel_tensor *initializer_of(const bel_onnx_builder *b, int id)
{
    int index = b->model->names[id].initializer;
    return index < 0 ? b->model->names[id].local : &b->model->initializers[index].tensor;
}

// True if an initializer becomes a variable of the graph.
static bool is_variable(const bel_onnx_builder *b, int id)
{
    const bel_tensor *tensor = initializer_of(b, id);
    if (tensor == NULL || b->model->names[id].local != NULL) return false;
    if (b->options->weights != NULL)
        return bel_onnx_role_of(b->options->weights, id) != BEL_ONNX_FIXED;
    return b->options->variables && tensor->dtype == BEL_DTYPE_F32 &&
           bel_shape_elements(&tensor->shape) > 0;
}

// Returns the elements of a value that never changes, or NULL.
static const bel_tensor *constant_of(const bel_onnx_builder *b, int id)
{
    if (is_variable(b, id)) return NULL;
    const bel_value *value = b->values[id];
    if (value == NULL) return initializer_of(b, id);
    return value->node->op == BEL_OP_CONSTANT ? &value->node->constant : NULL;
}

// Returns the known elements of a value during building, or NULL.
static const bel_tensor *elements_of(const bel_onnx_builder *b, int id)
{
    const bel_tensor *tensor = constant_of(b, id);
    if (tensor == NULL) tensor = initializer_of(b, id);
    int input = b->model->names[id].input;
    if (tensor == NULL && input >= 0 && b->bindings[input] != NULL)
        tensor = b->bindings[input]->elements;
    return tensor;
}

// Returns an input of the graph, made when a node first reads it.
static bel_value *input_value(bel_onnx_builder *b, int input)
{
    const bel_onnx_port *port = &b->model->inputs[input];
    if (!port->ranked) {
        bel_graph_fail(b->graph, BEL_FAILED_PRECONDITION,
                       "the model does not say the shape of its input \"%s\": bind it", port->name);
        return NULL;
    }
    return bel_input_value(b->graph, port->name, port->dtype, &port->shape);
}

// Returns the elements as f32; they live as long as the graph and the model.
static const float *elements_as_f32(bel_onnx_builder *b, const bel_tensor *tensor)
{
    if (tensor->dtype == BEL_DTYPE_F32) return tensor->data;
    int64_t count = bel_shape_elements(&tensor->shape);
    float *elements = bel_arena_alloc(b->graph->arena, (size_t)count * sizeof *elements);
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)bel_element_get(tensor, i);
    return elements;
}

// Makes a variable with the name of value `id`, with these initial elements in their type.
static bel_value *variable_of(bel_onnx_builder *b, int id, const bel_tensor *tensor)
{
    const char *name = b->model->names[id].text;
    if (strlen(b->graph->scope) + strlen(name) > LONGEST_VARIABLE) {
        bel_graph_fail(b->graph, BEL_UNIMPLEMENTED,
                       "initializer \"%.40s...\": a variable has a name of at most %d bytes", name,
                       LONGEST_VARIABLE);
        return NULL;
    }
    const bel_onnx_weights *weights = b->options->weights;
    bool frozen = weights != NULL && bel_onnx_role_of(weights, id) == BEL_ONNX_STATISTIC;
    size_t before = b->graph->variable_count;
    bel_value *value =
        bel_variable(b->graph, name, &tensor->shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                     frozen ? BEL_VARIABLE_FROZEN : BEL_VARIABLE_TRAINABLE);
    if (b->graph->variable_count > before)
        b->graph->variables[before].elements = elements_as_f32(b, tensor);
    return value == NULL || tensor->dtype == BEL_DTYPE_F32
               ? value
               : bel_cast(b->graph, value, tensor->dtype);
}

// Uses the model's elements in place if they are aligned to a cache line, as a copy would be.
static bel_value *constant_value(bel_onnx_builder *b, const bel_tensor *tensor)
{
    bool aligned = (uintptr_t)tensor->data % BEL_GRAPH_CONSTANT_ALIGNMENT == 0;
    return b->options->views && aligned ? bel_graph_add_view(b->graph, NULL, tensor)
                                        : bel_constant(b->graph, tensor);
}

// Returns the graph's value for value `id`, making it if it is an initializer or an input; NULL
// after an error.
static bel_value *value_of(bel_onnx_builder *b, int id)
{
    if (b->values[id] != NULL) return b->values[id];
    const bel_onnx_name *name = &b->model->names[id];
    if (b->sizes[id] != NULL) {
        bel_graph_fail(
            b->graph, BEL_UNIMPLEMENTED,
            "\"%s\" is computed from the size of an open dimension, which Belfry follows "
            "only into shapes; close that dimension, or bind it",
            name->text);
        return NULL;
    }
    if (is_variable(b, id)) {
        b->values[id] = variable_of(b, id, initializer_of(b, id));
    } else if (initializer_of(b, id) != NULL) {
        b->values[id] = constant_value(b, initializer_of(b, id));
    } else if (name->input >= 0) {
        b->values[id] = input_value(b, name->input);
    }
    return b->values[id];
}

// --- Interface for the make functions ------------------------------------------------------------

bool bel_onnx_has(const bel_onnx_call *call, int input)
{
    return input < call->node->input_count && call->node->inputs[input] >= 0;
}

bel_value *bel_onnx_in(bel_onnx_call *call, int input)
{
    if (!bel_onnx_has(call, input)) return NULL;
    bel_onnx_builder *b = call->builder;
    int id = call->node->inputs[input];
    const bel_tensor *stand_in = call->stand_ins == NULL ? NULL : &call->stand_ins[input];
    if (stand_in != NULL && stand_in->data == NULL) stand_in = NULL;
    if (call->inputs[input] == NULL) {
        call->inputs[input] =
            call->graph == b->graph
                ? value_of(b, id)
                : bel_constant(call->graph, stand_in != NULL ? stand_in : constant_of(b, id));
    }
    return call->inputs[input];
}

bel_shape bel_onnx_in_shape(bel_onnx_call *call, int input)
{
    const bel_onnx_sizes *sizes = bel_onnx_sizes_in(call, input);
    return sizes != NULL ? sizes->shape : bel_value_shape(bel_onnx_in(call, input));
}

void bel_onnx_ins(bel_onnx_call *call, int count, bel_value **out_inputs)
{
    for (int i = 0; i < count; i++)
        out_inputs[i] = bel_onnx_in(call, i);
}

bool bel_onnx_is_known(bel_onnx_call *call, int input)
{
    return bel_onnx_has(call, input) &&
           elements_of(call->builder, call->node->inputs[input]) != NULL;
}

bool bel_onnx_is_constant(const bel_onnx_call *call, int input)
{
    return bel_onnx_has(call, input) &&
           constant_of(call->builder, call->node->inputs[input]) != NULL;
}

const bel_onnx_sizes *bel_onnx_sizes_in(const bel_onnx_call *call, int input)
{
    return bel_onnx_has(call, input) ? call->builder->sizes[call->node->inputs[input]] : NULL;
}

void bel_onnx_keep_sizes(bel_onnx_call *call, int output, const bel_onnx_sizes *sizes)
{
    if (!bel_onnx_wants(call, output)) return;
    bel_onnx_builder *b = call->builder;
    bel_onnx_sizes *kept = bel_arena_copy(b->arena, sizes, sizeof *sizes);
    size_t count = (size_t)bel_shape_elements(&sizes->shape);
    kept->items = bel_arena_copy(b->arena, sizes->items, count * sizeof *sizes->items);
    b->sizes[call->node->outputs[output]] = kept;
}

bool bel_onnx_merges(const bel_onnx_call *call)
{
    return call->builder->options->merge && call->graph == call->builder->graph;
}

bool bel_onnx_may_merge(const bel_onnx_call *call, int input)
{
    return bel_onnx_merges(call) && bel_onnx_has(call, input) &&
           call->builder->uses[call->node->inputs[input]] == 1;
}

bel_status *bel_onnx_known(bel_onnx_call *call, int input, bel_tensor *out_elements)
{
    if (!bel_onnx_has(call, input)) {
        return BEL_ERR(BEL_DATA_LOSS, "input %d is missing", input);
    }
    int id = call->node->inputs[input];
    const bel_tensor *tensor = elements_of(call->builder, id);
    if (tensor == NULL) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "input %d \"%s\" must be known when the graph is built: an initializer, or "
                       "computed from constants and closed shapes",
                       input, call->builder->model->names[id].text);
    }
    *out_elements = *tensor;
    return NULL;
}

void bel_onnx_out(bel_onnx_call *call, int output, bel_value *value)
{
    if (output < call->node->output_count) call->outputs[output] = value;
}

bool bel_onnx_wants(const bel_onnx_call *call, int output)
{
    return output < call->node->output_count && call->node->outputs[output] >= 0;
}

int64_t bel_onnx_declared_dim(const bel_onnx_call *call, int output, int32_t axis)
{
    const bel_onnx_model *model = call->builder->model;
    if (!bel_onnx_wants(call, output)) return 0;
    for (int i = 0; i < model->input_count; i++)
        if (call->builder->bindings[i] != NULL) return 0; // its open dimensions have other symbols
    for (int o = 0; o < model->output_count; o++) {
        const bel_onnx_port *port = &model->outputs[o];
        if (model->output_ids[o] != call->node->outputs[output] || !port->ranked) continue;
        return axis < port->shape.rank ? port->shape.dims[axis] : 0;
    }
    return 0;
}

bel_status *bel_onnx_spend(bel_onnx_call *call, double elements)
{
    int64_t *spent = &call->builder->spent;
    if (!(elements <= BEL_ONNX_CONSTANT_ELEMENTS)) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%.0f elements are too many for a constant", elements);
    }
    if ((int64_t)elements > BEL_ONNX_ALL_ELEMENTS - *spent) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "nodes make constants of more than %d elements in all",
                       BEL_ONNX_ALL_ELEMENTS);
    }
    *spent += (int64_t)elements;
    return NULL;
}

// --- Nodes ---------------------------------------------------------------------------------------

// Omitted inputs at the end are not passed to the operation; one omitted in the middle is an error
// of the graph.
static bel_value *make_same(bel_onnx_call *call, const bel_attr_list *attrs)
{
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    int count = call->node->input_count;
    while (count > call->rule->min_inputs && call->node->inputs[count - 1] < 0)
        count--; // omitted at the end
    bel_onnx_ins(call, count, inputs);
    return bel_graph_add(call->graph, call->rule->op, attrs, inputs, count);
}

// Makes Belfry's equivalent operation with one output: copies attributes and adds defaults.
static bel_status *same(bel_onnx_call *call)
{
    bel_attr_list attrs = {.count = 0};
    for (const bel_onnx_attr_rule *rule = call->rule->attrs; rule->name != NULL; rule++) {
        bel_attr *attr = &attrs.items[attrs.count];
        *attr = (bel_attr){.name = rule->name};
        if (rule->kind == BEL_ONNX_INTS) {
            if (bel_onnx_find_attr(call, rule->name) == NULL) continue;
            BEL_TRY(bel_onnx_ints(call, rule->name, &attr->ints));
        } else {
            if (rule->kind == BEL_ONNX_TENSOR && bel_onnx_find_attr(call, rule->name) == NULL)
                continue;
            attr->number = bel_onnx_number(call, rule->name);
        }
        attrs.count++;
    }
    bel_onnx_out(call, 0, make_same(call, &attrs));
    return NULL;
}

// Reports the graph's sticky error first: a function's status may only follow from it.
bel_status *bel_onnx_make_outputs(bel_onnx_call *call)
{
    bel_status *status = call->rule->make != NULL ? call->rule->make(call) : same(call);
    bel_status *first = bel_graph_check(call->graph);
    if (first != NULL) {
        bel_status_ignore(status); // it followed from the graph's error
        return first;
    }
    if (status != NULL) return status;
    for (int i = 0; i < call->node->output_count; i++) {
        int id = call->node->outputs[i];
        if (id < 0 || call->outputs[i] != NULL || call->builder->sizes[id] != NULL) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED, "Belfry does not make its output %d", i);
    }
    return NULL;
}

// True if all inputs are constants of moderate size. Subgraphs may use others.
static bool is_foldable(const bel_onnx_builder *b, const bel_onnx_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == BEL_ONNX_GRAPH) return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] < 0) continue;
        const bel_tensor *tensor = constant_of(b, node->inputs[i]);
        if (tensor == NULL || bel_shape_elements(&tensor->shape) > BEL_ONNX_CONSTANT_ELEMENTS)
            return false;
    }
    return node->input_count > 0;
}

static int64_t elements_of_outputs(const bel_onnx_call *call)
{
    int64_t sum = 0;
    for (int i = 0; i < call->node->output_count; i++) {
        bel_shape shape = bel_value_shape(call->outputs[i]);
        int64_t elements = bel_shape_elements(&shape);
        if (elements < 0 || elements > BEL_ONNX_ALL_ELEMENTS - sum) return BEL_ONNX_ALL_ELEMENTS;
        sum += elements;
    }
    return sum;
}

// Builds the node in a separate graph and adds its results to the graph as constants; *out_done is
// false if that is left to run time.
static bel_status *build_fold(bel_onnx_call *call, bool *out_done)
{
    bel_onnx_call beside = *call;
    beside.graph = bel_graph_create();
    bel_status *status = bel_onnx_make_outputs(&beside);
    int64_t elements = elements_of_outputs(call), *spent = &call->builder->spent;
    bool fits = elements < BEL_ONNX_ALL_ELEMENTS - *spent;
    if (status == NULL && fits) {
        *spent += elements;
        status = bel_onnx_compute(beside.graph, call->outputs, call->node->output_count,
                                  call->builder->graph, out_done);
    }
    bel_graph_destroy(beside.graph);
    return status;
}

static bool has_sizes(const bel_onnx_call *call)
{
    for (int i = 0; i < call->node->input_count; i++)
        if (bel_onnx_sizes_in(call, i) != NULL) return true;
    return false;
}

// Returns an output that is a constant and a weight as a variable.
static bel_value *as_weight(bel_onnx_builder *b, int id, bel_value *value)
{
    const bel_onnx_weights *weights = b->options->weights;
    bool is = weights != NULL && value != NULL && value->node->op == BEL_OP_CONSTANT &&
              bel_onnx_role_of(weights, id) != BEL_ONNX_FIXED;
    return is ? variable_of(b, id, &value->node->constant) : value;
}

// Tries constants first, then sizes. If that is left to run time, calls the function again for the
// graph itself.
static bel_status *build_node(bel_onnx_builder *b, const bel_onnx_node *node, bel_arena *arena)
{
    bel_onnx_call call = {.builder = b, .graph = b->graph, .node = node};
    BEL_TRY(bel_onnx_find_rule(node, &call.rule));
    size_t inputs = (size_t)node->input_count * sizeof(bel_value *);
    size_t outputs = (size_t)node->output_count * sizeof(bel_value *);
    call.inputs = bel_arena_alloc(arena, inputs);
    call.outputs = bel_arena_alloc(arena, outputs);
    bool done = false;
    if (is_foldable(b, node)) BEL_TRY(build_fold(&call, &done));
    if (has_sizes(&call)) BEL_TRY(bel_onnx_follow(&call, &done));
    if (!done) {
        memset(call.inputs, 0, inputs);
        memset(call.outputs, 0, outputs);
        BEL_TRY(bel_onnx_make_outputs(&call));
    }
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] >= 0)
            b->values[node->outputs[i]] = as_weight(b, node->outputs[i], call.outputs[i]);
    bel_arena_reset(arena);
    return NULL;
}

static bel_status *build_nodes(bel_onnx_builder *b, const bel_onnx_node *nodes, int count,
                               bel_arena *arena)
{
    for (int i = 0; i < count; i++) {
        char label[BEL_ONNX_LABEL];
        BEL_TRY_CTX(build_node(b, &nodes[i], arena), "%s", bel_onnx_node_label(&nodes[i], label));
    }
    return NULL;
}

bel_status *bel_onnx_build_subgraph(bel_onnx_call *call, const bel_onnx_subgraph *graph)
{
    bel_onnx_builder *b = call->builder;
    const bel_onnx_node *node = call->node;
    if (graph->refused != NULL) {
        return BEL_ERR(bel_status_code(graph->refused), "%s", bel_status_message(graph->refused));
    }
    if (graph->input_count > 0 || graph->output_count != node->output_count) {
        return BEL_ERR(BEL_DATA_LOSS, "a branch has %d inputs and %d outputs, expected 0 and %d",
                       graph->input_count, graph->output_count, node->output_count);
    }
    bel_arena *arena = bel_arena_create(); // separate from the one that has the call
    bel_status *status = build_nodes(b, graph->nodes, graph->node_count, arena);
    bel_arena_destroy(arena);
    for (int i = 0; i < graph->output_count && status == NULL; i++) {
        int id = graph->output_ids[i];
        if (node->outputs[i] >= 0) b->sizes[node->outputs[i]] = b->sizes[id];
        if (b->sizes[id] == NULL) bel_onnx_out(call, i, value_of(b, id));
    }
    return status;
}

// --- Models --------------------------------------------------------------------------------------

// Binds an input to a value of the graph, or to known elements; types must agree.
static bel_status *bind_one(bel_onnx_builder *b, const bel_onnx_binding *binding)
{
    int input = 0, count = b->model->input_count;
    while (input < count && strcmp(b->model->inputs[input].name, binding->name) != 0)
        input++;
    if (input == count) {
        return BEL_ERR(BEL_NOT_FOUND, "the model has no input \"%s\" to bind", binding->name);
    }
    bel_dtype wanted = b->model->inputs[input].dtype, dtype = wanted;
    if (binding->elements != NULL) dtype = binding->elements->dtype;
    if (binding->value != NULL) dtype = bel_value_dtype(binding->value);
    bool foreign = binding->value != NULL && binding->value->graph != b->graph;
    if (dtype != wanted || foreign) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input \"%s\" is %s and is bound to %s%s",
                       binding->name, bel_dtype_name(wanted), bel_dtype_name(dtype),
                       foreign ? " of another graph" : "");
    }
    b->bindings[input] = binding;
    b->values[b->model->input_ids[input]] = binding->value;
    return NULL;
}

// Adds unbound inputs to the graph in the order of the model, even if no node reads them.
static bel_status *add_inputs(bel_onnx_builder *b)
{
    for (int i = 0; i < b->model->input_count; i++)
        if (b->bindings[i] == NULL) value_of(b, b->model->input_ids[i]);
    return bel_graph_check(b->graph);
}

static void count_uses(bel_onnx_builder *b)
{
    for (int i = 0; i < b->model->node_count; i++) {
        const bel_onnx_node *node = &b->model->nodes[i];
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] >= 0) b->uses[node->inputs[k]]++;
    }
    for (int i = 0; i < b->model->output_count; i++)
        b->uses[b->model->output_ids[i]]++;
}

// --- Rows for people -----------------------------------------------------------------------------

// True if everything that a node reads exists: the nodes before it could be built.
static bool can_be_built(bel_onnx_builder *b, const bel_onnx_node *node)
{
    if (b->graph->error_code != BEL_OK) return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] < 0) continue;
        const bel_onnx_name *name = &b->model->names[node->inputs[i]];
        bool made = name->input < 0 && name->initializer < 0;
        if (made && b->values[node->inputs[i]] == NULL) return false;
    }
    return true;
}

static int64_t parameters_of(bel_onnx_builder *b, const bel_onnx_node *node)
{
    int64_t parameters = 0;
    for (int i = 0; i < node->input_count; i++) {
        int id = node->inputs[i];
        const bel_tensor *tensor = id < 0 || b->taken[id] ? NULL : initializer_of(b, id);
        if (tensor == NULL) continue;
        bool whole = tensor->dtype == BEL_DTYPE_I32 || tensor->dtype == BEL_DTYPE_I64 ||
                     tensor->dtype == BEL_DTYPE_U8 || tensor->dtype == BEL_DTYPE_BOOL;
        b->taken[id] = true;
        if (!whole) parameters += bel_shape_elements(&tensor->shape);
    }
    return parameters;
}

// Builds a node if possible, and reports the result.
static void try_node(bel_onnx_builder *b, const bel_onnx_node *node, bel_arena *arena)
{
    bel_onnx_row row = {node->name, node->op, NULL, parameters_of(b, node), NULL};
    bel_status *status = NULL;
    if (can_be_built(b, node)) {
        status = build_node(b, node, arena);
        if (status != NULL) row.error = bel_status_message(status);
        if (status == NULL && node->output_count > 0 && node->outputs[0] >= 0)
            row.value = b->values[node->outputs[0]];
    }
    bel_arena_reset(arena);
    b->options->each(b->options->user, &row);
    bel_status_ignore(status); // reported
}

// Builds the nodes of the model's graph. Nodes of subgraphs count for the node that contains them.
static bel_status *build_all(bel_onnx_builder *b, bel_arena *arena)
{
    const bel_onnx_model *model = b->model;
    for (int i = 0; i < model->node_count; i++) {
        BEL_TRY(build_nodes(b, &model->nodes[i], 1, arena));
        if (b->ends != NULL) b->ends[i] = b->graph->node_count;
    }
    return NULL;
}

// Builds inputs, nodes in the order of the file, outputs.
static bel_status *onnx_builder_build(bel_onnx_builder *b, bel_arena *arena,
                                      bel_value **out_outputs)
{
    const bel_onnx_model *model = b->model;
    BEL_TRY(add_inputs(b));
    bool looks = b->options->each != NULL;
    for (int i = 0; i < model->node_count && looks; i++)
        try_node(b, &model->nodes[i], arena);
    if (!looks) BEL_TRY(build_all(b, arena));
    for (int i = 0; i < model->output_count; i++)
        out_outputs[i] = value_of(b, model->output_ids[i]);
    return looks ? NULL : bel_graph_check(b->graph);
}

bel_status *bel_onnx_build_as_bound(const bel_onnx_model *model, bel_graph *graph,
                                    const bel_onnx_options *options, size_t *out_ends,
                                    bel_value **out_outputs)
{
    static const bel_onnx_options none = {.bindings = NULL};
    if (options == NULL) options = &none;
    BEL_TRY(bel_graph_check(graph));
    size_t names = (size_t)model->name_count + 1, inputs = (size_t)model->input_count + 1;
    bel_onnx_builder b = {.model = model,
                          .graph = graph,
                          .options = options,
                          .ends = out_ends,
                          .uses = bel_xcalloc(names, sizeof(int)),
                          .taken = bel_xcalloc(names, sizeof(bool)),
                          .values = bel_xcalloc(names, sizeof(bel_value *)),
                          .sizes = bel_xcalloc(names, sizeof(bel_onnx_sizes *)),
                          .arena = bel_arena_create(),
                          .bindings = bel_xcalloc(inputs, sizeof(bel_onnx_binding *))};
    bel_arena *arena = bel_arena_create(); // emptied after each node
    count_uses(&b);
    bel_status *status = NULL;
    for (int i = 0; i < options->binding_count && status == NULL; i++)
        status = bind_one(&b, &options->bindings[i]);
    if (status == NULL) status = onnx_builder_build(&b, arena, out_outputs);
    bel_arena_destroy(arena);
    bel_arena_destroy(b.arena);
    bel_free(b.values);
    bel_free(b.sizes);
    bel_free(b.uses);
    bel_free(b.taken);
    bel_free(b.bindings);
    return status;
}
