// Arguments of recurrent_f32.cu and recurrent_f64.cu.
#ifndef BELFRY_CUDA_KERNELS_RECURRENT_H
#define BELFRY_CUDA_KERNELS_RECURRENT_H

#include "cuda/kernels/params.h"
#include "ops/kernels/recurrent_shape.h"

#define BEL_CUDA_RECURRENT_ROWS 4  // rows that a block walks through time together
#define BEL_CUDA_RECURRENT_SIDE 32 // side of a block's tile of a product

// `unit`: a row of W and R, [gates · hidden]. If the gate n of a GRU has two parts (reset_last),
// there is one number more for each of its units: `kept` of them.
typedef struct bel_cuda_recurrent {
    bel_recurrent_shape s;
    bel_recurrent_operands o;
    int64_t units, kept;
    int32_t lengths_i64;
    int32_t padded;     // the CPU's chains continue over zeros after the units of a gate
    int64_t row_tiles;  // the CPU's, which group rows by length; 0: rows stay in order
    int32_t x_gates[4]; // the gates in the order in which they are added to dx
    // Starts of the parts of the workspace. For a forward pass, in numbers of the type:
    int64_t turned;  // R as [directions, hidden, units]
    int64_t pre;     // inputs of the units from x: [directions, n, t, units]
    int64_t h, c;    // states [directions, n, hidden]; in a gradient those of the loss
    int64_t reset_h; // r · h [directions, n, hidden]; in a gradient [directions, n · t, hidden]
    int64_t gates;   // [directions, n, kept]; in a gradient those of the loss [.., n · t, kept]
    // For a gradient, in 64-bit numbers at the front: lengths [n], ranks [n], rows by rank [n], the
    // sum of lengths, the place of each (row, step) [n · t], and the (row, step) at each place [n ·
    // t].
    int64_t ranks, order, total, places, list;
} bel_cuda_recurrent;

#endif
