// Parser of decimal numbers, correctly rounded, with fast paths for short ones.
//
// If all digits make an integer of at most 2^53 and the power of ten is at most 10^22, both are
// exact doubles. One multiplication or division then rounds once (Clinger 1990, "How to read
// floating point numbers accurately"). A number of up to 19 digits, as programs print doubles, is
// scaled as an integer of 128 bits and rounded once, while 5^power has 64 bits. bel_strtod parses
// all other numbers.
#include "base/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"

enum { MAX_POWER = 22, MAX_WIDE_POWER = 27, MAX_DIGITS = 19, MAX_EXPONENT = 100000 };

__extension__ typedef unsigned __int128 wide;

static const double powers[MAX_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// 5^k.
// clang-format off
static const uint64_t fives[MAX_WIDE_POWER + 1] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125,
    9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125,
    152587890625, 762939453125, 3814697265625, 19073486328125,
    95367431640625, 476837158203125, 2384185791015625, 11920928955078125,
    59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125};
// clang-format on

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

// Passes the exact text to bel_strtod, which needs a zero byte after it.
static const char *parse_slowly(const char *text, const char *end, double *out_value)
{
    char buffer[128];
    size_t length = (size_t)(end - text);
    char *copy = length < sizeof buffer ? buffer : bel_xmalloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *stop;
    double value = bel_strtod(copy, &stop);
    bool whole = stop == copy + length && isfinite(value);
    if (copy != buffer) bel_free(copy);
    if (!whole) return NULL;
    *out_value = value;
    return end;
}

// Adds the digits at `at` to the mantissa, eight at a time if possible.
static inline const char *parse_digits(const char *at, const char *end, uint64_t *mantissa)
{
    uint64_t value = *mantissa;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    while (end - at >= 8) {
        uint64_t bytes;
        memcpy(&bytes, at, sizeof bytes);
        bytes ^= 0x3030303030303030;
        if (bel_decimal_others(bytes) != 0) break;
        value = value * 100000000 + bel_decimal_join(bytes);
        at += 8;
    }
#endif
    for (; at < end && is_digit(*at); at++)
        value = value * 10 + (uint64_t)(*at - '0');
    *mantissa = value;
    return at;
}

// Reads "e-7" at `at`; leaves `at` unchanged if the text is no exponent.
static const char *parse_exponent(const char *at, const char *end, int *out_exponent)
{
    const char *digits = at + 1;
    bool negative = digits < end && *digits == '-';
    if (digits < end && (*digits == '-' || *digits == '+')) digits++;
    const char *first = digits;
    int exponent = 0;
    for (; digits < end && is_digit(*digits); digits++) {
        if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (*digits - '0');
    }
    if (digits == first) return at;
    *out_exponent = negative ? -exponent : exponent;
    return digits;
}

// Rounds number · 2^exponent to the nearest double, ties to even. `more`: a part below 1 was left
// off the number, which then has more than 54 bits. The result is a normal double.
static double round_wide(wide number, int exponent, bool more)
{
    uint64_t high = (uint64_t)(number >> 64);
    int bits = high != 0 ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t)number);
    int drop = bits - 53;
    if (drop <= 0) return ldexp((double)(uint64_t)number, exponent);
    uint64_t kept = (uint64_t)(number >> drop);
    wide rest = number & (((wide)1 << drop) - 1), half = (wide)1 << (drop - 1);
    bool up = rest > half || (rest == half && (more || (kept & 1) != 0));
    return ldexp((double)(kept + up), exponent + drop);
}

// mantissa · 10^power, rounded once. The mantissa is above 0; |power| is at most MAX_WIDE_POWER.
static double scale_wide(uint64_t mantissa, int power)
{
    if (power >= 0) return round_wide((wide)mantissa * fives[power], power, false);
    int shift = 64 + __builtin_clzll(mantissa); // the quotient has at least 64 bits
    wide number = (wide)mantissa << shift;
    wide quotient = number / fives[-power];
    return round_wide(quotient, power - shift, quotient * fives[-power] != number);
}

// Number of leading zeros, before and after the decimal point.
static int64_t count_leading_zeros(const char *at, const char *end)
{
    int64_t zeros = 0;
    for (; at < end && (*at == '0' || *at == '.'); at++)
        zeros += *at == '0';
    return zeros;
}

const char *bel_decimal_parse(const char *text, const char *end, double *out_value)
{
    const char *at = text;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    const char *first = at;
    uint64_t mantissa = 0; // wraps with more than 19 digits after leading zeros
    at = parse_digits(at, end, &mantissa);
    int64_t digit_count = at - first, fraction_count = 0;
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        at = parse_digits(at, end, &mantissa);
        fraction_count = at - fraction;
        digit_count += fraction_count;
    }
    if (digit_count == 0) return NULL;
    int exponent = 0;
    if (at < end && (*at == 'e' || *at == 'E')) at = parse_exponent(at, end, &exponent);

    int64_t power = exponent - fraction_count;
    if (digit_count > MAX_DIGITS) digit_count -= count_leading_zeros(first, at);
    const bool is_cut = exponent >= MAX_EXPONENT || exponent <= -MAX_EXPONENT; // not all digits
    if (digit_count > MAX_DIGITS || power < -MAX_WIDE_POWER || power > MAX_WIDE_POWER || is_cut)
        return parse_slowly(text, at, out_value);
    double value = (double)mantissa;
    if (mantissa <= (uint64_t)1 << 53 && power >= -MAX_POWER && power <= MAX_POWER) {
        value = power < 0 ? value / powers[-power] : value * powers[power];
    } else if (mantissa > 0) {
        value = scale_wide(mantissa, (int)power);
    }
    *out_value = negative ? -value : value;
    return at;
}
