// Capacity of the lanes of training: the maximum number of frames under way in each direction.
// Both ends compute it from the same layout and assignment. It does not depend on the other workers
// of the job, so that a shard's memory for a lane is the same with two workers and a thousand.
#ifndef BELFRY_PS_LAYOUT_LANE_FRAMES_H
#define BELFRY_PS_LAYOUT_LANE_FRAMES_H

#include <stddef.h>

#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"

// Between a worker and a shard: two reports of the worker's nodes, or two versions, and pieces of
// exchanges if the workers exchange. Unless they share memory also the room for two reports, part
// by part.
size_t bel_lane_frames_of_worker(const bel_layout *layout, const bel_assignment *assignment,
                                 int worker, int shard, bool shares_memory);

// Between shard 0 and another shard: names and answers of all workers in two steps, and norms.
size_t bel_lane_frames_of_shards(const bel_assignment *assignment);

// Between a shard and its mirror: two reports, or the whole state, which has `arrays` arrays beside
// two of values.
size_t bel_lane_frames_of_mirror(const bel_layout *layout, int shard, int arrays);

#endif
