// Step statistics: the numbers that a replica reports for a step besides its gradients. All entries
// are doubles, summed over replicas by the same tree as the gradients. First come the entries of
// every job, then two for each series of the job (metrics in training and summaries): a sum and its
// weight. Last are the numbers that a step function returns to the loop that runs it
// (belfry/replica.h).
#ifndef BELFRY_PS_LAYOUT_STEP_STATS_H
#define BELFRY_PS_LAYOUT_STEP_STATS_H

#include <stddef.h>

enum {
    BEL_STATS_LOSS_SUM,  // the replica's loss · its examples
    BEL_STATS_EXAMPLES,  //
    BEL_STATS_NONFINITE, // number of replicas whose loss is not finite
    BEL_STATS_COUNT
};

enum { BEL_MAX_SERIES = 32 }; // metrics and summaries of a model

// Numbers of a job's further entries.
typedef struct bel_stats_shape {
    int series;
    int returned;
} bel_stats_shape;

enum { BEL_MAX_RETURNED = 1 << 16 }; // maximum numbers of a step function

// Returns the number of entries.
static inline int bel_stats_size(bel_stats_shape shape)
{
    return BEL_STATS_COUNT + 2 * shape.series + shape.returned;
}

// Returns the entry of a series's sum; its weight follows.
static inline int bel_stats_series(int series)
{
    return BEL_STATS_COUNT + 2 * series;
}

// Returns the bytes of a node's step statistics that need room beside the frames: 0 unless a step
// function returns numbers.
static inline size_t bel_stats_room(bel_stats_shape shape)
{
    return shape.returned > 0 ? (size_t)bel_stats_size(shape) * sizeof(double) : 0;
}

// Returns the first entry that is returned to the loop.
static inline int bel_stats_returned(bel_stats_shape shape)
{
    return BEL_STATS_COUNT + 2 * shape.series;
}

#endif
