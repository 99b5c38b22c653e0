// The tally: what a replica says about a step beside its gradients. All entries are doubles, summed
// over replicas by the same tree as the gradients.
#ifndef BELFRY_PS_LAYOUT_TALLY_H
#define BELFRY_PS_LAYOUT_TALLY_H

enum {
    BEL_TALLY_LOSS_SUM,  // loss of the replica · its examples
    BEL_TALLY_EXAMPLES,  //
    BEL_TALLY_NONFINITE, // replicas whose loss is not finite
    BEL_TALLY_FIXED
};

#endif
