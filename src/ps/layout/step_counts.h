// Frames and payload bytes between a worker and a shard, counted from the layout before anything
// runs. All workers count in each step, and one step function trains. Tables, collectives, norms
// over several shards and snapshots have more frames, which are not counted here.
//
//   a step, up    a report of each chunk and node, then step statistics of each node
//   a step, down  the values of each chunk that changes, unless they are read in place; a version;
//                 room for each part of a report that had none when the step began
//   the start     a pull up; all values, never rounded, and a version down
//
// `belfry plan` predicts with these counts, and bench_hollow compares them with real lanes.
#ifndef BELFRY_PS_LAYOUT_STEP_COUNTS_H
#define BELFRY_PS_LAYOUT_STEP_COUNTS_H

#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"
#include "ps/layout/rounding.h"
#include "ps/layout/step_stats.h"

// Frames to and from the shard, the bytes of their payloads, and the frames that a lane sends at
// once, with those that have waited for them.
typedef struct bel_lane_counts {
    int64_t up_frames, up_bytes, up_messages;
    int64_t down_frames, down_bytes, down_messages;
} bel_lane_counts;

static inline void bel_lane_counts_add(bel_lane_counts *sum, const bel_lane_counts *more)
{
    sum->up_frames += more->up_frames;
    sum->up_bytes += more->up_bytes;
    sum->up_messages += more->up_messages;
    sum->down_frames += more->down_frames;
    sum->down_bytes += more->down_bytes;
    sum->down_messages += more->down_messages;
}

// The settings that determine the counts.
typedef struct bel_lane_kind {
    bool in_place;         // both ends share memory: values are not sent, and nothing is rounded
    bel_rounding rounding; // --exchange_precision
    size_t joined_bytes;   // the lane's: larger payloads of sums and values do not wait
    bool ledger;           // not all workers count: there is room for whole reports
    bel_stats_shape stats; // the step statistics
} bel_lane_kind;

// Counts of one step, after the start. Thread-safe, as the next.
bel_lane_counts bel_step_counts(const bel_layout *layout, const bel_assignment *assignment,
                                int worker, int shard, bel_lane_kind kind);

// Counts of a worker's start.
bel_lane_counts bel_start_counts(const bel_layout *layout, int shard, bel_lane_kind kind);

#endif
