// Expected cost of a call, computed from its shapes before anything runs.
#ifndef BELFRY_RUNTIME_COST_H
#define BELFRY_RUNTIME_COST_H

#include "ops/op.h"

// Cost of passing work to another thread, which may be asleep. Cheaper calls, groups of calls and
// streams stay on their thread. Waking an idle core was measured as 30 us; with 10 us, steps of
// small models on two threads took up to an eighth longer.
enum { BEL_COST_HAND_OVER_NS = 30000 };

// Nanoseconds of all tiles of a prepared call on one thread, at least 1. Also accepts a stage of an
// operation (bel_kernel_call.before).
int64_t bel_cost_ns(const bel_kernel_call *call);

#endif
