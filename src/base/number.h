// Numbers as text, the same in every locale. A program may call setlocale to show a comma on its
// screen, but numbers in manifests, journals, flags and messages between processes have a point.
// Nothing else in src/ and tools/ may therefore call printf's family or strtod (tools/lint checks
// it).
#ifndef BELFRY_BASE_NUMBER_H
#define BELFRY_BASE_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// snprintf and vsnprintf.
int bel_snprintf(char *text, size_t size, const char *format, ...) BEL_PRINTF(3, 4);
int bel_vsnprintf(char *text, size_t size, const char *format, va_list args) BEL_PRINTF(3, 0);

// strtod.
double bel_strtod(const char *text, char **out_end);

// Returns true for a number in an interval in mathematical notation, "(0, 1]": '[' and ']' include
// their end, '(' and ')' do not. Never for NaN.
bool bel_in_interval(const char *interval, double value);

// Returns the greatest common divisor of two numbers from 0 on; with 0, the other number.
int64_t bel_common_divisor(int64_t a, int64_t b);

// Formats a number as printf's "%.9g" does, which restores its bits; several times as fast. Returns
// its length, without the closing 0.
enum { BEL_F32_TEXT = 24 };
size_t bel_format_f32(float value, char out[BEL_F32_TEXT]);

// The same with the fewest digits that restore the bits, for people: 0.9, not 0.899999976. Integers
// below 10^9 have no exponent.
size_t bel_shortest_f32(float value, char out[BEL_F32_TEXT]);

#endif
