// Lines of CSV that are nothing but plain numbers, found faster than their cells are read: when a
// file is opened its numbers are looked at, and such lines need no second look.
#ifndef BELFRY_INPUT_CSV_NUMBERS_H
#define BELFRY_INPUT_CSV_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

// Whether the line [line, end), without its line end, has a number in every field, of the form
// [-] digits [. digits], that is not too large for a double: bel_decimal_parse reads each as a
// whole. Then *out_delimiters is how many delimiters it has. It may also say false of such a line.
bool bel_csv_line_is_numbers(const char *line, const char *end, char delimiter,
                             size_t *out_delimiters);

#endif
