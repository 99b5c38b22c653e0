// What a call is expected to cost, from its shapes alone, before anything runs.
#ifndef BELFRY_RUNTIME_COST_H
#define BELFRY_RUNTIME_COST_H

#include "ops/op.h"

// What handing work to another thread costs, which may have to be woken for it: calls, groups of
// them and streams that are cheaper stay on their thread. Waking an idle core was measured as 30
// us; with 10 us, steps of small models on two threads took up to an eighth longer.
enum { BEL_COST_HAND_OVER_NS = 30000 };

// Nanoseconds of all tiles of a prepared call on one thread, at least 1. For a stage of an
// operation (bel_kernel_call.before) as for a call.
int64_t bel_cost_ns(const bel_kernel_call *call);

#endif
