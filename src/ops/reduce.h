// Parameters of a reduction, made by its prepare functions. The first field of both structs is the
// way of the reduction.
#ifndef BELFRY_OPS_REDUCE_H
#define BELFRY_OPS_REDUCE_H

#include "ops/kernels/walk.h"
#include "ops/op.h"

typedef enum bel_reduce_way {
    BEL_REDUCE_PLAIN,   // in double, element by element, or as a fold
    BEL_REDUCE_ROWS,    // neighbors, in lanes, blocks of BEL_REDUCE_BLOCK of them in double
    BEL_REDUCE_COLUMNS, // rows are added to results, in order
    BEL_REDUCE_SLICES,  // bel_reduce_slices
} bel_reduce_way;

enum { BEL_REDUCE_BLOCK = 4096 };

typedef struct bel_reduce_box {
    bel_reduce_way way;
    bool reduced[BEL_MAX_RANK];
    bool regular; // the reduced axes are neighbors
    int64_t outer, count, inner;
    double scale; // ReduceMean: 1 / count
} bel_reduce_box;

// A slice has the elements after the leading dimensions that stay. A run is summed to one result,
// or added to adjacent results.
typedef struct bel_reduce_slices {
    bel_reduce_way way;
    bel_walk walk; // over a slice; its tensor has the results of the slice
    int64_t slices, per_tile, elements, results;
    float start, scale;
} bel_reduce_slices;

#endif
