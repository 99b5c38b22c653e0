// XXH3 from the header-only form of xxhash, so that the library has no symbols that programs could
// replace. Its warnings are off here. Checkpoints and caches contain these hashes: their values
// must stay the same on every processor and in every version.
#include "base/hash.h"

#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#define XXH_INLINE_ALL
#include <xxhash.h>
#pragma GCC diagnostic pop

#include "base/alloc.h"
#include "base/check.h"
#include "base/number.h"

struct bel_hasher {
    XXH3_state_t *state;
};

uint64_t bel_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

uint64_t bel_hash64_more(uint64_t before, const void *data, size_t size)
{
    return XXH3_64bits_withSeed(data, size, before);
}

bel_hash128 bel_hash128_of(const void *data, size_t size, uint64_t seed)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, seed);
    return (bel_hash128){hash.low64, hash.high64};
}

uint64_t bel_hash_name_seed(const char *column)
{
    return bel_hash64(column, strlen(column));
}

int64_t bel_hash_name(const char *name, size_t length, uint64_t seed)
{
    return (int64_t)bel_hash128_of(name, length, seed).low;
}

bel_hasher *bel_hasher_create(void)
{
    bel_hasher *hasher = bel_xmalloc(sizeof *hasher);
    hasher->state = XXH3_createState();
    BEL_CHECK(hasher->state != NULL);
    XXH3_128bits_reset(hasher->state);
    return hasher;
}

void bel_hasher_update(bel_hasher *hasher, const void *data, size_t size)
{
    XXH3_128bits_update(hasher->state, data, size);
}

bel_hash128 bel_hasher_finish(const bel_hasher *hasher)
{
    XXH128_hash_t hash = XXH3_128bits_digest(hasher->state);
    return (bel_hash128){hash.low64, hash.high64};
}

void bel_hasher_destroy(bel_hasher *hasher)
{
    if (hasher == NULL) return;
    XXH3_freeState(hasher->state);
    bel_free(hasher);
}

const char *bel_hash128_text(bel_hash128 hash, char text[33])
{
    bel_snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high,
                 (unsigned long long)hash.low);
    return text;
}
