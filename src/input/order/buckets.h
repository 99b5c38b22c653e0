// Batches of records of similar length: the order in which buckets fill.
#ifndef BELFRY_INPUT_ORDER_BUCKETS_H
#define BELFRY_INPUT_ORDER_BUCKETS_H

#include "input/order/positions.h"

enum { BEL_BUCKETS_MOST = 65535 };

typedef struct bel_buckets {
    const bel_positions *positions;
    size_t stage_count; // number of the stages before
    int64_t count;      // input positions
    const uint16_t *of; // each record's bucket, by record number
    int bucket_count;
    int64_t batch_size;
} bel_buckets;

// Number of output positions per epoch: the batches of a bucket are filled up with holes.
int64_t bel_buckets_length(const bel_buckets *buckets, const int64_t *counts);

// Lists the input positions in output order, -1 for a hole. It is a bel_epoch_order_make whose
// context is a bel_buckets.
bel_status *bel_buckets_make(const void *buckets, int64_t epoch,
                             bel_number_list *out_positions) BEL_MUST_USE;

#endif
