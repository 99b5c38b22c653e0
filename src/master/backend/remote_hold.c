// Continues with the state that shards have, after one of them was lost and has come back with its
// state (ps/server/kept.h), or while another process has a mirror of it (ps/server/mirror.c), or
// after any worker was lost in a generation with relays. Nothing is loaded, and no update is made
// twice.
//
// At any moment the chunks of all shards have at most two versions, s and s + 1: no worker reports
// on s + 1 before every shard has published it. So a new generation begins at s, the lowest version
// of a shard. Workers compute this step again, to the same bits, and chunks that are at s + 1
// already are not updated. Shards that run are stopped first, as only then is s known.
//
// A snapshot that was made by then and is not released yet continues as well: a shard has it in its
// memory, or in the one that outlives its process. A later version's is made again. A mirror makes
// no snapshots, so a shard that gets its state from there lacks it, and train.c decides what
// follows (`missed`).
//
// Training goes back to the newest checkpoint with hooks: a later master would need their steps
// since the newest checkpoint but one, which shard 0 forgets. And if replicas follow the workers
// (elastic_rescale): chunks that have the next version would have it from another number of
// replicas. And with LAMB, whose first pass over a chunk changes slots before the update: the step
// would change them twice. If workers change before the new generation begins, it goes back, too
// (remote.c).
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "master/backend/remote_inner.h"

static const bel_member_view *shard_member(const remote *r, int shard)
{
    return bel_members_get(r->config.members, r->shard_members[shard]);
}

// The process that holds the mirror of a shard, if there are mirrors.
static const bel_member_view *mirror_member(const remote *r, int shard)
{
    return shard_member(r, (shard + r->mirrors) % r->backend.shard_count);
}

// Whether a state that does not run can continue. It may be of an earlier generation that this one
// continues: its shard has not begun the later ones, so none has made a step in them.
static bool is_of_now(const remote *r, uint32_t generation)
{
    return generation != 0 && generation >= r->plan.since && generation <= r->backend.generation;
}

// Whether a shard has the state of this generation, be it running or not.
static bool has_state(const remote *r, int shard)
{
    const bel_member_view *m = shard_member(r, shard);
    bool runs = m->generation == r->backend.generation;
    return m->here && (runs || is_of_now(r, m->held_generation));
}

// The same for its mirror. One that runs may lack it: that is known when it has stopped.
static bool has_mirror(const remote *r, int shard)
{
    const bel_member_view *m = mirror_member(r, shard);
    bool runs = m->generation == r->backend.generation;
    return r->mirrors > 0 && m->here && (runs || is_of_now(r, m->mirror_generation));
}

bool bel_remote_holds(const remote *r)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        if (!shard_member(r, k)->here || (!has_state(r, k) && !has_mirror(r, k))) return false;
    return true;
}

// Whether a state is in no process that is here, and none that is awaited can bring it.
static bool is_gone(const remote *r, int shard)
{
    bool mirrored = r->mirrors > 0 && !mirror_member(r, shard)->here;
    return shard_member(r, shard)->here && !has_state(r, shard) && !has_mirror(r, shard) &&
           !mirrored;
}

// Whether a shard is awaited, and no state is gone.
static bool awaits_shards(const remote *r)
{
    bool awaited = false;
    for (int k = 0; k < r->backend.shard_count; k++) {
        if (is_gone(r, k)) return false;
        awaited = awaited || !shard_member(r, k)->here;
    }
    return awaited;
}

void bel_remote_plan_transfers(remote *r)
{
    remote_plan *plan = &r->plan;
    plan->stateless_count = plan->mirrorless_count = 0;
    for (int k = 0; k < r->backend.shard_count && r->backend.held; k++) {
        if (!has_state(r, k)) plan->stateless[plan->stateless_count++] = k;
        bool lacks = r->mirrors > 0 && !has_mirror(r, k);
        if (lacks) plan->mirrorless[plan->mirrorless_count++] = k;
    }
}

// Waits for all shards: several may have been killed at once.
static bool await_shards(remote *r)
{
    enum { NAP_MS = 50 };
    int64_t until = bel_clock_awake_ns() + (int64_t)(r->config.task->join_timeout_secs * 1e9);
    while (awaits_shards(r) && r->error == NULL && !bel_remote_ends_early(r) &&
           bel_clock_awake_ns() < until)
        bel_remote_pump(r, NAP_MS * 1e-3);
    return r->error == NULL && bel_remote_holds(r);
}

// Stops the shards that run. False: one of them was lost meanwhile.
static bool stop_shards(remote *r)
{
    int running = 0;
    for (int k = 0; k < r->backend.shard_count; k++)
        running += shard_member(r, k)->generation == r->backend.generation;
    bel_remote_ask_shards(r, BEL_ASKED_HOLD, -1, NULL);
    int64_t begun = bel_clock_awake_ns();
    while (r->asked.answers < running && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "answer of a shard that it has stopped");
    r->asked.what = BEL_ASKED_NOTHING;
    return !bel_remote_is_broken(r) && bel_remote_holds(r);
}

static int64_t next_multiple(int64_t period, int64_t after)
{
    return period > 0 ? (after / period + 1) * period : INT64_MAX;
}

// Finds the snapshot that is not used yet, if training continues at `step`. Shard 0 may have been
// lost before it announced it: one by steps is due again only if it is found here, and one by time
// in any case. Only one is made before the release of the one before.
static void find_snapshot(remote *r, int64_t step)
{
    const bel_control_config *schedule = &r->plan.schedule;
    remote_plan *plan = &r->plan;
    int64_t version = r->snapshots.announced;
    plan->snapshot = 0;
    if (r->snapshots.at_end) return; // training ends again
    plan->snapshot_save = r->state.save;
    plan->snapshot_eval = r->state.eval;
    if (version < 0) {
        int64_t first = schedule->first_step, released = r->snapshots.released;
        int64_t used = released > first ? released : first;
        int64_t save = next_multiple(schedule->save_steps, used);
        int64_t eval = next_multiple(schedule->eval_steps, used);
        if (schedule->save_at > used && schedule->save_at < save) save = schedule->save_at;
        version = save < eval ? save : eval;
        plan->snapshot_save = version == save;
        plan->snapshot_eval = version == eval;
    }
    if (version <= step) plan->snapshot = version;
}

void bel_remote_settle_snapshot(remote *r)
{
    remote_plan *plan = &r->plan;
    r->backend.missed = 0;
    if (!r->backend.held) plan->snapshot = 0;
    for (int k = 0; k < r->backend.shard_count && plan->snapshot > 0; k++) {
        if (has_state(r, k) && shard_member(r, k)->held_snapshot == plan->snapshot) continue;
        r->backend.missed = plan->snapshot;
        r->backend.missed_save = plan->snapshot_save;
        r->backend.missed_shard = k;
        plan->snapshot = 0;
    }
}

// The lowest version of a shard; before the last one, as no step follows that.
static int64_t lowest_version(const remote *r)
{
    int64_t step = r->plan.schedule.last_step - 1;
    for (int k = 0; k < r->backend.shard_count; k++) {
        int64_t held =
            has_state(r, k) ? shard_member(r, k)->held_step : mirror_member(r, k)->mirror_step;
        if (held < step) step = held;
    }
    return step;
}

static void say_hold(const remote *r, const bool *lost, int64_t step)
{
    bel_str names = {0};
    int count = 0;
    bool mirrored = false;
    for (int k = 0; k < r->backend.shard_count; k++) {
        if (lost[k]) bel_str_printf(&names, "%s%d", count++ > 0 ? ", " : "", k);
        mirrored = mirrored || !has_state(r, k);
    }
    if (count == 0) {
        bel_log_write(BEL_LOG_INFO, "relays begin anew: training continues at step %lld",
                      (long long)step);
        return;
    }
    bel_log_write(BEL_LOG_INFO, "shard%s %s %s back with %s %s: training continues at step %lld",
                  count == 1 ? "" : "s", names.text, count == 1 ? "is" : "are",
                  count == 1 ? "its" : "their", mirrored ? "state in a mirror" : "state",
                  (long long)step);
    bel_str_deinit(&names);
}

// Finds out where all shards can continue; -1: nowhere. One that is lost while the others stop is
// awaited as the first.
static int64_t find_step(remote *r)
{
    size_t shards = (size_t)r->backend.shard_count;
    bool *lost = bel_xcalloc(shards, sizeof *lost), stopped = false;
    int64_t *pids = bel_xcalloc(shards, sizeof *pids);
    for (int k = 0; k < r->backend.shard_count; k++) {
        lost[k] = shard_member(r, k)->generation != r->backend.generation;
        pids[k] = shard_member(r, k)->pid;
    }
    while (!stopped && await_shards(r)) {
        r->backend.lost = false;
        stopped = stop_shards(r);
    }
    for (int k = 0; k < r->backend.shard_count; k++)
        lost[k] = lost[k] || shard_member(r, k)->pid != pids[k];
    int64_t step = stopped ? lowest_version(r) : -1;
    if (step >= 0) say_hold(r, lost, step);
    bel_free(lost);
    bel_free(pids);
    return step;
}

int64_t bel_remote_hold(bel_backend *backend)
{
    remote *r = (remote *)backend;
    bool whole = r->started && bel_trainable_why_no_hold(r->config.trainable) == NULL &&
                 !r->rescue.lacks_worker && r->rescue.stage == BEL_RESCUE_NONE &&
                 !r->backend.spoiled;
    int64_t step = whole ? find_step(r) : -1;
    if (step < 0) {
        r->backend.lost = true;
        return -1;
    }
    find_snapshot(r, step);
    r->plan.begins_anew = true;
    r->backend.held = true;
    r->backend.paused = r->over = r->started = false;
    r->state.step = r->backend.reached = step;
    r->values.step = -1;
    bel_members_begin_at(r->config.members, step);
    return step;
}
