// What a call is expected to cost, from its shapes alone, before anything runs.
#ifndef BELFRY_RUNTIME_COST_H
#define BELFRY_RUNTIME_COST_H

#include "ops/op.h"

// What handing work to another thread costs, which may have to be woken for it: calls, groups of
// them and streams that are cheaper stay on their thread.
enum { BEL_COST_HAND_OVER_NS = 10000 };

// Nanoseconds of all tiles of a prepared call on one thread, at least 1. For a stage of an
// operation (bel_kernel_call.before) as for a call.
int64_t bel_cost_ns(const bel_kernel_call *call);

#endif
