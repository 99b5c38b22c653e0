// A reduction as its prepare functions have read and decided it. Which way it goes is in the first
// field of both structs.
#ifndef BELFRY_OPS_REDUCE_H
#define BELFRY_OPS_REDUCE_H

#include "ops/kernels/walk.h"
#include "ops/op.h"

typedef enum bel_reduce_way {
    BEL_REDUCE_PLAIN,   // in double, element by element, or folded so
    BEL_REDUCE_ROWS,    // neighbours, in lanes, blocks of BEL_REDUCE_BLOCK of them in double
    BEL_REDUCE_COLUMNS, // rows are added to results, in order
    BEL_REDUCE_SLICES,  // bel_reduce_slices
} bel_reduce_way;

enum { BEL_REDUCE_BLOCK = 4096 };

typedef struct bel_reduce_box {
    bel_reduce_way way;
    bool reduced[BEL_MAX_RANK];
    bool regular; // the reduced axes are neighbours
    int64_t outer, count, inner;
    double scale; // ReduceMean: 1 / count
} bel_reduce_box;

// The elements that follow the leading dimensions which stay are a slice. A run is added up into
// one result, or added to results side by side.
typedef struct bel_reduce_slices {
    bel_reduce_way way;
    bel_walk walk; // over a slice; its tensor is the results of the slice
    int64_t slices, per_tile, elements, results;
    float start, scale;
} bel_reduce_slices;

#endif
