// The fuse pass: element-wise operations that run in the tiles of the product before them.
#ifndef BELFRY_RUNTIME_FUSE_H
#define BELFRY_RUNTIME_FUSE_H

#include "runtime/program.h"

// For each node (by index) the node that runs in its tiles, or NULL. A product (MatMul, Gemm) takes
// the one operation that reads it when that is marked BEL_OP_FOLLOWS, all is f32, and its other
// inputs are made before the product; then the product itself is never stored. Values that the
// program puts out and values with a second reader are stored, so nothing is fused behind them.
// The bits are those of the separate kernels: each element sees the same operations.
void bel_fuse_products(const bel_graph *graph, const bel_spec *specs, const bool *needed,
                       const bel_program_output *outputs, int output_count,
                       const bel_node **out_followers);

#endif
