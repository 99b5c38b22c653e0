// Arguments of recurrent_f32.cu and recurrent_f64.cu.
#ifndef BELFRY_CUDA_KERNELS_RECURRENT_H
#define BELFRY_CUDA_KERNELS_RECURRENT_H

#include "cuda/kernels/params.h"
#include "ops/kernels/recurrent_shape.h"

#define BEL_CUDA_RECURRENT_ROWS 4  // that a block walks through time together
#define BEL_CUDA_RECURRENT_SIDE 32 // of a block's tile of a product

// `unit`: of W and R, [gates · hidden]. Where the gate n of a GRU has two parts (reset_last), there
// is a number more for each of its units: `kept` of them.
typedef struct bel_cuda_recurrent {
    bel_recurrent_shape s;
    bel_recurrent_operands o;
    int64_t units, kept;
    int32_t lengths_i64;
    int32_t padded;     // the CPU's chains go on over zeros behind the units of a gate
    int64_t row_tiles;  // of the CPU, into which rows go by length; 0: rows stay in order
    int32_t x_gates[4]; // the gates in the order in which they are added to dx
    // Where parts of the workspace begin. Of a forward pass, in numbers of the type:
    int64_t turned;  // R as [directions, hidden, units]
    int64_t pre;     // what the units have of x: [directions, n, t, units]
    int64_t h, c;    // states [directions, n, hidden]; of a gradient those of the loss
    int64_t reset_h; // r · h [directions, n, hidden]; of a gradient [directions, n · t, hidden]
    int64_t gates;   // [directions, n, kept]; of a gradient those of the loss [.., n · t, kept]
    // Of a gradient, in numbers of 64 bits at the front: lengths [n], ranks [n], rows by rank [n],
    // the sum of lengths, where each (row, step) is kept [n · t], and what is kept there [n · t].
    int64_t ranks, order, total, places, list;
} bel_cuda_recurrent;

#endif
