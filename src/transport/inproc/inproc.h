// Lanes inside one process: frames pass through two bounded queues, spans are pointers.
#ifndef BELFRY_TRANSPORT_INPROC_INPROC_H
#define BELFRY_TRANSPORT_INPROC_INPROC_H

#include "transport/lane.h"

// Creates both ends. Each queue holds `capacity` frames. `a_bell` is rung when a frame arrives at
// end a, b_bell at end b (either may be NULL); the doorbells must outlive the lane. Each end is
// closed separately; the second close frees the memory. With BELFRY_FAULT=lane:… receivers delay,
// repeat and reorder the frames that they take.
void bel_inproc_lane_create(size_t capacity, bel_doorbell *a_bell, bel_doorbell *b_bell,
                            bel_lane **out_a, bel_lane **out_b);

#endif
