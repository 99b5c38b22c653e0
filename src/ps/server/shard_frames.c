// Frames received by a shard, on the lanes of workers and of other shards. Each frame's struct is
// read, checked and kept here; when it may complete something, ready.c checks that. This is the
// only check of frames from shared memory, so no field is trusted: chunk, node, table, size and
// weight are compared with the shard's state. Any mismatch stops the shard with a message that
// describes the frame. A frame that is late, repeated or from another generation is no error, as
// lanes may bring all of these; it is counted.
#include <string.h>

#include "base/clock.h"
#include "ps/server/shard_inner.h"

// Checks the weight of a report of `node`; an impossible weight fails the shard.
static bool check_weight_locked(bel_shard *shard, const bel_frame *frame, int32_t node,
                                bel_weight weight)
{
    const int64_t most = (int64_t)1 << 40; // examples of a step; their products stay in 64 bits
    bool none = weight.replicas == 0 && weight.examples == 0;
    bool some = weight.replicas > 0 && weight.examples >= weight.replicas;
    if ((none || some) && weight.replicas <= shard->config.assignment->nodes[node].count &&
        weight.examples <= most)
        return true;
    bel_shard_fail_locked(shard, frame, "a weight that its node cannot have");
    return false;
}

// True for a report that can be used now and whose node belongs to its worker.
static bool accept_locked(bel_shard *shard, const bel_frame *frame, int worker, int64_t version,
                          uint32_t decision, int32_t node)
{
    if (!bel_assignment_is_node_of(shard->config.assignment, node, worker)) {
        bel_shard_fail_locked(shard, frame, "no such node of this worker");
        return false;
    }
    if (shard->policy->accepts(shard, frame, worker, version, decision)) return true;
    shard->counters.late++;
    return false;
}

// Takes a node's sum for one chunk; the payload stays in place until the pass reads it.
static void take_report_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_report_frame report = bel_report_frame_read(frame);
    bel_weight weight = {report.replicas, report.examples};
    if (!accept_locked(shard, frame, worker, report.version, report.decision, report.node)) return;
    int local = bel_shard_local_chunk(shard, report.chunk);
    if (local < 0) {
        bel_shard_fail_locked(shard, frame, "no such chunk here");
        return;
    }
    int64_t count = shard->config.layout->chunks[report.chunk].count;
    bel_rounding rounding = BEL_ROUNDING_NONE; // sums that are read in place are floats
    if (!bel_shard_reads_in_place(shard, worker))
        rounding = bel_shard_rounding(shard, report.chunk);
    if (frame->payload_bytes != bel_rounding_bytes(rounding, count)) {
        bel_shard_fail_locked(shard, frame, "a report of the wrong size");
        return;
    }
    int function = bel_decision_function(report.decision);
    if (!bel_chunk_changes(&shard->config.layout->chunks[report.chunk], function)) {
        bel_shard_fail_locked(shard, frame, "a chunk that its step function does not update");
        return;
    }
    bel_shard_chunk *chunk = &shard->chunks[local];
    if (chunk->nodes[report.node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    if (!check_weight_locked(shard, frame, report.node, weight)) return;
    bool limited = bel_shard_limits(shard, worker);
    if (limited && !bel_shard_take_room_locked(shard, frame, local, report.node)) return;
    chunk->nodes[report.node] = frame->payload;
    chunk->packed[report.node] = rounding != BEL_ROUNDING_NONE;
    chunk->weights[report.node] = weight;
    chunk->reported++;
    if (shard->room.memory != NULL) bel_shard_climb_locked(shard, local, report.node);
    bel_shard_look_at_chunk_locked(shard, local);
}

// The same for the rows of one table.
static void take_row_report_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_row_report_frame report = bel_row_report_frame_read(frame);
    bel_weight weight = {report.replicas, report.examples};
    if (!accept_locked(shard, frame, worker, report.version, report.decision, report.node)) return;
    if (!check_weight_locked(shard, frame, report.node, weight)) return;
    if (!bel_shard_keep_rows_locked(shard, frame, &report, weight)) return;
    bel_shard_look_at_table_locked(shard, report.table);
}

// Step statistics are small and copied, so that their sender need not keep them. They are last in a
// worker's report on their lane: when all its nodes' statistics have arrived, the report is
// complete.
static void take_stats_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    bel_stats_frame stats = bel_stats_frame_read(frame);
    if (!accept_locked(shard, frame, worker, stats.version, stats.decision, stats.node)) {
        if (shard->error == NULL)
            shard->policy->passed_by(shard, worker, stats.version, stats.node);
        return;
    }
    size_t size = (size_t)bel_stats_size(shard->config.settings.stats);
    if (frame->payload_bytes != size * sizeof(double)) {
        bel_shard_fail_locked(shard, frame, "step statistics of the wrong size");
        return;
    }
    if (shard->stats.list[stats.node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    double *copy = shard->stats.values + (size_t)stats.node * size;
    memcpy(copy, frame->payload, frame->payload_bytes);
    shard->stats.list[stats.node] = copy;
    shard->stats.count++;
    shard->workers[worker].hash = stats.hash;
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++)
        if (shard->stats.list[k] == NULL) return;
    shard->workers[worker].complete = true;
    shard->workers[worker].complete_ns = bel_clock_ns();
    shard->policy->completed(shard, worker);
}

static void take_from_worker_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    if (frame->kind == BEL_FRAME_FACTORS && shard->config.mirrors) {
        bel_shard_take_norms_locked(shard, frame);
        return;
    }
    switch (frame->kind) {
    case BEL_FRAME_REPORT: take_report_locked(shard, frame, worker); break;
    case BEL_FRAME_ROW_REPORT: take_row_report_locked(shard, frame, worker); break;
    case BEL_FRAME_STATS: take_stats_locked(shard, frame, worker); break;
    case BEL_FRAME_PULL: shard->policy->take_pull(shard, frame, worker); break;
    case BEL_FRAME_ROW_PULL: bel_shard_take_row_pull_locked(shard, frame, worker); break;
    case BEL_FRAME_EXCHANGE: bel_shard_take_exchange_locked(shard, frame, worker); break;
    default: bel_shard_fail_locked(shard, frame, "a kind that workers do not send"); break;
    }
}

// The policy and the shard's number determine which kinds may come; each handler checks that.
static void take_from_shard_locked(bel_shard *shard, const bel_frame *frame)
{
    const bel_policy *policy = shard->policy;
    if (frame->kind == BEL_FRAME_NORMS || frame->kind == BEL_FRAME_FACTORS) {
        bel_shard_take_norms_locked(shard, frame);
    } else if (frame->kind == BEL_FRAME_COUNTS && policy->take_counts != NULL) {
        policy->take_counts(shard, frame);
    } else if (frame->kind == BEL_FRAME_ANSWER && policy->take_answer != NULL) {
        policy->take_answer(shard, frame);
    } else {
        bel_shard_fail_locked(shard, frame, "a kind that shards do not send each other");
    }
}

// `worker` is the lane's, -1: another shard's.
static void take_frame_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bool ours = worker < 0 || (frame->sender == worker &&
                               frame->incarnation == shard->workers[worker].incarnation);
    if (frame->generation != shard->config.generation || !ours) {
        shard->counters.foreign++;
        return;
    }
    shard->progress++;
    shard->counters.received_bytes += (int64_t)frame->payload_bytes;
    if (worker >= 0) {
        take_from_worker_locked(shard, frame, worker);
    } else {
        take_from_shard_locked(shard, frame);
    }
}

// Takes all frames that have arrived on one lane. An error ends it, as no frame after a malformed
// one is trusted.
static void drain_lane_locked(bel_shard *shard, bel_lane *lane, int worker)
{
    bel_frame frame;
    while (lane != NULL && shard->error == NULL && bel_lane_receive(lane, &frame))
        take_frame_locked(shard, &frame, worker);
}

// Shard 0 drains the other shards' lanes (shard_lanes[0] is NULL); they drain only shard 0's, at
// index 0.
void bel_shard_drain_locked(bel_shard *shard)
{
    if (!shard->started || shard->pause.calls > 0) return;
    shard->policy->poll(shard);
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        drain_lane_locked(shard, shard->config.worker_lanes[w], w);
    bel_shard_drain_mirror_locked(shard);
    if (shard->config.mirrors) return; // it has no lanes of shards
    int shards = shard->config.shard == 0 ? shard->config.layout->shard_count : 1;
    for (int k = 0; shard->config.layout->shard_count > 1 && k < shards; k++)
        drain_lane_locked(shard, shard->config.shard_lanes[k], -1);
}
