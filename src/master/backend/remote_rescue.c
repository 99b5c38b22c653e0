// Saves the state of a job when a worker is lost for good, or is absent while the job is to stop.
//
// If all workers count, a step without one worker's reports never ends. Usually the worker is lost
// while it computes, so no shard has made any part of the next version: all are at one version,
// which is as good as a checkpoint. The shards are asked for it, and it becomes the current
// snapshot. If a chunk was already updated, its slots are those of the next version: then only the
// newest checkpoint is left.
//
// A job that ends with an error saves the version and ends. A job that stops does not wait for the
// worker. A job that continues without the worker does so from there (a pause). Nothing is rescued
// if the loss has interrupted an evaluation: it is repeated from the checkpoint, and may decide
// when training ends. A snapshot that the master has not used yet also prevents a rescue, as
// another one takes its memory.
#include "base/clock.h"
#include "base/log.h"
#include "master/backend/remote_inner.h"

// True after a worker has been absent for a second while the job is to stop; then once a second.
static bool stops_without(remote *r)
{
    enum { LOOK_NS = 1000000000 };
    bool waits = r->sent.stop && !r->sent.pause && !r->state.has_snapshot &&
                 r->snapshots.announced < 0 && bel_remote_is_away(r);
    for (int w = 0; w < r->seats; w++)
        waits = waits && !r->admissions[w].under_way;
    int64_t now = bel_clock_ns();
    if (!waits || r->rescue.away_ns == 0) {
        r->rescue.away_ns = waits ? now : 0;
        return false;
    }
    if (now - r->rescue.away_ns < LOOK_NS) return false;
    r->rescue.away_ns = now;
    return true;
}

// Whether all shards are present, in a state that a step without the worker does not change.
static bool have_all_shards(const remote *r)
{
    const bel_trainable *t = r->config.trainable;
    if (!r->started || t->loop || bel_counting_has_ledger(&t->counting)) return false;
    for (int k = 0; k < r->backend.shard_count; k++) {
        const bel_member_view *m = bel_members_get(r->config.members, r->shard_members[k]);
        if (!m->here || m->generation != r->backend.generation) return false;
    }
    return true;
}

// Whether all shards have made a snapshot of one version, up to which all reports have come.
static bool ask_shards(remote *r)
{
    bel_remote_ask_shards(r, BEL_ASKED_WHOLE, -1, NULL);
    int64_t begun = bel_clock_awake_ns();
    while (r->asked.answers < r->backend.shard_count && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "answer of a shard whether it is whole");
    r->asked.what = BEL_ASKED_NOTHING;
    int64_t step = r->asked.whole[0];
    bool whole = step >= 0 && !bel_remote_is_broken(r);
    for (int k = 0; k < r->backend.shard_count; k++)
        whole = whole && r->asked.whole[k] == step;
    return whole && r->state.step == step && r->points.step >= step;
}

// Makes workers irrelevant, except those that hold a shard.
static void forget_workers(remote *r)
{
    for (int w = 0; w < r->seats; w++) {
        int member = bel_remote_worker(r, w);
        if (bel_remote_shard_of(r, member) < 0)
            bel_members_set_vacant(r->config.members, member, true);
    }
}

// Lets shards continue after an incomplete version: the worker may come back.
static void let_shards_go_on(remote *r)
{
    Bel__Release release;
    bel__release__init(&release);
    release.whole = true;
    for (int k = 0; k < r->backend.shard_count; k++)
        bel_remote_send_to_shard(r, k, &release.base);
}

static void remote_say(const remote *r, bool whole, bool stops)
{
    long long step = (long long)r->state.step;
    if (whole) {
        bel_log_write(BEL_LOG_INFO,
                      "no shard has begun with step %lld, which lacks a worker: the training up "
                      "to it is saved",
                      step);
    } else if (!stops && !bel_remote_is_broken(r)) {
        bel_log_write(BEL_LOG_WARN,
                      "not all shards are at the beginning of step %lld, which lacks a worker: "
                      "the newest checkpoint is all there is",
                      step);
    }
}

// Records the end of training; shards are paused.
static void remote_conclude(remote *r, bool goes_on, bool stops)
{
    r->rescue.stage = BEL_RESCUE_DONE;
    r->state.snapshot = r->state.step;
    r->backend.rescued = true;
    r->backend.paused = goes_on;
    r->backend.interrupted = stops;
    if (stops) forget_workers(r);
}

void bel_remote_rescue(remote *r)
{
    bool ends = r->error != NULL, goes_on = !ends && r->backend.lost, stops = !ends && !goes_on;
    bool due = stops ? stops_without(r) : r->rescue.lacks_worker;
    bool in_use = r->backend.spoiled || r->state.has_snapshot || r->snapshots.announced >= 0;
    if (!due || in_use || r->rescue.stage != BEL_RESCUE_NONE || !have_all_shards(r)) return;
    bel_status *error = r->error;
    r->error = NULL;
    r->backend.lost = false;
    r->rescue.stage = BEL_RESCUE_ASKS;
    if (ends) forget_workers(r); // their loss would be another error
    bool whole = ask_shards(r);
    int64_t announced = r->snapshots.announced; // meanwhile, or -1
    if (announced >= 0 && (!whole || announced != r->state.step)) {
        whole = false;
        bel_remote_fail(r, BEL_ERR(BEL_UNAVAILABLE,
                                   "the snapshot of step %lld came while the job stood still",
                                   (long long)announced));
    }
    remote_say(r, whole, stops);
    r->rescue.stage = BEL_RESCUE_NONE;
    if (whole) remote_conclude(r, goes_on, stops);
    if (!whole && stops) let_shards_go_on(r);
    if (!whole && goes_on) r->backend.lost = true;
    if (!ends) return;
    bel_status_ignore(r->error); // the first error counts
    r->error = error;
}
