// Which of the processes that a launcher has started together this one is, by the variables that
// the launcher has set: mpirun, torchrun, srun, mpiexec of MPICH and Intel MPI, `belfry local
// ranks`, or a script of a user's own. docs/launchers.md has the table.
#ifndef BELFRY_BASE_LAUNCHER_H
#define BELFRY_BASE_LAUNCHER_H

#include <stdbool.h>

#include "belfry/status.h"

enum { BEL_LAUNCH_JOB_TEXT = 512, BEL_LAUNCH_HOST_TEXT = 256 };

// One process of `size`. A process that was started alone is rank 0 of 1.
typedef struct bel_launch {
    const char *name; // "torchrun"; NULL: nobody has said anything
    int rank, size;
    int local_rank, local_size;    // among those on this host
    char job[BEL_LAUNCH_JOB_TEXT]; // what ranks of a job share and other jobs do not have; "": of 1
    char host[BEL_LAUNCH_HOST_TEXT]; // where rank 0 can be reached from other hosts; "": not known
    int port;
} bel_launch;

// `most`: the largest size that the caller can do with. INVALID_ARGUMENT: variables that make no
// rank or no address, named.
bel_status *bel_launch_find(int most, bel_launch *out_launch) BEL_MUST_USE;

// A variable that a launcher sets. INVALID_ARGUMENT: it is not set, or not within these bounds.
bel_status *bel_launch_number(const char *name, int low, int high, int *out) BEL_MUST_USE;

// The ranks of this process's launcher call each other by themselves (belfry/ddl.h), so no job is
// to be made of them.
void bel_launch_claim(void);
bool bel_launch_is_claimed(void);

#endif
