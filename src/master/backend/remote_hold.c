// Continues with the state that shards have, after one of them was lost and has come back with its
// state (ps/server/kept.h), or after any worker was lost in a generation with relays. Nothing is
// loaded, and no update is made twice.
//
// At any moment the chunks of all shards have at most two versions, s and s + 1: no worker reports
// on s + 1 before every shard has published it. So a new generation begins at s, the lowest version
// of a shard. Workers compute this step again, to the same bits, and chunks that are at s + 1
// already are not updated. Shards that run are stopped first, as only then is s known.
//
// Snapshots are not kept. If one is not saved or evaluated yet, training goes back to the newest
// checkpoint. It also does so with hooks: a later master would need their steps since the newest
// checkpoint but one, which shard 0 forgets. And if replicas follow the workers (elastic_rescale):
// chunks that have the next version would have it from another number of replicas. And with LAMB,
// whose first pass over a chunk changes slots before the update: the step would change them twice.
// If workers change before the new generation begins, it goes back, too (remote.c).
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "master/backend/remote_inner.h"

static const bel_member_view *shard_member(const remote *r, int shard)
{
    return bel_members_get(r->config.members, r->shard_members[shard]);
}

// Whether a shard has the state of this generation, be it running or not.
static bool has_state(const remote *r, int shard)
{
    const bel_member_view *m = shard_member(r, shard);
    uint32_t generation = r->backend.generation;
    return m->here && (m->generation == generation || m->held_generation == generation);
}

bool bel_remote_holds(const remote *r)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        if (!has_state(r, k)) return false;
    return true;
}

// Whether a shard is awaited, and none has come back without its state.
static bool awaits_shards(const remote *r)
{
    bool awaited = false;
    for (int k = 0; k < r->backend.shard_count; k++) {
        if (shard_member(r, k)->here && !has_state(r, k)) return false;
        awaited = awaited || !shard_member(r, k)->here;
    }
    return awaited;
}

// Waits for all shards: several may have been killed at once.
static bool await_shards(remote *r)
{
    enum { NAP_MS = 50 };
    int64_t until = bel_clock_ns() + (int64_t)(r->config.task->join_timeout_secs * 1e9);
    while (awaits_shards(r) && r->error == NULL && !bel_remote_ends_early(r) &&
           bel_clock_ns() < until)
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
    int64_t begun = bel_clock_ns();
    while (r->asked.answers < running && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "answer of a shard that it has stopped");
    r->asked.what = BEL_ASKED_NOTHING;
    return !bel_remote_is_broken(r) && bel_remote_holds(r);
}

static bool is_between(int64_t period, int64_t after, int64_t upto)
{
    return period > 0 && upto / period > after / period;
}

// Whether a snapshot is in use, or one that was due up to `step` is not used yet, and would be
// missing.
static bool lacks_snapshot(const remote *r, int64_t step)
{
    const bel_control_config *schedule = &r->plan.schedule;
    int64_t used =
        r->snapshots.released > schedule->first_step ? r->snapshots.released : schedule->first_step;
    return r->backend.spoiled || r->state.has_snapshot || r->snapshots.announced >= 0 ||
           is_between(schedule->save_steps, used, step) ||
           is_between(schedule->eval_steps, used, step);
}

// The lowest version of a shard; before the last one, as no step follows that.
static int64_t lowest_version(const remote *r)
{
    int64_t step = r->plan.schedule.last_step - 1;
    for (int k = 0; k < r->backend.shard_count; k++) {
        const bel_member_view *m = shard_member(r, k);
        if (m->held_step < step) step = m->held_step;
    }
    return step;
}

static void say_hold(const remote *r, const bool *lost, int64_t step)
{
    bel_str names = {0};
    int count = 0;
    for (int k = 0; k < r->backend.shard_count; k++)
        if (lost[k]) bel_str_printf(&names, "%s%d", count++ > 0 ? ", " : "", k);
    if (count == 0) {
        bel_log_write(BEL_LOG_INFO, "relays begin anew: training continues at step %lld",
                      (long long)step);
        return;
    }
    bel_log_write(BEL_LOG_INFO, "shard%s %s %s back with %s state: training continues at step %lld",
                  count == 1 ? "" : "s", names.text, count == 1 ? "is" : "are",
                  count == 1 ? "its" : "their", (long long)step);
    bel_str_deinit(&names);
}

// Finds out where all shards can continue; -1: nowhere.
static int64_t find_step(remote *r)
{
    bool *lost = bel_xcalloc((size_t)r->backend.shard_count, sizeof *lost);
    for (int k = 0; k < r->backend.shard_count; k++)
        lost[k] = shard_member(r, k)->generation != r->backend.generation;
    int64_t step = stop_shards(r) ? lowest_version(r) : -1;
    if (step >= 0 && lacks_snapshot(r, step)) step = -1;
    if (step >= 0) say_hold(r, lost, step);
    bel_free(lost);
    return step;
}

int64_t bel_remote_hold(bel_backend *backend)
{
    remote *r = (remote *)backend;
    bool whole = r->started && bel_trainable_why_no_hold(r->config.trainable) == NULL &&
                 !r->rescue.lacks_worker && r->rescue.stage == BEL_RESCUE_NONE;
    if (!whole || !await_shards(r)) return -1;
    r->backend.lost = false;
    int64_t step = find_step(r);
    if (step < 0) {
        r->backend.lost = true;
        return -1;
    }
    r->plan.begins_anew = true;
    r->backend.held = true;
    r->backend.paused = r->over = r->started = false;
    r->state.step = r->backend.reached = step;
    r->values.step = -1;
    bel_members_begin_at(r->config.members, step);
    return step;
}
