// A lane that counts its frames before it passes them on, for hollow workers.
#ifndef BELFRY_BENCH_HOLLOW_LANE_H
#define BELFRY_BENCH_HOLLOW_LANE_H

#include "transport/lane.h"

typedef struct counted_lane {
    bel_lane base;
    bel_lane_ops ops;
    bel_lane *inner;
    int64_t sent, sent_bytes, received, received_bytes;
    int64_t streams; // before a drop
} counted_lane;

// Makes the lane over `inner`, which it closes.
void counted_lane_init(counted_lane *lane, bel_lane *inner);

#endif
