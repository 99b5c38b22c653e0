// Ranks on this host: runs `count` processes of one program until all have exited. Variables tell
// each process its rank (belfry/ddl.h). No rank is restarted, because a rank's work so far is in
// its memory.
#ifndef BELFRY_LAUNCH_SUPERVISE_RANKS_H
#define BELFRY_LAUNCH_SUPERVISE_RANKS_H

#include "belfry/status.h"

typedef struct bel_ranks_config {
    const char *program;    // path of the executable
    char *const *arguments; // starts with the program's name; ends with NULL
    int count;
    double grace_secs; // time to end after a request to; 0: 15
} bel_ranks_config;

typedef struct bel_ranks_result {
    int exit_code; // the first failed rank's, or 128 + the signal number if a signal killed it;
                   // this process's, if a signal ended the job
    char *message; // reason of the failure, in one line; NULL: success. Free with bel_free.
} bel_ranks_result;

// Runs the ranks to their end. Their output goes to this process's, and their standard input is
// empty. The first SIGINT or SIGTERM is forwarded, a second one kills. When a rank fails, the
// others notice in their next call; those still running after three seconds get SIGTERM. Ranks
// still running grace_secs after a signal get SIGKILL. If this process is killed, the ranks that
// have started are killed too. Returns only errors of starting. Call it on the process's first
// thread.
bel_status *bel_ranks_run(const bel_ranks_config *config,
                          bel_ranks_result *out_result) BEL_MUST_USE;

#endif
