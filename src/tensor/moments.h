// Moments by channel: F32 or F64 [3, c], the rows below. Moments of two sets of elements combine to
// those of their union, even if the sets have different sizes or one is empty. Sums of squares
// combine too, but lose their digits if a mean is much larger than the deviation.
//
// Replicas of a batch normalization exchange moments. The reduction is not in the public header
// (belfry/collective.h): it is only for F32, for an entire tensor, and has no gradient.
#ifndef BELFRY_TENSOR_MOMENTS_H
#define BELFRY_TENSOR_MOMENTS_H

#include "belfry/collective.h"

enum {
    BEL_MOMENTS_COUNT,   // number of elements
    BEL_MOMENTS_MEAN,    // their mean; 0 without elements
    BEL_MOMENTS_SQUARES, // sum of their squared distances from the mean
    BEL_MOMENTS_ROWS
};

// A bel_reduce_op.
enum { BEL_REDUCE_MOMENTS = BEL_REDUCE_PRODUCT + 1 };

#endif
