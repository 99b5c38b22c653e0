// Internals of a dataset that is being described, for the files that add to it.
#ifndef BELFRY_INPUT_DATASET_DATASET_BUILD_H
#define BELFRY_INPUT_DATASET_DATASET_BUILD_H

#include "base/arena.h"
#include "input/dataset/description.h"

// Phases of a description, which restrict the order of its stages.
typedef enum bel_dataset_phase {
    BEL_PHASE_NUMBERS,
    BEL_PHASE_MAPPED,
    BEL_PHASE_BATCHED
} bel_dataset_phase;

struct bel_dataset {
    bel_arena *arena;
    bel_description description;
    size_t stage_capacity;
    size_t map_capacity;
    bel_dataset_phase phase;
    bool reordered;  // it or a dataset inside has a shuffle or repeat
    bool varies;     // a record's number changes with the epoch: a shuffle is inside
    bool parts_vary; // each epoch selects other records
    bool bucketed;   // the order consists of whole batches
    bel_status *status;
};

// Creates a dataset of a source, which is copied. `status` is an error in its description, or NULL.
bel_dataset *bel_dataset_create(const bel_source_description *source, bel_status *status);

// Takes ownership of an error; the first one is kept.
void bel_dataset_fail(bel_dataset *dataset, bel_status *status);

// Whether a stage called `name` may still be added; `last` is the last phase that allows it.
bool bel_dataset_may_come(bel_dataset *dataset, const char *name, bel_dataset_phase last);

// Makes the dataset so far the inner dataset of `source`; later stages work on the records of
// `source`.
void bel_dataset_wrap(bel_dataset *dataset, bel_source_description source);

#endif
