// A run of the supervisor over fake_role.c: a cluster, what its roles shall do, and what came of
// it.
#ifndef BELFRY_TESTS_SUPPORT_SUPERVISED_H
#define BELFRY_TESTS_SUPPORT_SUPERVISED_H

#include "launch/supervisor.h"
#include "support/bel_test.h"

enum { MOST_ARGUMENTS = 40 };

typedef struct run {
    char *folder, *log_dir, *sockets;
    bel_cluster *cluster;
    char *arguments[MOST_ARGUMENTS];
    size_t argument_count;
    bool tcp;
    const char *way; // of a shell to workers on another host, in front of `carry`; NULL: all here
    double grace_secs;
    bel_supervisor_result result;
    char *shown; // on stderr
    int change_count;
    char *last_progress;
    const char *signal_when; // send signals when this file is there
    const char *signal_again_when;
    int signal;
} run;

// Processes are not started again unless the cluster is changed.
run make_run(int worker_count, int ps_count);
void tell(run *r, const char *action);
void tell_path(run *r, const char *action,
               const char *name); // a path in the run's folder behind it

// Runs to the end, with stderr in a file; sockets must be gone then.
void supervise(run *r);
void end_run(run *r);

void assert_holds(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
void read_log(const run *r, const char *name, char **out_text); // free with bel_free

#endif
