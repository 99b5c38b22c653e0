// A run of the supervisor over fake_role.c: a cluster, its roles' actions, and the outcome.
#ifndef BELFRY_TESTS_SUPPORT_SUPERVISED_H
#define BELFRY_TESTS_SUPPORT_SUPERVISED_H

#include "launch/supervise/supervisor.h"
#include "support/bel_test.h"

enum { MOST_ARGUMENTS = 40 };

typedef struct run {
    char *folder, *log_dir, *sockets;
    bel_cluster *cluster;
    char *arguments[MOST_ARGUMENTS];
    size_t argument_count;
    bool tcp;
    const char *way; // shell command before `carry` for workers on another host; NULL: all run here
    double grace_secs;
    bel_supervisor_result result;
    char *shown; // on stderr
    int change_count;
    char *last_progress;
    const char *signal_when; // send signals when this file exists
    const char *signal_again_when;
    int signal;
} run;

// Makes a run in which processes are not restarted unless the cluster is changed.
run make_run(int worker_count, int ps_count);
void tell(run *r, const char *action);
void tell_path(run *r, const char *action,
               const char *name); // a path in the run's folder after it

// Runs to the end, with stderr in a file. The sockets must be gone then.
void supervise(run *r);
void end_run(run *r);

void assert_holds(const char *text, const char *part);
void assert_lacks(const char *text, const char *part);
void read_log(const run *r, const char *name, char **out_text); // free with bel_free

#endif
