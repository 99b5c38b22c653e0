// Common functions of a shard's parts (steps, frames, policies, norms, rows, values): the queue of
// jobs, sending and failing. All run under the shard's one mutex. Sending never waits: lanes have
// room for all frames that can be under way, so only a lost or stuck peer misses a frame, and the
// master's clocks detect that.
#include "ps/server/shard_inner.h"

// The master's clocks detect a peer whose lane is cut or full; the shard continues.
void bel_shard_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame)
{
    bel_status_ignore(bel_shard_try_send_locked(shard, lane, frame));
}

// A NULL lane is no error: there is no peer, and a successor asks again.
bel_status *bel_shard_try_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame)
{
    frame.generation = shard->config.generation;
    frame.sender = shard->config.shard;
    bel_status *status = lane != NULL ? bel_lane_send(lane, &frame) : NULL;
    if (status == NULL) shard->counters.sent_bytes += (int64_t)frame.payload_bytes;
    return status;
}

bool bel_shard_reads_in_place(const bel_shard *shard, int worker)
{
    const bel_lane *lane = shard->config.worker_lanes[worker];
    return lane == NULL || lane->ops->shares_memory;
}

bool bel_shard_limits(const bel_shard *shard, int worker)
{
    return shard->room.memory != NULL && !bel_shard_reads_in_place(shard, worker);
}

// There is room for every job that can be queued at once (shard_life.c).
void bel_shard_push_locked(bel_shard *shard, bel_shard_job job)
{
    shard->work.ready[shard->work.ready_count++] = job;
}

// Sums for the mirror go first (they are on top): the pass of one chunk then runs while the mirror
// works on others.
static void push_below_mirrors(bel_shard *shard, bel_shard_job job)
{
    int place = shard->work.ready_count++;
    bel_shard_job *ready = shard->work.ready;
    for (; place > 0 && ready[place - 1].kind == BEL_JOB_MIRROR; place--)
        ready[place] = ready[place - 1];
    ready[place] = job;
}

// If the shard has a mirror, the chunk's sum goes there first; then this is called once more.
void bel_shard_push_chunk_locked(bel_shard *shard, int local)
{
    const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[local].chunk];
    bool goes_up = bel_shard_relays(shard) && chunk->kind != BEL_VARIABLE_FROZEN;
    bool mirrored = bel_shard_is_mirrored(shard) && bel_shard_changes(shard, local);
    bel_job_kind first = shard->rules.needs_norm || goes_up ? BEL_JOB_SUM : BEL_JOB_PASS;
    if (mirrored && shard->chunks[local].sum == NULL) {
        bel_shard_push_locked(shard, (bel_shard_job){.kind = BEL_JOB_MIRROR, .local = local});
        return;
    }
    push_below_mirrors(shard, (bel_shard_job){.kind = first, .local = local});
}

void bel_shard_set_snapshot(bel_shard *shard, int64_t version)
{
    shard->snapshot = version;
    if (shard->config.kept != NULL) bel_kept_set_snapshot(shard->config.kept, version);
}

// Frozen chunks have no reports: they are ready as soon as the decision is known, as a snapshot
// needs them passed.
void bel_shard_decision_known_locked(bel_shard *shard, uint32_t decision)
{
    if (shard->decision.known) return;
    shard->decision.now = decision;
    shard->decision.known = true;
    if ((decision & BEL_DECIDE_STOP) != 0) return; // the step is not run
    if ((decision & BEL_DECIDE_SAVE) != 0) bel_shard_set_snapshot(shard, 0);
    for (int i = 0; i < shard->chunk_count && !bel_shard_on_devices(shard); i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        if (chunk->kind == BEL_VARIABLE_FROZEN) bel_shard_push_chunk_locked(shard, i);
    }
}

bool bel_shard_is_stopping(const bel_shard *shard)
{
    return shard->decision.known && (shard->decision.now & BEL_DECIDE_STOP) != 0;
}

// Keeps the first error; from then on the shard takes no frames and runs no jobs.
void bel_shard_fail_locked(bel_shard *shard, const bel_frame *frame, const char *what)
{
    if (shard->error != NULL) return;
    char words[BEL_FRAME_WORDS_BYTES];
    bel_frame_words(frame, words);
    int sender = frame->sender;
    if (bel_shard_relays(shard) && sender >= 0 && sender < shard->config.assignment->worker_count)
        sender = bel_shard_name(shard, sender);              // all are reporters
    if (shard->config.mirrors) sender = shard->config.shard; // the only worker
    shard->error =
        BEL_ERR(BEL_INTERNAL, "shard %d: malformed frame from %d: %s (%s; while step %lld is made)",
                shard->config.shard, sender, what, words, (long long)shard->step);
}

// A shard's chunks are in the order of the layout.
int bel_shard_local_chunk(const bel_shard *shard, int chunk)
{
    int low = 0, high = shard->chunk_count - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (shard->chunks[middle].chunk < chunk) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return high >= 0 && shard->chunks[low].chunk == chunk ? low : -1;
}

bool bel_shard_counts(const bel_shard *shard, int node)
{
    return shard->policy->counts(shard, shard->config.assignment->nodes[node].worker);
}

void bel_shard_reset_worker(bel_shard_worker *worker)
{
    *worker = (bel_shard_worker){.incarnation = worker->incarnation,
                                 .version = -1,
                                 .counted = worker->counted,
                                 .counted_step = worker->counted_step,
                                 .dropped = worker->dropped,
                                 .stale = worker->stale};
}

// Sums are not touched: passed reports stay in the step, and so do all that are in slots.
void bel_shard_forget_report_locked(bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    bool limited = bel_shard_limits(shard, worker);
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        for (int i = 0; i < shard->chunk_count && !limited; i++) {
            shard->chunks[i].reported -= shard->chunks[i].nodes[k] != NULL;
            shard->chunks[i].nodes[k] = NULL;
        }
        for (int t = 0; t < shard->config.layout->table_count; t++)
            shard->tables[t].reported[k] = false;
        shard->stats.count -= shard->stats.list[k] != NULL;
        shard->stats.list[k] = NULL;
    }
    shard->workers[worker].complete = false;
}
