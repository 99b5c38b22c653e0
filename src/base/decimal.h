// Parser of decimal numbers, exact and fast.
#ifndef BELFRY_BASE_DECIMAL_H
#define BELFRY_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Parses the number that begins at `text`: [+-] digits [. digits] [e [+-] digits], with at least
// one digit before or after the point. Gives the same bits as strtod. Returns the first byte after
// the number, or NULL if the text is no number or it is too large for a double. "nan", "inf",
// hexadecimal and leading space are no numbers.
const char *bel_decimal_parse(const char *text, const char *end, double *out_value);

// --- Short ones ----------------------------------------------------------------------------------

// Bytes from `text` on that must be readable for bel_decimal_parse_short.
enum { BEL_DECIMAL_ROOM = 9 };

// Joins eight digits, each a byte of its value, the first one lowest, to one number: neighbors to
// pairs, pairs to fours and fours to all eight.
static inline uint64_t bel_decimal_join(uint64_t digits)
{
    digits = digits * 10 + (digits >> 8);
    uint64_t outer = (digits & 0x000000FF000000FF) * 0x000F424000000064;       // by 10^6 and 100
    uint64_t inner = (digits >> 16 & 0x000000FF000000FF) * 0x0000271000000001; // by 10^4 and 1
    return (outer + inner) >> 32;
}

// Sets a byte's highest bit if it is no digit, for bytes from which '0' was removed by xor. A byte
// above 0x8A carries into the next byte, which may then count as no digit.
static inline uint64_t bel_decimal_others(uint64_t bytes)
{
    return ((bytes + 0x7676767676767676) | bytes) & 0x8080808080808080;
}

// Reads a text that is a number as a whole, with the bits of bel_decimal_parse: [-] and up to eight
// bytes of digits and a point. It processes them together, without a loop. Returns false for any
// other text. `room`: number of bytes from `text` that may be read.
static inline bool bel_decimal_read_short(const char *text, size_t length, size_t room,
                                          double *out_value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    static const double signs[] = {1, -1};
    if (room < BEL_DECIMAL_ROOM) return false;
    const bool negative = *text == '-';
    text += negative;
    length -= negative;
    if (length - 1 >= sizeof(uint64_t)) return false;
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    bytes = (bytes ^ 0x3030303030303030) << 8 * (sizeof bytes - length); // leading zeros
    const uint64_t others = bel_decimal_others(bytes);
    double value;
    if (others == 0) {
        value = (double)(int64_t)bel_decimal_join(bytes);
    } else {
        const int point = __builtin_ctzll(others) / 8;
        const uint64_t behind = ~(uint64_t)0 << 8 * point << 8;
        const bool one = (others & (others - 1)) == 0 && (bytes >> 8 * point & 0xFF) == ('.' ^ '0');
        if (!one || length == 1) return false;
        bytes = (bytes << 8 & ~behind) | (bytes & behind);
        value = (double)(int64_t)bel_decimal_join(bytes) / tens[7 - point];
    }
    *out_value =
        value * signs[negative]; // exact, and no branch that is taken wrongly half of the time
    return true;
#else
    (void)text, (void)length, (void)room, (void)out_value;
    return false;
#endif
}

// bel_decimal_parse for numbers such as -1.2345: [-] and up to seven bytes of digits and a point.
// It processes eight bytes at once without a loop, so that no branch is predicted. Returns NULL for
// any other text. It does not parse an exponent: the result then points to its 'e', and the caller
// must check the next byte.
static inline const char *bel_decimal_parse_short(const char *text, double *out_value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    bool negative = *text == '-';
    text += negative;
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    bytes ^= 0x3030303030303030;
    uint64_t others = bel_decimal_others(bytes);
    if (others == 0) return NULL;
    int stop = __builtin_ctzll(others) / 8, digits = stop, fraction = 0;
    if (text[stop] == '.') {
        others &= others - 1;
        if (others == 0) return NULL;
        uint64_t before = ((uint64_t)1 << 8 * stop) - 1; // the bytes before the point
        bytes = (bytes & before) | (bytes >> 8 & ~before);
        fraction = __builtin_ctzll(others) / 8 - stop - 1;
        digits += fraction;
        stop += 1 + fraction;
    }
    if (digits == 0) return NULL;
    double value = (double)(int64_t)bel_decimal_join(bytes << 8 * (8 - digits)) / tens[fraction];
    uint64_t bits; // signs are random, so a branch would be mispredicted half of the time
    memcpy(&bits, &value, sizeof bits);
    bits |= (uint64_t)negative << 63;
    memcpy(out_value, &bits, sizeof bits);
    return text + stop;
#else
    (void)text, (void)out_value;
    return NULL;
#endif
}

#endif
