// The supervisor's loop: signals, the children's output and exits, and deadlines.
//
// It always terminates: every wait after the master's end or after a failure has a deadline, at
// which all children are killed.
#include "launch/supervise/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "launch/folder/folder_lock.h"
#include "launch/supervise/stop_signals.h"
#include "launch/supervise/supervisor_inner.h"

static const double usual_grace_secs = 15;

// A child that waits for its restart counts too.
static bool any_running(const bel_supervisor *s)
{
    for (int i = 0; i < s->child_count; i++)
        if (bel_child_is_running(&s->children[i]) || s->children[i].lives.restart_ns != 0)
            return true;
    return false;
}

// --- Signals ------------------------------------------------------------------------------------

// Asks all to save and end.
static void begin_to_stop(bel_supervisor *s, int number)
{
    s->ending.signal = number;
    bel_supervisor_signal_all(s, SIGINT); // SIGTERM would make each of them leave a continuing job
    s->ending.answer_ns = bel_clock_awake_ns() + s->grace_ns;
}

// Forwards the first signal, so that the job saves; a second one kills.
static void take_signals(bel_supervisor *s)
{
    int number;
    while ((number = bel_stop_signals_read(s->signal_fd)) != 0) {
        bool warns = number == SIGUSR1; // another signal will stop the job
        const char *name = warns ? "SIGUSR1" : number == SIGINT ? "SIGINT" : "SIGTERM";
        bool scales = s->scale.servers > 0; // it stops already, and would be started again
        if (warns && s->ending.signal != 0 && !scales) continue;
        if (s->ending.signal == 0 || scales) {
            s->ending.warned = warns;
            bel_log_write(BEL_LOG_INFO, "%s: the job saves and ends; a second one kills it", name);
            s->scale.servers = 0;
            begin_to_stop(s, warns ? SIGTERM : number);
        } else if (s->ending.warned) {
            s->ending.warned = false; // this is the announced signal
        } else if (!s->ending.killing) {
            bel_log_write(BEL_LOG_WARN, "%s again: all processes are killed", name);
            s->ending.signal = number;
            bel_supervisor_kill_all(s);
        }
    }
}

// --- Ends ---------------------------------------------------------------------------------------

// True for a death from outside, not by the process's own error.
static bool was_killed(const bel_child *child)
{
    return child->end.signal != 0 || child->end.code >= 128;
}

// True if the child exited because it was asked to: as part of the job, or as the master, which
// then ends the job. A process that left the job does not count: the master may need its successor,
// to save.
static bool has_stopped(const bel_supervisor *s, const bel_child *child)
{
    int code = child->end.code;
    bool asked = code == 128 + SIGINT || code == 128 + SIGTERM;
    if (child->leaves && child->end.signal == 0) return false;
    if (s->ending.signal != 0 && asked) return true;
    return child->task->role == BEL_ROLE_MASTER && child->end.signal == 0 && asked;
}

enum { SHORT_NS = 1000000000 }; // a short life

// True if the child was asked to leave and left when the job could continue without it, which is
// not a death. A process that has only just started has no handlers yet, so the signal itself ends
// it.
static bool has_left(const bel_supervisor *s, const bel_child *child)
{
    int signal = child->end.signal;
    bool early = bel_clock_awake_ns() - child->lives.started_ns < SHORT_NS;
    bool told = signal == 0 ? child->leaves : early && (signal == SIGTERM || signal == SIGHUP);
    return told && s->config->plan->cluster->restarts > 0;
}

// True if the job was successful and this child's end came too late to matter: it was asked to
// exit, could not be started or restarted, or died.
static bool is_late(const bel_supervisor *s, const bel_child *child)
{
    const bel_cluster *cluster = s->config->plan->cluster;
    bool may_die = cluster->restarts > 0 || cluster->min_workers > 0;
    return s->ending.done && (s->ending.ask_ns == INT64_MAX || child->task->added ||
                              child->task->incarnation > 0 || (was_killed(child) && may_die));
}

// A member that exits silently with an error was told that the job is over; while the job stops,
// the master reports the outcome.
static bool was_told(const bel_supervisor *s, const bel_child *child)
{
    return s->ending.signal != 0 && child->task->role != BEL_ROLE_MASTER &&
           child->end.signal == 0 && child->output.last_error.length == 0;
}

// True for an end that is the job's failure.
static bool has_failed(const bel_supervisor *s, const bel_child *child)
{
    if (child->end.code == 0 || s->ending.killing || child->let_go || child->given_up) return false;
    return !has_stopped(s, child) && !is_late(s, child) && !was_told(s, child);
}

// Restarts last until the job ends. While the job stops, the master needs all processes, to save;
// without a master they exit themselves.
static bool goes_on(const bel_supervisor *s)
{
    bool stops = s->ending.signal != 0 && !bel_child_is_running(&s->children[0]);
    return !stops && !s->ending.killing && s->ending.deadline_ns == 0;
}

// Killed, not asked to exit, and still needed.
static bool is_missed(const bel_supervisor *s, const bel_child *child)
{
    // The signal that asks all to stop may kill one that was just restarted.
    bool stopped =
        has_stopped(s, child) && (child->end.signal == 0 || child->task->incarnation == 0);
    return (was_killed(child) || has_left(s, child)) && !stopped && !child->let_go && goes_on(s);
}

// Counts identical crashes. A process that crashes by the same signal in the same place each time
// would continue to: the data or the code is at fault. For readers of the input the place is the
// block, whatever the others' step is.
static void count_crash(bel_child *child)
{
    const bel_crash *now = &child->lives.crash, *before = &child->lives.last_crash;
    bool reads = now->block >= 0 || before->block >= 0;
    bool there = reads ? now->block == before->block : now->step == before->step;
    bool same = now->signal > 0 && now->signal == before->signal && there;
    child->lives.same_crashes = now->signal == 0 ? 0 : same ? child->lives.same_crashes + 1 : 1;
    child->lives.last_crash = *now;
}

static bool may_restart(const bel_supervisor *s, const bel_child *child)
{
    if (!is_missed(s, child)) return false;
    return has_left(s, child) || (child->lives.same_crashes < BEL_MOST_SAME_CRASHES &&
                                  child->lives.restarts < s->config->plan->cluster->restarts);
}

// True for a worker that exited at the master's request, but a later scale request wants it again.
// The exception is a job that is ending.
static bool is_wanted_again(const bel_supervisor *s, const bel_child *child)
{
    bool scaled = s->scale.wish.file != 0 && child->task->role == BEL_ROLE_WORKER;
    return scaled && child->end.code == 0 && !child->let_go && s->ending.signal == 0 && goes_on(s);
}

// Among processes found exited at the same time, rates how likely each caused the others to fail: a
// killed process before one that exited, and any before the master.
static int suspicion(const bel_child *child)
{
    return (child->end.signal != 0 ? 2 : 0) + (child->task->role != BEL_ROLE_MASTER ? 1 : 0);
}

// Restarts at once; from the second short life in a row after a pause that doubles from 0.1 to 6.4
// s.
static void plan_restart(bel_supervisor *s, bel_child *child)
{
    enum { PAUSE_NS = 100000000, MOST_DOUBLINGS = 6, LEAVING = 30 };
    // A process that leaves by request each time may take long to begin.
    int64_t now = bel_clock_awake_ns(),
            brief = has_left(s, child) ? LEAVING * (int64_t)SHORT_NS : SHORT_NS;
    child->lives.short_lives =
        now - child->lives.started_ns < brief ? child->lives.short_lives + 1 : 0;
    int doublings = child->lives.short_lives - 2 < MOST_DOUBLINGS ? child->lives.short_lives - 2
                                                                  : MOST_DOUBLINGS;
    child->lives.restart_ns = doublings < 0 ? now : now + ((int64_t)PAUSE_NS << doublings);
    if (has_left(s, child)) {
        bel_log_write(BEL_LOG_INFO, "%s has left, as it was told to: it is started again",
                      child->name);
        return;
    }
    char *what = bel_child_describe_end(s, child);
    child->lives.restarts++;
    bel_log_write(BEL_LOG_WARN, "%s: it is started again (%d of %d times)", what,
                  child->lives.restarts, s->config->plan->cluster->restarts);
    bel_free(what);
}

// True if the reach command ended before it had reached the host. It is retried for as long as the
// master waits for the process. Errors of the process or its program do not count.
static bool is_unreached(const bel_supervisor *s, const bel_child *child)
{
    enum { NOT_RUN = 126, NOT_FOUND = 127 }; // a shell's
    int code = child->end.code;
    return child->away && !child->remote.there && code != 0 && code != NOT_RUN &&
           code != NOT_FOUND && child->output.last_error.length == 0 && !child->let_go &&
           goes_on(s);
}

static int find_moves(const bel_supervisor *s, const bel_child *child, int *out_mate)
{
    int *moved = bel_xcalloc((size_t)child->task->ps_count + 1, sizeof *moved);
    for (int i = 0; i < s->child_count; i++) {
        const bel_task *task = s->children[i].task;
        if (task->role == BEL_ROLE_PS && task->index < child->task->ps_count)
            moved[task->index] = task->moves;
    }
    int moves = bel_plan_moves(s->config->plan, child->task, moved, out_mate);
    bel_free(moved);
    return moves;
}

// A parameter server whose state has a copy starts on another host if its host stays away for a
// third of the time for which the master waits: what remains is for the state on its way.
static void move_server(const bel_supervisor *s, bel_child *child)
{
    enum { PARTS = 3 };
    const bel_plan *plan = s->config->plan;
    double away = (double)(bel_clock_awake_ns() - child->remote.sought_ns) * 1e-9;
    int mate, moves = find_moves(s, child, &mate);
    if (moves == 0 || away < child->task->join_timeout_secs / PARTS) return;
    const char *before = bel_plan_host(plan, child->task);
    child->task->moves = moves;
    child->remote.attempts = 0;
    child->remote.sought_ns = bel_clock_awake_ns();
    bel_log_write(BEL_LOG_WARN, "%s is started on %s, as %s cannot be reached for %.0f s",
                  child->name, bel_plan_host(plan, child->task), before, away);
    if (mate < 0) return;
    bel_log_write(BEL_LOG_WARN,
                  "%s and ps %d, of which one has the copy of the other, are on one host: if that "
                  "is lost, the state is",
                  child->name, mate);
}

// Retries after 0.2 s, so that a recovered host is found soon; from the sixtieth attempt after 5 s.
// Identical messages are logged once. The log of an attempt has been shown.
static void plan_attempt(const bel_supervisor *s, bel_child *child)
{
    enum { PAUSE_NS = 200000000, SOON = 60 };
    const int64_t late_ns = INT64_C(5000000000);
    if (child->remote.attempts == 0) child->remote.sought_ns = child->lives.started_ns;
    move_server(s, child);
    child->lives.restart_ns =
        bel_clock_awake_ns() + (child->remote.attempts < SOON ? PAUSE_NS : late_ns);
    child->remote.attempts++;
    // Keeps the log of an earlier run.
    if (child->output.log_begin == 0) {
        (void)remove(child->output.log_path); // a remaining one has the same content
    } else {
        (void)truncate(child->output.log_path, (off_t)child->output.log_begin); // as above
    }
    const char *why =
        child->remote.last_words.length > 0 ? child->remote.last_words.text : "it says nothing";
    if (child->remote.why_unreached != NULL && strcmp(why, child->remote.why_unreached) == 0)
        return;
    bel_free(child->remote.why_unreached);
    child->remote.why_unreached = bel_xstrdup(why);
    bel_log_write(BEL_LOG_WARN, "the way to %s ended with exit code %d: %s; it is tried again",
                  child->name, child->end.code, why);
}

// Killed too often, but the job may continue without it.
static bool give_up(bel_supervisor *s, bel_child *child)
{
    if (!is_missed(s, child)) return false;
    char *what = bel_child_describe_end(s, child);
    bool without = bel_supervisor_give_up(s, child, what);
    bel_free(what);
    return without;
}

// Members have two seconds to exit before they are asked to.
static void ask_soon(bel_supervisor_ending *ending)
{
    enum { NOTICE_SECS = 2 };
    if (ending->ask_ns == 0)
        ending->ask_ns = bel_clock_awake_ns() + NOTICE_SECS * (int64_t)1000000000;
}

// The master notices the failure and ends, unless the member had not joined: then the master is
// asked to.
static void take_failure(bel_supervisor *s, const bel_child *child)
{
    s->ending.first_failed = child;
    if (s->ending.deadline_ns == 0) s->ending.deadline_ns = bel_clock_awake_ns() + s->grace_ns;
    ask_soon(&s->ending);
}

// Restarts the children whose time has come. A failed restart counts as the death before it.
static void restart_due(bel_supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        bool wanted = goes_on(s);
        if (child->lives.restart_ns == 0 ||
            (wanted && bel_clock_awake_ns() < child->lives.restart_ns))
            continue;
        bel_linux_end end = child->end;
        bel_status *status = wanted ? bel_supervisor_restart(s, child) : NULL;
        child->lives.restart_ns = 0;
        if (status == NULL && wanted) continue;
        child->end = end;
        if (status != NULL) bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
        bel_status_ignore(status); // logged
        if (s->ending.first_failed == NULL && has_failed(s, child)) take_failure(s, child);
    }
}

// Finds the child whose end is the reason. Once the job has an error, members exit with one and
// report nothing. So the reason is a killed child, else the first one if it reported an error, else
// the master's error. NULL: no failure.
static const bel_child *find_cause(const bel_supervisor *s)
{
    const bel_child *first = s->ending.first_failed, *master = &s->children[0];
    if (first == NULL || first->end.signal != 0 || first->output.last_error.length > 0)
        return first;
    if (s->ending.done && master->end.code != 0) return NULL;
    return master->output.last_error.length > 0 && master->end.code != 0 ? master : first;
}

// Without the master all others must exit: on request at the latest, or they are killed.
static void take_master_end(bel_supervisor *s, const bel_child *master)
{
    bel_supervisor_read_output(s, true);
    if (s->ending.killing) return;
    s->ending.deadline_ns = bel_clock_awake_ns() + s->grace_ns;
    if (has_failed(s, master)) bel_supervisor_signal_all(s, SIGINT);
    ask_soon(&s->ending); // for one that was just restarted
}

// The sockets of a killed process close before its end is visible, so a peer that notices may be
// found exited first. Therefore a process that was killed from outside comes before the peer.
static bool is_first(const bel_supervisor *s, const bel_child *child)
{
    const bel_child *first = s->ending.first_failed;
    int signal = child->end.signal;
    return first == NULL || (first->end.signal == 0 && signal != 0 && signal != child->sent);
}

// Reaps exited children.
static void take_ends(bel_supervisor *s)
{
    enum { WAIT_NS = 1000000000 }; // at the end of the job the master exits sooner
    const bel_child *culprit = NULL, *master = NULL;
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        if (!bel_child_is_running(child)) continue;
        if (!bel_linux_process_wait(&child->process, 0, &child->end)) continue;
        bel_child_read(s, child, true);
        if (child->remote.input_fd >= 0) close(child->remote.input_fd);
        child->remote.input_fd = -1;
        if (child->end.code == 128 + child->remote.signal) child->end.signal = child->remote.signal;
        count_crash(child);
        s->changed = true;
        if (is_unreached(s, child)) {
            plan_attempt(s, child);
            continue;
        }
        if (may_restart(s, child)) {
            if (child->task->role == BEL_ROLE_MASTER) bel_supervisor_read_output(s, true);
            plan_restart(s, child);
            continue;
        }
        if (is_wanted_again(s, child)) child->lives.restart_ns = bel_clock_awake_ns() + WAIT_NS;
        if (child->lives.restart_ns != 0 || give_up(s, child)) continue;
        if (child->task->role == BEL_ROLE_MASTER) {
            master = child; // the first of all
            bool asked =
                s->ending.ask_ns == INT64_MAX; // by this process, after another one's failure
            s->ending.done = child->end.code == 0 || (has_stopped(s, child) && !asked);
        }
        bool worse = culprit == NULL || suspicion(child) > suspicion(culprit);
        if (has_failed(s, child) && worse) culprit = child;
    }
    if (culprit != NULL && is_first(s, culprit)) take_failure(s, culprit);
    if (master != NULL) take_master_end(s, master);
}

// In a container this process may be PID 1 and adopt orphans of its children.
static void reap_orphans(const bel_supervisor *s)
{
    if (getpid() != 1) return;
    int64_t *pids = bel_xcalloc((size_t)s->child_count + 1, sizeof *pids);
    for (int i = 0; i < s->child_count; i++)
        pids[i] = s->children[i].process.pid;
    bel_linux_reap_others(pids, s->child_count);
    bel_free(pids);
}

// Called at a change, and once a second: the callback writes the job's status.
static void supervisor_tell(bel_supervisor *s, int64_t *told_ns)
{
    int64_t now = bel_clock_awake_ns();
    bool due = s->changed || now - *told_ns >= (int64_t)BEL_SUPERVISOR_TICK_MS * 1000000;
    if (!due || s->config->changed == NULL) return;
    s->config->changed(s->config->context, s->master.progress);
    s->changed = false;
    *told_ns = now;
}

// --- The loop -----------------------------------------------------------------------------------

// Runs until no child runs or waits for a restart, or the last deadline has passed. Each round
// rebuilds the list of descriptors, as children change.
static void supervisor_watch(bel_supervisor *s)
{
    // Signals, the master's stdout, then each child's stderr and exit; poll ignores descriptors of
    // -1.
    struct pollfd *waiting = NULL;
    size_t capacity = 0;
    int64_t told_ns = 0;
    s->changed = true;
    while (any_running(s)) {
        supervisor_tell(s, &told_ns);
        if (bel_supervisor_look_at_scale(s)) begin_to_stop(s, SIGTERM);
        bool asked = bel_stop_requested(); // by the owner of a folder in a store
        if (asked && s->ending.signal == 0) begin_to_stop(s, SIGTERM);
        size_t count = 2 + 2 * (size_t)s->child_count;
        waiting = bel_xgrow(waiting, &capacity, count, sizeof *waiting);
        waiting[0].fd = s->signal_fd;
        waiting[1].fd = s->master.output_fd;
        for (int i = 0; i < s->child_count; i++) {
            waiting[2 + 2 * i].fd = s->children[i].output.error_fd;
            waiting[3 + 2 * i].fd = s->children[i].process.descriptor;
        }
        for (size_t i = 0; i < count; i++)
            waiting[i].events = POLLIN;
        int ready = poll(waiting, (nfds_t)count, bel_supervisor_time_left_ms(s));
        if (ready > 0) {
            if (waiting[0].revents != 0) take_signals(s);
            if (waiting[1].revents != 0) bel_supervisor_read_output(s, false);
            for (int i = 0; i < s->child_count; i++)
                if (waiting[2 + 2 * i].revents != 0) bel_child_read(s, &s->children[i], false);
            take_ends(s);
        }
        reap_orphans(s);
        restart_due(s);
        if (!bel_supervisor_check_deadlines(s)) break;
    }
    supervisor_tell(s, &told_ns); // news from the last exit
    bel_free(waiting);
}

// A process that survived its kill counts as killed.
static void leave_behind(bel_supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        if (!bel_child_is_running(child)) continue;
        child->end = (bel_linux_end){.code = 128 + SIGKILL, .signal = SIGKILL};
        close(child->process.descriptor);
        child->process.descriptor = -1;
    }
}

// After a failed start: kills the running children.
static void end_early(bel_supervisor *s)
{
    bel_supervisor_signal_all(s, SIGKILL);
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        int patience_ms = (int)(s->grace_ns / 1000000);
        if (bel_child_is_running(child)) {
            (void)bel_linux_process_wait(&child->process, patience_ms, &child->end);
        }
    }
    leave_behind(s);
}

// Sets the result. The exit code is the master's, unless another process is the cause; a job that
// was asked to stop has 128 + the signal.
static void supervisor_conclude(bel_supervisor *s, bel_supervisor_result *out_result)
{
    const bel_child *cause = find_cause(s), *master = &s->children[0];
    int code = master->end.code;
    if (cause != NULL && (code == 0 || has_stopped(s, master))) code = cause->end.code;
    bool stopped = cause == NULL && code != 0 && (s->ending.signal != 0 || has_stopped(s, master));
    if (stopped && s->ending.signal != 0) code = 128 + s->ending.signal;
    if (s->ending.killing && code == 128 + SIGKILL && cause != NULL) code = cause->end.code;
    bel_str_puts(&s->master.output, ""); // a text, even without output
    char *message = cause != NULL ? bel_child_describe_cause(s, cause) : NULL;
    if (s->ending.stuck_secs > 0) {
        code = 1;
        stopped = false;
        bel_free(message);
        message = bel_strf("training has not begun, and no process has computed or read for %g s; "
                           "hint: does a file of the data, or its file system, not answer? Are "
                           "there limits of processes and threads (belfry doctor)?",
                           s->ending.stuck_secs);
    }
    // A process that was killed meanwhile costs the steps since the newest checkpoint.
    bool continues = stopped || (cause != NULL && was_killed(cause) && !s->ending.killing &&
                                 s->config->plan->cluster->restarts > 0);
    bool scales = continues && s->scale.servers > 0;
    if (scales && (message != NULL || s->ending.killing)) {
        bel_log_write(BEL_LOG_WARN, "%s: the job continues from the newest checkpoint",
                      message != NULL ? message : "it did not save in time");
    }
    if (s->scale.servers > 0 && code == 0) {
        bel_log_write(BEL_LOG_WARN,
                      "the job was over before it could continue with %d parameter %s",
                      s->scale.servers, s->scale.servers == 1 ? "server" : "servers");
    }
    *out_result = (bel_supervisor_result){
        .exit_code = code,
        .stopped = stopped,
        .message = message,
        .output = s->master.output.text,
        .scaled = {.servers = scales ? s->scale.servers : 0, .workers = s->scale.workers}};
    s->master.output = (bel_str){0};
}

// In any case undoes the start and restores the signal handlers.
static bel_status *supervise_locked(const bel_supervisor_config *config, int lock,
                                    bel_supervisor_result *out_result)
{
    double grace = config->grace_secs > 0 ? config->grace_secs : usual_grace_secs;
    bel_supervisor s = {.config = config,
                        .lock = lock,
                        .grace_ns = (int64_t)(grace * 1e9),
                        .sockets = {.lock = -1, .port_fd = -1},
                        .master = {.output_fd = -1, .step = -1}};
    BEL_TRY(bel_stop_signals_open(&s.signal_fd));
    bel_status *status = bel_supervisor_start(&s);
    if (status == NULL) {
        supervisor_watch(&s);
        leave_behind(&s);
        bel_stop_signals_block();
        take_signals(&s); // the last ones: a job that is to end must not start again
        supervisor_conclude(&s, out_result);
    } else {
        end_early(&s);
    }
    bel_supervisor_clean_up(&s, status == NULL && out_result->scaled.servers > 0);
    bel_stop_signals_close(s.signal_fd);
    bel_free(s.master.progress);
    bel_str_deinit(&s.master.output);
    return status;
}

bel_status *bel_supervise(const bel_supervisor_config *config, bel_supervisor_result *out_result)
{
    int lock = -1;
    if (config->model_dir != NULL) BEL_TRY(bel_folder_lock(config->model_dir, &lock));
    bel_status *status = supervise_locked(config, lock, out_result);
    if (config->model_dir == NULL) return status;
    bel_status *unlocked = bel_folder_unlock(config->model_dir, lock);
    if (status == NULL) return unlocked;
    bel_status_ignore(unlocked); // the job's error comes first
    return status;
}
