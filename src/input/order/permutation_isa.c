// One pass of a shuffle's Feistel network over several elements, as loops over vectors.
// bel_permutation_at in permutation.c has the same for one element.
#include "input/order/permutation.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { LANES = 8 }; // counts are rounded up to a multiple of it

static void permutation_pass(const bel_permutation *permutation, int count,
                             uint64_t values[BEL_PERMUTATION_TOGETHER])
{
    const unsigned right_bits = permutation->right_bits;
    const uint64_t left_mask = ((uint64_t)1 << permutation->left_bits) - 1;
    const uint64_t right_mask = ((uint64_t)1 << right_bits) - 1;
    const int vectors = (count + LANES - 1) / LANES;
    uint64_t left[BEL_PERMUTATION_TOGETHER], right[BEL_PERMUTATION_TOGETHER];
    for (int i = 0; i < vectors * LANES; i++) {
        left[i] = values[i] >> right_bits;
        right[i] = values[i] & right_mask;
    }
    for (int round = 0; round < permutation->round_count; round += 2) {
        const uint64_t key = permutation->keys[round], next = permutation->keys[round + 1];
        for (int i = 0; i < vectors * LANES; i++)
            left[i] ^= bel_permutation_mix(right[i] ^ key) & left_mask;
        for (int i = 0; i < vectors * LANES; i++)
            right[i] ^= bel_permutation_mix(left[i] ^ next) & right_mask;
    }
    for (int i = 0; i < vectors * LANES; i++)
        values[i] = left[i] << right_bits | right[i];
}

const bel_permutation_kernels JOIN(bel_permutation_kernels_, BEL_LEVEL) = {permutation_pass};
