// Operations that only move elements, as their prepare functions have read them: what the kernels
// of the CPU and those of cards (cuda/move.c) go by.
#ifndef BELFRY_OPS_MOVES_H
#define BELFRY_OPS_MOVES_H

#include "ops/kernels/pick.h"
#include "ops/kernels/walk.h"
#include "ops/op.h"

// Transpose: the result's dimensions, and how far the source moves for one along each, merged.
// Where the last one moves by more than 1, `unit` is the one that moves by 1: squares of these two
// dimensions are turned. A tile takes whole rows of `unit`, of as many squares as it needs.
typedef struct bel_transpose_params {
    bel_walk walk;
    int32_t unit; // -1: run by run
    int64_t y_step, outer, rows_per_tile;
    size_t size;
} bel_transpose_params;

// Slice, Pad, Expand and their gradients.
typedef struct bel_pick_params {
    bel_pick_rule rule;
    bel_shape shape;                    // of the picked tensor
    const int64_t *lists[BEL_MAX_RANK]; // by its dimensions: bel_pick_place times the stride
    bool run;                           // the last list is first, first + 1, …
    size_t size;                        // bytes of an element
    char fill[8];                       // an element where nothing is picked
} bel_pick_params;

// Concat: bytes from the axis on, for each input and together; the tensors have `outer` of such
// runs.
typedef struct bel_concat_params {
    int64_t outer, per_tile;
    size_t sizes[BEL_OP_MAX_INPUTS], total;
} bel_concat_params;

// Gather: data is [outer, rows, width]; the result is [outer, count, width]. GatherElements:
// indices and the result are [outer, count / (outer width), width].
typedef struct bel_gather_params {
    int64_t outer, rows, width, count;
    int64_t per_tile; // of the result's outer · count rows
} bel_gather_params;

#endif
