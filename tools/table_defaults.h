// The numbers that training on a table has where no flag says them: rules of its rows, columns and
// label. docs/columns.md says how they were found.
#ifndef BELFRY_TOOLS_TABLE_DEFAULTS_H
#define BELFRY_TOOLS_TABLE_DEFAULTS_H

#include <stdbool.h>
#include <stdint.h>

// What the rules look at.
typedef struct bel_table_size {
    int64_t rows;    // to train on; 0: not known
    int columns;     // that a model learns from
    bool numbers;    // all of these are numbers
    int class_count; // of the label; 2 of several labels, 0 of a number
} bel_table_size;

typedef struct bel_table_defaults {
    const char *hidden_units, *dropout, *learning_rate; // as flags have them
    double l2;
    int64_t batch_size, epochs;
} bel_table_defaults;

bel_table_defaults bel_table_defaults_of(const bel_table_size *size);

#endif
