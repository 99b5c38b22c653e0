// Internal header of the supervisor: supervisor.c (the loop), supervisor_start.c (the children's
// input), supervisor_output.c (their output), supervisor_words.c (messages about their ends),
// supervisor_scale.c (other numbers of processes), supervisor_idle.c (idle time),
// supervisor_deadlines.c (deadlines). All its times are awake times (base/clock.h).
#ifndef BELFRY_LAUNCH_SUPERVISE_SUPERVISOR_INNER_H
#define BELFRY_LAUNCH_SUPERVISE_SUPERVISOR_INNER_H

#include "base/linux_process.h"
#include "base/str.h"
#include "launch/folder/scale.h"
#include "launch/supervise/supervisor.h"
#include "launch/task/role_line.h"
#include "launch/task/task.h"

// A crash that a process has reported; a signal of 0: no crash.
typedef struct bel_crash {
    int64_t signal;
    int64_t step, block; // -1: before the first, or outside the input
} bel_crash;

// The other host of a child that is away; nothing here is set for any other child.
typedef struct bel_child_remote {
    int input_fd;        // input of the remote verb `carry`; -1: none
    bool there;          // the command has reached the other host
    char *host;          // its name; NULL: not known yet
    int64_t pid;         // the remote process; 0: not known yet
    int signal;          // the signal that killed the remote process; 0: none
    int64_t kill_ns;     // when to kill the command after a kill of the process; 0: never
    int attempts;        // failed attempts in a row to reach the host
    int64_t sought_ns;   // start of the first of them
    char *why_unreached; // why the last one failed; NULL: no attempt failed
    bel_str last_words;  // the command's lines that are not Belfry's, 400 bytes
} bel_child_remote;

// The stderr of a child, and its log: a file for each incarnation, open until the next one starts.
typedef struct bel_child_output {
    int error_fd;       // the reading end of its stderr; -1: closed
    int log_fd;         // -1: closed, or given up after a failed write
    char *log_path;     // NULL: the child has not run yet
    int64_t log_begin;  // bytes that an earlier run left in the log
    bel_str line;       // bytes read of an unfinished line
    bel_str last_error; // the error message with which it exited
} bel_child_output;

// The incarnations of a child. A restart is due only while it is not running.
typedef struct bel_child_lives {
    int64_t started_ns;
    int64_t restart_ns;          // when to restart it; 0: no restart is due
    int restarts;                // so far
    int short_lives;             // consecutive ones among these
    bel_crash crash, last_crash; // this incarnation's, and the previous one's
    int same_crashes;            // number of identical crashes in a row
} bel_child_lives;

typedef struct bel_child {
    bel_task *task;
    char name[32];             // "worker 1"
    bel_linux_process process; // its descriptor is -1 when it is not running
    bel_linux_end end;         // valid after the process has run
    bool away;                 // on another host: `process` is the command that reaches it
    bool let_go;               // not wanted any more; exits when the master asks it to
    bool given_up;             // killed too often: the job continues without it
    bool leaves;               // it was asked to leave, and reports that it does
    int sent;                  // the last signal that the supervisor sent it; 0: none
    int64_t lost_pid;          // the last process that the master reported as lost
    int64_t still_ns;          // since when it is stopped (SIGSTOP …); 0: it is not
    int memory_fd;             // memory with which a shard's successor continues; -1: none
    bel_child_remote remote;
    bel_child_output output;
    bel_child_lives lives;
} bel_child;

// Addresses at which members meet, and their secret.
typedef struct bel_supervisor_sockets {
    char *folder; // for sockets; NULL with TCP
    int lock;     // its lock (sockets.h); -1: none
    int port_fd;  // reserves the master's port; -1 without TCP
    char *secret;
} bel_supervisor_sockets;

// The master's stdout, and its newest progress.
typedef struct bel_supervisor_master {
    int output_fd;  // read end of its stdout
    bel_str output; // read from it
    char *progress; // its newest progress object; NULL before the first
    int64_t step;   // step in it; -1 before the first
    bool begun;     // it has met its members: its clocks bound every later wait
    bool shown;     // the last step's line is on the terminal and stays
} bel_supervisor_master;

// The wanted number of workers (supervisor_scale.c).
typedef struct bel_supervisor_scale {
    int workers;       // the master included when it trains
    int servers;       // the job stops, to be started again with these; 0: it does not
    int64_t looked_ns; // when the requested numbers were last read
    bel_scale_mark wish;
} bel_supervisor_scale;

// The end of the job: requests, failures and deadlines.
typedef struct bel_supervisor_ending {
    int signal;          // the first one received, or SIGTERM to scale the servers; 0: none
    bool warned;         // only a scheduler's warning was received so far
    bool killing;        // SIGKILL was sent to all
    bool done;           // the master has exited with success, or because it was asked to
    int64_t deadline_ns; // when all are killed; 0: no reason so far
    int64_t answer_ns;   // deadline for a job that has not begun to stop; 0: no deadline
    int64_t ask_ns;      // when those still running are asked to exit; 0: no reason so far,
                         // INT64_MAX: already asked
    double stuck_secs;   // after this idle time the job was killed; 0: it was not
    const bel_child *first_failed; // while set no child is added: that may move the array
} bel_supervisor_ending;

// Idle time of all processes (supervisor_idle.c).
typedef struct bel_supervisor_idle {
    bel_linux_activity busy; // their counters when they were last busy
    int64_t since_ns;        // time of that; 0: not measured yet
    int64_t looked_ns;       // the last measurement …
    double secs;             // … and its result
} bel_supervisor_idle;

typedef struct bel_supervisor {
    const bel_supervisor_config *config;
    bel_child *children;
    int child_count;
    size_t child_capacity;
    int lock; // the model folder's, passed to masters; -1: none
    int signal_fd;
    int64_t grace_ns;
    bool changed; // since the last call of config->changed
    bel_supervisor_sockets sockets;
    bel_supervisor_master master;
    bel_supervisor_scale scale;
    bel_supervisor_ending ending;
    bel_supervisor_idle idle;
} bel_supervisor;

enum { BEL_MOST_SAME_CRASHES = 3 }; // in a row; then the data or the code is at fault

static inline bool bel_child_is_running(const bel_child *child)
{
    return child->process.descriptor >= 0;
}

// supervisor_words.c: describe a child's end, and the reason of the job's failure. Free with
// bel_free.
char *bel_child_describe_end(const bel_supervisor *supervisor, const bel_child *child);
char *bel_child_describe_cause(const bel_supervisor *supervisor, const bel_child *child);

// Creates the folder of the sockets, the secret, the children's tasks and log files; then starts
// all.
bel_status *bel_supervisor_start(bel_supervisor *supervisor) BEL_MUST_USE;

// Sends a signal to a child, with `group` to all its descendants; to a remote child through a line
// to `carry`. If a killed remote child does not exit, its reach command is killed here soon after.
void bel_child_signal(bel_child *child, int number, bool group);

// Restarts an exited child under its next incarnation.
bel_status *bel_supervisor_restart(bel_supervisor *supervisor, bel_child *child) BEL_MUST_USE;

// Checks about once a second whether other numbers of workers or parameter servers are wanted
// (supervisor_scale.c). True: the job must save and end, for another number of servers.
bool bel_supervisor_look_at_scale(bel_supervisor *supervisor);
// True if the job can continue without this worker, which was killed too often; logs that.
bool bel_supervisor_give_up(bel_supervisor *supervisor, bel_child *child, const char *what);

// Returns for how long no process has computed, read or written, judged by one measurement per
// second. -1: some cannot be measured (supervisor_idle.c).
double bel_supervisor_idle_secs(bel_supervisor *supervisor);

// supervisor_deadlines.c

enum { BEL_SUPERVISOR_TICK_MS = 1000 }; // longest sleep of the loop

// Sends a signal to all children; SIGKILL also to their descendants.
void bel_supervisor_signal_all(bel_supervisor *supervisor, int number);
// Kills all, and gives the system the grace period to end them.
void bel_supervisor_kill_all(bel_supervisor *supervisor);
// Kills children that missed a deadline. False: even that failed.
bool bel_supervisor_check_deadlines(bel_supervisor *supervisor);
// Time until the next event, rounded up; at most a tick.
int bel_supervisor_time_left_ms(const bel_supervisor *supervisor);

// Adds a worker beyond the plan; bel_supervisor_restart starts it.
void bel_supervisor_add_worker(bel_supervisor *supervisor, int index);

// Undoes the above functions. Children must have exited. `again`: the job will be started again, so
// requests in its folder stay.
void bel_supervisor_clean_up(bel_supervisor *supervisor, bool again);

// Reads a child's stderr so far into its log file and this process's stderr. `last`: the child has
// exited, so there is nothing to wait for.
void bel_child_read(bel_supervisor *supervisor, bel_child *child, bool last);

// The same for the master's stdout.
void bel_supervisor_read_output(bel_supervisor *supervisor, bool last);

#endif
