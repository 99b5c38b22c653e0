// Moments by channel: F32 or F64 [3, c], the rows below. Those of two sets of elements can be made
// into those of both, also where the sets have different sizes or one is empty; sums of squares can
// do that, too, but lose their digits where a mean is large beside the deviation.
//
// Replicas of a batch normalisation exchange them. The reduction is not in the public header
// (belfry/collective.h): it is of F32 alone, of a whole tensor, and has no gradient of its own.
#ifndef BELFRY_TENSOR_MOMENTS_H
#define BELFRY_TENSOR_MOMENTS_H

#include "belfry/collective.h"

enum {
    BEL_MOMENTS_COUNT,   // of elements
    BEL_MOMENTS_MEAN,    // of them; 0 where there are none
    BEL_MOMENTS_SQUARES, // the sum of their squared distances from the mean
    BEL_MOMENTS_ROWS
};

// A bel_reduce_op.
enum { BEL_REDUCE_MOMENTS = BEL_REDUCE_PRODUCT + 1 };

#endif
