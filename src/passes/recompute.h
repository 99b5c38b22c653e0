// Computing values again instead of keeping them (Chen et al. 2016, "Training deep nets with
// sublinear memory cost"): a value that lies idle while memory is at its peak is forgotten after
// its last reader before the peak, and made once more right before its first reader behind it.
// Which ones is decided greedily, by the memory that is gained at the peak for the time that it
// costs. The same operation on the same operands gives the same bits; random ones are kept.
#ifndef BELFRY_PASSES_RECOMPUTE_H
#define BELFRY_PASSES_RECOMPUTE_H

#include "graph/graph.h"

typedef struct bel_recomputed {
    bel_graph *graph;
    bel_value **values; // by id of the first graph: what stands for it where it is made first
    int *originals;     // by id of `graph`: the value of the first graph that it is, or is again
    int count;          // operations that are run again
    size_t peak_bytes;  // expected, without what kernels need to work in
} bel_recomputed;

// `graph` has closed shapes and its nodes are run in order; it must outlive the result, which looks
// at its constants. `outputs` are wanted at the end, those that are `external` not in this memory.
// Reaches `target_bytes` if it can, else the least that it found.
void bel_recompute(const bel_graph *graph, bel_value *const *outputs, const bool *external,
                   int output_count, size_t target_bytes, bel_recomputed *out);
void bel_recomputed_deinit(bel_recomputed *recomputed);

#endif
