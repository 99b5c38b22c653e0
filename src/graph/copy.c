// Copies nodes from graph to graph. A collective's description is not in its attributes but in its
// graph's list, so it is added anew, with its original place. Constants are views: the owner of
// their elements must outlive the copy.
#include <string.h>

#include "graph/graph.h"

static bel_value *copy_collective(bel_graph *graph, const bel_node *node, bel_value *input)
{
    const bel_collective what = bel_collective_read(node->op, &node->attrs);
    const bel_graph_collective *call = &node->outputs[0]->graph->collectives[what.index];
    return bel_graph_add_collective(graph, what, input, call->file, call->line);
}

void bel_graph_copy_node(bel_graph *graph, const bel_node *node, bel_value *const *inputs,
                         bel_value **out_values)
{
    if (node->op == BEL_OP_CONSTANT) {
        out_values[0] = bel_graph_add_view(graph, node->name, &node->constant);
        return;
    }
    if (bel_op_is_collective(node->op)) {
        out_values[0] = copy_collective(graph, node, inputs[0]);
        return;
    }
    const bel_node *made =
        bel_graph_add_node(graph, node->name, node->op, &node->attrs, inputs, node->input_count);
    for (int o = 0; o < node->output_count; o++)
        out_values[o] = made == NULL ? NULL : made->outputs[o];
}
