// Keys of random numbers: hashes of seed, purpose and one more number. They are part of a run's
// reproducibility (docs/determinism.md): initial values, order of records and dropout depend on
// them, so a changed key changes the result of every job. philox.c makes numbers from keys.
#include "base/rng.h"

#include <string.h>

#include "base/hash.h"

bel_rng_key bel_rng_key_make(uint64_t seed, const char *purpose, uint64_t extra)
{
    uint64_t parts[3] = {seed, bel_hash64(purpose, strlen(purpose)), extra};
    uint64_t key = bel_hash64(parts, sizeof parts);
    return (bel_rng_key){{(uint32_t)key, (uint32_t)(key >> 32)}};
}
