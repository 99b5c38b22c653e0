// Saves what a job has when a worker is lost for good, or is away while the job is to stop.
//
// Where everybody counts, a step without one worker's reports never ends. Mostly the worker is lost
// while it computes, so no shard has made anything of the next version: all stand at one version,
// which is as good as a checkpoint. The shards are asked for it, and it becomes the snapshot in
// hand. Where a chunk was updated already, its slots are those of the next version: then the newest
// checkpoint is all there is.
//
// A job that ends with an error saves it and ends; one that stops does not wait for the worker; one
// that goes on without the worker does so from there (a pause). Nothing is rescued where the loss
// has cut off an evaluation: it is made up from the checkpoint, and may decide when training ends.
// A snapshot that the master has not used yet must stay as well: another one takes its memory.
#include "base/clock.h"
#include "base/log.h"
#include "master/remote_inner.h"

// True once a worker has been away for a second while the job is to stop; then once a second.
static bool stops_without(remote *r)
{
    enum { LOOK_NS = 1000000000 };
    bool waits = r->stop_sent && !r->pause_sent && !r->state.has_snapshot &&
                 r->saved_snapshot < 0 && bel_remote_is_away(r);
    for (int w = 0; w < r->seats; w++)
        waits = waits && !r->admissions[w].under_way;
    int64_t now = bel_clock_ns();
    if (!waits || r->rescue_ns == 0) {
        r->rescue_ns = waits ? now : 0;
        return false;
    }
    if (now - r->rescue_ns < LOOK_NS) return false;
    r->rescue_ns = now;
    return true;
}

// All shards are here, and their state is one that a step without the worker leaves as it is.
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

// True when all shards have made a snapshot of one version, up to which everything was heard.
static bool ask_shards(remote *r)
{
    bel_remote_ask_shards(r, BEL_ASKED_WHOLE, -1, NULL);
    int64_t begun = bel_clock_ns();
    while (r->whole_count < r->backend.shard_count && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "answer of a shard whether it is whole");
    r->asked.what = BEL_ASKED_NOTHING;
    int64_t step = r->whole[0];
    bool whole = step >= 0 && !bel_remote_is_broken(r);
    for (int k = 0; k < r->backend.shard_count; k++)
        whole = whole && r->whole[k] == step;
    return whole && r->state.step == step && r->points_step >= step;
}

// Nothing that workers say or do matters any more, but of those that hold a shard.
static void forget_workers(remote *r)
{
    for (int w = 0; w < r->seats; w++) {
        int member = bel_remote_worker(r, w);
        if (bel_remote_shard_of(r, member) < 0)
            bel_members_set_vacant(r->config.members, member, true);
    }
}

// It was not whole, and training goes on: the worker may come back.
static void let_shards_go_on(remote *r)
{
    Bel__Release release;
    bel__release__init(&release);
    release.whole = true;
    for (int k = 0; k < r->backend.shard_count; k++)
        bel_remote_send_to_shard(r, k, &release.base);
}

static void say(const remote *r, bool whole, bool stops)
{
    long long step = (long long)r->state.step;
    if (whole) {
        bel_log_write(
            BEL_LOG_INFO,
            "no shard has begun with step %lld, which lacks a worker: what was trained up "
            "to it is saved",
            step);
    } else if (!stops && !bel_remote_is_broken(r)) {
        bel_log_write(BEL_LOG_WARN,
                      "not all shards stand at the beginning of step %lld, which lacks a worker: "
                      "the newest checkpoint is all there is",
                      step);
    }
}

// The end of training is known, and shards stand still.
static void conclude(remote *r, bool goes_on, bool stops)
{
    r->rescue = BEL_RESCUE_DONE;
    r->state.snapshot = r->state.step;
    r->backend.rescued = true;
    r->backend.paused = goes_on;
    r->backend.interrupted = stops;
    if (stops) forget_workers(r);
}

void bel_remote_rescue(remote *r)
{
    bool ends = r->error != NULL, goes_on = !ends && r->backend.lost, stops = !ends && !goes_on;
    bool due = stops ? stops_without(r) : r->lacks_worker;
    bool in_use = r->backend.spoiled || r->state.has_snapshot || r->saved_snapshot >= 0;
    if (!due || in_use || r->rescue != BEL_RESCUE_NONE || !have_all_shards(r)) return;
    bel_status *error = r->error;
    r->error = NULL;
    r->backend.lost = false;
    r->rescue = BEL_RESCUE_ASKS;
    if (ends) forget_workers(r); // their loss would be another error
    bool whole = ask_shards(r);
    int64_t announced = r->saved_snapshot; // meanwhile, or -1
    if (announced >= 0 && (!whole || announced != r->state.step)) {
        whole = false;
        bel_remote_fail(r, BEL_ERR(BEL_UNAVAILABLE,
                                   "the snapshot of step %lld came while the job stood still",
                                   (long long)announced));
    }
    say(r, whole, stops);
    r->rescue = BEL_RESCUE_NONE;
    if (whole) conclude(r, goes_on, stops);
    if (!whole && stops) let_shards_go_on(r);
    if (!whole && goes_on) r->backend.lost = true;
    if (!ends) return;
    bel_status_ignore(r->error); // the first error is the story
    r->error = error;
}
