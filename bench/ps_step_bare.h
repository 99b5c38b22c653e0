// Prototype of the step that bench_ps_step measures: the least that two workers and a shard on one
// host must do.
#ifndef BELFRY_BENCH_PS_STEP_BARE_H
#define BELFRY_BENCH_PS_STEP_BARE_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

// Starts two worker processes, whose gradients are in shared memory, and a server process with a
// thread for each core. All meet at a barrier before and after the update. The server's threads
// read both gradients and update the parameters in place, with one buffer; each has an equal part.
// Measures the median ms of a step after `warm` ones. It forks, so the caller has no threads.
bel_status *bench_ps_step_bare(int64_t elements, bool momentum, int64_t warm, int64_t steps,
                               double *out_ms) BEL_MUST_USE;

#endif
