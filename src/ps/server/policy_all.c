// All workers count: the policy of a synchronous job. A step is a function of the preceding
// version, so reports of another version are late, and a version is announced to every worker that
// begins with it. A replacement may repeat a step that is finished here: it gets the preceding
// version, and this one once it has repeated all reports of that step. Any other pull is late and
// is dropped without an answer: an admitted worker asks for a version that every shard still has.
#include <string.h>

#include "ps/server/shard_inner.h"

static void nothing(bel_shard *shard)
{
    (void)shard;
}

static void nothing_of_worker(bel_shard *shard, int worker)
{
    (void)shard, (void)worker;
}

static bool is_known(const bel_shard *shard)
{
    (void)shard;
    return true;
}

static bool policy_all_counts(const bel_shard *shard, int worker)
{
    (void)shard, (void)worker;
    return true;
}

// Reports also carry the decision: other shards learn it from them.
static bool policy_all_accepts(bel_shard *shard, const bel_frame *frame, int worker,
                               int64_t version, uint32_t decision)
{
    (void)worker;
    if (version > shard->step) { // no worker can report on an unpublished version
        bel_shard_fail_locked(shard, frame, "its step has not begun");
        return false;
    }
    if (version < shard->step || bel_shard_is_stopping(shard)) return false;
    if (bel_decision_function(decision) >= shard->config.settings.function_count) {
        bel_shard_fail_locked(shard, frame, "there is no such step function");
        return false;
    }
    bool news = !shard->decision.known;
    bel_shard_decision_known_locked(shard, decision);
    if (news) bel_shard_function_known_locked(shard);
    if (bel_decision_function(decision) == bel_shard_function(shard)) return true;
    bel_shard_fail_locked(shard, frame, "of another step function than other reports of its step");
    return false;
}

// All workers have reported, so no worker reads the preceding version any more. Copies the chunks
// that the step does not update into its buffer, and updates values on devices.
static void policy_all_completed(bel_shard *shard, int worker)
{
    (void)worker;
    if (shard->stats.count < shard->config.assignment->node_count) return;
    bel_shard_compare_hashes_locked(shard);
    if (bel_shard_relays(shard) && shard->error == NULL) bel_shard_stats_up_locked(shard);
    bel_shard_stats_to_mirror_locked(shard);
    if (bel_shard_on_devices(shard)) {
        bel_shard_push_all_locked(shard, shard->rules.needs_norm ? BEL_JOB_SUM : BEL_JOB_PASS);
    } else {
        bel_shard_push_kept_locked(shard);
    }
}

// Step statistics of a finished step: when those of its last node arrive, a worker that repeats the
// step has finished it and gets this version.
static void passed_by(bel_shard *shard, int worker, int64_t version, int node)
{
    bool repeats = shard->workers[worker].reader == BEL_READER_BEHIND &&
                   shard->workers[worker].version == version && version == shard->step - 1;
    if (repeats && node == shard->config.assignment->first_node[worker + 1] - 1)
        bel_shard_send_whole_locked(shard, worker, shard->step);
}

// True while the preceding version is there: no chunk has all its reports.
static bool keeps_preceding(const bel_shard *shard)
{
    for (int i = 0; i < shard->chunk_count; i++)
        if (shard->chunks[i].queued) return false;
    return shard->counters.versions > 1; // this generation had a preceding step
}

// Sends this version, or the preceding one while its buffer is intact.
static void take_pull(bel_shard *shard, const bel_frame *frame, int worker)
{
    int64_t version = bel_pull_frame_read(frame).version;
    bool kept = version == shard->step - 1 && keeps_preceding(shard);
    if (version == shard->step || kept) {
        bel_shard_send_whole_locked(shard, worker, version);
    } else {
        shard->counters.late++;
    }
}

// Rows have only one version: they may be read until the table's update is queued.
static bool rows_fit(const bel_shard *shard, int table, int worker, int64_t version)
{
    (void)worker;
    return version == shard->step && !shard->tables[table].queued;
}

// Forgets the reports of the preceding step: all of them were used in it.
static void policy_all_begin(bel_shard *shard)
{
    size_t nodes = (size_t)shard->config.assignment->node_count;
    for (int i = 0; i < shard->chunk_count; i++) {
        shard->chunks[i].reported = 0;
        memset(shard->chunks[i].nodes, 0, nodes * sizeof *shard->chunks[i].nodes);
    }
    for (int t = 0; t < shard->config.layout->table_count; t++)
        memset(shard->tables[t].reported, 0, nodes * sizeof *shard->tables[t].reported);
    memset(shard->stats.list, 0, nodes * sizeof *shard->stats.list);
    shard->stats.count = 0;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        shard->workers[w].complete = false;
}

// The step waits for every worker even if there are no chunks: every worker reads every version.
static bool is_done(const bel_shard *shard)
{
    return shard->stats.count == shard->config.assignment->node_count;
}

// The input never ends here: epochs follow each other, and the control decides which step is the
// last.
static bel_steps_left steps_left(const bel_shard *shard)
{
    (void)shard;
    return BEL_STEPS_FOLLOW;
}

// Workers that follow already have the chunks and are notified of the version. A worker that is
// exactly one version late gets all of it. Older ones begin with a pull.
static void policy_all_published(bel_shard *shard)
{
    int sent = shard->work.values_sent;
    shard->work.values_sent = 0; // the new step's; a worker that gets a complete version follows
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bel_shard_worker *worker = &shard->workers[w];
        worker->counted += shard->counters.versions > 1; // all versions but the first were made
        if (worker->reader == BEL_READER_FOLLOWS) {
            bel_shard_send_version_locked(shard, w, shard->step, sent);
        } else if (worker->reader == BEL_READER_BEHIND && worker->version == shard->step - 1) {
            bel_shard_send_whole_locked(shard, w, shard->step);
        }
    }
}

const bel_policy bel_policy_all = {
    .lockstep = true,
    .create = nothing,
    .destroy = nothing,
    .reset = nothing,
    .is_known = is_known,
    .counts = policy_all_counts,
    .accepts = policy_all_accepts,
    .passed_by = passed_by,
    .completed = policy_all_completed,
    .take_pull = take_pull,
    .rows_fit = rows_fit,
    .begin = policy_all_begin,
    .is_done = is_done,
    .steps_left = steps_left,
    .chunk_passed = bel_shard_send_passed_locked,
    .copied = nothing_of_worker,
    .published = policy_all_published,
    .poll = nothing,
    .forget = nothing_of_worker,
    .admitted = nothing,
};
