// The rules are those of bel_client_report, bel_client_stats and ps/server/values.c: a change there
// is one here, which bench_hollow and its test find. Payloads count a chunk's padding, which lanes
// carry.
#include "ps/layout/step_counts.h"

#include "ps/layout/report_room.h"

bel_lane_counts bel_step_counts(const bel_layout *layout, const bel_assignment *assignment,
                                int worker, int shard, bel_lane_kind kind)
{
    int64_t nodes = assignment->first_node[worker + 1] - assignment->first_node[worker];
    bel_lane_counts counts = {.down_frames = 1, .down_messages = 1};
    counts.up_frames = counts.up_messages = nodes;
    counts.up_bytes = nodes * bel_stats_size(kind.stats) * (int64_t)sizeof(double);
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (chunk->shard != shard || !bel_chunk_changes(chunk, 0)) continue;
        bool packed = !kind.in_place && chunk->kind == BEL_VARIABLE_TRAINABLE;
        bel_rounding rounding = packed ? kind.rounding : BEL_ROUNDING_NONE;
        int64_t bytes = (int64_t)bel_rounding_bytes(rounding, chunk->count);
        int at_once = !kind.in_place && bytes > (int64_t)kind.joined_bytes ? 1 : 0;
        counts.up_frames += nodes;
        counts.up_bytes += nodes * bytes;
        counts.up_messages += nodes * at_once;
        if (kind.in_place) continue;
        counts.down_messages += at_once;
        counts.down_frames++;
        counts.down_bytes += bytes;
    }
    if (kind.in_place || kind.ledger || nodes == 0) return counts;
    const bel_report_room room =
        bel_report_room_of(layout, assignment, shard, kind.rounding, BEL_REPORT_ROOM);
    if (!room.limited) return counts;
    int later = room.parts - bel_report_room_at_begin(&room, assignment, worker);
    counts.down_frames += later;
    counts.down_messages += later;
    return counts;
}

bel_lane_counts bel_start_counts(const bel_layout *layout, int shard, bel_lane_kind kind)
{
    bel_lane_counts counts = {
        .up_frames = 1, .up_messages = 1, .down_frames = 1, .down_messages = 1};
    for (int c = 0; c < layout->chunk_count && !kind.in_place; c++) {
        if (layout->chunks[c].shard != shard) continue;
        int64_t bytes = layout->chunks[c].count * (int64_t)sizeof(float);
        counts.down_frames++;
        counts.down_bytes += bytes;
        counts.down_messages += bytes > (int64_t)kind.joined_bytes ? 1 : 0;
    }
    return counts;
}
