// The C library's own functions, with the calling thread in the "C" locale for as long as they
// run. uselocale is the thread's own affair, so neither other threads nor the program's
// setlocale are touched. The locale is made once and kept until the process ends.
#include "base/number.h"

#include <locale.h>
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
