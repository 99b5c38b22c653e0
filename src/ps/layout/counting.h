// The rule for which workers' reports make a step.
//
// With local steps each replica trains several batches between two reports, with the optimizer's
// rule, and a step is the mean of all replicas' values and slots (Lin, Stich, Patel & Jaggi 2020,
// "Don't use large mini-batches, use local SGD"). All workers count then.
//
// Usually all workers' reports: then a step is a function of the version before it, and workers
// read parameters in place. Otherwise shard 0 keeps a ledger. The ledger names the workers whose
// reports make each step, in order of arrival, once for all shards. Then each worker computes on a
// private copy of the parameters.
#ifndef BELFRY_PS_LAYOUT_COUNTING_H
#define BELFRY_PS_LAYOUT_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum bel_counting_kind {
    BEL_COUNTING_ALL,     // all workers' reports make a step
    BEL_COUNTING_BACKUPS, // the first `workers` reports on the newest version; others are dropped
    BEL_COUNTING_ASYNC,   // the first `workers` reports, on any version
    BEL_COUNTING_BOUNDED, // as ASYNC, but a worker too far ahead of the slowest waits
    BEL_COUNTING_KIND_COUNT
} bel_counting_kind;

typedef struct bel_counting {
    bel_counting_kind kind;
    int workers;      // N: number of reports that make a step; more than the number of workers if
                      // they take turns, only in ALL
    int64_t max_lead; // BOUNDED: a worker waits while its counted reports exceed those of the
                      // slowest worker by more than this
    int local_steps;  // ALL: number of batches that each replica trains in a step: H, 1 or more
} bel_counting;

static inline bool bel_counting_has_ledger(const bel_counting *counting)
{
    return counting->kind != BEL_COUNTING_ALL;
}

// True if replicas update their values, and shards only average them.
static inline bool bel_counting_is_local(const bel_counting *counting)
{
    return counting->local_steps > 1;
}

// Returns the counting for the settings of a run, with one local step. `asked` is BACKUPS (mode
// sync), ASYNC or BOUNDED. `wanted` is replicas_to_aggregate. If it is 0, all count in mode sync,
// with `accumulate` (accumulate_steps) turns of each worker in a step; in the other modes one
// report makes a step.
bel_counting bel_counting_of(bel_counting_kind asked, int wanted, int accumulate, int workers,
                             int64_t max_lead);

// Returns the number of a worker's turns in a step. If more reports are wanted than there are
// workers, the first workers take one more.
int bel_counting_turns(const bel_counting *counting, int workers, int worker);

// Returns R: the number of replicas whose examples are in a step, each local_steps blocks of the
// input. Worker w plays replicas_of[w] of them.
int bel_counting_replicas(const bel_counting *counting, const int *replicas_of, int workers);

// True if reports on older versions count: then a step has other examples than a version.
static inline bool bel_counting_takes_stale(const bel_counting *counting)
{
    return counting->kind == BEL_COUNTING_ASYNC || counting->kind == BEL_COUNTING_BOUNDED;
}

#endif
