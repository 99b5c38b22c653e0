// Processes: starting them, waiting for them by descriptor instead of SIGCHLD, and distinguishing a
// process from a later one with the same number. Also random bytes for secrets.
//
// Thread-safe.
#ifndef BELFRY_BASE_LINUX_PROCESS_H
#define BELFRY_BASE_LINUX_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_linux_spawn {
    const char *program;      // path
    char *const *arguments;   // the program's name first, NULL at the end
    char *const *environment; // "NAME=value", NULL at the end; NULL: this process's
    int standard[3];          // descriptors that become 0, 1 and 2; -1: /dev/null
    int inherited;            // descriptor above 2 that becomes BEL_LINUX_INHERITED there; 0: unset
    bool own_session;         // detached from the terminal; otherwise only a new process group
} bel_linux_spawn;

enum { BEL_LINUX_INHERITED = 3 };

typedef struct bel_linux_process {
    int64_t pid;
    int descriptor; // a pidfd: readable for poll once the process has exited
} bel_linux_process;

// How a process ended.
typedef struct bel_linux_end {
    int code;   // exit code, or 128 + signal
    int signal; // signal that killed it; 0: it exited
} bel_linux_end;

// Starts a program (never forks: other threads may run). It gets no other open descriptors,
// provided they are close-on-exec, and all signals unblocked and at their defaults. Returns when
// the program runs. NOT_FOUND, PERMISSION_DENIED, RESOURCE_EXHAUSTED as for files.
bel_status *bel_linux_process_spawn(const bel_linux_spawn *spawn,
                                    bel_linux_process *out_process) BEL_MUST_USE;

// Returns true if the process has exited: then it is reaped, its descriptor closed, and *out_end
// set. Waits up to timeout_ms (0: no wait, -1: without end).
bool bel_linux_process_wait(bel_linux_process *process, int timeout_ms, bel_linux_end *out_end);

// Reaps exited children other than the `count` processes. The first process of a container inherits
// the orphans of all others, and only it can reap them.
void bel_linux_reap_others(const int64_t *pids, int count);

// Sends a signal to the process, or with `group` to all that descend from it and stayed in its
// group. Before it is reaped its number cannot belong to another.
void bel_linux_process_signal(const bel_linux_process *process, int number, bool group);

// Returns true if the process has been stopped (SIGSTOP; a debugger does not count) for `secs` or
// longer. Call it every second; *since_ns (bel_clock_awake_ns), 0 at first, is when the stop was
// first seen.
bool bel_linux_process_stands_still(const bel_linux_process *process, double secs,
                                    int64_t *since_ns);

// Sends this process the signal when the thread of `parent` that started it ends; at once if the
// parent is already another one. A child calls it at its start.
void bel_linux_signal_at_parents_end(int64_t parent, int number);

bool bel_linux_is_main_thread(void);

// Activity of a running process: processor time of its threads, bytes read and written, and whether
// it waits for its child processes. False: it has exited, or the system does not provide this.
typedef struct bel_linux_activity {
    int64_t processor_ns, bytes;
    bool has_children;
} bel_linux_activity;
bool bel_linux_process_activity(int64_t pid, bel_linux_activity *out_activity);

// Returns when a running process was started, in clock ticks since the machine's start; 0: there is
// no such process, or it has exited and only waits to be reaped. pid and ticks identify a process
// until the machine restarts.
int64_t bel_linux_start_ticks(int64_t pid);

// Nanoseconds since the machine began, with the time in which it was suspended.
int64_t bel_linux_boottime_ns(void);

// Sends a signal to the process with that number and start; false when it is gone.
bool bel_linux_signal_exactly(int64_t pid, int64_t start_ticks, int number);

// Returns a text that differs each time the machine starts; "" if it is unknown.
const char *bel_linux_boot_id(char text[64]);

// Returns an id of this process's pid namespace: a container has a separate one. 0: unknown.
int64_t bel_linux_pid_namespace(void);

// Returns this process's resident memory; 0: unknown.
int64_t bel_linux_resident_bytes(void);

// Returns the path of the running program; free with bel_free.
char *bel_linux_program(void);

// Makes a pipe (0 is the read end, 1 the write end), both ends close-on-exec, neither of them 0, 1
// or 2. Reads do not block.
bel_status *bel_linux_pipe(int out_ends[2]) BEL_MUST_USE;

// Makes a pipe for the standard input of a child that already contains the bytes, so no one waits
// for a child that does not read. 0 is the read end, 1 the write end, without blocking.
// RESOURCE_EXHAUSTED: more than a pipe holds, 1 MiB at most.
bel_status *bel_linux_input_pipe(const char *bytes, size_t size, int out_ends[2]) BEL_MUST_USE;

// Reserves a port of the loopback, or of all of this host's addresses. A process that knows it can
// bind it by number with SO_REUSEADDR, as servers do. The system assigns it to no one else until
// *out_descriptor is closed.
bel_status *bel_linux_keep_port(bool loopback, int *out_port, int *out_descriptor) BEL_MUST_USE;

// Raises the descriptor limit of this process and its children to the system's maximum. The usual
// soft limit is 1024, and a process with a shard has a connection to each worker.
void bel_linux_raise_file_limit(void);

// Fills `bytes` with random bytes from the kernel.
bel_status *bel_linux_random(void *bytes, size_t size) BEL_MUST_USE;

#endif
