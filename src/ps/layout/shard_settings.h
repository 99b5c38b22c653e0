// Settings of a job, besides the layout, that all its shards need. A master that holds its shards
// takes them from the trainable; other masters write them into the setups of parameter servers.
#ifndef BELFRY_PS_LAYOUT_SHARD_SETTINGS_H
#define BELFRY_PS_LAYOUT_SHARD_SETTINGS_H

#include <stdint.h>

#include "optim/optimizers.h"
#include "ps/layout/counting.h"
#include "ps/layout/rounding.h"
#include "ps/layout/step_stats.h"

// Separator in a setup's list of settings: the settings of the next step function follow.
#define BEL_FUNCTION_SETTING "step_function"

typedef struct bel_shard_settings {
    const bel_optimizers *optimizers; // by step function; checked; borrowed
    int function_count;
    bel_counting counting;
    uint64_t seed;         // the job's, for rows that do not exist yet
    bel_stats_shape stats; // the step statistics
    bool sums;             // gradients of replicas are added, not averaged
    bel_rounding rounding; // applies to sums over replicas and to updates
    // If all workers count: interval, in steps, at which the parameters that workers see are
    // compared, the first time at the start; 0: never.
    int64_t check_steps;
    int64_t table_admit_after, table_expire_after; // bel_table_config
    double table_expire_below;                     // the same
    bool tracks_changes; // tables note changed rows, so that deltas can be written
} bel_shard_settings;

#endif
