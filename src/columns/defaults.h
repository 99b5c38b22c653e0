// Rules for bel_columns_defaults, from the size of a table. docs/columns.md says how they were
// found.
#ifndef BELFRY_COLUMNS_DEFAULTS_H
#define BELFRY_COLUMNS_DEFAULTS_H

#include "columns/description.h"

// Input of the rules.
typedef struct bel_table_size {
    int64_t rows;    // to train on; 0: unknown
    int columns;     // number of columns to learn from
    bool numbers;    // all of these are numbers
    int class_count; // number of label classes; 2 for several labels, 0 for a number
} bel_table_size;

bel_table_defaults bel_table_defaults_of(const bel_table_size *size);

#endif
