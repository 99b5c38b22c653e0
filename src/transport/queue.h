// Bounded queue of received frames, used by every kind of lane. Thread-safe. With
// BELFRY_FAULT=lane:… taking delays, repeats and reorders frames.
#ifndef BELFRY_TRANSPORT_QUEUE_H
#define BELFRY_TRANSPORT_QUEUE_H

#include "transport/lane.h"

typedef struct bel_frame_queue bel_frame_queue;

// `bell` is rung for each frame that is put with `ring`, and when the queue is closed; NULL: no
// bell.
bel_frame_queue *bel_frame_queue_create(size_t capacity, bel_doorbell *bell);
void bel_frame_queue_destroy(bel_frame_queue *queue);

typedef enum bel_frame_put { BEL_PUT_DONE, BEL_PUT_FULL, BEL_PUT_CLOSED } bel_frame_put;
bel_frame_put bel_frame_queue_put(bel_frame_queue *queue, const bel_frame *frame, bool ring);

bool bel_frame_queue_take(bel_frame_queue *queue, bel_frame *out_frame);

// Closes the queue: no more frames can be put, but the present ones can be taken. With `silent` the
// doorbell is not touched, now or later: its owner may destroy it.
void bel_frame_queue_close(bel_frame_queue *queue, bool silent);

uint64_t bel_frame_queue_taken(bel_frame_queue *queue); // frames taken so far, without repeats
bool bel_frame_queue_is_closed(bel_frame_queue *queue);
bool bel_frame_queue_is_over(bel_frame_queue *queue); // closed and empty

#endif
