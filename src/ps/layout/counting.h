// Whose reports make a step.
//
// Usually everybody's: then a step is a function of the version before it, and workers read
// parameters in place. Otherwise shard 0 keeps a ledger: it names the workers whose reports make
// each step, in order of arrival, once and for all shards; a worker computes on a copy of its own.
#ifndef BELFRY_PS_LAYOUT_COUNTING_H
#define BELFRY_PS_LAYOUT_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bel_counting {
    int workers;      // so many reports make a step; 0: everybody's, without a ledger
    bool takes_stale; // a report counts whatever version it was computed on; false: only on the
                      // newest, others are dropped
    int64_t max_lead; // with takes_stale: a worker waits while more of its reports were counted
                      // than this beyond those of the slowest; -1: it never does
} bel_counting;

#endif
