// Faults on purpose, for tests that must be able to fail, and for trying out what a job does when
// something fails (docs/operations.md). BELFRY_FAULT holds a comma-separated list:
//   sum_sequential  gradients are added in the order of arrival instead of the summation tree
//   divide          workers divide by their own replica count before the shard averages
//   threads2        matrix products are cut along the inner dimension by thread count
//   chunk_order     norms are added chunk by chunk in the order of completion
//   write:N         the N-th write to a file fails with "no space left on device" (N from 1)
//   crash:NAME      SIGKILL to this process at the named point, after a line on stderr
//   hang:NAME       the thread that comes to the named point stays there
//                   Of a cluster, only first incarnations; "NAME@worker-1" only that one, and
//                   "NAME#7" when it comes there for the seventh time; "*#7" counts all points
//   slow:NAME#MS    whoever comes to the named point waits there for MS milliseconds; up to
//                   four of them: the last that is meant counts
//   flip            the sign of one of the parameters that a shard sends a worker over gRPC is
//                   another one when they have come; "flip#7@worker-1": those of the seventh
//                   version, there alone
//   lane:WORDS      delay+repeat+reorder+break: lanes disturb their messages (any of the four);
//                   break ends a stream in the middle of a frame now and then; corrupt: a frame
//                   of each stream, the hundredth, has a chunk that there is not
// It counts only where faults are enabled: by bel_fault_enable, or with BELFRY_ENABLE_FAULTS=1 in
// the environment, which children inherit. Elsewhere a BELFRY_FAULT that somebody has forgotten is
// refused by bel_fault_check, and is without effect in any case. Read once, at the first question.
#ifndef BELFRY_BASE_FAULT_H
#define BELFRY_BASE_FAULT_H

#include <stdbool.h>

#include "belfry/status.h"

typedef enum bel_fault {
    BEL_FAULT_SUM_SEQUENTIAL,
    BEL_FAULT_DIVIDE,
    BEL_FAULT_THREADS2,
    BEL_FAULT_CHUNK_ORDER,
    BEL_FAULT_LANE_DELAY,
    BEL_FAULT_LANE_REPEAT,
    BEL_FAULT_LANE_REORDER,
    BEL_FAULT_LANE_BREAK,
    BEL_FAULT_LANE_CORRUPT,
    BEL_FAULT_COUNT
} bel_fault;

// Faults count from now on, in this process and its children. Before other threads are started.
void bel_fault_enable(void);

// FAILED_PRECONDITION: BELFRY_FAULT is set and faults are not enabled. INVALID_ARGUMENT names the
// word of it that is none of the above, or the point that does not exist.
bel_status *bel_fault_check(void) BEL_MUST_USE;

bool bel_fault_is(bel_fault fault);
bool bel_fault_write_fails(void);       // counts one write
bool bel_fault_flips(void);             // counts one version of a shard
void bel_fault_point(const char *name); // ends the process, or stays, here when asked to
// Which process of a cluster this is: "worker-1". With `spared` no point ends or stays it.
void bel_fault_name_process(const char *name, bool spared);
void bel_fault_set(const char *settings); // for tests: replaces what BELFRY_FAULT said

#endif
