// Whose reports make a step.
//
// Usually everybody's: then a step is a function of the version before it, and workers read
// parameters in place. Otherwise shard 0 keeps a ledger: it names the workers whose reports make
// each step, in order of arrival, once and for all shards; a worker computes on a copy of its own.
#ifndef BELFRY_PS_LAYOUT_COUNTING_H
#define BELFRY_PS_LAYOUT_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum bel_counting_kind {
    BEL_COUNTING_ALL,     // a step is made of everybody's reports
    BEL_COUNTING_BACKUPS, // of the first `workers` on the newest version; others are dropped
    BEL_COUNTING_ASYNC,   // of the first `workers`, whatever version they were computed on
    BEL_COUNTING_BOUNDED, // the same, but a worker too far ahead of the slowest waits
    BEL_COUNTING_KIND_COUNT
} bel_counting_kind;

typedef struct bel_counting {
    bel_counting_kind kind;
    int workers;      // N: so many reports make a step; more than there are workers where they take
                      // turns, which only ALL does
    int64_t max_lead; // BOUNDED: a worker waits while more of its reports were counted than this
                      // beyond those of the slowest
} bel_counting;

static inline bool bel_counting_has_ledger(const bel_counting *counting)
{
    return counting->kind != BEL_COUNTING_ALL;
}

// The counting that the settings of a run amount to. `asked` is BACKUPS (mode sync), ASYNC or
// BOUNDED; `wanted` is replicas_to_aggregate, 0: all where the mode is sync, else one, and then
// `accumulate` (accumulate_steps) turns of each worker make a step where the mode is sync.
bel_counting bel_counting_of(bel_counting_kind asked, int wanted, int accumulate, int workers,
                             int64_t max_lead);

// How many turns a worker takes in a step: where more reports are wanted than there are workers,
// the first of them take one more.
int bel_counting_turns(const bel_counting *counting, int workers, int worker);

// R: replicas whose examples are in a step, each a block of the input, where worker w plays
// replicas_of[w] of them.
int bel_counting_replicas(const bel_counting *counting, const int *replicas_of, int workers);

// Reports on older versions count, so a step has other examples than a version.
static inline bool bel_counting_takes_stale(const bel_counting *counting)
{
    return counting->kind == BEL_COUNTING_ASYNC || counting->kind == BEL_COUNTING_BOUNDED;
}

#endif
