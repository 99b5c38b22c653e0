// Vectorized scan for plain rows of CSV, and for plain numbers in them. It is compiled once for
// each level of base/isa_levels.h (csv_scan_isa.c). All levels give the same rows.
#ifndef BELFRY_INPUT_TABLE_CSV_SCAN_H
#define BELFRY_INPUT_TABLE_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/isa_levels.h"

// A plain row is a line without quotes and zero bytes, and without carriage returns other than the
// one before its line feed. It has `delimiters` delimiters (below 0: any number).
typedef struct bel_csv_scan {
    char delimiter;
    int64_t delimiters;
} bel_csv_scan;

typedef struct bel_csv_scanned {
    int64_t end; // distance of the row's line feed from the start of the first row
    // Every field is a number of the form [-] digits [. digits] within the range of double, so that
    // bel_decimal_parse reads it whole. May be false for such a row, too.
    bool numbers;
} bel_csv_scanned;

// Finds consecutive plain rows, the first of which begins at `row`. Stops at the first other row,
// at a row that does not end before `end`, or after `most` rows. Returns the number of rows.
size_t bel_csv_scan_rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                         bel_csv_scanned *out_rows);

typedef struct bel_csv_scan_kernels {
    size_t (*rows)(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                   bel_csv_scanned *out_rows);
} bel_csv_scan_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_csv_scan_kernels)

#endif
