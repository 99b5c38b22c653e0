// Supervisor: the parent of a job's processes. It starts them, on this host or through a reach on
// others (reach.h), shows their output, and exits when they have exited. It makes no decisions
// about training.
//
// Every child runs the same program with the same arguments and dies with the supervisor. It gets
// BELFRY_TASK, BELFRY_SECRET, BELFRY_MODEL_DIR, and BELFRY_LOG_FORMAT, which makes it log JSON
// lines to stderr. Sockets are in a folder of mode 0700 under $XDG_RUNTIME_DIR or /tmp, which is
// removed in the end.
//
// Restarts. A process that is killed, or exits with 128 or more, is restarted under the next
// incarnation, as often as the cluster's limits allow. The restart is immediate, but after a
// growing pause for a process that repeatedly dies within a second. Three identical crashes in a
// row end the restarts, as a fourth would be no different: the same signal in the same step, or in
// the same block of the input (base/crash.h). Restarts also happen while the job stops, since
// saving needs all processes.
//
// Other ends. A process that exits with another error would fail again, so it ends the job. A
// master that exits with 130 or 143 was asked to, and so the job is over. A process that the master
// reports as lost is killed and so replaced. A process that was asked to leave by SIGTERM, which
// the supervisor itself never sends, is restarted, and that does not count as a restart.
//
// If the cluster sets min_workers, the job continues without a worker that was killed too often
// while that many remain. When another number of workers is requested (scale.h), the supervisor
// starts processes, or expects the master to end some. When another number of parameter servers is
// requested, the job saves and ends, and the caller starts it again with them.
//
// Output. Lines are appended unchanged to log_dir/ROLE-INDEX.INCARNATION.log, which may have lines
// of an earlier run. The supervisor's stderr shows the master's lines as from a single process,
// other processes' warnings and errors with the prefix "[worker 1] ", and one progress line.
#ifndef BELFRY_LAUNCH_SUPERVISE_SUPERVISOR_H
#define BELFRY_LAUNCH_SUPERVISE_SUPERVISOR_H

#include "launch/cluster/reach.h"
#include "launch/folder/scale.h"

typedef struct bel_supervisor_config {
    const bel_plan *plan;
    const char *job;        // name
    const char *program;    // path of the executable
    char *const *arguments; // every process's; starts with the program's name, ends with NULL
    const char *log_dir;    // created if missing
    const char *model_dir;  // locked while the job runs; requests for processes are in it
                            // (scale.h); NULL: no folder, neither of these
    bel_scale scaled;       // requests that led to this start; all 0: it is the job's first
    bool tcp;               // loopback ports instead of unix sockets
    const bel_reach *reach; // to other hosts; NULL: all processes are on this one
    const char *folder;     // working directory of processes on other hosts
    double grace_secs;      // time for processes to exit; 0: 15
    // Called about once a second and at every change, from the supervisor's only thread; may be
    // NULL. `json` is the master's newest progress object, or NULL.
    void (*changed)(void *context, const char *progress_json);
    void *context;
} bel_supervisor_config;

// Result of a job.
typedef struct bel_supervisor_result {
    int exit_code; // the master's, or if that is 0 the first failed process's
    bool stopped;  // a signal to the supervisor or one of its processes ended the job; then
                   // exit_code is 128 + its number
    char *message; // reason of a failure in one line, e.g. "worker 1 (pid 4711 on box) was killed
                   // by signal 9 (Killed) after step 120"; NULL: success. Free with bel_free.
    char *output;  // the master's standard output. Free with bel_free.
    // Servers above 0: the job was stopped to be started again with these numbers, which the next
    // start's configuration has. exit_code and message are then of the part that was stopped.
    bel_scale scaled;
} bel_supervisor_result;

// Runs the job to its end. The first SIGINT or SIGTERM is forwarded as SIGINT, so that the job
// saves and ends; a second one kills. SIGHUP counts as SIGTERM unless it was ignored. After a
// failure or the master's end, processes that do not exit within grace_secs are killed. If the
// master failed, they first get SIGINT. Returns only errors of starting: NOT_FOUND or
// PERMISSION_DENIED for the program, file errors. Only one may run in a process, on its first
// thread.
bel_status *bel_supervise(const bel_supervisor_config *config,
                          bel_supervisor_result *out_result) BEL_MUST_USE;

#endif
