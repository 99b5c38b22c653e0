// Loop over descriptors: those of the running trials, readable when they have exited, and that of
// signals. The deadline is set once all must exit; when it passes, they are killed. Trials are
// processes instead of threads, so that a failed or killed one does not end the others. A trial has
// no time limit except the user's patience, so a stopped one is reported.
#include "launch/supervise/trials.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/supervise/stop_signals.h"

typedef struct trials {
    const bel_trials_config *config;
    bel_linux_process *processes; // by trial
    bool *runs, *told;
    int *place; // by trial, once started
    int64_t *still_since;
    int started, running;
    int signals;      // descriptor
    bool stopping;    // no more trials start
    int64_t deadline; // awake time; 0: none
    int signal;       // the one that ended the run
    bool warned;      // it was a scheduler's warning
} trials;

// --- Starting ------------------------------------------------------------------------------------

static int first_free_place(const trials *t)
{
    for (int place = 0;; place++) { // fewer trials run than there are places
        bool taken = false;
        for (int i = 0; i < t->started && !taken; i++)
            taken = t->runs[i] && t->place[i] == place;
        if (!taken) return place;
    }
}

// Sets the place in the environment of the next trial.
static void set_place(trials *t, int number)
{
    char text[32];
    t->place[number] = first_free_place(t);
    bel_snprintf(text, sizeof text, "%d/%d", t->place[number], t->config->side_by_side);
    setenv(BEL_TRIALS_PLACE, text, 1);
}

static bel_status *open_file(const char *path, int flags, int *out_descriptor)
{
    *out_descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    return *out_descriptor >= 0 ? NULL : bel_file_error(errno, "open", path);
}

static bel_status *trials_start(trials *t, int number)
{
    const bel_trial *trial = &t->config->trials[number];
    int output, log;
    BEL_TRY(open_file(trial->output, O_TRUNC, &output));
    bel_status *status = open_file(trial->log, O_APPEND, &log);
    if (status == NULL) {
        set_place(t, number);
        bel_linux_spawn spawn = {.program = t->config->program,
                                 .arguments = trial->arguments,
                                 .standard = {-1, output, log}};
        status = bel_linux_process_spawn(&spawn, &t->processes[number]);
        close(log);
    }
    close(output);
    if (status != NULL) return status;
    t->runs[number] = true;
    t->running++;
    return NULL;
}

static bel_status *start_some(trials *t)
{
    const bel_trials_config *c = t->config;
    while (!t->stopping && t->started < c->count && t->running < c->side_by_side)
        BEL_TRY(trials_start(t, t->started++));
    return NULL;
}

// --- Ending --------------------------------------------------------------------------------------

static void signal_all(const trials *t, int number)
{
    for (int i = 0; i < t->started; i++)
        if (t->runs[i]) bel_linux_process_signal(&t->processes[i], number, true);
}

static void stop(trials *t, int number)
{
    enum { GRACE_SECS = 30 };
    signal_all(t, number);
    t->stopping = true;
    t->deadline = bel_clock_awake_ns() + (int64_t)GRACE_SECS * 1000000000;
}

static void take_ends(trials *t)
{
    for (int i = 0; i < t->started; i++) {
        bel_linux_end *end = &t->config->trials[i].end;
        if (!t->runs[i] || !bel_linux_process_wait(&t->processes[i], 0, end)) continue;
        t->runs[i] = false;
        t->running--;
        if (!t->stopping && !t->config->ended(t->config->context, i)) stop(t, SIGTERM);
    }
}

static void take_signals(trials *t)
{
    for (int number; (number = bel_stop_signals_read(t->signals)) != 0;) {
        bool warns = number == SIGUSR1; // SIGTERM will follow
        if (warns && t->signal != 0) continue;
        if (warns) number = SIGTERM;
        if (t->warned) { // this is the announced signal; the trainings already save
            t->warned = false;
            continue;
        }
        t->warned = warns;
        stop(t, t->signal != 0 ? SIGKILL : number);
        if (t->signal == 0) t->signal = number;
    }
}

static void wait_for_some(const trials *t, struct pollfd *waiting)
{
    int count = 0;
    waiting[count++] = (struct pollfd){.fd = t->signals, .events = POLLIN};
    for (int i = 0; i < t->started; i++)
        if (t->runs[i])
            waiting[count++] = (struct pollfd){.fd = t->processes[i].descriptor, .events = POLLIN};
    int64_t left_ms = (t->deadline - bel_clock_awake_ns()) / 1000000 + 1;
    if (t->deadline == 0 || left_ms > BEL_CLOCK_LOOK_MS) left_ms = BEL_CLOCK_LOOK_MS;
    (void)poll(waiting, (nfds_t)count, left_ms > 0 ? (int)left_ms : 0);
}

// Reports each stopped trial once; other trials exit without help.
static void tell_stopped(trials *t)
{
    enum { SECS = 20 };
    for (int i = 0; i < t->started; i++) {
        bool stands = t->runs[i] &&
                      bel_linux_process_stands_still(&t->processes[i], SECS, &t->still_since[i]);
        if (stands && !t->told[i])
            bel_log_write(BEL_LOG_WARN, "process %lld stands still (SIGSTOP), and is waited for",
                          (long long)t->processes[i].pid);
        t->told[i] = stands;
    }
}

static bel_status *trials_run(trials *t)
{
    struct pollfd *waiting = bel_xcalloc((size_t)t->config->side_by_side + 1, sizeof *waiting);
    bel_status *status = start_some(t);
    if (status != NULL) stop(t, SIGTERM);
    while (t->running > 0) {
        wait_for_some(t, waiting);
        take_signals(t); // before exits, which signals cause
        take_ends(t);
        tell_stopped(t);
        if (t->deadline != 0 && bel_clock_awake_ns() >= t->deadline) stop(t, SIGKILL);
        if (status != NULL) continue;
        status = start_some(t);
        if (status != NULL) stop(t, SIGTERM);
    }
    bel_free(waiting);
    return status;
}

bel_status *bel_trials_run(const bel_trials_config *config, int *out_signal)
{
    trials t = {.config = config};
    char pid[32];
    bel_snprintf(pid, sizeof pid, "%ld", (long)getpid());
    BEL_TRY(bel_stop_signals_open(&t.signals));
    setenv(BEL_TRIALS_STARTER, pid, 1);
    t.processes = bel_xcalloc((size_t)config->count, sizeof *t.processes);
    t.runs = bel_xcalloc((size_t)config->count, sizeof *t.runs);
    t.told = bel_xcalloc((size_t)config->count, sizeof *t.told);
    t.place = bel_xcalloc((size_t)config->count, sizeof *t.place);
    t.still_since = bel_xcalloc((size_t)config->count, sizeof *t.still_since);
    bel_linux_raise_file_limit(); // one descriptor per running trial
    bel_status *status = trials_run(&t);
    unsetenv(BEL_TRIALS_STARTER);
    unsetenv(BEL_TRIALS_PLACE);
    bel_stop_signals_close(t.signals);
    bel_free(t.processes);
    bel_free(t.runs);
    bel_free(t.told);
    bel_free(t.place);
    bel_free(t.still_since);
    *out_signal = t.signal;
    return status;
}

void bel_trials_place(int *out_place, int *out_places)
{
    int64_t place = 0, places = 0;
    const char *text = getenv(BEL_TRIALS_PLACE);
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    bool told = slash != NULL && bel_parse_i64(text, (size_t)(slash - text), &place) &&
                bel_parse_i64(slash + 1, strlen(slash + 1), &places) && place >= 0 &&
                place < places && places <= INT_MAX;
    *out_place = told ? (int)place : 0;
    *out_places = told ? (int)places : 0;
}

void bel_trials_follow_starter(void)
{
    int64_t starter;
    const char *text = getenv(BEL_TRIALS_STARTER);
    if (text == NULL || !bel_parse_i64(text, strlen(text), &starter) || starter < 1) return;
    bel_linux_signal_at_parents_end(starter, SIGINT);
    unsetenv(BEL_TRIALS_STARTER); // processes that it starts have it as their parent
}
