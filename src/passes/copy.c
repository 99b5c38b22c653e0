// Copying of nodes from one graph to another, for passes that build a new graph. Leaves keep their
// order, so inputs and variables keep their numbers, and get the closed shapes of the program.
#include <string.h>

#include "base/check.h"
#include "passes/rewrite.h"

void bel_copy_leaves(const bel_graph *from, const bel_shape *input_shapes, bel_graph *to,
                     bel_value **out_values)
{
    for (size_t i = 0; i < from->input_count; i++) {
        const bel_graph_input *input = &from->inputs[i];
        out_values[input->value->id] =
            bel_input_value(to, input->name, input->value->spec.dtype, &input_shapes[i]);
    }
    for (size_t v = 0; v < from->variable_count; v++) {
        const bel_graph_variable *variable = &from->variables[v];
        out_values[variable->value->id] =
            bel_variable(to, variable->name, &variable->value->spec.shape, variable->initializer,
                         variable->kind);
    }
}

void bel_copy_node(const bel_node *node, const char *name, bel_value *const *inputs, bel_graph *to,
                   bel_value **out_values)
{
    if (node->op == BEL_OP_CONSTANT) {
        out_values[0] = bel_graph_add_view(to, name, &node->constant);
        return;
    }
    const bel_node *made =
        bel_graph_add_node(to, name, node->op, &node->attrs, inputs, node->input_count);
    BEL_CHECK(made != NULL); // its shapes have been inferred
    memcpy(out_values, made->outputs, (size_t)made->output_count * sizeof *out_values);
}
