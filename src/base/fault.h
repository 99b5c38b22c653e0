// Deliberate faults, for tests that must be able to fail, and to try a job's reaction to a failure
// (docs/operations.md). BELFRY_FAULT is a comma-separated list:
//   sum_sequential  gradients are added in the order of arrival instead of the summation tree
//   divide          workers divide by their replica count before the shard averages
//   threads2        matrix products are split along the inner dimension by thread count
//   chunk_order     norms are added chunk by chunk in the order of completion
//   write:N         the N-th write to a file fails with "no space left on device" (N from 1)
//   crash:NAME      SIGKILL to this process at the named point, after a line on stderr
//   hang:NAME       the thread that comes to the named point stays there
//                   In a cluster, only first incarnations; "NAME@worker-1" only that one, and
//                   "NAME#7" when it comes there for the seventh time; "*#7" counts all points
//   slow:NAME#MS    a thread that comes to the named point waits there for MS milliseconds; up to
//                   four of them: the last matching one counts. With BELFRY_FAULT_WHILE=FILE in the
//                   environment all of them count while that file exists
//   flip            flips the sign of one of the parameters that a shard sends a worker over
//                   gRPC, after the transfer; "flip#7@worker-1": only in the seventh version, at
//                   that worker
//   short_lease     the lease of a model folder in a store is renewed each second, and is fresh for
//                   three
//   small_objects   objects above 8 MiB are copied in parts within a store, and no upload or copy
//                   has more than two parts
//   lane:WORDS      delay+repeat+reorder+break: lanes disturb their messages (any of the four);
//                   break ends a stream in the middle of a frame now and then; corrupt: in each
//                   stream, the hundredth frame has a chunk that does not exist
// Faults are active only after bel_fault_enable, or with BELFRY_ENABLE_FAULTS=1 in the environment,
// which children inherit. Otherwise bel_fault_check refuses a forgotten BELFRY_FAULT, which has no
// effect in any case. Parsed once, at the first query.
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
    BEL_FAULT_SHORT_LEASE,
    BEL_FAULT_SMALL_OBJECTS,
    BEL_FAULT_COUNT
} bel_fault;

// Enables faults in this process and its children. Call it before other threads are started.
void bel_fault_enable(void);

// FAILED_PRECONDITION: BELFRY_FAULT is set and faults are not enabled. INVALID_ARGUMENT names an
// unknown word or point.
bel_status *bel_fault_check(void) BEL_MUST_USE;

bool bel_fault_is(bel_fault fault);
bool bel_fault_write_fails(void);       // counts one write
bool bel_fault_flips(void);             // counts one version of a shard
void bel_fault_point(const char *name); // ends the process, or stays, here if requested
// Sets this process's name in a cluster: "worker-1". With `spared` no point ends or hangs it.
void bel_fault_name_process(const char *name, bool spared);
void bel_fault_set(const char *settings); // for tests: replaces BELFRY_FAULT

#endif
