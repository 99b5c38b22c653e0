// Which blocks of the input the steps of a run read; kept in checkpoints, followed by workers.
#ifndef BELFRY_BASE_INPUT_SEGMENT_H
#define BELFRY_BASE_INPUT_SEGMENT_H

#include <stdint.h>

// From step `first_step` on, replica r reads block
// first_block + (step - first_step) * replica_count + r.
typedef struct bel_input_segment {
    int64_t first_step;
    int64_t first_block;
    int64_t replica_count;
} bel_input_segment;

// The block of a replica at a step that is not before the segment.
static inline int64_t bel_input_segment_block(const bel_input_segment *segment, int64_t step,
                                              int64_t replica)
{
    return segment->first_block + (step - segment->first_step) * segment->replica_count + replica;
}

// The segment that follows at `step`: its blocks are those behind all that were used before.
static inline bel_input_segment bel_input_segment_next(const bel_input_segment *segment,
                                                       int64_t step, int64_t replica_count)
{
    return (bel_input_segment){.first_step = step,
                               .first_block = bel_input_segment_block(segment, step, 0),
                               .replica_count = replica_count};
}

#endif
