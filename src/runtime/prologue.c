// Prologue of a program with fixed variables: values that depend only on variables are computed
// once, and kernels pack such inputs once. Results that other calls read are resident: in memory
// that no other program of the tower writes. They stay valid as long as the variables do. A bound
// limits the memory they take.
#include <string.h>

#include "base/alloc.h"
#include "runtime/compiler.h"
#include "runtime/device.h"

enum { RESIDENT_BYTES = 1 << 24 }; // with more, each run computes all of it

// Marks the prologue's results that the rest of the program reads, and gives the sum of their
// sizes.
static size_t find_resident(bel_compiler *c)
{
    for (size_t n = 0; n < c->graph->node_count; n++) {
        const bel_node *node = c->graph->nodes[n];
        for (int i = 0; c->needed[n] && !c->fixed[n] && i < node->input_count; i++)
            c->resident[bel_alias_root(node->inputs[i])->id] = true;
    }
    for (int i = 0; i < c->output_count; i++)
        c->resident[bel_alias_root(c->outputs[i].value)->id] = true;
    size_t bytes = 0;
    for (size_t v = 0; v < c->graph->value_count; v++) {
        const bel_node *node = c->graph->values[v]->node;
        bool leaf = (bel_op_get(node->op)->flags & BEL_OP_LEAF) != 0;
        c->resident[v] = c->resident[v] && !leaf && c->fixed[node->index];
        if (c->resident[v]) bytes += bel_compiler_bytes(c, c->graph->values[v]);
    }
    return bytes;
}

void bel_compiler_find_prologue(bel_compiler *c)
{
    bool hoist = bel_pass_is_on(c->options->passes_off, BEL_PASS_HOIST);
    if (!hoist || !c->options->fixed_variables || c->options->asynchronous) return;
    bool *fresh = bel_xcalloc(c->graph->node_count, sizeof *fresh);
    for (int i = 0; i < c->output_count; i++)
        if (c->outputs[i].external) fresh[bel_alias_root(c->outputs[i].value)->node->index] = true;
    bel_passes_find_fixed(c->graph, fresh, c->fixed);
    bel_free(fresh);
    c->resident_bytes = find_resident(c);
    if (c->resident_bytes <= RESIDENT_BYTES) return;
    memset(c->fixed, 0, c->graph->node_count * sizeof *c->fixed);
    memset(c->resident, 0, c->graph->value_count * sizeof *c->resident);
}

// Adds the call that packs a node's fixed inputs, if its kernel packs any. The call does not read
// inputs that are not there yet; other buffers replace them.
static void emit_packing(bel_compiler *c, const bel_node *node)
{
    unsigned fixed = bel_compiler_fixed(c, node);
    int first = -1;
    for (int i = node->input_count; i-- > 0;) {
        int buffer = c->buffer_of[node->inputs[i]->id];
        if ((fixed & 1u << i) != 0 && buffer >= 0) first = buffer;
        if ((fixed & 1u << i) != 0 && buffer < 0) return;
    }
    if (first < 0) return;
    bel_program_call made = bel_compiler_call(c, node, fixed);
    bel_kernel_call *call = &made.call;
    size_t bytes = call->packed_bytes;
    if (bytes == 0 || bytes > RESIDENT_BYTES - c->resident_bytes) return;
    for (int i = 0; i < node->input_count; i++)
        if (made.input_buffers[i] < 0) made.input_buffers[i] = first;
    call->output_count = 0;
    call->run = call->before;
    call->tile_count = call->before_tiles;
    call->tile_elements = call->work = 0;
    made.workspace = bel_compiler_buffer(c, BEL_LOCATION_RESIDENT, 0, bytes);
    c->packed[node->index] = made.workspace;
    c->resident_bytes += bytes;
    bel_compiler_add(c, &made);
}

// Convolutions come first: the choice of those that have room may affect the bits (fast_math). It
// must not depend on products, whose packing depends on the batch.
void bel_compiler_emit_packings(bel_compiler *c)
{
    bool hoist = bel_pass_is_on(c->options->passes_off, BEL_PASS_HOIST);
    if (!hoist || !c->options->fixed_variables || c->options->asynchronous) return;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < c->graph->node_count; i++) {
            const bel_node *node = c->graph->nodes[c->order[i]];
            int skipped = BEL_OP_LEAF | BEL_OP_ALIAS | BEL_OP_COLLECTIVE;
            if (!c->needed[node->index] || c->fixed[node->index]) continue;
            if ((node->op == BEL_OP_CONV) != (turn == 0)) continue;
            if ((bel_op_get(node->op)->flags & skipped) == 0) emit_packing(c, node);
        }
}
