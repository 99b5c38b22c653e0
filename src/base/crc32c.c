// CRC-32C, the remainder of the data as a polynomial over GF(2), by the processor's instruction if
// it has one. The remainder of two blocks follows from theirs. The first one's is multiplied by
// x^(8 · bytes of the second), modulo the polynomial. So long data are computed as three chains at
// once, which hides the instruction's latency of three cycles. Threads can compute parts of a file.
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/hash.h"
#if defined(__aarch64__)
#include "base/linux_processor.h"
#endif

// Bits are reflected: the highest bit is x^0.
static const uint32_t polynomial = 0x82F63B78, one = 0x80000000;

static uint32_t times_x(uint32_t a)
{
    return (a >> 1) ^ (polynomial & (0u - (a & 1u)));
}

static uint32_t crc32c_multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a != 0; a <<= 1) {
        if ((a & one) != 0) product ^= b;
        b = times_x(b);
    }
    return product;
}

// x^(8 · bytes).
static uint32_t power_of(uint64_t bytes)
{
    uint32_t power = one, square = one >> 8; // square: x^8, x^16, x^32 and so on
    for (; bytes != 0; bytes >>= 1) {
        if ((bytes & 1) != 0) power = crc32c_multiply(power, square);
        square = crc32c_multiply(square, square);
    }
    return power;
}

uint32_t bel_crc32c_joined(uint32_t first, uint32_t second, uint64_t second_bytes)
{
    return crc32c_multiply(power_of(second_bytes), first) ^ second;
}

#if defined(__x86_64__)
enum { CHAIN_BYTES = 4096 };

// Three chains of CHAIN_BYTES. `shift`: x^(8 · CHAIN_BYTES).
__attribute__((target("sse4.2"))) static uint32_t
three_chains(uint32_t crc, const unsigned char *bytes, uint32_t shift)
{
    uint64_t a = crc, b = 0, c = 0;
    for (int i = 0; i < CHAIN_BYTES; i += 8) {
        uint64_t word[3];
        memcpy(&word[0], bytes + i, 8);
        memcpy(&word[1], bytes + i + CHAIN_BYTES, 8);
        memcpy(&word[2], bytes + i + (size_t)2 * CHAIN_BYTES, 8);
        a = _mm_crc32_u64(a, word[0]);
        b = _mm_crc32_u64(b, word[1]);
        c = _mm_crc32_u64(c, word[2]);
    }
    return crc32c_multiply(shift, crc32c_multiply(shift, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
}

__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(uint32_t crc, const unsigned char *bytes, size_t size)
{
    const size_t three = (size_t)3 * CHAIN_BYTES;
    if (size >= three) {
        const uint32_t shift = power_of(CHAIN_BYTES);
        for (; size >= three; size -= three, bytes += three)
            crc = three_chains(crc, bytes, shift);
    }
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
            crc = times_x(crc);
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
