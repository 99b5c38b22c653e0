// Loop over descriptors: those of the ranks, which are readable when they have exited, and that of
// signals. While the job is to end it has a deadline; each time the deadline passes, the loop sends
// a stronger signal.
#include "launch/supervise/ranks.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/supervise/stop_signals.h"

typedef struct ranks {
    const bel_ranks_config *config;
    bel_linux_process *processes;
    bool *runs;
    int running;
    int signals;      // descriptor
    int next_signal;  // sent to all ranks at the deadline
    int64_t deadline; // awake time; 0: none
    bel_ranks_result result;
} ranks;

static void signal_all(const ranks *r, int number)
{
    for (int i = 0; i < r->config->count; i++)
        if (r->runs[i]) bel_linux_process_signal(&r->processes[i], number, true);
}

// Sets the deadline for all ranks to exit; `next` is sent to those that have not.
static void set_deadline(ranks *r, int next)
{
    enum { LEARN_SECS = 3, GRACE_SECS = 15 }; // longer than BEL_CLOCK_GAP_NS
    double grace = r->config->grace_secs > 0 ? r->config->grace_secs : GRACE_SECS;
    r->next_signal = next;
    r->deadline = bel_clock_awake_ns() + (int64_t)((next == SIGKILL ? grace : LEARN_SECS) * 1e9);
}

static void set_number(const char *name, int64_t value)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%lld", (long long)value);
    setenv(name, text, 1);
}

// The environment is this process's, which has one thread here.
static bel_status *start_all(ranks *r)
{
    uint64_t random;
    char job[64];
    BEL_TRY(bel_linux_random(&random, sizeof random));
    bel_snprintf(job, sizeof job, "%ld-%016llx", (long)getpid(), (unsigned long long)random);
    setenv("BELFRY_JOB", job, 1);
    set_number("BELFRY_SIZE", r->config->count);
    set_number("BELFRY_DDL_STARTER", getpid());
    fflush(stdout); // this process's output must not follow the ranks'
    for (int i = 0; i < r->config->count; i++) {
        set_number("BELFRY_RANK", i);
        bel_linux_spawn spawn = {.program = r->config->program,
                                 .arguments = r->config->arguments,
                                 .standard = {-1, STDOUT_FILENO, STDERR_FILENO}};
        BEL_TRY(bel_linux_process_spawn(&spawn, &r->processes[i]));
        r->runs[i] = true;
        r->running++;
    }
    return NULL;
}

// The first failed rank is the reason; later failures follow from it.
static void note_end(ranks *r, int rank, int64_t pid, bel_linux_end end)
{
    r->runs[rank] = false;
    r->running--;
    if (end.code == 0 || r->result.message != NULL) return;
    r->result.exit_code = end.code;
    r->result.message = end.signal != 0
                            ? bel_strf("rank %d (pid %lld) was killed by signal %d (%s)", rank,
                                       (long long)pid, end.signal, strsignal(end.signal))
                            : bel_strf("rank %d (pid %lld) ended with exit code %d", rank,
                                       (long long)pid, end.code);
    if (r->deadline == 0) set_deadline(r, SIGTERM);
}

static void take_ends(ranks *r)
{
    for (int i = 0; i < r->config->count; i++) {
        bel_linux_end end;
        int64_t pid = r->processes[i].pid;
        if (r->runs[i] && bel_linux_process_wait(&r->processes[i], 0, &end))
            note_end(r, i, pid, end);
    }
}

static void take_signals(ranks *r)
{
    for (int number; (number = bel_stop_signals_read(r->signals)) != 0;) {
        if (number == SIGUSR1) { // the program decides what a scheduler's warning means
            signal_all(r, number);
            continue;
        }
        bool again = r->result.message != NULL && r->next_signal == SIGKILL;
        signal_all(r, again ? SIGKILL : number);
        if (r->result.message == NULL) {
            r->result.exit_code = 128 + number;
            r->result.message = bel_strf("stopped by signal %d (%s)", number, strsignal(number));
        }
        set_deadline(r, SIGKILL);
    }
}

static void ranks_run(ranks *r)
{
    struct pollfd *waiting = bel_xcalloc((size_t)r->config->count + 1, sizeof *waiting);
    while (r->running > 0) {
        int count = 0;
        waiting[count++] = (struct pollfd){.fd = r->signals, .events = POLLIN};
        for (int i = 0; i < r->config->count; i++)
            if (r->runs[i])
                waiting[count++] =
                    (struct pollfd){.fd = r->processes[i].descriptor, .events = POLLIN};
        int64_t left_ms = (r->deadline - bel_clock_awake_ns()) / 1000000 + 1;
        if (left_ms > BEL_CLOCK_LOOK_MS) left_ms = BEL_CLOCK_LOOK_MS;
        int timeout_ms = r->deadline == 0 ? -1 : left_ms > 0 ? (int)left_ms : 0;
        (void)poll(waiting, (nfds_t)count, timeout_ms);
        take_ends(r);
        take_signals(r);
        if (r->deadline != 0 && bel_clock_awake_ns() >= r->deadline) {
            signal_all(r, r->next_signal);
            set_deadline(r, SIGKILL);
        }
    }
    bel_free(waiting);
}

bel_status *bel_ranks_run(const bel_ranks_config *config, bel_ranks_result *out_result)
{
    ranks r = {.config = config};
    BEL_TRY(bel_stop_signals_open(&r.signals));
    r.processes = bel_xcalloc((size_t)config->count, sizeof *r.processes);
    r.runs = bel_xcalloc((size_t)config->count, sizeof *r.runs);
    bel_status *status = start_all(&r);
    if (status != NULL) signal_all(&r, SIGKILL);
    ranks_run(&r);
    bel_stop_signals_close(r.signals);
    bel_free(r.processes);
    bel_free(r.runs);
    if (status != NULL) {
        bel_free(r.result.message);
        return status;
    }
    *out_result = r.result;
    return NULL;
}
