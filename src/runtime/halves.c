// Choosing the values that lie as bfloat16. What a product or a convolution makes or reads does,
// since that is what it multiplies, in half the memory; and what other operations make of such
// values alone, as a normalisation or Relu between two convolutions. So a loss, or whatever else
// has a number in it that was never rounded, is not rounded here. Outputs never are, nor what comes
// from outside; an alias is the value that it stands for. The choice follows from the graph and
// from what the device says of each operation.
#include "runtime/halves.h"

#include "base/alloc.h"
#include "runtime/compiler.h"
#include "runtime/device.h"

// Who does not take a value so, and who multiplies it: of all the times that it is computed.
typedef struct readers {
    const int *originals;
    bool *refused, *multiplied; // by original, of what aliases stand for
} readers;

static int original_of(const readers *r, const bel_value *value)
{
    int id = bel_alias_root(value)->id;
    return r->originals != NULL ? r->originals[id] : id;
}

static void look_at_readers(const bel_graph *graph, const bool *needed,
                            const bel_half_operands *operands, readers *r)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n] || (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0) continue;
        for (int i = 0; i < node->input_count; i++) {
            if (!bel_op_reads(node->op, i)) continue; // its shape alone
            int value = original_of(r, node->inputs[i]);
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
                       const bel_half_operands *operands, const int *originals,
                       const bel_program_output *outputs, int output_count, bool *out_half)
{
    readers r = {.originals = originals,
                 .refused = bel_xcalloc(graph->value_count, sizeof(bool)),
                 .multiplied = bel_xcalloc(graph->value_count, sizeof(bool))};
    look_at_readers(graph, needed, operands, &r);
    for (int i = 0; i < output_count; i++)
        r.refused[original_of(&r, outputs[i].value)] = true;
    for (size_t n = 0; n < graph->node_count; n++) { // in order: what a node reads comes before it
        const bel_node *node = graph->nodes[n];
        const bel_half_operands *its = &operands[n];
        bool alias = (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0;
        for (int i = 0; needed[n] && i < node->output_count; i++) {
            int value = node->outputs[i]->id, original = original_of(&r, node->outputs[i]);
            bool can = (its->outputs >> i & 1) != 0 && !r.refused[original];
            bool wanted = !its->follows && (its->multiplies || r.multiplied[original]);
            out_half[value] = can && (wanted || follows(node, its->inputs, out_half));
            if (alias) out_half[value] = out_half[bel_alias_root(node->inputs[0])->id];
        }
    }
    bel_free(r.refused);
    bel_free(r.multiplied);
}

// --- While a program is built --------------------------------------------------------------------

// What the device says of each operation, of which it has not been told yet how operands lie.
void bel_compiler_find_halves(bel_compiler *c)
{
    bel_device *device = c->program->device;
    int skipped = BEL_OP_LEAF | BEL_OP_ALIAS | BEL_OP_COLLECTIVE;
    if (c->options->reference || device->ops->takes_halves == NULL) return;
    bel_half_operands *operands = bel_xcalloc(c->graph->node_count, sizeof *operands);
    for (size_t n = 0; n < c->graph->node_count && c->status == NULL; n++) {
        const bel_node *node = c->graph->nodes[n];
        if (!c->needed[n] || (bel_op_get(node->op)->flags & skipped) != 0) continue;
        bel_program_call made = bel_compiler_describe(c, node);
        bel_prepare prepare = bel_compiler_prepare(c, node, 0);
        bel_compiler_take(c, node,
                          device->ops->takes_halves(device, &prepare, &made.call, &operands[n]));
    }
    const bel_recomputed *again = &c->program->recomputed;
    bel_choose_halves(c->graph, c->needed, operands,
                      c->graph == again->graph ? again->originals : NULL, c->outputs,
                      c->output_count, c->half);
    c->operands = operands;
}

// A Cast to what it is, which lies otherwise. One of the prologue stays, of whatever size: half as
// much as the variable, which each run would write again else.
static void emit_half_copy(bel_compiler *c, const bel_value *leaf)
{
    bel_program_call made = {.name = bel_node_label(leaf->node), .workspace = -1};
    size_t bytes = (size_t)bel_shape_elements(&c->specs[leaf->id].shape) * sizeof(uint16_t);
    bool stays = c->fixed[leaf->node->index];
    int buffer =
        bel_compiler_buffer(c, stays ? BEL_LOCATION_RESIDENT : BEL_LOCATION_ARENA, 0, bytes);
    made.call.op = BEL_OP_CAST;
    bel_compiler_input(c, &made, leaf);
    bel_compiler_output(c, &made, leaf);
    made.output_buffers[0] = buffer;
    made.call.outputs_half[0] = true;
    bel_compiler_prepare_made(c, leaf->node, &made, 0);
    bel_compiler_add(c, &made);
    c->half_copy[leaf->id] = buffer;
}

// Of the leaves that a node multiplies those that are not there yet.
void bel_compiler_emit_half_copies(bel_compiler *c, const bel_node *node, bool fixed_alone)
{
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *leaf = bel_compiler_copied_leaf(c, node, i);
        if (leaf == NULL || c->half_copy[leaf->id] >= 0) continue;
        if (c->fixed[leaf->node->index] || !fixed_alone) emit_half_copy(c, leaf);
    }
}
