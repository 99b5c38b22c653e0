// A full lane is an error of its sender, so the counts here must cover every step and recovery.
// Through shared memory a payload of up to 496 bytes also lives only until as many more frames are
// taken, and a shard keeps such payloads to the end of a step.
#include "ps/layout/lane_frames.h"

#include "ps/layout/exchange.h"

enum { SPARE_FRAMES = 16 };

size_t bel_lane_frames_of_worker(const bel_layout *layout, const bel_assignment *assignment,
                                 int worker, int shard, bool shares_memory)
{
    enum {
        REPORTS = 2,
        BESIDE = 2,                          // step statistics, a version
        EXCHANGES = 2 * BEL_EXCHANGE_PIECES, // under way, and the preceding worker's
    };
    size_t nodes = (size_t)(assignment->first_node[worker + 1] - assignment->first_node[worker]);
    size_t frames = 2 * (size_t)layout->table_count + BESIDE; // a pull and a report of each table
    size_t parts = 0;
    for (int c = 0; c < layout->chunk_count; c++)
        parts += layout->chunks[c].shard == shard;
    frames += parts;
    return REPORTS * (frames * nodes + (shares_memory ? 0 : parts)) + SPARE_FRAMES +
           (layout->exchanges ? EXCHANGES : 0);
}

size_t bel_lane_frames_of_mirror(const bel_layout *layout, int shard, int arrays)
{
    enum { REPORTS = 2, BESIDE = 3 }; // step statistics, factors, a version
    size_t parts = 0;
    for (int c = 0; c < layout->chunk_count; c++)
        parts += layout->chunks[c].shard == shard;
    return REPORTS * (parts + BESIDE) + parts * (2 + (size_t)arrays) + SPARE_FRAMES;
}

size_t bel_lane_frames_of_shards(const bel_assignment *assignment)
{
    enum { STEPS = 2, FRAMES = 3 }; // FRAMES: a worker's name, two answers
    return STEPS * FRAMES * (size_t)assignment->worker_count + SPARE_FRAMES;
}
