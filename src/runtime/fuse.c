// Finding the operations that a product can take into its tiles.
#include "runtime/fuse.h"

#include <stddef.h>

// The only use of `value` by a needed node; NULL when there is none or more than one.
static const bel_node *only_reader(const bel_graph *graph, const bool *needed,
                                   const bel_value *value)
{
    const bel_node *reader = NULL;
    for (size_t n = (size_t)value->node->index + 1; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        for (int i = 0; needed[n] && i < node->input_count; i++) {
            if (node->inputs[i] != value) continue;
            if (reader != NULL) return NULL;
            reader = node;
        }
    }
    return reader;
}

static bool can_follow(const bel_node *follower, const bel_node *product)
{
    if ((bel_op_get(follower->op)->flags & BEL_OP_FOLLOWS) == 0) return false;
    if (follower->inputs[0] != product->outputs[0]) return false;
    if (product->input_count + follower->input_count - 1 > BEL_OP_MAX_INPUTS) return false;
    for (int i = 1; i < follower->input_count; i++)
        if (follower->inputs[i]->node->index > product->index) return false;
    return true;
}

void bel_fuse_products(const bel_graph *graph, const bel_spec *specs, const bool *needed,
                       const bel_program_output *outputs, int output_count,
                       const bel_node **out_followers)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        bool product = node->op == BEL_OP_GEMM || node->op == BEL_OP_MATMUL;
        out_followers[n] = NULL;
        if (!needed[n] || !product) continue;
        const bel_value *value = node->outputs[0];
        bool stored = specs[value->id].dtype != BEL_DTYPE_F32;
        for (int i = 0; i < output_count; i++)
            stored = stored || outputs[i].value == value;
        const bel_node *reader = stored ? NULL : only_reader(graph, needed, value);
        if (reader != NULL && can_follow(reader, node)) out_followers[n] = reader;
    }
}
