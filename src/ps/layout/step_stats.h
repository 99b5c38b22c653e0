// The step statistics: what a replica says about a step besides its gradients. All entries are
// doubles, summed over replicas by the same tree as the gradients.
#ifndef BELFRY_PS_LAYOUT_STEP_STATS_H
#define BELFRY_PS_LAYOUT_STEP_STATS_H

enum {
    BEL_STATS_LOSS_SUM,  // loss of the replica · its examples
    BEL_STATS_EXAMPLES,  //
    BEL_STATS_NONFINITE, // replicas whose loss is not finite
    BEL_STATS_COUNT
};

#endif
