// Stages of a dataset before map: each renumbers the records, and none reads one.
#ifndef BELFRY_INPUT_ORDER_STAGE_H
#define BELFRY_INPUT_ORDER_STAGE_H

#include "belfry/dataset.h"

typedef enum bel_stage_kind {
    BEL_STAGE_SHARD,   // count, index
    BEL_STAGE_TAKE,    // count
    BEL_STAGE_SKIP,    // count
    BEL_STAGE_SHUFFLE, // count: records in the window, 0 for all; seed
    BEL_STAGE_REPEAT,  // count, or BEL_REPEAT_FOREVER
    BEL_STAGE_FILTER,  // keep, user
    BEL_STAGE_SLIDE,   // count: records in the buffer; seed
    BEL_STAGE_BUCKET,  // length, user, boundaries; count: their number
} bel_stage_kind;

typedef struct bel_stage {
    bel_stage_kind kind;
    int64_t count;
    int64_t index;
    uint64_t seed;
    bel_filter_fn *keep;
    bel_length_fn *length;
    const int64_t *boundaries;
    void *user;
} bel_stage;

#endif
