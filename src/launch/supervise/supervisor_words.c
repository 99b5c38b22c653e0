// Messages about the ends of processes. One line has the process's name, pid and host, the cause
// and the step of its end, and its last message or its log. The same line warns of a restart and
// ends a job, so that one search finds both.
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/supervise/supervisor_inner.h"

static void describe_place(const bel_crash *crash, bel_str *out)
{
    if (crash->block >= 0) {
        bel_str_printf(out, " in block %lld of the input", (long long)crash->block);
    } else if (crash->step >= 0) {
        bel_str_printf(out, " in step %lld", (long long)crash->step);
    } else {
        bel_str_puts(out, " before its first step");
    }
}

// "worker 1 (pid 4711 on box) was killed by signal 9 (Killed) after step 120: …"
char *bel_child_describe_end(const bel_supervisor *s, const bel_child *child)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) memcpy(host, "this host", sizeof "this host");
    bool stuck = child->lives.same_crashes >= BEL_MOST_SAME_CRASHES;
    bel_str text = {0};
    if (child->away && !child->remote.there) {
        bel_str_printf(&text, "the way to %s ", child->name);
    } else { // the process's pid, also on another host
        int64_t pid = child->away ? child->remote.pid : child->process.pid;
        bel_str_printf(&text, "%s (pid %lld on %s) ", child->name, (long long)pid,
                       child->remote.host != NULL ? child->remote.host : host);
    }
    if (child->end.signal != 0) {
        bel_str_printf(&text, "was killed by signal %d (%s)", child->end.signal,
                       strsignal(child->end.signal));
    } else {
        bel_str_printf(&text, "ended with exit code %d", child->end.code);
    }
    if (stuck) {
        describe_place(&child->lives.crash, &text);
        bel_str_printf(&text, ", as %d times before", child->lives.same_crashes - 1);
    } else if (s->master.step >= 0) {
        bel_str_printf(&text, " after step %lld", (long long)s->master.step);
    }
    if (child->output.last_error.length > 0) {
        bel_str_printf(&text, ": %s", child->output.last_error.text);
    } else if (child->away && !child->remote.there && child->remote.last_words.length > 0) {
        bel_str_printf(&text, ": %s", child->remote.last_words.text);
    } else {
        bel_str_printf(&text, "; its log is %s", child->output.log_path);
    }
    return text.text;
}

char *bel_child_describe_cause(const bel_supervisor *s, const bel_child *child)
{
    bool told = child->task->role == BEL_ROLE_MASTER && child->output.last_error.length > 0;
    if (!told || child->end.signal != 0) return bel_child_describe_end(s, child);
    bel_str text = {0};
    bel_str_puts(&text, child->output.last_error.text);
    for (int i = 0; i < s->child_count; i++) { // a master does not know why a member is absent
        const bel_child *other = &s->children[i];
        if (other->remote.why_unreached == NULL || other->remote.there) continue;
        bel_str_printf(&text, "; the way to %s: %s", other->name, other->remote.why_unreached);
    }
    return text.text;
}
