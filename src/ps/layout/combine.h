// Values of replicas that become one, for collectives (belfry/collective.h): along the same tree
// over replica ids as gradients (assignment.h), so that the bits depend on ids alone.
//
// A slot is a replica's value, or that of the replicas behind it that were combined with it already
// (a node of the tree stands at its first id). A slot without a value is passed over.
#ifndef BELFRY_PS_LAYOUT_COMBINE_H
#define BELFRY_PS_LAYOUT_COMBINE_H

#include "belfry/collective.h"
#include "ps/layout/assignment.h"

// What is combined. Types: F32, F64, I32, I64; MEAN of floats alone; BEL_REDUCE_MOMENTS
// (tensor/moments.h) of F32 [3, c] alone.
typedef struct bel_combining {
    bel_reduce_op op;
    bel_dtype dtype;
    int64_t elements;
} bel_combining;

// Combines slots[0 … count): overwrites values and moves pointers. weights[i] is that of slot i as
// of bel_weight: a sum is relative to the mean of its weights. Returns where the result lies, one
// of the slots' values, and its weight; NULL: there is no value.
void *bel_combine(const bel_combining *combining, void **slots, bel_weight *weights, int count,
                  bel_weight *out_weight);

// Writes to `out` what a replica of weight `own` is given of the result. `out` may be `result`.
void bel_combine_give(const bel_combining *combining, const void *result, bel_weight all,
                      bel_weight own, void *out);

#endif
