// Philox4x32-10 blocks, and normal numbers from them. The order of words is part of a run's
// reproducibility, as keys are (rng.c). Blocks use only integers, so they are the same on every
// machine; so are the functions of base/real.h that make normal numbers of them. GPU kernels are
// compiled from this text as well (cuda/kernels/kernel.h).
#include <math.h>

#include "base/real.h"
#include "base/rng.h"

void bel_rng_block(bel_rng_key key, uint64_t high, uint64_t low, uint32_t out_words[4])
{
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32);
    uint32_t c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out_words[0] = c0;
    out_words[1] = c1;
    out_words[2] = c2;
    out_words[3] = c3;
}

// Box & Muller 1958: two uniform numbers give two normal ones.
void bel_rng_normal_pair(bel_rng_key key, uint64_t high, uint64_t low, double out_normal[2])
{
    uint32_t words[4];
    bel_rng_block(key, high, low, words);
    double radius = sqrt(-2.0 * bel_real_log(((double)words[0] + 1.0) * 0x1p-32));
    double angle = 6.283185307179586 * (double)words[1] * 0x1p-32;
    out_normal[0] = radius * bel_real_cos(angle);
    out_normal[1] = radius * bel_real_sin(angle);
}
