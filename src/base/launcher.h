// Rank of this process among the processes of a launcher, from the launcher's variables: mpirun,
// torchrun, srun, mpiexec of MPICH and Intel MPI, `belfry local ranks`, or a user's script.
// docs/launchers.md has the table.
#ifndef BELFRY_BASE_LAUNCHER_H
#define BELFRY_BASE_LAUNCHER_H

#include <stdbool.h>

#include "belfry/status.h"

enum { BEL_LAUNCH_JOB_TEXT = 512, BEL_LAUNCH_HOST_TEXT = 256 };

// One process of `size`. Without a launcher: rank 0 of 1.
typedef struct bel_launch {
    const char *name; // "torchrun"; NULL: no launcher
    int rank, size;
    int local_rank, local_size;      // among those on this host
    char job[BEL_LAUNCH_JOB_TEXT];   // unique name that ranks of a job share; "": size 1
    char host[BEL_LAUNCH_HOST_TEXT]; // host of rank 0 for other hosts; "": unknown
    int port;
} bel_launch;

// `most`: the largest size that the caller supports. INVALID_ARGUMENT names variables that give no
// valid rank or address.
bel_status *bel_launch_find(int most, bel_launch *out_launch) BEL_MUST_USE;

// Reads a launcher's variable. INVALID_ARGUMENT: it is unset, or out of these bounds.
bel_status *bel_launch_number(const char *name, int low, int high, int *out) BEL_MUST_USE;

// Marks the ranks of this process's launcher as used by belfry/ddl.h, so no job may use them.
void bel_launch_claim(void);
bool bel_launch_is_claimed(void);

#endif
