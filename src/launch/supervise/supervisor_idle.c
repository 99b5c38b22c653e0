// Idle time of a job: how long its processes have not computed, read or written.
//
// Before a job begins, the master's clocks may not run yet, as it opens its data or its network,
// which may never answer. So the supervisor itself measures. A job that neither computes nor reads
// for longer than the master would wait for a member is stuck. A job that does either, or waits for
// a program that it has started, continues, however long it takes. A failed job may take the same
// time to save.
#include "base/clock.h"
#include "launch/supervise/supervisor_inner.h"

// Sums the activity of all processes. False: some are on another host, or cannot be measured.
static bool find_activity(const bel_supervisor *s, bel_linux_activity *out_sum)
{
    *out_sum = (bel_linux_activity){0};
    for (int i = 0; i < s->child_count; i++) {
        const bel_child *child = &s->children[i];
        bel_linux_activity one;
        if (!bel_child_is_running(child)) continue;
        if (child->away || !bel_linux_process_activity(child->process.pid, &one)) return false;
        out_sum->processor_ns += one.processor_ns;
        out_sum->bytes += one.bytes;
        out_sum->has_children = out_sum->has_children || one.has_children;
    }
    return true;
}

double bel_supervisor_idle_secs(bel_supervisor *s)
{
    enum { LOOK_NS = 1000000000, BUSY_NS = 100000000, BUSY_BYTES = 1 << 16 };
    bel_supervisor_idle *idle = &s->idle;
    int64_t now = bel_clock_awake_ns();
    if (now - idle->looked_ns < LOOK_NS) return idle->secs;
    idle->looked_ns = now;
    bel_linux_activity sum;
    idle->secs = -1;
    if (!find_activity(s, &sum)) return -1;
    bool busy = idle->since_ns == 0 || sum.has_children ||
                sum.bytes - idle->busy.bytes >= BUSY_BYTES ||
                sum.processor_ns - idle->busy.processor_ns >= BUSY_NS ||
                sum.processor_ns < idle->busy.processor_ns; // another process has replaced one
    if (busy) {
        idle->busy = sum;
        idle->since_ns = now;
    }
    idle->secs = (double)(now - idle->since_ns) * 1e-9;
    return idle->secs;
}
