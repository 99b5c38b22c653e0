// Lanes inside one process: frames pass through two bounded queues, spans are pointers.
#ifndef BELFRY_TRANSPORT_INPROC_INPROC_H
#define BELFRY_TRANSPORT_INPROC_INPROC_H

#include "transport/lane.h"

// Makes both ends. Each queue holds `capacity` frames; `a_bell` is rung when a frame arrives at end
// a, b_bell at end b (either may be NULL). The doorbells must outlive the lane. Each end is closed
// on its own; the memory goes with the second close.
// BELFRY_FAULT=lane:… makes receivers delay, repeat and reorder what they take.
void bel_inproc_lane_create(size_t capacity, bel_doorbell *a_bell, bel_doorbell *b_bell,
                            bel_lane **out_a, bel_lane **out_b);

#endif
