// Detector of CSV lines that contain only plain numbers, faster than reading their cells. Opening
// a file checks its numbers and skips the lines that are found here.
#ifndef BELFRY_INPUT_CSV_NUMBERS_H
#define BELFRY_INPUT_CSV_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>

// True if every field of [line, end), a line without its line end, is a number of the form
// [-] digits [. digits] within the range of double. bel_decimal_parse accepts each such field as a
// whole. *out_delimiters is then the number of delimiters. The result may be false for such a line,
// too.
bool bel_csv_line_is_numbers(const char *line, const char *end, char delimiter,
                             size_t *out_delimiters);

#endif
