// Combination of the replicas' values into one, for collectives (belfry/collective.h). It uses the
// same tree over replica ids as gradients (assignment.h), so the bits depend only on ids.
//
// A slot holds a replica's value, or the value of a node of the tree at the node's first id: the
// combined value of that replica and the ones after it. A slot without a value is skipped.
#ifndef BELFRY_PS_LAYOUT_COMBINE_H
#define BELFRY_PS_LAYOUT_COMBINE_H

#include "belfry/collective.h"
#include "ps/layout/assignment.h"

// The values to combine. Types: F32, F64, I32, I64; MEAN only floats; BEL_REDUCE_MOMENTS
// (tensor/moments.h) only F32 [3, c].
typedef struct bel_combining {
    bel_reduce_op op;
    bel_dtype dtype;
    int64_t elements;
} bel_combining;

// Combines slots[0 … count): overwrites values and moves pointers. weights[i] is slot i's weight,
// as in bel_weight: a sum is relative to the mean of its weights. Returns the result, which is in
// one of the slots' values, and its weight; NULL: there is no value.
void *bel_combine(const bel_combining *combining, void **slots, bel_weight *weights, int count,
                  bel_weight *out_weight);

// Writes to `out` the share of the result for a replica of weight `own`. `out` may be `result`.
void bel_combine_give(const bel_combining *combining, const void *result, bel_weight all,
                      bel_weight own, void *out);

#endif
