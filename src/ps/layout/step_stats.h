// The step statistics: what a replica says about a step besides its gradients. All entries are
// doubles, summed over replicas by the same tree as the gradients. Behind those that every job has
// come two for each series of the job: metrics in training and summaries, a sum and its weight.
#ifndef BELFRY_PS_LAYOUT_STEP_STATS_H
#define BELFRY_PS_LAYOUT_STEP_STATS_H

enum {
    BEL_STATS_LOSS_SUM,  // loss of the replica · its examples
    BEL_STATS_EXAMPLES,  //
    BEL_STATS_NONFINITE, // replicas whose loss is not finite
    BEL_STATS_COUNT
};

enum { BEL_MAX_SERIES = 32 }; // metrics and summaries of a model

// Entries of a job with so many series, and where the sum of one lies; its weight follows.
static inline int bel_stats_size(int series_count)
{
    return BEL_STATS_COUNT + 2 * series_count;
}

static inline int bel_stats_series(int series)
{
    return BEL_STATS_COUNT + 2 * series;
}

#endif
