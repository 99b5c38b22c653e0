// The inside of a dataset: a source's plan, stages in order, and the first error.
#ifndef BELFRY_INPUT_DESCRIPTION_H
#define BELFRY_INPUT_DESCRIPTION_H

#include "belfry/dataset.h"
#include "input/source.h"

typedef enum bel_stage_kind {
    BEL_STAGE_SHARD,
    BEL_STAGE_TAKE,
    BEL_STAGE_SKIP,
    BEL_STAGE_SHUFFLE,
    BEL_STAGE_REPEAT,
    BEL_STAGE_FILTER,
    BEL_STAGE_MAP,
    BEL_STAGE_BATCH,
    BEL_STAGE_PADDED_BATCH,
    BEL_STAGE_PREFETCH,
} bel_stage_kind;

// Each kind uses the members that it needs.
typedef struct bel_stage {
    bel_stage_kind kind;
    int64_t count; // of shards, records, epochs; of records of a batch; window of a shuffle; depth
    int64_t index; // which shard; how many threads
    uint64_t seed;
    bel_filter_fn *keep;
    bel_map_fn *map;
    void *user;
    char **names; // fields that map drops or padded_batch shapes; owned
    int name_count;
    bel_shape *shapes; // of those fields; owned
} bel_stage;

struct bel_dataset {
    bel_source_plan *plan; // owned; NULL after an error in the source's options
    bel_stage *stages;
    size_t stage_count;
    size_t stage_capacity;
    bel_status *error; // the first one; sticks
};

const char *bel_stage_name(bel_stage_kind kind);

// True for the stages before map, which work on record numbers.
bool bel_stage_renumbers(bel_stage_kind kind);

// A dataset over `plan`. On an error in the options, `plan` is NULL and `error` says why; both are
// taken over.
bel_dataset *bel_dataset_create(bel_source_plan *plan, bel_status *error);

// A stage that owns copies of what `stage` points to.
bel_stage bel_stage_copy(const bel_stage *stage);
void bel_stage_deinit(bel_stage *stage);

#endif
