// XXH3 from the header-only form of xxhash, and CRC-32C by the processor's instruction if it has
// one (SSE4.2, aarch64 with CRC), else by a bit loop. Files contain both: their values must stay
// the same on every processor.
#include "base/hash.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

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
#include "base/linux_processor.h"
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

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(uint32_t crc, const unsigned char *bytes, size_t size)
{
    uint64_t state = crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        state = _mm_crc32_u64(state, word);
    }
    crc = (uint32_t)state;
    for (; size > 0; size--)
        crc = _mm_crc32_u8(crc, *bytes++);
    return crc;
}
#endif

#if defined(__aarch64__)
// In assembly, as gcc and clang name the instructions differently.
static uint32_t crc32c_arm(uint32_t crc, const unsigned char *bytes, size_t size)
{
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    }
    for (; size > 0; size--) {
        uint32_t byte = *bytes++;
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
    }
    return crc;
}
#endif

// Computes it bit by bit, for processors without the instruction.
static uint32_t crc32c_bits(uint32_t crc, const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
    }
    return crc;
}

uint32_t bel_crc32c(uint32_t crc, const void *data, size_t size)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~crc32c_sse42(crc, data, size);
#elif defined(__aarch64__)
    if (bel_linux_has_arm_crc32()) return ~crc32c_arm(crc, data, size);
#endif
    return ~crc32c_bits(crc, data, size);
}

uint32_t bel_crc32c_masked(const void *data, size_t size)
{
    uint32_t crc = bel_crc32c(0, data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
