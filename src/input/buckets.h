// Batches of records of like length: the order in which buckets fill.
#ifndef BELFRY_INPUT_BUCKETS_H
#define BELFRY_INPUT_BUCKETS_H

#include "input/positions.h"

enum { BEL_BUCKETS_MOST = 65535 };

typedef struct bel_buckets {
    const bel_positions *positions;
    size_t stage_count; // of the stages before
    int64_t count;      // positions that go in
    const uint16_t *of; // the bucket of each record, by its number
    int bucket_count;
    int64_t batch_size;
} bel_buckets;

// Positions that come out in each epoch: batches of a bucket are filled up with holes.
int64_t bel_buckets_length(const bel_buckets *buckets, const int64_t *counts);

// The positions that go in, in the order in which they come out, -1 for a hole; a
// bel_epoch_order_make whose context is a bel_buckets.
bel_status *bel_buckets_make(const void *buckets, int64_t epoch,
                             bel_number_list *out_positions) BEL_MUST_USE;

#endif
