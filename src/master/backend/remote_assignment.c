// Assignment of replicas to workers. An assignment holds for a generation. When it should change,
// because workers came, or fewer or more are wanted, training pauses at the next version, which is
// saved, and a new generation continues from there. A worker that is lost for good leaves its step
// unfinished: then a new generation begins at the newest checkpoint.
//
// Bits depend only on replica ids, so an assignment changes only speed.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/scale.h"
#include "master/backend/journal.h"
#include "master/backend/remote_inner.h"

static const bel_member_view *worker_at(const remote *r, int worker)
{
    return bel_members_get(r->config.members, bel_remote_worker(r, worker));
}

// Refuses a scale request that cannot be met exactly: logs it and replaces it by the job's number,
// so that the supervisor starts and stops no process for it. `jobs scale` refuses most of them, but
// does not know the settings of a user's program.
static void refuse_wish(remote *r, bel_scale asked, int instead)
{
    int wish = asked.workers;
    const char *why = bel_remote_why_fixed(r);
    if (wish == r->assignment.refused) return; // and could not be replaced
    r->assignment.refused = wish;
    char *most = bel_strf("each plays at least one replica, and there are at most %d", r->seats);
    bel_log_write(BEL_LOG_WARN,
                  "%d worker%s wanted (" BEL_SCALE_FILE "), but %s: the job continues with %d",
                  wish, wish == 1 ? " is" : "s are", why != NULL ? why : most, instead);
    bel_free(most);
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    bel_status *status = bel_scale_write(model_dir, (bel_scale){instead, asked.servers});
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "the request stays unchanged: %s", bel_status_message(status));
    }
    bel_status_destroy(status);
}

// Reads how many workers are wanted (job.scale); without a request the number stays.
static void look_for_wish(remote *r)
{
    r->assignment.looked_ns = bel_clock_ns();
    bel_scale asked = bel_scale_read(r->config.trainable->estimator->config.model_dir);
    int wish = asked.workers, most = r->seats;
    if (asked.servers > 0 && r->config.task->supervisor == 0 && !r->assignment.warned) {
        r->assignment.warned = true;
        bel_log_write(BEL_LOG_WARN,
                      "%d parameter servers are wanted (" BEL_SCALE_FILE "), but this job has no "
                      "supervisor that could start it again with them",
                      asked.servers);
    }
    if (wish == 0) return;
    int workers = !bel_remote_is_elastic(r) ? r->assignment.wanted : wish < most ? wish : most;
    if (workers != wish) {
        refuse_wish(r, asked, workers);
    } else {
        r->assignment.refused = 0;
    }
    if (workers == r->assignment.wanted) return;
    r->assignment.wanted = workers;
    bel_members_want(r->config.members, workers);
}

// A new master of a running job waits only for workers that played; others would delay it.
void bel_remote_expect(remote *r)
{
    look_for_wish(r);
    bool replaces = r->config.replaces && !r->assignment.gathered && bel_remote_is_elastic(r);
    r->assignment.gathered = true;
    int *played = bel_xcalloc((size_t)r->seats, sizeof *played);
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    bool known = replaces && bel_journal_assignment(model_dir, 0, r->seats, played, NULL, NULL);
    for (int w = 0; w < r->seats && known; w++) {
        const bel_member_view *m = worker_at(r, w);
        if (!m->here)
            bel_members_set_vacant(r->config.members, bel_remote_worker(r, w), played[w] == 0);
    }
    bel_free(played);
}

// --- The assignment ------------------------------------------------------------------------------

// Finds the wanted workers whose seats are not vacant, without those that leave; if there are no
// others, those.
static bool *find_present(const remote *r)
{
    bool *present = bel_xcalloc((size_t)r->seats, sizeof *present), any = false;
    for (int w = 0; w < r->seats; w++) {
        present[w] =
            w < r->assignment.wanted && !worker_at(r, w)->vacant && !bel_remote_is_spared(r, w);
        any = any || present[w];
    }
    for (int w = 0; w < r->seats && !any; w++)
        present[w] = !worker_at(r, w)->vacant;
    return present;
}

// Finds the assignment. With elastic_rescale replicas follow towers; otherwise R is fixed, and the
// cluster's division is kept while exactly its workers are present.
static void find_assignment(const remote *r, int *out_replicas)
{
    const bel_estimator *estimator = r->config.trainable->estimator;
    bool *present = find_present(r), as_described = true;
    for (int w = 0; w < r->seats; w++)
        as_described = as_described && present[w] == (w < estimator->config.num_workers);
    if (estimator->config.elastic_rescale) {
        for (int w = 0; w < r->seats; w++)
            out_replicas[w] = present[w] ? bel_estimator_towers(estimator, w) : 0;
    } else if (as_described) {
        for (int w = 0; w < r->seats; w++)
            out_replicas[w] = w < estimator->config.num_workers ? estimator->replicas_of[w] : 0;
    } else {
        bel_assignment_evenly(estimator->replica_count, present, r->seats, out_replicas);
    }
    bel_free(present);
}

// Fills in the backend's counts for train.c.
static void count_assignment(remote *r)
{
    r->backend.worker_count = r->backend.replica_count = 0;
    for (int w = 0; w < r->seats; w++) {
        r->backend.worker_count += r->assignment.replicas[w] > 0;
        r->backend.replica_count += r->assignment.replicas[w];
    }
}

static void say_assignment(const remote *r)
{
    bel_str text = {0};
    for (int w = 0; w < r->seats; w++) {
        if (r->assignment.replicas[w] == 0) continue;
        bel_str_printf(&text, "%s%d of worker %d", text.length > 0 ? ", " : "",
                       r->assignment.replicas[w], w);
    }
    bel_log_write(BEL_LOG_INFO, "%d worker%s from step %lld on; replicas: %s",
                  r->backend.worker_count, r->backend.worker_count == 1 ? "" : "s",
                  (long long)r->state.step, text.text);
    bel_str_deinit(&text);
}

// Assigns replicas. A running generation keeps assignment and relays of the journal. If they
// are unknown it does not continue: a guess could differ from what its members have.
bool bel_remote_assign(remote *r, bool runs)
{
    uint32_t generation = bel_members_get(r->config.members, r->shard_members[0])->generation;
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    int *before = bel_xcalloc((size_t)r->seats, sizeof *before);
    memcpy(before, r->assignment.replicas, (size_t)r->seats * sizeof *before);
    bool first = r->backend.worker_count == 0;
    bel_fan_in_rule relays = r->relays;
    int *hosts = bel_xcalloc((size_t)r->seats, sizeof *hosts);
    memcpy(hosts, r->hosts, (size_t)r->seats * sizeof *hosts);
    relays.hosts = hosts;
    bool known =
        runs && bel_journal_assignment(model_dir, generation, r->seats, r->assignment.replicas,
                                       &r->relays.fan_in, r->hosts);
    r->backend.runs = known && bel_remote_keeps_relays(r);
    if (runs && !r->backend.runs) {
        bel_log_write(
            BEL_LOG_WARN,
            "the running generation cannot be continued, as %s: training begins anew from "
            "the newest checkpoint",
            known ? "its groups of workers are not those of the journal, or a worker of "
                    "one shares no memory any more"
                  : "the journal does not have its assignment");
    }
    if (!r->backend.runs) find_assignment(r, r->assignment.replicas);
    count_assignment(r);
    bool others = bel_remote_choose_relays(r, r->backend.runs, &relays);
    bool other = memcmp(before, r->assignment.replicas, (size_t)r->seats * sizeof *before) != 0;
    if (other && !first) say_assignment(r);
    for (int w = 0; w < r->seats; w++)
        if (r->assignment.replicas[w] == 0 && worker_at(r, w)->here) bel_remote_take_idle(r, w);
    bel_free(before);
    bel_free(hosts);
    return other || others;
}

void bel_remote_take_idle(remote *r, int worker)
{
    int member = bel_remote_worker(r, worker);
    if (bel_remote_is_spared(r, worker)) {
        bel_log_write(BEL_LOG_INFO, "worker %d leaves at step %lld, as it was told to", worker,
                      (long long)r->state.step);
        bel_members_let_go(r->config.members, member);
        bel_members_set_vacant(r->config.members, member, true);
        return;
    }
    look_for_wish(r); // a request that this master did not see may have started it
    if (worker >= r->assignment.wanted) {
        bel_log_write(BEL_LOG_INFO, "worker %d is not needed any more", worker);
        bel_members_retire(r->config.members, member);
    }
}

// --- While it runs -------------------------------------------------------------------------------

// Finds an unfinished worker with replicas that is no longer awaited; -1: none.
static int find_lost(const remote *r)
{
    for (int w = 0; w < r->seats; w++)
        if (r->assignment.replicas[w] > 0 && !r->ended.workers[w] && worker_at(r, w)->vacant)
            return w;
    return -1;
}

// Runs in each round. One request at a time: a sent pause leads to a new generation.
void bel_remote_check_assignment(remote *r)
{
    enum { LOOK_NS = 1000000000 };
    bool elastic = bel_remote_is_elastic(r);
    if (!r->started || bel_remote_is_broken(r)) return;
    if (elastic && find_lost(r) >= 0) {
        r->backend.lost = r->rescue.lacks_worker = true;
        return;
    }
    if (r->sent.pause || r->sent.stop || r->ended.count > 0) return;
    if (bel_clock_ns() - r->assignment.looked_ns >= LOOK_NS) look_for_wish(r);
    if (!elastic) return;
    int *wanted = bel_xcalloc((size_t)r->seats, sizeof *wanted);
    find_assignment(r, wanted);
    bool other = memcmp(wanted, r->assignment.replicas, (size_t)r->seats * sizeof *wanted) != 0;
    bel_free(wanted);
    if (!other) return;
    r->sent.pause = true;
    bel_log_write(BEL_LOG_DEBUG, "asking for a pause: replicas are to be assigned anew");
    bel_remote_send_pause(r);
}
