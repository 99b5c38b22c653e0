// Parameters of operations that only move elements, for the kernels of the CPU and of the GPU
// (cuda/launch_move.c).
#ifndef BELFRY_OPS_MOVES_H
#define BELFRY_OPS_MOVES_H

#include "ops/kernels/pick.h"
#include "ops/kernels/walk.h"
#include "ops/op.h"

// Transpose: the result's dimensions, merged, and the step of the source along each. If the step of
// the last one is above 1, `unit` is the dimension with step 1: squares of these two dimensions are
// transposed. A tile has full rows of `unit`, of as many squares as it needs.
typedef struct bel_transpose_params {
    bel_walk walk;
    int32_t unit; // -1: run by run
    int64_t y_step, outer, rows_per_tile;
    size_t size;
} bel_transpose_params;

// Slice, Pad, Expand and their gradients.
typedef struct bel_pick_params {
    bel_pick_rule rule;
    bel_shape shape;                    // the picked tensor's
    const int64_t *lists[BEL_MAX_RANK]; // for its dimensions: bel_pick_place times the stride
    bool run;                           // the last list is first, first + 1, …
    size_t size;                        // bytes of an element
    char fill[8];                       // fill element
} bel_pick_params;

// Concat: bytes from the axis on, for each input and in total; the tensors have `outer` such runs.
typedef struct bel_concat_params {
    int64_t outer, per_tile;
    size_t sizes[BEL_OP_MAX_INPUTS], total;
} bel_concat_params;

// Gather: data is [outer, rows, width]; the result is [outer, count, width]. GatherElements:
// indices and the result are [outer, count / (outer width), width].
typedef struct bel_gather_params {
    int64_t outer, rows, width, count;
    int64_t per_tile; // rows of the result's outer · count
} bel_gather_params;

#endif
