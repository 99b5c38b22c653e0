// Arguments of move.cu.
#ifndef BELFRY_CUDA_KERNELS_MOVE_H
#define BELFRY_CUDA_KERNELS_MOVE_H

#include "cuda/kernels/params.h"
#include "ops/kernels/pick.h"

// Operations along a walk: BroadcastTo, Transpose, Where.
typedef struct bel_cuda_moved {
    int64_t count;
    int32_t size, zero; // bytes of an element
    bel_cuda_walk walk;
} bel_cuda_moved;

// `outer` matrices [rows, columns] of the result whose rows are the source's columns. Row r of a
// matrix is at r · y_step, and its column c comes from c · x_step + r. The starts of matrices are a
// walk's tensors 0 (result) and 1 (source).
typedef struct bel_cuda_turned {
    int64_t outer, rows, columns, y_step, x_step;
    int32_t size, zero;
    bel_cuda_walk starts;
} bel_cuda_turned;

typedef struct bel_cuda_picked {
    int64_t count; // elements that are written
    int32_t size, type;
    uint64_t fill;
    bel_pick_rule rule;
} bel_cuda_picked;

// Runs of `total` elements; input k has those before ends[k].
typedef struct bel_cuda_joined {
    int64_t count, total;
    int32_t size, inputs;
    int64_t ends[BEL_CUDA_MAX_INPUTS];
} bel_cuda_joined;

// OneHot, and SequenceMask: rows of `width` elements, `times` in a sequence, `outer` per length.
typedef struct bel_cuda_marked {
    int64_t count, width, times, outer;
    int32_t size, type; // for lengths
} bel_cuda_marked;

#endif
