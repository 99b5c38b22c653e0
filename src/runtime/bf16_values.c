// Choice of the values that are stored as bf16. A value that a product or a convolution writes or
// reads is bf16, since these multiply bf16, and it takes half the memory. So are values that other
// operations make only from bf16 values, as a normalization or Relu between two convolutions. A
// loss, or any value made from a number that was never rounded, is not rounded here. Outputs and
// leaves are never bf16; an alias is stored as its root. The choice follows from the graph and from
// the device's answer for each operation.
#include "runtime/bf16_values.h"

#include "base/alloc.h"
#include "runtime/compiler.h"
#include "runtime/device.h"

// Readers of each value, over all the times that it is computed: some do not accept bf16, some
// multiply it.
typedef struct readers {
    const int *originals;
    bool *refused, *multiplied; // by original, of the roots of aliases
} readers;

static int original_of(const readers *r, const bel_value *value)
{
    int id = bel_alias_root(value)->id;
    return r->originals != NULL ? r->originals[id] : id;
}

static void look_at_readers(const bel_graph *graph, const bool *needed,
                            const bel_bf16_operands *operands, readers *r)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n] || (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0) continue;
        for (int i = 0; i < node->input_count; i++) {
            if (!bel_op_reads(node->op, i)) continue; // only its shape
            int value = original_of(r, node->inputs[i]);
            bool takes = (operands[n].inputs >> i & 1) != 0;
            if (!takes) r->refused[value] = true;
            if (takes && operands[n].multiplies) r->multiplied[value] = true;
        }
    }
}

// Whether all inputs of an element-wise result were rounded before.
static bool follows(const bel_node *node, unsigned inputs, const bool *bf16)
{
    for (int i = 0; i < node->input_count; i++)
        if ((inputs >> i & 1) != 0 && !bf16[bel_alias_root(node->inputs[i])->id]) return false;
    return inputs != 0;
}

void bel_choose_bf16(const bel_graph *graph, const bool *needed, const bel_bf16_operands *operands,
                     const int *originals, const bel_program_output *outputs, int output_count,
                     bool *out_bf16)
{
    readers r = {.originals = originals,
                 .refused = bel_xcalloc(graph->value_count, sizeof(bool)),
                 .multiplied = bel_xcalloc(graph->value_count, sizeof(bool))};
    look_at_readers(graph, needed, operands, &r);
    for (int i = 0; i < output_count; i++)
        r.refused[original_of(&r, outputs[i].value)] = true;
    for (size_t n = 0; n < graph->node_count; n++) { // in order: inputs come first
        const bel_node *node = graph->nodes[n];
        const bel_bf16_operands *its = &operands[n];
        bool alias = (bel_op_get(node->op)->flags & BEL_OP_ALIAS) != 0;
        for (int i = 0; needed[n] && i < node->output_count; i++) {
            int value = node->outputs[i]->id, original = original_of(&r, node->outputs[i]);
            bool can = (its->outputs >> i & 1) != 0 && !r.refused[original];
            bool wanted = !its->follows && (its->multiplies || r.multiplied[original]);
            out_bf16[value] = can && (wanted || follows(node, its->inputs, out_bf16));
            if (alias) out_bf16[value] = out_bf16[bel_alias_root(node->inputs[0])->id];
        }
    }
    bel_free(r.refused);
    bel_free(r.multiplied);
}

// --- During compilation --------------------------------------------------------------------------

// Asks the device about each operation, before any operand has a storage type.
void bel_compiler_find_bf16(bel_compiler *c)
{
    bel_device *device = c->program->device;
    int skipped = BEL_OP_LEAF | BEL_OP_ALIAS | BEL_OP_COLLECTIVE;
    if (c->options->reference || device->ops->takes_bf16 == NULL) return;
    bel_bf16_operands *operands = bel_xcalloc(c->graph->node_count, sizeof *operands);
    for (size_t n = 0; n < c->graph->node_count && c->status == NULL; n++) {
        const bel_node *node = c->graph->nodes[n];
        if (!c->needed[n] || (bel_op_get(node->op)->flags & skipped) != 0) continue;
        bel_program_call made = bel_compiler_describe(c, node);
        bel_prepare prepare = bel_compiler_prepare(c, node, 0);
        bel_compiler_take(c, node,
                          device->ops->takes_bf16(device, &prepare, &made.call, &operands[n]));
    }
    const bel_recomputed *again = &c->program->recomputed;
    bel_choose_bf16(c->graph, c->needed, operands,
                    c->graph == again->graph ? again->originals : NULL, c->outputs, c->output_count,
                    c->bf16);
    c->operands = operands;
}

// Adds a Cast of a leaf to the same type, which changes only the storage. A copy made in the
// prologue stays in memory, whatever its size: half of the variable's, and each run would otherwise
// write it again.
static void emit_bf16_copy(bel_compiler *c, const bel_value *leaf)
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
    made.call.outputs_bf16[0] = true;
    bel_compiler_prepare_made(c, leaf->node, &made, 0);
    bel_compiler_add(c, &made);
    c->bf16_copy[leaf->id] = buffer;
}

void bel_compiler_emit_bf16_copies(bel_compiler *c, const bel_node *node, bool fixed_alone)
{
    for (int i = 0; i < node->input_count; i++) {
        const bel_value *leaf = bel_compiler_copied_leaf(c, node, i);
        if (leaf == NULL || c->bf16_copy[leaf->id] >= 0) continue;
        if (c->fixed[leaf->node->index] || !fixed_alone) emit_bf16_copy(c, leaf);
    }
}
