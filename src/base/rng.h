// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3"). A number is a function of (key, counter); there is no state to save or share.
#ifndef BELFRY_BASE_RNG_H
#define BELFRY_BASE_RNG_H

#include <stdint.h>

typedef struct bel_rng_key {
    uint32_t word[2];
} bel_rng_key;

// Makes the key of a purpose: a hash of the job's seed, a name ("init", "dropout", "shuffle" …) and
// an extra number such as a node id, so that purposes never share numbers.
bel_rng_key bel_rng_key_make(uint64_t seed, const char *purpose, uint64_t extra);

// Four 32-bit words for counter (high, low).
void bel_rng_block(bel_rng_key key, uint64_t high, uint64_t low, uint32_t out_words[4]);

// Uniform in [0, 1) with 24 bits, from one word.
static inline float bel_rng_unit(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

// Two independent normal numbers, of mean 0 and deviation 1, from the block of counter (high, low).
void bel_rng_normal_pair(bel_rng_key key, uint64_t high, uint64_t low, double out_normal[2]);

#endif
