// Parameters of operations along one axis that depend on the order of its elements.
#ifndef BELFRY_OPS_ORDER_H
#define BELFRY_OPS_ORDER_H

#include <stdbool.h>
#include <stdint.h>

// A tensor is [outer, count, inner] around the axis; a lane is the `count` elements with one outer
// and one inner index.
typedef struct bel_lane_params {
    int64_t count, inner, lanes;
    int64_t k;               // TopK
    bool smallest;           // ArgMin, TopK
    bool last_of_equals;     // ArgMax, ArgMin
    bool exclusive, reverse; // CumSum
} bel_lane_params;

#endif
