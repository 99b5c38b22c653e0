// Inside view of the supervisor: supervisor.c (the loop), supervisor_start.c (what children are
// given), supervisor_output.c (what they say), supervisor_words.c (what is said of their ends),
// supervisor_scale.c (another number of workers), supervisor_idle.c (how long it does nothing).
#ifndef BELFRY_LAUNCH_SUPERVISOR_INNER_H
#define BELFRY_LAUNCH_SUPERVISOR_INNER_H

#include "base/linux_process.h"
#include "base/str.h"
#include "launch/role_line.h"
#include "launch/scale.h"
#include "launch/supervisor.h"
#include "launch/task.h"

// Of a process that says so; a signal of 0: it did not crash.
typedef struct bel_crash {
    int64_t signal;
    int64_t step, block; // -1: before the first, or not in the input
} bel_crash;

typedef struct bel_child {
    bel_task *task;
    char name[32];             // "worker 1"
    bel_linux_process process; // its descriptor is -1 when it is not running
    bel_linux_end end;         // once it has run
    bool away;                 // on another host: `process` is the way there
    int input_fd;              // to the verb `carry` over there; -1: none
    bool there;                // the way has led there
    int64_t carried_pid;       // of the process there; 0: not known yet
    int64_t lost_pid;          // of the process that the master has lost last
    int carried_signal;        // that has killed it; 0: none
    int sent;                  // the last signal that this process has sent it; 0: none
    char *host;                // the name of that host; NULL: not known yet
    int attempts;              // to reach it, one after the other, that have failed
    char *why_unreached;       // the last of them; NULL: it was never so
    int64_t still_ns;          // since when it stands still; 0: it does not
    int64_t kill_ns;           // when the way is killed, as the process was; 0: it is not
    int error_fd;              // the reading end of its stderr; -1: closed
    int log_fd;                // -1: closed, or given up after a failed write
    char *log_path;
    int64_t log_begin; // how much an earlier run has left in it
    int restarts;      // so far
    int short_lives;   // of these, one after the other
    int64_t started_ns;
    int64_t restart_ns;          // when it is started anew; 0: it is not
    bool let_go;                 // it is not wanted any more, and ends when the master says so
    bool given_up;               // killed too often: the job goes on without it
    bool leaves;                 // it was told to go, and says that it does
    bel_str line;                // read, but without its newline so far
    bel_str last_error;          // the message with which it ended
    bel_str last_words;          // of the way to it: the lines that are not Belfry's, 400 bytes
    bel_crash crash, last_crash; // of this incarnation, and of the one before
    int same_crashes;            // so often in a row it crashed like that
} bel_child;

typedef struct bel_supervisor {
    const bel_supervisor_config *config;
    bel_child *children;
    int child_count;
    size_t child_capacity;
    char *folder;    // of the sockets; NULL with TCP
    int folder_lock; // for sockets.h; -1: none
    int port_fd;     // keeps the master's port; -1 without TCP
    int lock;        // of the model folder, which masters are given; -1: none
    char *secret;
    int output_fd;  // the reading end of the master's stdout
    bel_str output; // what came from it
    int signal_fd;
    int64_t grace_ns;

    char *progress; // the newest progress object of the master; NULL before the first
    int64_t step;   // in it; -1 before the first
    bool begun;     // the master has met its members: its clocks bound every wait from then on
    bool shown;     // the last step's line stands on the terminal for good
    bool changed;

    int workers;       // that are wanted, the master included when it trains
    int64_t looked_ns; // when it was last looked for another number
    bel_scale_mark wish;

    int stop_signal;         // the first that came; 0: none
    bool warned;             // only a scheduler's warning has come so far
    bool killing;            // SIGKILL was sent to all
    bool done;               // the master has ended well, or as it was asked to
    int64_t deadline_ns;     // when it will be; 0: no reason so far
    int64_t ask_ns;          // when those that still run are asked to end; 0: no reason so far,
                             // INT64_MAX: they were
    bel_linux_activity idle; // of all processes, when they were busy last
    int64_t idle_since_ns;   // that moment; 0: not looked at yet
    int64_t idle_looked_ns;  // the last look …
    double idle_secs;        // … and what came of it
    double stuck_secs;       // the job was killed as it was idle for so long; 0: it was not
    int64_t answer_ns;       // when a job that has not begun must have stopped; 0: no need
    const bel_child *first_failed; // from then on no child is added: they may move
} bel_supervisor;

enum { BEL_MOST_SAME_CRASHES = 3 }; // in a row, then the data or the code is at fault

static inline bool bel_child_is_running(const bel_child *child)
{
    return child->process.descriptor >= 0;
}

// supervisor_words.c: how a child has ended, and the same as the reason why the job has. Free with
// bel_free.
char *bel_child_describe_end(const bel_supervisor *supervisor, const bel_child *child);
char *bel_child_describe_cause(const bel_supervisor *supervisor, const bel_child *child);

// Makes the folder of the sockets, the secret, the children's tasks and log files; then starts all.
bel_status *bel_supervisor_start(bel_supervisor *supervisor) BEL_MUST_USE;

// Sends a signal to a child, with `group` to all that it has started; over there by a line for
// `carry`. One that is killed over there, and does not end, ends here soon.
void bel_child_signal(bel_child *child, int number, bool group);

// Starts a child that has ended under its next incarnation.
bel_status *bel_supervisor_restart(bel_supervisor *supervisor, bel_child *child) BEL_MUST_USE;

// Checks about once a second whether another number of workers is wanted (supervisor_scale.c).
void bel_supervisor_look_at_scale(bel_supervisor *supervisor);
// True when the job can go on without this worker, which was killed too often; then that is logged.
bool bel_supervisor_give_up(bel_supervisor *supervisor, bel_child *child, const char *what);

// How long no process has computed, read or written, as far as is known by looking once a second;
// -1: some cannot be looked at (supervisor_idle.c).
double bel_supervisor_idle_secs(bel_supervisor *supervisor);

// Adds a worker beyond those of the plan, to be started by bel_supervisor_restart.
void bel_supervisor_add_worker(bel_supervisor *supervisor, int index);

// Removes what the above has made. Children must have ended.
void bel_supervisor_clean_up(bel_supervisor *supervisor);

// Reads what a child has written to stderr so far: to its log file, and to this process's stderr.
// `last`: the child has ended, so nothing more is waited for.
void bel_child_read(bel_supervisor *supervisor, bel_child *child, bool last);

// The same for the master's stdout.
void bel_supervisor_read_output(bel_supervisor *supervisor, bool last);

#endif
