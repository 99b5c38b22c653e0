// Deadlines of a job's processes: those that were asked to end, stand still (SIGSTOP), or cannot
// begin are killed when their time is over. The supervisor's loop calls this once a tick or at the
// next deadline, so no wait here blocks. A master that saves after another process has failed gets
// ten more minutes, since a kill would cost what it saves. A process that survives SIGKILL is
// abandoned: the supervisor must end.
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/supervise/supervisor_inner.h"

void bel_supervisor_signal_all(bel_supervisor *s, int number)
{
    for (int i = 0; i < s->child_count; i++)
        bel_child_signal(&s->children[i], number, number == SIGKILL);
}

void bel_supervisor_kill_all(bel_supervisor *s)
{
    s->ending.killing = true;
    s->ending.deadline_ns = bel_clock_awake_ns() + s->grace_ns; // for the system to end them
    bel_supervisor_signal_all(s, SIGKILL);
}

// A remote process that was killed, or its host, is silent: its place is needed.
static void give_up_ways(bel_supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        if (child->remote.kill_ns == 0 || bel_clock_awake_ns() < child->remote.kill_ns) continue;
        child->remote.kill_ns = 0;
        bel_linux_process_signal(&child->process, SIGKILL, true);
    }
}

// Ends a stopped process. Usually its master reports it; exceptions are the master itself and a
// process that no master has met, because the master was replaced meanwhile.
static void end_still(bel_supervisor *s)
{
    for (int i = 0; i < s->child_count; i++) {
        bel_child *child = &s->children[i];
        double patience = 2 * child->task->silence_timeout_secs;
        if (!bel_child_is_running(child) || child->away || s->ending.killing) continue;
        if (!bel_linux_process_stands_still(&child->process, patience, &child->still_ns)) continue;
        bel_log_write(BEL_LOG_WARN, "%s (pid %lld) stands still since %g s: it is killed",
                      child->name, (long long)child->process.pid, patience);
        child->still_ns = 0;
        bel_child_signal(child, SIGKILL, true);
    }
}

// Kills a job that has not begun and is idle.
static void end_stuck(bel_supervisor *s)
{
    double limit = 1.5 * s->children[0].task->join_timeout_secs;
    if (s->master.begun || s->ending.deadline_ns != 0 || bel_supervisor_idle_secs(s) <= limit)
        return;
    s->ending.stuck_secs = limit;
    bel_log_write(BEL_LOG_WARN,
                  "no process of the job has computed or read for %g s, and training has not "
                  "begun: all are killed",
                  limit);
    bel_supervisor_kill_all(s);
}

// True if a process has failed and the master is still saving.
static bool is_saving(bel_supervisor *s)
{
    enum { IDLE_SECS = 3, MOST_SECS = 600 };
    const bel_supervisor_ending *ending = &s->ending;
    if (bel_clock_awake_ns() > ending->deadline_ns + MOST_SECS * (int64_t)1000000000) return false;
    if (!s->master.begun || ending->deadline_ns == 0 || ending->killing ||
        ending->first_failed == NULL)
        return false;
    double idle = bel_supervisor_idle_secs(s);
    return idle >= 0 && idle < IDLE_SECS && bel_child_is_running(&s->children[0]);
}

bool bel_supervisor_check_deadlines(bel_supervisor *s)
{
    bel_supervisor_ending *ending = &s->ending;
    give_up_ways(s);
    end_still(s);
    end_stuck(s);
    bool saves = is_saving(s);
    if (ending->ask_ns != 0 && bel_clock_awake_ns() >= ending->ask_ns && !ending->killing) {
        ending->ask_ns = INT64_MAX; // only once
        bel_supervisor_signal_all(s, SIGINT);
    }
    // The master's clocks bound a job that has begun, also during a long save.
    bool answers = s->master.begun || ending->answer_ns == 0 ||
                   bel_clock_awake_ns() < ending->answer_ns || ending->killing;
    bool in_time = ending->deadline_ns == 0 || bel_clock_awake_ns() < ending->deadline_ns || saves;
    if (answers && in_time) return true;
    for (int i = 0; i < s->child_count; i++) {
        const bel_child *child = &s->children[i];
        if (!bel_child_is_running(child)) continue;
        bel_log_write(BEL_LOG_WARN, "%s (pid %lld) %s", child->name, (long long)child->process.pid,
                      ending->killing ? "does not exit although it was killed; it is abandoned"
                                      : "did not end in time; it is killed");
    }
    if (ending->killing) return false;
    bel_supervisor_kill_all(s);
    return true;
}

int bel_supervisor_time_left_ms(const bel_supervisor *s)
{
    int64_t now = bel_clock_awake_ns(), due = now + (int64_t)BEL_SUPERVISOR_TICK_MS * 1000000;
    for (int i = 0; i < s->child_count; i++) {
        int64_t restart = s->children[i].lives.restart_ns, kill = s->children[i].remote.kill_ns;
        if (restart != 0 && restart < due) due = restart;
        if (kill != 0 && kill < due) due = kill;
    }
    if (s->ending.deadline_ns != 0 && s->ending.deadline_ns < due) due = s->ending.deadline_ns;
    return due > now ? (int)((due - now) / 1000000) + 1 : 0;
}
