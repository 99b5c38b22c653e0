// Models of one closed batch as graphs for any batch, where the examples of a batch provably stay
// apart.
#ifndef BELFRY_ONNX_BATCH_H
#define BELFRY_ONNX_BATCH_H

#include "graph/graph.h"

// Copies to `graph` what outputs[count] of `closed` depend on. `values` has one value of `graph`
// for each input of `closed`: either of the same shape, or with an open dimension 0 where the input
// has `batch`. The sizes of these open dimensions agree. Sets out_outputs: those that depend on
// such an input have an open dimension 0. Row i of them is what `closed` computes where row i of
// the inputs is its example. (A closed batch of several examples has one in each row.)
//
// *out_refused is a node of `closed` that works across examples, or is not known to keep them
// apart; NULL: there is none. Then no output is set. Constants are views: `closed` must outlive
// `graph`. Other errors stick in `graph`.
void bel_onnx_open_batch(const bel_graph *closed, bel_value *const *values, int64_t batch,
                         bel_graph *graph, bel_value *const *outputs, int count,
                         bel_value **out_outputs, const bel_node **out_refused);

#endif
