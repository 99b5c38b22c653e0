// Graph as text, one line for each node that the values depend on. Inputs and variables have their
// names; other nodes have the name from which random numbers follow. A constant without elements,
// which the fold pass makes for a node that reads only a shape, is shown as "a shape". Fused shows
// its steps in order.
#include "base/alloc.h"
#include "base/str.h"
#include "ops/fused.h"
#include "passes/passes.h"

const char *bel_node_label(const bel_node *node)
{
    const bel_graph *graph = node->outputs[0]->graph;
    if (node->op == BEL_OP_INPUT) return graph->inputs[node->leaf].name;
    if (node->op == BEL_OP_VARIABLE) return graph->variables[node->leaf].name;
    return node->name;
}

static void write_attrs(const bel_attr_list *attrs, bel_str *out)
{
    char text[BEL_SHAPE_TEXT];
    for (int i = 0; i < attrs->count; i++) {
        const bel_attr *attr = &attrs->items[i];
        bel_str_printf(out, "%s%s=", i == 0 ? " {" : ", ", attr->name);
        if (attr->fused != NULL) {
            for (int s = 0; s < attr->fused->step_count; s++)
                bel_str_printf(out, "%s%s", s == 0 ? "" : "+",
                               bel_op_get(attr->fused->steps[s].op)->name);
        } else if (attr->ints.rank > 0) {
            bel_str_puts(out, bel_shape_text(&attr->ints, text));
        } else {
            bel_str_printf(out, "%.9g", attr->number);
        }
    }
    if (attrs->count > 0) bel_str_puts(out, "}");
}

static void write_inputs(const bel_node *node, bel_str *out)
{
    bel_str_puts(out, "(");
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *input = node->inputs[i];
        bel_str_printf(out, "%s%s", i > 0 ? ", " : "", bel_node_label(input->node));
        if (input->output > 0) bel_str_printf(out, ":%d", input->output);
    }
    bel_str_puts(out, ")");
}

static void write_results(const bel_node *node, const bel_spec *specs, bel_str *out)
{
    for (int i = 0; i < node->output_count; i++) {
        const bel_value *value = node->outputs[i];
        const bel_spec *spec = specs != NULL ? &specs[value->id] : &value->spec;
        char text[BEL_SHAPE_TEXT];
        bel_str_printf(out, "%s %s %s", i == 0 ? " :" : ",", bel_dtype_name(spec->dtype),
                       bel_shape_text(&spec->shape, text));
    }
}

int bel_graph_dump(const bel_graph *graph, const bel_spec *specs, bel_value *const *values,
                   int count, bel_str *out)
{
    int operations = 0;
    bool *needed = bel_xcalloc(graph->node_count, sizeof *needed);
    bel_graph_mark(graph, values, count, needed);
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n]) continue;
        bool shape = node->op == BEL_OP_CONSTANT && node->constant.data == NULL;
        bel_str_printf(out, "%s = %s", bel_node_label(node),
                       shape ? "a shape" : bel_op_get(node->op)->name);
        write_attrs(&node->attrs, out);
        if (node->input_count > 0) write_inputs(node, out);
        write_results(node, specs, out);
        bel_str_puts(out, "\n");
        operations += (bel_op_get(node->op)->flags & BEL_OP_LEAF) == 0;
    }
    bel_free(needed);
    return operations;
}
