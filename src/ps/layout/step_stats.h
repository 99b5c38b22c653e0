// The step statistics: what a replica says about a step besides its gradients. All entries are
// doubles, summed over replicas by the same tree as the gradients. Behind those that every job has
// come two for each series of the job: metrics in training and summaries, a sum and its weight; and
// then the numbers that a step function returns to the loop that runs it (belfry/replica.h).
#ifndef BELFRY_PS_LAYOUT_STEP_STATS_H
#define BELFRY_PS_LAYOUT_STEP_STATS_H

#include <stddef.h>

enum {
    BEL_STATS_LOSS_SUM,  // loss of the replica · its examples
    BEL_STATS_EXAMPLES,  //
    BEL_STATS_NONFINITE, // replicas whose loss is not finite
    BEL_STATS_COUNT
};

enum { BEL_MAX_SERIES = 32 }; // metrics and summaries of a model

// How many numbers follow in a job.
typedef struct bel_stats_shape {
    int series;
    int returned;
} bel_stats_shape;

enum { BEL_MAX_RETURNED = 1 << 16 }; // numbers of a step function

// Entries in all, where the sum of a series lies, whose weight follows, and the first that is
// returned.
static inline int bel_stats_size(bel_stats_shape shape)
{
    return BEL_STATS_COUNT + 2 * shape.series + shape.returned;
}

static inline int bel_stats_series(int series)
{
    return BEL_STATS_COUNT + 2 * series;
}

// Bytes of a node's step statistics where they need room beside the frames: where something is
// returned; else 0.
static inline size_t bel_stats_room(bel_stats_shape shape)
{
    return shape.returned > 0 ? (size_t)bel_stats_size(shape) * sizeof(double) : 0;
}

static inline int bel_stats_returned(bel_stats_shape shape)
{
    return BEL_STATS_COUNT + 2 * shape.series;
}

#endif
