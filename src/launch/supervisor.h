// The supervisor: the parent of a job's processes. It starts them, on this host or by a way to
// another one (reach.h), shows what they say, and ends when they have ended; it decides nothing
// about training.
//
// Every child runs the same program with the same arguments, and lives no longer than the
// supervisor. It gets BELFRY_TASK and BELFRY_SECRET, BELFRY_MODEL_DIR, and BELFRY_LOG_FORMAT, which
// makes it log JSON lines to its standard error. Sockets lie in a folder of mode 0700 under
// $XDG_RUNTIME_DIR or /tmp, which is removed in the end.
//
// A process that is killed, or ends with 128 or more, is started anew under the next incarnation,
// as often as the cluster's limits say: at once, and one that dies within a second again and again
// after a growing pause; but not one that crashed the same way three times in a row, by the same
// signal in the same step, or block of the input (base/crash.h), as a fourth time would be no
// different; also while the job is to stop, as it is saved with all of them. One that ends with
// another error would do so again, and ends the job. A master that ends with 130 or 143 was asked
// to, and has ended the job. A process that the master reports as lost is killed, and so replaced.
// One that was told to go (SIGTERM, which the supervisor itself sends to nobody) and has left is
// started again, and that does not count.
//
// Where the cluster says how many workers are enough (min_workers), the job goes on without one
// that was killed too often while so many remain. When another number of workers is wanted
// (scale.h), processes are started, or expected to end: the master tells them.
//
// Lines go to log_dir/ROLE-INDEX.INCARNATION.log as they are, behind what an earlier run left. On
// stderr: the master's lines as they would look in one process, others from warnings upwards with
// "[worker 1] " in front, and one progress line.
#ifndef BELFRY_LAUNCH_SUPERVISOR_H
#define BELFRY_LAUNCH_SUPERVISOR_H

#include "launch/reach.h"

typedef struct bel_supervisor_config {
    const bel_plan *plan;
    const char *job;        // name
    const char *program;    // path of the executable
    char *const *arguments; // of every process, the program's name first, NULL at the end
    const char *log_dir;    // created if missing
    const char *model_dir;  // locked meanwhile; a wish for other workers is left there (scale.h);
                            // NULL: neither
    bool tcp;               // loopback ports in place of unix sockets
    const bel_reach *reach; // to other hosts; NULL: all processes are on this one
    const char *folder;     // in which processes on other hosts run
    double grace_secs;      // how long processes have to end by themselves; 0: 15
    // Called about once a second and at every change, from the supervisor's only thread; may be
    // NULL. `json` is the newest progress object of the master, or NULL.
    void (*changed)(void *context, const char *progress_json);
    void *context;
} bel_supervisor_config;

// How a job ended.
typedef struct bel_supervisor_result {
    int exit_code; // the master's; that of the process that failed first when the master's is 0
    bool stopped;  // ended because a signal asked for it, the supervisor or one of its processes;
                   // then exit_code is 128 + its number
    char *message; // why it failed, in one line, e.g. "worker 1 (pid 4711 on box) was killed by
                   // signal 9 (Killed) after step 120"; NULL when it did not. Free with bel_free.
    char *output;  // what the master wrote to standard output. Free with bel_free.
} bel_supervisor_result;

// Runs the job to its end. SIGINT and SIGTERM are passed on once, as SIGINT (the job saves and
// ends), a second one kills; SIGHUP counts as SIGTERM unless it was ignored. When a process has
// failed, or the master has ended, and others do not end within grace_secs, they are killed; when
// the master has failed they are asked to by SIGINT. Errors are those of starting: NOT_FOUND or
// PERMISSION_DENIED for the program, files. One at a time in a process, called by its first thread.
bel_status *bel_supervise(const bel_supervisor_config *config,
                          bel_supervisor_result *out_result) BEL_MUST_USE;

#endif
