// What all shards of a job must know of it besides the layout: a master that holds its shards takes
// it from the trainable, and writes it into the setups of parameter servers.
#ifndef BELFRY_PS_LAYOUT_SHARD_SETTINGS_H
#define BELFRY_PS_LAYOUT_SHARD_SETTINGS_H

#include <stdint.h>

#include "optim/optimizers.h"
#include "ps/layout/counting.h"
#include "ps/layout/step_stats.h"

// In the list of settings of a setup: those of the next step function follow.
#define BEL_FUNCTION_SETTING "step_function"

// A checkpoint's setting where there are several: how often each has run, "120,40".
#define BEL_SETTING_RUNS "step_function_runs"

typedef struct bel_shard_settings {
    const bel_optimizers *optimizers; // by step function; checked; borrowed
    int function_count;
    bel_counting counting;
    uint64_t seed;         // of the job: rows that do not exist yet
    bel_stats_shape stats; // the step statistics
    bool sums;             // gradients of replicas are added, not averaged
    // Where everybody counts: the parameters that workers see are compared at the start and every
    // so many steps; 0: never.
    int64_t check_steps;
} bel_shard_settings;

#endif
