// What in a sample of a table's rows is likely a mistake: a column that tells the label, a number
// that stands for a missing one, a number that is far from all others. Nothing follows from it but
// a warning.
#ifndef BELFRY_COLUMNS_SUSPECT_H
#define BELFRY_COLUMNS_SUSPECT_H

#include <stdbool.h>
#include <stdint.h>

// A row by one column: `key` is its cell as a number, equal for equal values, and `order` a hash of
// the row's number.
typedef struct bel_suspect_row {
    double key, label;
    uint64_t order;
} bel_suspect_row;

// Whether the column alone predicts nearly all of the label: rows whose keys are neighbours have
// nearly always the same class, or nearly the same number. Sorts the rows.
bool bel_suspect_tells(bel_suspect_row *rows, int count, bool classes);

// Numbers of a column.
typedef struct bel_suspect_numbers {
    double low, high; // of nearly all: without a hundredth at each end
    bool has_mark;    // one number comes often and is far from all others:
    double mark, share;
} bel_suspect_numbers;

// Sorts the values. False: they are too few to say anything.
bool bel_suspect_look(double *values, int count, bel_suspect_numbers *out_numbers);

// Whether a value is so far from nearly all others that it alone decides their mean and deviation.
bool bel_suspect_is_far(const bel_suspect_numbers *numbers, double value);

#endif
