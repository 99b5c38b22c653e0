// Choosing the values that lie as bfloat16. What a product or a convolution makes or reads does,
// since that is what it multiplies, in half the memory; and what other operations make of such
// values alone, as a normalisation or Relu between two convolutions. So a loss, or whatever else
// has a number in it that was never rounded, is not rounded here. Outputs never are, nor what comes
// from outside; an alias is the value that it stands for. The choice follows from the graph and
// from what the device says of each operation.
#include "runtime/halves.h"

#include "base/alloc.h"

// Readers that do not take a value so, and who multiplies it.
typedef struct readers {
    bool *refused, *multiplied; // by value, of what aliases stand for
} readers;

static void look_at_readers(const bel_graph *graph, const bool *needed,
                            const bel_half_operands *operands, readers *r)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n] || (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0) continue;
        for (int i = 0; i < node->input_count; i++) {
            if (!bel_op_reads(node->op, i)) continue; // its shape alone
            int value = bel_alias_root(node->inputs[i])->id;
            bool takes = (operands[n].inputs >> i & 1) != 0;
            if (!takes) r->refused[value] = true;
            if (takes && operands[n].multiplies) r->multiplied[value] = true;
        }
    }
}

// Whether all that a node makes its result of, element by element, was rounded before.
static bool follows(const bel_node *node, unsigned inputs, const bool *half)
{
    for (int i = 0; i < node->input_count; i++)
        if ((inputs >> i & 1) != 0 && !half[bel_alias_root(node->inputs[i])->id]) return false;
    return inputs != 0;
}

void bel_choose_halves(const bel_graph *graph, const bool *needed,
                       const bel_half_operands *operands, const bel_program_output *outputs,
                       int output_count, bool *out_half)
{
    readers r = {.refused = bel_xcalloc(graph->value_count, sizeof(bool)),
                 .multiplied = bel_xcalloc(graph->value_count, sizeof(bool))};
    look_at_readers(graph, needed, operands, &r);
    for (int i = 0; i < output_count; i++)
        r.refused[bel_alias_root(outputs[i].value)->id] = true;
    for (size_t n = 0; n < graph->node_count; n++) { // in order: what a node reads comes before it
        const bel_node *node = graph->nodes[n];
        const bel_half_operands *its = &operands[n];
        bool alias = (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0;
        for (int i = 0; needed[n] && i < node->output_count; i++) {
            int value = node->outputs[i]->id;
            bool can = (its->outputs >> i & 1) != 0 && !r.refused[value];
            out_half[value] = can && (its->multiplies || r.multiplied[value] ||
                                      follows(node, its->inputs, out_half));
            if (alias) out_half[value] = out_half[bel_alias_root(node->inputs[0])->id];
        }
    }
    bel_free(r.refused);
    bel_free(r.multiplied);
}
