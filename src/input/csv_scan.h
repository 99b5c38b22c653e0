// The fast pass over plain rows of CSV, in vectors, compiled once for each level of
// base/isa_levels.h (csv_scan_isa.c). All levels give the same rows.
#ifndef BELFRY_INPUT_CSV_SCAN_H
#define BELFRY_INPUT_CSV_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa_levels.h"

// A plain row is a line of text without quotes, zero bytes and carriage returns but before its line
// feed, with `delimiters` delimiters (below 0: any number).
typedef struct bel_csv_scan {
    char delimiter;
    int64_t delimiters;
} bel_csv_scan;

// Passes plain rows from `row` on, up to the first other row, the first row that does not end
// before `end`, or `most` rows. out_ends[i] is the distance of row i's line feed from `row`.
// Returns how many they are.
size_t bel_csv_scan_rows(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                         int64_t *out_ends);

typedef struct bel_csv_scan_kernels {
    size_t (*rows)(const bel_csv_scan *scan, const char *row, const char *end, size_t most,
                   int64_t *out_ends);
} bel_csv_scan_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_csv_scan_kernels)

#endif
