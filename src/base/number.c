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
static locale_t begin(void)
{
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int bel_vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    locale_t chosen = begin();
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
    locale_t chosen = begin();
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
static bool scale(parts x, int power, int64_t *out_whole)
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

static size_t put_exponent(int exponent, char *out)
{
    int size = exponent < 0 ? -exponent : exponent;
    out[0] = 'e';
    out[1] = exponent < 0 ? '-' : '+';
    out[2] = (char)('0' + size / 10);
    out[3] = (char)('0' + size % 10);
    return 4;
}

// Returns the decimal exponent of a number, or one less: the binary one times log10(2), which is
// 78913 / 2^18, rounded down; the bias of 1,024 keeps the shifted number positive.
static int decimal_exponent(parts x)
{
    int binary = x.exponent + 23;
    return ((binary * 78913 + (1024 << 18)) >> 18) - 1024;
}

// Writes the nine digits of an integer, by pairs. Returns their number without trailing zeros, at
// least 1.
static int put_digits(int64_t whole, char digits[DIGITS])
{
    uint32_t rest = (uint32_t)whole;
    for (int i = DIGITS - 2; i > 0; i -= 2) {
        uint32_t pair = rest % 100;
        rest /= 100;
        digits[i] = (char)('0' + pair / 10);
        digits[i + 1] = (char)('0' + pair % 10);
    }
    digits[0] = (char)('0' + rest);
    int count = DIGITS;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    return count;
}

size_t bel_format_f32(float value, char out[BEL_F32_TEXT])
{
    static const int64_t low = 100000000, high = 1000000000; // integers of nine digits
    parts x = parts_of(fabsf(value));
    int64_t whole = 0;
    bool done = isnormal(value);
    int exponent = decimal_exponent(x);
    done = done && scale(x, DIGITS - 1 - exponent, &whole);
    if (done && whole >= high) done = scale(x, DIGITS - 1 - ++exponent, &whole);
    if (!done || whole < low || whole >= high) {
        return (size_t)bel_snprintf(out, BEL_F32_TEXT, "%.9g", (double)value);
    }
    char digits[DIGITS], *to = out;
    int count = put_digits(whole, digits);
    if (value < 0) *to++ = '-';
    bool scientific = exponent < -4 || exponent >= DIGITS;
    int before = scientific ? 1 : exponent + 1; // digits before the point; at or below 0: no digit
    // Copies all nine digits if any are needed, which is faster than the exact number; later writes
    // overwrite the excess. The longest text, -1.23456789e-38, leaves room for that.
    if (before <= 0) {
        memcpy(to, "0.000", 5);
        to += 2 - before;
        memcpy(to, digits, DIGITS);
        to += count;
    } else if (count <= before) {
        memcpy(to, digits, DIGITS); // with zeros after `count`
        to += before;
    } else {
        memcpy(to, digits, DIGITS);
        to[before] = '.';
        memcpy(to + before + 1, digits + before, (size_t)(DIGITS - before));
        to += count + 1;
    }
    if (scientific) to += put_exponent(exponent, to);
    *to = '\0';
    return (size_t)(to - out);
}

size_t bel_shortest_f32(float value, char out[BEL_F32_TEXT])
{
    int length = 0;
    for (int digits = 1; digits <= DIGITS; digits++) {
        char *end;
        length = bel_snprintf(out, BEL_F32_TEXT, "%.*g", digits, (double)value);
        if ((float)bel_strtod(out, &end) == value) break;
    }
    return (size_t)length;
}
