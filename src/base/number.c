// Numbers as text through the C library's functions, with the calling thread in the "C" locale
// while they run. uselocale affects only the calling thread, so neither other threads nor the
// program's setlocale are touched. The locale is made once and kept until the process ends.
#include "base/number.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

// Returns the thread's previous locale, for uselocale. Without memory for a locale, which "C" needs
// in no known library, the locale stays as it is.
static locale_t number_begin(void)
{
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int bel_vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    locale_t chosen = number_begin();
    int length = vsnprintf(text, size, format, args);
    uselocale(chosen);
    return length;
}

int bel_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = bel_vsnprintf(text, size, format, args);
    va_end(args);
    return length;
}

double bel_strtod(const char *text, char **out_end)
{
    locale_t chosen = number_begin();
    double value = strtod(text, out_end);
    uselocale(chosen);
    return value;
}

bool bel_in_interval(const char *interval, double value)
{
    char *comma, *close;
    double low = bel_strtod(interval + 1, &comma);
    double high = bel_strtod(comma + 1, &close);
    bool above = interval[0] == '[' ? value >= low : value > low;
    bool below = *close == ']' ? value <= high : value < high;
    return above && below;
}

int64_t bel_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// --- Floats as texts -----------------------------------------------------------------------------

enum { DIGITS = 9, MOST_POWER = 27 };

__extension__ typedef unsigned __int128 wide;

// 5^k.
// clang-format off
static const uint64_t fives[MOST_POWER + 1] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125,
    9765625, 48828125, 244140625, 1220703125, 6103515625, 30517578125,
    152587890625, 762939453125, 3814697265625, 19073486328125,
    95367431640625, 476837158203125, 2384185791015625, 11920928955078125,
    59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125};
// clang-format on

// An F32: mantissa · 2^exponent.
typedef struct parts {
    uint32_t mantissa; // 24 bits
    int exponent;
} parts;

// Splits a positive number that is not subnormal.
static parts parts_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (parts){.mantissa = (bits & 0x7FFFFF) | 0x800000, .exponent = (int)(bits >> 23) - 150};
}

// Computes x · 10^power to the nearest integer, ties to even. It is exact, since 10^power is
// 5^power · 2^power, and a mantissa times 5^27 has 87 bits. False if these do not suffice.
static bool scale_wide(parts x, int power, int64_t *out_whole)
{
    if (power > MOST_POWER || power < -MOST_POWER) return false;
    int shift = x.exponent + power;
    wide whole, rest = 0, one = 1; // rest / one is between the integer and the next
    if (power < 0) {               // so x is large, and shift is not negative
        wide number = (wide)x.mantissa << shift;
        one = fives[-power];
        whole = number / one;
        rest = number % one;
    } else if (shift < 0) {
        wide number = (wide)x.mantissa * fives[power];
        one = (wide)1 << -shift;
        whole = number >> -shift;
        rest = number & (one - 1);
    } else {
        whole = (wide)x.mantissa * fives[power] << shift;
    }
    bool up = 2 * rest > one || (2 * rest == one && (whole & 1) != 0);
    *out_whole = (int64_t)whole + up;
    return true;
}

// The same; where 64 bits hold the product, as of nearly all numbers between 10^-8 and 10^8, in
// them.
static inline bool number_scale(parts x, int power, int64_t *out_whole)
{
    enum { MOST_NARROW = 16 }; // 5^16 has 38 bits
    const int shift = -(x.exponent + power);
    if (power < 0 || power > MOST_NARROW || shift < 1 || shift > 62)
        return scale_wide(x, power, out_whole);
    const uint64_t number = x.mantissa * fives[power], half = (uint64_t)1 << (shift - 1);
    const uint64_t whole = number >> shift, rest = number & (2 * half - 1);
    *out_whole = (int64_t)(whole + (rest + (whole & 1) > half));
    return true;
}

static size_t put_exponent(int exponent, char *out)
{
    int size = exponent < 0 ? -exponent : exponent;
    out[0] = 'e';
    out[1] = exponent < 0 ? '-' : '+';
    out[2] = (char)('0' + size / 10);
    out[3] = (char)('0' + size % 10);
    return 4;
}

// Returns the decimal exponent of a number; next to a power of ten perhaps one off. The binary
// exponent times log10(2), which is 78913 / 2^18, rounded down, is the exponent or one less. The
// bias of 1,024 keeps the shifted number positive.
static int decimal_exponent(double number, parts x)
{
    // clang-format off
    static const double powers[] = {
        1e-38, 1e-37, 1e-36, 1e-35, 1e-34, 1e-33, 1e-32, 1e-31, 1e-30, 1e-29, 1e-28, 1e-27, 1e-26,
        1e-25, 1e-24, 1e-23, 1e-22, 1e-21, 1e-20, 1e-19, 1e-18, 1e-17, 1e-16, 1e-15, 1e-14, 1e-13,
        1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2,
        1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
        1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32, 1e33,
        1e34, 1e35, 1e36, 1e37, 1e38, 1e39};
    // clang-format on
    int binary = x.exponent + 23;
    int decimal = ((binary * 78913 + (1024 << 18)) >> 18) - 1024;
    return decimal + (number >= powers[decimal + 39]);
}

// Nine digits.
typedef struct nine {
    char first;
    uint64_t others; // eight as text, the first in the lowest byte
    int count;       // without trailing zeros; at least one
} nine;

// Returns the digits of an integer. Eight are computed together: two groups of four digits, four of
// two, then all, each in a separate byte.
static inline nine digits_of(int64_t whole)
{
    const uint64_t first = (uint64_t)whole / 100000000, rest = (uint64_t)whole % 100000000;
    const uint64_t fours = rest / 10000 | rest % 10000 << 32;
    const uint64_t hundreds = fours * 10486 >> 20 & 0x0000007F0000007F; // fours / 100
    const uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    const uint64_t tens = twos * 103 >> 10 & 0x000F000F000F000F; // twos / 10
    const uint64_t ones = tens | (twos - 10 * tens) << 8;
    return (nine){.first = (char)('0' + first),
                  .others = ones | 0x3030303030303030,
                  .count = ones == 0 ? 1 : DIGITS - __builtin_clzll(ones) / 8};
}

// Stores eight bytes, the lowest first.
static inline void put_eight(uint64_t bytes, char *out)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    memcpy(out, &bytes, sizeof bytes);
}

// Writes a number as "%.9g" does. Writes all nine digits if any are needed, which is faster than
// the exact number; later writes overwrite the excess. The longest text, -1.23456789e-38, leaves
// room.
static size_t put_number(bool negative, nine digits, int exponent, char *out)
{
    char *to = out;
    if (negative) *to++ = '-';
    const bool scientific = exponent < -4 || exponent >= DIGITS;
    const int before =
        scientific ? 1 : exponent + 1; // digits before the point; at or below 0: none
    if (before <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - before;
    }
    to[0] = digits.first;
    put_eight(digits.others, to + 1);
    if (before <= 0) {
        to += digits.count;
    } else if (digits.count <= before) {
        to += before; // with the trailing zeros
    } else {
        to[before] = '.';
        put_eight(digits.others >> 8 * (before - 1), to + before + 1);
        to += digits.count + 1;
    }
    if (scientific) to += put_exponent(exponent, to);
    *to = '\0';
    return (size_t)(to - out);
}

size_t bel_format_f32(float value, char out[BEL_F32_TEXT])
{
    static const int64_t low = 100000000, high = 1000000000; // integers of nine digits
    parts x = parts_of(fabsf(value));
    int64_t whole = 0;
    bool done = isnormal(value);
    int exponent = done ? decimal_exponent((double)fabsf(value), x) : 0;
    done = done && number_scale(x, DIGITS - 1 - exponent, &whole);
    if (done && whole >= high) done = number_scale(x, DIGITS - 1 - ++exponent, &whole);
    if (!done || whole < low || whole >= high)
        return (size_t)bel_snprintf(out, BEL_F32_TEXT, "%.9g", (double)value);
    return put_number(value < 0, digits_of(whole), exponent, out);
}

size_t bel_shortest_f32(float value, char out[BEL_F32_TEXT])
{
    if (fabsf(value) < 1e9F && value == truncf(value)) // "%g" would make 200 to 2e+02
        return (size_t)bel_snprintf(out, BEL_F32_TEXT, "%.0f", (double)value);
    int length = 0;
    for (int digits = 1; digits <= DIGITS; digits++) {
        char *end;
        length = bel_snprintf(out, BEL_F32_TEXT, "%.*g", digits, (double)value);
        if ((float)bel_strtod(out, &end) == value) break;
    }
    return (size_t)length;
}
