// Positions in the input: which blocks the steps of a run read. Checkpoints store them, and workers
// follow them.
#ifndef BELFRY_BASE_INPUT_SEGMENT_H
#define BELFRY_BASE_INPUT_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

// Segment of a run's input. From step `first_step` on, replica r reads block first_block + (step -
// first_step) * replica_count + r. With local steps replica_count is their number times that of
// replicas, and local step h of replica r has h * replicas + r instead of r. Block b is the
// batch_size records of the input from origin + b * batch_size on. A run whose batch size changes
// has an origin, since the records read before do not fill blocks of the new size.
typedef struct bel_input_segment {
    int64_t first_step;
    int64_t first_block;
    int64_t replica_count;
    int64_t batch_size; // 0: unknown, in a checkpoint of an earlier version
    int64_t origin;     // from 0 to batch_size - 1
} bel_input_segment;

// Returns the block of a replica, or of its local step, at a step that is not before the segment.
static inline int64_t bel_input_segment_block(const bel_input_segment *segment, int64_t step,
                                              int64_t replica)
{
    return segment->first_block + (step - segment->first_step) * segment->replica_count + replica;
}

// Returns the segment that follows at `step`: its blocks are after all earlier ones.
static inline bel_input_segment bel_input_segment_next(const bel_input_segment *segment,
                                                       int64_t step, int64_t replica_count)
{
    bel_input_segment next = *segment;
    next.first_step = step;
    next.first_block = bel_input_segment_block(segment, step, 0);
    next.replica_count = replica_count;
    return next;
}

// The same with another batch size: it continues at the same record, *out_records from the
// beginning. False: more records than 64 bits can count.
static inline bool bel_input_segment_resize(const bel_input_segment *segment, int64_t step,
                                            int64_t batch_size, bel_input_segment *out_segment,
                                            int64_t *out_records)
{
    bel_input_segment next = bel_input_segment_next(segment, step, segment->replica_count);
    int64_t records;
    if (__builtin_mul_overflow(next.first_block, segment->batch_size, &records) ||
        __builtin_add_overflow(records, segment->origin, &records) || records < 0)
        return false;
    next.first_block = records / batch_size;
    next.origin = records % batch_size;
    next.batch_size = batch_size;
    *out_segment = next;
    *out_records = records;
    return true;
}

#endif
