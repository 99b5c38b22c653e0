// Choice of channels-last values: all candidates except those tied to a value that cannot be.
// Operations with BEL_OP_CHANNELS accept either order for each operand, so only element-wise ones
// tie their operands together. Tied values form a set, and one value in plain order puts its whole
// set in plain order. So the choice follows only from graph and shapes. Outputs of a program are
// always in plain order, and so are weights, although they have four dimensions.
#include "runtime/channels.h"

#include "base/alloc.h"

static int flags_of(const bel_node *node)
{
    return bel_op_get(node->op)->flags;
}

// Whether `value` is a weight tensor of `node`, which is no image although it has four dimensions.
static bool is_weights(const bel_node *node, const bel_value *value)
{
    if (node->op == BEL_OP_CONV_GRAD_WEIGHTS) {
        return value == node->outputs[0] || value == node->inputs[2];
    }
    bool reads = node->op == BEL_OP_CONV || node->op == BEL_OP_CONV_GRAD_INPUT ||
                 node->op == BEL_OP_CONV_TRANSPOSE;
    return reads && value == node->inputs[1];
}

// True when `node` can have a channels-last operand `value`.
static bool allows(const bel_node *node, const bel_spec *specs, const bel_value *value)
{
    bool f32 = specs[value->id].dtype == BEL_DTYPE_F32;
    if ((flags_of(node) & BEL_OP_CHANNELS) != 0) return f32 && !is_weights(node, value);
    if ((flags_of(node) & BEL_OP_ELEMENTWISE) == 0) return false;
    const bel_shape *shape = &specs[node->outputs[0]->id].shape;
    for (int i = 0; i < node->input_count; i++)
        if (!bel_shape_equal(&specs[node->inputs[i]->id].shape, shape)) return false;
    return true;
}

// Root of a value's set (union-find with path halving).
static int find_set(int *sets, int value)
{
    while (sets[value] != value)
        value = sets[value] = sets[sets[value]];
    return value;
}

// Unites the operands of each element-wise operation.
static int *tie_operands(const bel_graph *graph, const bool *needed)
{
    int *sets = bel_xcalloc(graph->value_count, sizeof *sets);
    for (size_t v = 0; v < graph->value_count; v++)
        sets[v] = (int)v;
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n] || (flags_of(node) & BEL_OP_ELEMENTWISE) == 0) continue;
        for (int i = 0; i < node->input_count; i++)
            sets[find_set(sets, node->inputs[i]->id)] = find_set(sets, node->outputs[0]->id);
    }
    return sets;
}

// Puts all values in plain order that are tied to one in plain order.
static void settle(const bel_graph *graph, const bool *needed, bool *last)
{
    int *sets = tie_operands(graph, needed);
    for (size_t v = 0; v < graph->value_count; v++)
        if (!last[v]) last[find_set(sets, (int)v)] = false;
    for (size_t v = 0; v < graph->value_count; v++)
        last[v] = last[find_set(sets, (int)v)];
    bel_free(sets);
}

void bel_channels_last(const bel_graph *graph, const bool *needed, const bel_spec *specs,
                       const bel_program_output *outputs, int output_count, bool *out_last)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        for (int i = 0; needed[n] && i < node->output_count; i++) {
            const bel_spec *spec = &specs[node->outputs[i]->id];
            bool image = spec->shape.rank >= 3;
            out_last[node->outputs[i]->id] = image && allows(node, specs, node->outputs[i]);
        }
        for (int i = 0; needed[n] && i < node->input_count; i++)
            if (!allows(node, specs, node->inputs[i])) out_last[node->inputs[i]->id] = false;
    }
    for (int i = 0; i < output_count; i++)
        out_last[outputs[i].value->id] = false;
    settle(graph, needed, out_last);
}
