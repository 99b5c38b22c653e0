// Who plays which replicas. An assignment holds for a generation. When there should be another one,
// because workers came, or fewer or more are wanted, training pauses at the next version, which is
// saved, and a new generation goes on from there. A worker that is lost for good leaves its step
// unfinished: then a new generation begins at the newest checkpoint.
//
// Bits depend on replica ids alone, so an assignment changes speed and nothing else.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/scale.h"
#include "master/journal.h"
#include "master/remote_inner.h"

static const bel_member_view *worker_at(const remote *r, int worker)
{
    return bel_members_get(r->config.members, bel_remote_worker(r, worker));
}

// Where workers hold the shards, or a ledger knows them by number, they stay who they are.
static bool is_elastic(const remote *r)
{
    return r->config.task->ps_count > 0 && !bel_counting_has_ledger(&r->config.trainable->counting);
}

// Reads how many workers are wanted (job.scale); without a wish the number stays.
static void look_for_wish(remote *r)
{
    r->scale_ns = bel_clock_ns();
    int wish = is_elastic(r) ? bel_scale_read(r->config.trainable->estimator->config.model_dir) : 0;
    if (wish == 0 || wish == r->wanted) return;
    if (wish > r->seats) wish = r->seats;
    r->wanted = wish;
    bel_members_want(r->config.members, wish);
}

// A new master of a running job waits only for workers that played; others would keep it waiting.
void bel_remote_expect(remote *r)
{
    look_for_wish(r);
    bool replaces = r->config.replaces && !r->gathered && is_elastic(r);
    r->gathered = true;
    int *played = bel_xcalloc((size_t)r->seats, sizeof *played);
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    bool known = replaces && bel_journal_assignment(model_dir, 0, r->seats, played);
    for (int w = 0; w < r->seats && known; w++) {
        const bel_member_view *m = worker_at(r, w);
        if (!m->here)
            bel_members_set_vacant(r->config.members, bel_remote_worker(r, w), played[w] == 0);
    }
    bel_free(played);
}

// --- The assignment ------------------------------------------------------------------------------

// The wanted workers whose seats are not vacant; if there are none, the others.
static bool *find_present(const remote *r)
{
    bool *present = bel_xcalloc((size_t)r->seats, sizeof *present), any = false;
    for (int w = 0; w < r->seats; w++) {
        present[w] = w < r->wanted && !worker_at(r, w)->vacant;
        any = any || present[w];
    }
    for (int w = 0; w < r->seats && !any; w++)
        present[w] = !worker_at(r, w)->vacant;
    return present;
}

// With elastic_rescale replicas follow towers; otherwise R is fixed, and the cluster's own division
// is kept while exactly its workers are here.
static void find_assignment(const remote *r, int *out_replicas)
{
    const bel_estimator *estimator = r->config.trainable->estimator;
    bool *present = find_present(r), as_described = true;
    for (int w = 0; w < r->seats; w++)
        as_described = as_described && present[w] == (w < estimator->config.worker_count);
    if (estimator->config.elastic_rescale) {
        for (int w = 0; w < r->seats; w++)
            out_replicas[w] = present[w] ? bel_estimator_towers(estimator, w) : 0;
    } else if (as_described) {
        for (int w = 0; w < r->seats; w++)
            out_replicas[w] = w < estimator->config.worker_count ? estimator->replicas_of[w] : 0;
    } else {
        bel_assignment_evenly(estimator->replica_count, present, r->seats, out_replicas);
    }
    bel_free(present);
}

// What the backend says of itself to the job's story.
static void count_assignment(remote *r)
{
    r->backend.worker_count = r->backend.replica_count = 0;
    for (int w = 0; w < r->seats; w++) {
        r->backend.worker_count += r->replicas[w] > 0;
        r->backend.replica_count += r->replicas[w];
    }
}

static void say_assignment(const remote *r)
{
    bel_str text = {0};
    for (int w = 0; w < r->seats; w++) {
        if (r->replicas[w] == 0) continue;
        bel_str_printf(&text, "%s%d of worker %d", text.length > 0 ? ", " : "", r->replicas[w], w);
    }
    bel_log_write(BEL_LOG_INFO, "%d worker%s from step %lld on; replicas: %s",
                  r->backend.worker_count, r->backend.worker_count == 1 ? "" : "s",
                  (long long)r->state.step, text.text);
    bel_str_deinit(&text);
}

// A generation that runs keeps the assignment that the journal has for it.
void bel_remote_assign(remote *r, bool runs)
{
    uint32_t generation = bel_members_get(r->config.members, r->shard_members[0])->generation;
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    int *before = bel_xcalloc((size_t)r->seats, sizeof *before);
    memcpy(before, r->replicas, (size_t)r->seats * sizeof *before);
    bool first = r->backend.worker_count == 0;
    bool known = runs && bel_journal_assignment(model_dir, generation, r->seats, r->replicas);
    if (!known) find_assignment(r, r->replicas);
    count_assignment(r);
    bool other = memcmp(before, r->replicas, (size_t)r->seats * sizeof *before) != 0;
    if (other && !first) say_assignment(r);
    for (int w = 0; w < r->seats; w++)
        if (r->replicas[w] == 0 && worker_at(r, w)->here) bel_remote_take_newcomer(r, w);
    bel_free(before);
}

void bel_remote_take_newcomer(remote *r, int worker)
{
    look_for_wish(r); // it may have been started by a wish that was not heard of here
    if (worker >= r->wanted) {
        bel_log_write(BEL_LOG_INFO, "worker %d is not needed any more", worker);
        bel_members_retire(r->config.members, bel_remote_worker(r, worker));
    }
}

// --- While it runs -------------------------------------------------------------------------------

// A worker that plays, has not ended, and is not waited for any more; -1: none.
static int find_lost(const remote *r)
{
    for (int w = 0; w < r->seats; w++)
        if (r->replicas[w] > 0 && !r->ended[w] && worker_at(r, w)->vacant) return w;
    return -1;
}

// On each round. One request at a time: a pause that was sent leads to a new generation.
void bel_remote_check_assignment(remote *r)
{
    enum { LOOK_NS = 1000000000 };
    if (!r->started || bel_remote_is_broken(r) || !is_elastic(r)) return;
    if (find_lost(r) >= 0) {
        r->backend.lost = true;
        return;
    }
    if (r->pause_sent || r->stop_sent || r->ended_workers > 0) return;
    if (bel_clock_ns() - r->scale_ns >= LOOK_NS) look_for_wish(r);
    int *wanted = bel_xcalloc((size_t)r->seats, sizeof *wanted);
    find_assignment(r, wanted);
    bool other = memcmp(wanted, r->replicas, (size_t)r->seats * sizeof *wanted) != 0;
    bel_free(wanted);
    if (!other) return;
    r->pause_sent = true;
    bel_log_write(BEL_LOG_DEBUG, "asking for a pause: replicas are to be assigned anew");
    bel_remote_send_pause(r);
}
