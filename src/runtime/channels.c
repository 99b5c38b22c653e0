// Choosing channels-last values: all that could be are taken, then those that do not fit their
// neighbours are given up, until nothing changes. A round only takes away, so it comes to an
// end, and the choice follows from graph and shapes alone. Operations with BEL_OP_CHANNELS
// accept either order for each operand, so element-wise ones alone tie their operands together.
// Outputs of a program always lie in plain order, and so do weights, although they have four
// dimensions.
#include "runtime/channels.h"

static int flags_of(const bel_node *node)
{
    return bel_op_get(node->op)->flags;
}

// Weights are no images, though they have four dimensions.
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

// Element-wise: all operands in one order. Returns whether something was given up.
static bool settle(const bel_node *node, bool *last)
{
    bool all = true, any = false;
    for (int i = 0; i < node->input_count; i++) {
        all = all && last[node->inputs[i]->id];
        any = any || last[node->inputs[i]->id];
    }
    bool *result = &last[node->outputs[0]->id];
    any = any || *result;
    if (!any || (all && *result)) return false;
    for (int i = 0; i < node->input_count; i++)
        last[node->inputs[i]->id] = false;
    *result = false;
    return true;
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
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t n = 0; n < graph->node_count; n++) {
            const bel_node *node = graph->nodes[n];
            bool elementwise = (flags_of(node) & BEL_OP_ELEMENTWISE) != 0;
            if (needed[n] && elementwise && settle(node, out_last)) changed = true;
        }
    }
}
