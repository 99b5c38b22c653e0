// Norms over a parameter space. Squares are summed by grains, grains of a variable pairwise by
// index, variables pairwise in forward order, all in double: so neither cuts nor shards nor threads
// enter. From them follow the factors of updates: those of clipping by norms, and trust.
#ifndef BELFRY_PS_LAYOUT_NORMS_H
#define BELFRY_PS_LAYOUT_NORMS_H

#include "optim/rule.h"
#include "ps/layout/layout.h"

// Sums of squares of a segment's grains, of an array that is laid out as the space, by grain of the
// layout.
void bel_norms_take(const bel_layout *layout, const bel_segment *segment, const float *array,
                    double *squares);

// What a step does with a variable.
typedef struct bel_norms_use {
    bool updates;               // false: it has no norm
    double clip_norm;           // limit for its norm; 0: none
    const bel_rule_step *trust; // NULL: it has no trust, and its norm is that of the gradient
} bel_norms_use;

// Squares of directions by grain, and of rules that trust those of values behind them (both are
// used up), become a factor for each variable that is updated. Returns the square of the norm of
// all of them.
double bel_norms_combine(const bel_layout *layout, double *squares,
                         bel_norms_use (*use_of)(const void *context, int variable),
                         const void *context, float *out_factors);

// The factor for all variables that brings a norm down to a limit above 0; 0: nothing happens.
void bel_norms_limit(const bel_layout *layout, double square, double limit, float *factors);

#endif
