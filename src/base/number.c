// The C library's own functions, with the calling thread in the "C" locale for as long as they
// run. uselocale is the thread's own affair, so neither other threads nor the program's
// setlocale are touched. The locale is made once and kept until the process ends.
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

// The thread's locale before, for uselocale. Without memory for a locale, which "C" does not need
// in any library that we know, it stays as it is.
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

// 10^k, exact in the 64 bits of a long double's mantissa, and in 53 up to 10^22.
static const long double powers[MOST_POWER + 1] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                                   1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                                   1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                                   1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

// x · 10^power to the nearest whole number; false where rounding may have decided it.
static bool scale(double x, int power, int64_t *out_whole)
{
    if (power > MOST_POWER || power < -MOST_POWER || LDBL_MANT_DIG < 64) return false;
    long double y = power < 0 ? (long double)x / powers[-power] : (long double)x * powers[power];
    int64_t below = (int64_t)y;
    long double rest = y - (long double)below;
    const long double unsure = 1e-9L; // a thousand times the error of y
    if (rest > 0.5L - unsure && rest < 0.5L + unsure) return false;
    *out_whole = below + (rest > 0.5L);
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

size_t bel_format_f32(float value, char out[BEL_F32_TEXT])
{
    static const int64_t low = 100000000, high = 1000000000; // whole numbers of nine digits
    double x = fabs((double)value);
    int64_t whole = 0;
    bool done = isfinite(value) && value != 0;
    int binary; // x is from 2^(binary - 1) on, so the decimal exponent is this or one more
    (void)frexp(x, &binary);
    int exponent = done ? (int)floor((binary - 1) * 0.30102999566398120) : 0;
    done = done && scale(x, DIGITS - 1 - exponent, &whole);
    if (done && whole >= high) done = scale(x, DIGITS - 1 - ++exponent, &whole);
    if (!done || whole < low || whole >= high) {
        return (size_t)bel_snprintf(out, BEL_F32_TEXT, "%.9g", (double)value);
    }
    char digits[DIGITS], *to = out;
    int count = DIGITS;
    for (int i = DIGITS; i-- > 0; whole /= 10)
        digits[i] = (char)('0' + whole % 10);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    if (value < 0) *to++ = '-';
    bool scientific = exponent < -4 || exponent >= DIGITS;
    int before = scientific ? 1 : exponent + 1; // digits before the point; at or below 0: none
    if (before <= 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = before; i < 0; i++)
            *to++ = '0';
    }
    for (int i = 0; i < count || i < before; i++) {
        if (i == before && before > 0) *to++ = '.';
        *to++ = i < count ? digits[i] : '0';
    }
    if (scientific) to += put_exponent(exponent, to);
    *to = '\0';
    return (size_t)(to - out);
}
