// Random choice, by weight, of the dataset that gives each record of an epoch.
#ifndef BELFRY_INPUT_ORDER_SAMPLING_H
#define BELFRY_INPUT_ORDER_SAMPLING_H

#include "input/files/number_list.h"

// Parameters of the draws. Immutable.
typedef struct bel_sampling {
    const double *weights; // > 0
    const int64_t *lengths;
    int count;
    int64_t record_count; // draws per epoch; 0: until each record was drawn once
    uint64_t seed;
} bel_sampling;

// A draw is one number: the dataset, and the index of this draw from it, counted from 0.
enum { BEL_SAMPLING_POSITION_BITS = 48, BEL_SAMPLING_MAX_DATASETS = 32767 };

static inline int bel_sampling_dataset(int64_t draw)
{
    return (int)(draw >> BEL_SAMPLING_POSITION_BITS);
}
static inline int64_t bel_sampling_position(int64_t draw)
{
    return draw & (((int64_t)1 << BEL_SAMPLING_POSITION_BITS) - 1);
}

// Lists the draws of an epoch, in order. It is a bel_epoch_order_make whose context is a
// bel_sampling.
bel_status *bel_sampling_make(const void *sampling, int64_t epoch,
                              bel_number_list *out_draws) BEL_MUST_USE;

#endif
