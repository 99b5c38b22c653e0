// Ranks on this host: a program, started so many times, each told by variables which one it is
// (belfry/ddl.h), until all have ended. Nothing is started again: what ranks have done by then is
// in their memory.
#ifndef BELFRY_LAUNCH_RANKS_H
#define BELFRY_LAUNCH_RANKS_H

#include "belfry/status.h"

typedef struct bel_ranks_config {
    const char *program;    // path of the executable
    char *const *arguments; // the program's name first, NULL at the end
    int count;
    double grace_secs; // that ranks have to end when they were told to; 0: 15
} bel_ranks_config;

typedef struct bel_ranks_result {
    int exit_code; // of the rank that failed first, 128 + the signal's number when it was killed;
                   // of this process, when a signal ended the job
    char *message; // why, in one line; NULL: all is well. Free with bel_free.
} bel_ranks_result;

// Output of ranks goes where this process's goes, and their standard input is empty. SIGINT and
// SIGTERM are passed on once, a second one kills. When a rank fails, the others learn it from their
// next call; those that have not ended after two seconds get SIGTERM. Whoever has not ended
// grace_secs after a signal gets SIGKILL. When this process is killed, ranks that have begun are,
// too. Errors are those of starting. Called by the process's first thread.
bel_status *bel_ranks_run(const bel_ranks_config *config,
                          bel_ranks_result *out_result) BEL_MUST_USE;

#endif
