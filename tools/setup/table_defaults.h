// Default hyperparameters for training on a table, computed from its rows, columns and label.
// docs/columns.md says how the rules were found.
#ifndef BELFRY_TOOLS_SETUP_TABLE_DEFAULTS_H
#define BELFRY_TOOLS_SETUP_TABLE_DEFAULTS_H

#include <stdbool.h>
#include <stdint.h>

// Input of the rules.
typedef struct bel_table_size {
    int64_t rows;    // to train on; 0: unknown
    int columns;     // number of columns to learn from
    bool numbers;    // all of these are numbers
    int class_count; // number of label classes; 2 for several labels, 0 for a number
} bel_table_size;

typedef struct bel_table_defaults {
    const char *hidden_units, *dropout, *learning_rate; // as texts of flags
    double l2;
    int64_t batch_size, epochs;
} bel_table_defaults;

bel_table_defaults bel_table_defaults_of(const bel_table_size *size);

#endif
