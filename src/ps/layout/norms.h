// Norms over a parameter space, and the update factors that follow from them: clipping by norm, and
// trust ratios. Squares are summed by grains, grains of a variable pairwise by index, and variables
// pairwise in forward order, all in double. So the result depends neither on cuts nor on shards or
// threads.
#ifndef BELFRY_PS_LAYOUT_NORMS_H
#define BELFRY_PS_LAYOUT_NORMS_H

#include "optim/rule.h"
#include "ps/layout/layout.h"

// Writes the sums of squares of a segment's grains, by grain of the layout. `array` is laid out as
// the space; NULL: zeros.
void bel_norms_take(const bel_layout *layout, const bel_segment *segment, const float *array,
                    double *squares);

// Number of the grains in a shard's chunks.
size_t bel_norms_count(const bel_layout *layout, int shard);

// Copies the sums of a shard's grains from the array by grain of the layout into a list, in the
// order of its chunks, or back. `planes` is 2 if sums for values follow those of directions, in the
// list as in the array; else 1.
void bel_norms_pack(const bel_layout *layout, int shard, int planes, const double *squares,
                    double *out_list);
void bel_norms_unpack(const bel_layout *layout, int shard, int planes, const double *list,
                      double *squares);

// How a step uses a variable.
typedef struct bel_norms_use {
    bool updates;               // false: it has no norm
    double clip_norm;           // limit of its norm; 0: no limit
    const bel_rule_step *trust; // NULL: no trust ratio, and its norm is the gradient's
} bel_norms_use;

// Converts squares of directions by grain into a factor for each updated variable. For rules with
// trust ratios, squares of values follow those of directions. Overwrites both. Returns the square
// of the norm of all of them.
double bel_norms_combine(const bel_layout *layout, double *squares,
                         bel_norms_use (*use_of)(const void *context, int variable),
                         const void *context, float *out_factors);

// Scales all factors so that the norm is within a limit above 0; 0: does nothing.
void bel_norms_limit(const bel_layout *layout, double square, double limit, float *factors);

#endif
