// Converter of models with a closed batch to graphs for any batch, for models that provably keep
// the examples of a batch separate.
#ifndef BELFRY_ONNX_BATCH_H
#define BELFRY_ONNX_BATCH_H

#include "graph/graph.h"

// Copies to `graph` everything that outputs[count] of `closed` depend on. `values` has one value of
// `graph` for each input of `closed`: of the same shape, or with an open dimension 0 where the
// input has `batch`. The sizes of these open dimensions must agree. Sets out_outputs; outputs that
// depend on such an input have an open dimension 0. Their row i is the result of `closed` with row
// i of the inputs as its example. (A closed batch of several examples has one in each row.)
//
// *out_refused is a node of `closed` that works across examples, or is not known to keep them
// separate; then no output is set. NULL: no such node. Constants are views: `closed` must outlive
// `graph`. Other errors stick in `graph`.
void bel_onnx_open_batch(const bel_graph *closed, bel_value *const *values, int64_t batch,
                         bel_graph *graph, bel_value *const *outputs, int count,
                         bel_value **out_outputs, const bel_node **out_refused);

#endif
