// Inside of a dataset that is being described, for the files that add to it.
#ifndef BELFRY_INPUT_DATASET_BUILD_H
#define BELFRY_INPUT_DATASET_BUILD_H

#include "base/arena.h"
#include "input/description.h"

// The order of the stages, as far as it matters.
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
    bool reordered;  // a shuffle or repeat came already, here or in a dataset inside
    bool varies;     // a record of one number is another one in each epoch: a shuffle is inside
    bool parts_vary; // which records are left is another choice in each epoch
    bool bucketed;   // the order is one of whole batches
    bel_status *status;
};

// A dataset of a source, which is copied, or of the error with which its description begins.
bel_dataset *bel_dataset_create(const bel_source_description *source, bel_status *status);

// Takes an error; the first one counts.
void bel_dataset_fail(bel_dataset *dataset, bel_status *status);

// True when a stage called `name` may still come; `last` is the last phase in which it may.
bool bel_dataset_may_come(bel_dataset *dataset, const char *name, bel_dataset_phase last);

// The dataset so far becomes the one that `source` is made of; what follows works on its records.
void bel_dataset_wrap(bel_dataset *dataset, bel_source_description source);

#endif
