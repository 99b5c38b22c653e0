// What the parts of a shard (steps, ledger, norms, rows, values) share: the queue of jobs,
// sending, failing, and the checks of a report. All of it under the shard's one mutex; it calls
// none of the other parts, so that they form no circle. Sending never waits: lanes have room for
// all that can be under way, so only a peer that is gone or stuck misses a frame, and the
// master's clocks see that. Frames of lanes that share memory are checked here and nowhere
// before.
#include "ps/server/shard_inner.h"

// A peer whose lane is cut or full is noticed by the master's clocks; the shard goes on.
void bel_shard_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame)
{
    bel_status_ignore(bel_shard_try_send_locked(shard, lane, frame));
}

bel_status *bel_shard_try_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame)
{
    frame.generation = shard->config.generation;
    frame.sender = shard->config.shard;
    bel_status *status = lane != NULL ? bel_lane_send(lane, &frame) : NULL;
    if (status == NULL) shard->counters.sent_bytes += (int64_t)frame.payload_bytes;
    return status;
}

void bel_shard_push_locked(bel_shard *shard, bel_shard_job job)
{
    shard->ready[shard->ready_count++] = job;
}

bel_job_kind bel_shard_first_job(const bel_shard *shard)
{
    return shard->needs_norm ? BEL_JOB_SUM : BEL_JOB_PASS;
}

// Chunks without reports are ready as soon as it is known what the step does.
void bel_shard_decision_known_locked(bel_shard *shard, uint32_t decision)
{
    if (shard->decision_known) return;
    shard->decision = decision;
    shard->decision_known = true;
    if ((decision & BEL_DECIDE_STOP) != 0) return; // the step is not run
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        if (chunk->kind != BEL_VARIABLE_FROZEN) continue;
        bel_shard_push_locked(shard,
                              (bel_shard_job){.kind = bel_shard_first_job(shard), .local = i});
    }
}

void bel_shard_fail_locked(bel_shard *shard, const bel_frame *frame, const char *what)
{
    if (shard->error != NULL) return;
    shard->error =
        BEL_ERR(BEL_INTERNAL,
                "shard %d: malformed frame from %d at step %lld: %s (kind %d, chunk %d, "
                "node %d, %zu bytes, while step %lld is made)",
                shard->config.shard, frame->sender, (long long)frame->step, what, (int)frame->kind,
                frame->chunk, frame->node, frame->payload_bytes, (long long)shard->step);
}

int bel_shard_local_chunk(const bel_shard *shard, int chunk)
{
    for (int i = 0; i < shard->chunk_count; i++)
        if (shard->chunks[i].chunk == chunk) return i;
    return -1;
}

bool bel_shard_check_report_locked(bel_shard *shard, const bel_frame *frame)
{
    int local = bel_shard_local_chunk(shard, frame->chunk);
    if (local < 0 || frame->node < 0 || frame->node >= shard->config.assignment->node_count) {
        bel_shard_fail_locked(shard, frame, "no such chunk or node here");
        return false;
    }
    size_t expected = (size_t)shard->config.layout->chunks[frame->chunk].count * sizeof(float);
    if (frame->payload_bytes == expected) return true;
    bel_shard_fail_locked(shard, frame, "a report of the wrong size");
    return false;
}

bool bel_shard_take_weight_locked(bel_shard *shard, const bel_frame *frame, bel_weight *out_weight)
{
    const int64_t most = (int64_t)1 << 40; // examples of a step; their products stay in 64 bits
    bool none = frame->replicas == 0 && frame->count == 0;
    bool some = frame->replicas > 0 && frame->count >= frame->replicas;
    if ((none || some) && frame->replicas <= shard->config.assignment->nodes[frame->node].count &&
        frame->count <= most) {
        *out_weight = (bel_weight){frame->replicas, frame->count};
        return true;
    }
    bel_shard_fail_locked(shard, frame, "a weight that its node cannot have");
    return false;
}

bool bel_shard_check_stats_locked(bel_shard *shard, const bel_frame *frame)
{
    bool known = frame->node >= 0 && frame->node < shard->config.assignment->node_count;
    if (known && frame->payload_bytes == (size_t)shard->config.stats_width * sizeof(double)) {
        return true;
    }
    bel_shard_fail_locked(shard, frame, "step statistics of the wrong size");
    return false;
}

bool bel_ledger_counts(const bel_shard *shard, int worker)
{
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    return page->known && page->counts[worker];
}
