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

#endif
