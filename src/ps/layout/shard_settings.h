// What all shards of a job must know of it besides the layout: a master that holds its shards takes
// it from the trainable, and writes it into the setups of parameter servers.
#ifndef BELFRY_PS_LAYOUT_SHARD_SETTINGS_H
#define BELFRY_PS_LAYOUT_SHARD_SETTINGS_H

#include <stdint.h>

#include "optim/optimizers.h"
#include "ps/layout/counting.h"

typedef struct bel_shard_settings {
    bel_optimizers optimizers; // checked
    bel_counting counting;
    uint64_t seed;    // of the job: rows that do not exist yet
    int series_count; // in the step statistics (step_stats.h)
    bool sums;        // gradients of replicas are added, not averaged
} bel_shard_settings;

#endif
