// Random access into a shuffled order: element i of a permutation of 0 … size-1 without storing or
// visiting the others. Any epoch's order can be asked for at any place, in constant memory.
#ifndef BELFRY_INPUT_PERMUTATION_H
#define BELFRY_INPUT_PERMUTATION_H

#include <stdint.h>

enum { BEL_PERMUTATION_MAX_ROUNDS = 32 };

// Immutable after init.
typedef struct bel_permutation {
    uint64_t size;
    uint64_t keys[BEL_PERMUTATION_MAX_ROUNDS];
    int round_count; // even
    unsigned left_bits;
    unsigned right_bits;
} bel_permutation;

// The permutation of a window of `size` >= 1 records. `stage` counts the shuffle stages of a
// dataset, so that two of them with one seed differ.
void bel_permutation_init(bel_permutation *permutation, int64_t size, uint64_t seed, int stage,
                          int64_t epoch, int64_t window);

// Where element `index`, 0 <= index < size, goes: a bijection onto the same range.
int64_t bel_permutation_at(const bel_permutation *permutation, int64_t index);

#endif
