// The mirror of a shard: a second copy of its state, which the process of another shard holds. A
// host that is lost takes one of the two with it, and training continues with the other.
//
// A mirror is a shard whose only worker is the mirrored shard, which plays all replicas. When a
// chunk has all its reports, their sum goes to the mirror as the report of one node, 4 bytes a
// parameter. The mirror passes it with the same code, so it has the same bits. Meanwhile this shard
// passes the chunk itself, from the same sum. After all sums come the step statistics, and factors
// of clipping as they are known. The mirror answers with the version that it has made.
//
// A version is published when the mirror has made it, too. So no worker, and no checkpoint, ever
// has a version that would be lost with this process.
#include "base/alloc.h"
#include "base/fault.h"
#include "ps/server/shard_inner.h"

enum { ONLY_NODE = 0, ONLY_WORKER = 0 };

bel_status *bel_shard_allocate_mirror(bel_shard *shard)
{
    if (!bel_shard_is_mirrored(shard)) return NULL;
    size_t stats = (size_t)bel_stats_size(shard->config.settings.stats);
    shard->mirror.stats = bel_xcalloc(stats, sizeof(double));
    shard->mirror.version = -1;
    return bel_space_array(shard->config.layout, "sums for the mirror", &shard->mirror.sums);
}

void bel_shard_free_mirror(bel_shard *shard)
{
    bel_free(shard->mirror.stats);
    if (shard->mirror.sums != NULL) bel_space_free_array(shard->config.layout, shard->mirror.sums);
}

// A full lane or a lost mirror is no error: the step then waits, and the master's clocks detect it.
static void send_to_mirror_locked(bel_shard *shard, bel_frame frame)
{
    bel_lane *lane = *shard->config.mirror_lane;
    frame.generation = shard->config.generation;
    frame.sender = ONLY_WORKER;
    bel_status *status = lane != NULL ? bel_lane_send(lane, &frame) : NULL;
    if (status == NULL) shard->counters.sent_bytes += (int64_t)frame.payload_bytes;
    bel_status_ignore(status); // the lane is gone, which the master notices as well
}

void bel_shard_begin_mirror_locked(bel_shard *shard)
{
    shard->mirror.sent = 0;
    shard->mirror.told = shard->mirror.has_factors = false;
    for (int i = 0; i < shard->chunk_count; i++)
        shard->chunks[i].sum = NULL;
}

// As a worker begins: the mirror answers with its version.
void bel_shard_ask_mirror_locked(bel_shard *shard)
{
    if (!bel_shard_is_mirrored(shard)) return;
    const bel_pull_frame pull = {.version = shard->step};
    send_to_mirror_locked(shard, bel_pull_frame_write(pull, NULL, 0));
}

bool bel_shard_has_mirrored_locked(const bel_shard *shard)
{
    return !bel_shard_is_mirrored(shard) || shard->mirror.version > shard->step;
}

// The memory stays until the mirror has made the step: the next sums come after that.
void bel_shard_sum_for_mirror(bel_shard *shard, int local)
{
    int64_t offset = shard->config.layout->chunks[shard->chunks[local].chunk].offset;
    bel_shard_merge_into(shard, local, 0, shard->config.assignment->depth,
                         shard->mirror.sums + offset, true);
}

// The reports are not read any more, so their room is free, and both passes are from the sum.
void bel_shard_send_sum_locked(bel_shard *shard, int local)
{
    bel_shard_chunk *chunk = &shard->chunks[local];
    const bel_chunk *part = &shard->config.layout->chunks[chunk->chunk];
    bel_report_frame report = {.version = shard->step, .chunk = chunk->chunk, .node = ONLY_NODE};
    for (int k = 0; k < shard->config.assignment->node_count; k++) {
        report.replicas += (int32_t)chunk->weights[k].replicas;
        report.examples += chunk->weights[k].examples;
    }
    size_t bytes = bel_rounding_bytes(bel_shard_rounding(shard, chunk->chunk), part->count);
    chunk->sum = shard->mirror.sums + part->offset;
    send_to_mirror_locked(shard, bel_report_frame_write(report, chunk->sum, bytes));
    bel_fault_point("shard_sent_sum");
    shard->mirror.sent++;
    bel_shard_free_room_locked(shard, local);
    bel_shard_push_chunk_locked(shard, local);
    bel_shard_stats_to_mirror_locked(shard);
}

static int changed_chunks(const bel_shard *shard)
{
    int count = 0;
    for (int i = 0; i < shard->chunk_count; i++)
        count += bel_shard_changes(shard, i);
    return count;
}

// They are last, as small sums wait on the lane for the frame that follows them.
void bel_shard_stats_to_mirror_locked(bel_shard *shard)
{
    if (!bel_shard_is_mirrored(shard) || shard->mirror.told || !shard->decision.known) return;
    if (shard->stats.count < shard->config.assignment->node_count) return;
    if (shard->mirror.sent < changed_chunks(shard)) return;
    shard->mirror.told = true;
    int size = bel_stats_size(shard->config.settings.stats);
    bel_assignment_sum_f64(shard->config.assignment, shard->stats.list, size, shard->mirror.stats);
    const bel_stats_frame stats = {.version = shard->step, .node = ONLY_NODE};
    send_to_mirror_locked(
        shard, bel_stats_frame_write(stats, shard->mirror.stats, (size_t)size * sizeof(double)));
    bel_fault_point("shard_sent_stats");
}

void bel_shard_factors_to_mirror_locked(bel_shard *shard)
{
    if (!bel_shard_is_mirrored(shard)) return;
    const bel_factors_frame factors = {.step = shard->step};
    size_t bytes = (size_t)shard->config.layout->variable_count * sizeof(float);
    send_to_mirror_locked(shard, bel_factors_frame_write(factors, shard->memory.factors, bytes));
}

void bel_shard_drain_mirror_locked(bel_shard *shard)
{
    bel_lane *lane = bel_shard_is_mirrored(shard) ? *shard->config.mirror_lane : NULL;
    bel_frame frame;
    while (lane != NULL && shard->error == NULL && bel_lane_receive(lane, &frame)) {
        if (frame.generation != shard->config.generation) {
            shard->counters.foreign++;
            continue;
        }
        shard->progress++;
        bool is_version = frame.kind == BEL_FRAME_VERSION;
        int64_t version = is_version ? bel_version_frame_read(&frame).version : -1;
        if (!is_version || version < shard->mirror.version || version > shard->step + 1) {
            bel_shard_fail_locked(shard, &frame, "not the next version of its mirror");
            return;
        }
        shard->mirror.version = version;
    }
}
