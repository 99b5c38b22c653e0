// Software prefetching. Each step runs ahead of the reading by a multiple of BEL_AHEAD_DISTANCE.
// The distance is far enough for memory to answer (12 records of 50 ns), and near enough that the
// bytes are still in the L1 cache (12 records of a KiB).
#include "input/batch/ahead.h"

bel_ahead bel_ahead_begin(const bel_source *source, const bel_position *positions, int64_t count)
{
    bel_ahead ahead = {.source = source, .positions = positions, .count = count};
    bool follow = count < 2 || positions[count - 1].number - positions[0].number == count - 1;
    if (follow || source->kind->ahead == NULL) ahead.source = NULL;
    return ahead;
}

void bel_ahead_reach(bel_ahead *ahead, int64_t index)
{
    if (ahead->source == NULL) return;
    const bel_source *source = ahead->source;
    for (int step = 0; step < BEL_AHEAD_STEPS; step++) {
        int64_t goal = index + (int64_t)BEL_AHEAD_DISTANCE * (BEL_AHEAD_STEPS - step);
        if (goal > ahead->count) goal = ahead->count;
        for (; ahead->reached[step] < goal; ahead->reached[step]++) {
            int64_t number = ahead->positions[ahead->reached[step]].number;
            if (number >= 0) source->kind->ahead(source, number, step);
        }
    }
}
