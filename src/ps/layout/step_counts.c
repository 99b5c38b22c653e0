// The rules are those of bel_client_report, bel_client_stats and ps/server/values.c: a change there
// is one here, which bench_hollow and its test find. Payloads count a chunk's padding, which lanes
// carry.
#include "ps/layout/step_counts.h"

#include "ps/layout/report_room.h"

bel_lane_counts bel_step_counts(const bel_layout *layout, const bel_assignment *assignment,
                                int worker, int shard, bel_lane_kind kind)
{
    int64_t nodes = assignment->first_node[worker + 1] - assignment->first_node[worker];
    bel_lane_counts counts = {.down_frames = 1};
    counts.up_frames = nodes;
    counts.up_bytes = nodes * bel_stats_size(kind.stats) * (int64_t)sizeof(double);
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (chunk->shard != shard || !bel_chunk_changes(chunk, 0)) continue;
        bool packed = kind.rounded && !kind.in_place && chunk->kind == BEL_VARIABLE_TRAINABLE;
        int64_t bytes = chunk->count * (int64_t)(packed ? sizeof(uint16_t) : sizeof(float));
        counts.up_frames += nodes;
        counts.up_bytes += nodes * bytes;
        if (kind.in_place) continue;
        counts.down_frames++;
        counts.down_bytes += bytes;
    }
    if (kind.in_place || kind.ledger || nodes == 0) return counts;
    const bel_report_room room =
        bel_report_room_of(layout, assignment, shard, kind.rounded, BEL_REPORT_ROOM);
    if (room.limited)
        counts.down_frames += room.parts - bel_report_room_at_begin(&room, assignment, worker);
    return counts;
}

bel_lane_counts bel_start_counts(const bel_layout *layout, int shard, bel_lane_kind kind)
{
    bel_lane_counts counts = {.up_frames = 1, .down_frames = 1};
    for (int c = 0; c < layout->chunk_count && !kind.in_place; c++) {
        if (layout->chunks[c].shard != shard) continue;
        counts.down_frames++;
        counts.down_bytes += layout->chunks[c].count * (int64_t)sizeof(float);
    }
    return counts;
}
