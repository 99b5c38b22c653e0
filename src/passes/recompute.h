// Recomputation: computing values again instead of keeping them (Chen et al. 2016, "Training deep
// nets with sublinear memory cost"). A value that is idle while memory is at its peak is dropped
// after its last reader before the peak. It is computed again right before its first reader after
// the peak. A greedy algorithm chooses the values, by the memory gained at the peak per computing
// time. The same operation on the same operands gives the same bits; random values are kept.
#ifndef BELFRY_PASSES_RECOMPUTE_H
#define BELFRY_PASSES_RECOMPUTE_H

#include "graph/graph.h"

typedef struct bel_recomputed {
    bel_graph *graph;
    bel_value **values; // by id of the first graph: its replacement, as first computed
    int *originals;     // by id of `graph`: the value of the first graph that it is, or repeats
    int count;          // operations that are repeated
    size_t peak_bytes;  // expected, without workspaces of kernels
} bel_recomputed;

// `graph` has closed shapes and its nodes run in order. It must outlive the result, which views its
// constants. `outputs` are wanted at the end; those that are `external` are not in this memory.
// Reaches `target_bytes` if possible, else the least it found.
void bel_recompute(const bel_graph *graph, bel_value *const *outputs, const bool *external,
                   int output_count, size_t target_bytes, bel_recomputed *out);
void bel_recomputed_deinit(bel_recomputed *recomputed);

#endif
