// Pseudo-random permutation of 0 … size - 1 with random access: it computes element i without
// storing or visiting the others. Any place of any epoch's order takes constant memory.
#ifndef BELFRY_INPUT_ORDER_PERMUTATION_H
#define BELFRY_INPUT_ORDER_PERMUTATION_H

#include <stdint.h>

#include "base/isa_levels.h"

enum { BEL_PERMUTATION_MAX_ROUNDS = 32 };

// Immutable after init.
typedef struct bel_permutation {
    uint64_t size;
    uint64_t keys[BEL_PERMUTATION_MAX_ROUNDS];
    int round_count; // even
    unsigned left_bits;
    unsigned right_bits;
} bel_permutation;

// Every output bit depends on every input bit: multiply and fold, twice.
static inline uint64_t bel_permutation_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

// Initializes the permutation of a window of `size` >= 1 records. `stage` numbers the shuffle
// stages of a dataset, so that two stages with the same seed differ.
void bel_permutation_init(bel_permutation *permutation, int64_t size, uint64_t seed, int stage,
                          int64_t epoch, int64_t window);

// The new place of element `index`, 0 <= index < size: a bijection onto the same range.
int64_t bel_permutation_at(const bel_permutation *permutation, int64_t index);

// Replaces each of at most BEL_PERMUTATION_TOGETHER elements by its new place. An element takes a
// fraction of bel_permutation_at's time, since the elements do not wait for one another.
enum { BEL_PERMUTATION_TOGETHER = 64 };
void bel_permutation_apply(const bel_permutation *permutation, int64_t *indexes, int count);

// One pass of the network over the first `count` values, in vectors. It may change later values,
// too. All levels (base/isa_levels.h, permutation_isa.c) give the same numbers.
typedef struct bel_permutation_kernels {
    void (*pass)(const bel_permutation *permutation, int count,
                 uint64_t values[BEL_PERMUTATION_TOGETHER]);
} bel_permutation_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_permutation_kernels)

#endif
