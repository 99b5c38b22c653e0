// Processes that are told to leave while the job runs, as a machine is about to be taken away.
// Nothing is lost with them, unless a worker's step must be made again where shards cannot
// (remote_relays.c). A worker leaves after its step, and the others wait for the process that
// replaces it; if the job may continue with fewer, it is omitted from the next assignment
// instead. A shard, a worker that holds one, and the master have state to save first: training
// pauses as for another assignment, and they leave when that version is saved.
//
// A user may end a whole job by telling all processes to leave at once, and they do not receive it
// at the same moment. So no process leaves before a notice has passed, while training continues; if
// by then all are told to leave, the job stops. Under a supervisor, which would have sent a stop,
// the notice is short. A process that was told before it joined was restarted in a place that it
// must leave. If the job can do without it, it is dismissed; otherwise it works as long as it can.
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/requests.h"
#include "master/backend/remote_inner.h"

// Processes of one machine check for its notice at different moments, and a command takes at most
// its period.
int64_t bel_remote_notice_ns(const bel_task *task)
{
    const int64_t second_ns = 1000000000, supervised_ns = 500000000, alone_ns = 5 * second_ns;
    const char *file = getenv(BEL_NOTICE_FILE_VARIABLE);
    const char *command = getenv(BEL_NOTICE_COMMAND_VARIABLE);
    int64_t notice = task->supervisor > 0 ? supervised_ns : alone_ns, looks = 0;
    if (file != NULL && file[0] != '\0') looks = (BEL_NOTICE_FILE_SECS + 1) * second_ns;
    if (command != NULL && command[0] != '\0')
        looks = (2 * BEL_NOTICE_COMMAND_SECS + 1) * second_ns;
    return looks > notice ? looks : notice;
}

static bool is_due(const remote_leaving *leaving, int64_t leave_ns)
{
    return leave_ns > 0 && bel_clock_ns() - leave_ns >= leaving->notice_ns;
}

static bool leaves(const remote *r, int member)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    return m->here && !m->vacant && is_due(&r->leaving, m->leave_ns);
}

// The worker of a master that trains leaves with it.
static bool is_told(const remote *r, const bel_member_view *m)
{
    bool trainer = m->role == BEL_ROLE_WORKER && m->index == 0 && r->config.task->master_trains;
    return trainer ? r->leaving.own_ns != 0 : m->leave_ns != 0;
}

static void note_own(remote_leaving *leaving)
{
    if (bel_leave_requested() && leaving->own_ns == 0) leaving->own_ns = bel_clock_ns();
}

// Whether all members are present and told to leave, and this process is: then no process leaves
// separately. *out_due: this has held for the length of a notice.
static bool all_are_told(remote *r, bool *out_due)
{
    bool all = r->leaving.own_ns != 0;
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member_view *m = bel_members_get(r->config.members, i);
        all = all && (m->vacant || (m->here && is_told(r, m)));
    }
    if (!all) {
        r->leaving.all_ns = 0;
    } else if (r->leaving.all_ns == 0) {
        r->leaving.all_ns = bel_clock_ns();
    }
    *out_due = is_due(&r->leaving, r->leaving.all_ns);
    return all;
}

// Whether enough others remain: `min_workers` that are not told to leave, if the job has that
// setting.
bool bel_remote_is_spared(const remote *r, int worker)
{
    const bel_member_view *own = bel_members_get(r->config.members, bel_remote_worker(r, worker));
    int least = r->config.task->min_workers, others = 0;
    bool goes =
        own->here && !own->vacant && (own->leave_ns < 0 || is_due(&r->leaving, own->leave_ns));
    if (least == 0 || !goes || !bel_remote_is_elastic(r)) return false;
    for (int w = 0; w < r->assignment.wanted; w++) {
        const bel_member_view *m = bel_members_get(r->config.members, bel_remote_worker(r, w));
        others += m->here && !m->vacant && m->leave_ns == 0;
    }
    return others >= least;
}

static void let_go(remote *r, int member)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    char name[32];
    bel_log_write(BEL_LOG_INFO, "%s leaves, as it was told to",
                  bel_role_text(m->role, m->index, name));
    bel_members_let_go(r->config.members, member);
}

// The next assignment handles spared workers.
static bool is_spared(const remote *r, int member)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    return m->role == BEL_ROLE_WORKER && bel_remote_is_spared(r, m->index);
}

void bel_remote_let_go(remote *r)
{
    for (int i = 0; i < bel_members_count(r->config.members); i++)
        if (leaves(r, i) && !is_spared(r, i)) let_go(r, i);
}

bool bel_remote_ends_early(void *remote_)
{
    remote_leaving *leaving = &((remote *)remote_)->leaving;
    note_own(leaving);
    return bel_stop_requested() || is_due(leaving, leaving->own_ns);
}

// Lets members leave that can at once; true if others hold state.
static bool let_some_go(remote *r)
{
    bool holds_state = false;
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        if (!leaves(r, i) || is_spared(r, i)) continue;
        if (bel_remote_shard_of(r, i) >= 0) {
            holds_state = true;
        } else {
            let_go(r, i);
        }
    }
    return holds_state;
}

// Whether the master leaves at once. If a ledger assigns the blocks, a pause omits those that
// workers have not used. The master then leaves without a pause, as training continues meanwhile,
// if its successor can take over.
static bool goes_at_once(const remote *r)
{
    const bel_trainable *t = r->config.trainable;
    return bel_counting_has_ledger(&t->counting) && !t->loop && !r->config.task->master_trains;
}

// Does nothing while training ends, or pauses: the necessary steps are under way.
void bel_remote_check_leaving(remote *r)
{
    bool ends = r->sent.stop || r->sent.pause || r->sent.finish || r->ended.count > 0, due;
    note_own(&r->leaving);
    if (!r->started || bel_remote_is_broken(r) || ends) return;
    if (all_are_told(r, &due)) {
        if (due) bel_remote_ask_to_stop(r, "all processes were told to go");
        return;
    }
    bool goes = is_due(&r->leaving, r->leaving.own_ns), pauses = let_some_go(r);
    if (goes && goes_at_once(r)) {
        if (!r->state.has_snapshot) // the snapshot is used first
            bel_remote_fail(r, BEL_ERR(BEL_CANCELLED, "the master has left the job, as it was "
                                                      "told to"));
        return;
    }
    if (!pauses && !goes) return;
    r->sent.pause = true;
    r->backend.leaves = goes;
    bel_log_write(BEL_LOG_DEBUG, "asking for a pause: state is saved for those that go");
    bel_remote_send_pause(r);
}
