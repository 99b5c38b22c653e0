// Search for likely mistakes in a sample of a table's rows: a column that tells the label, a number
// that stands for a missing one, a number that is far from all others. A finding has no effect
// except a warning.
#ifndef BELFRY_COLUMNS_SUSPECT_H
#define BELFRY_COLUMNS_SUSPECT_H

#include <stdbool.h>
#include <stdint.h>

// One column's value in a row: `key` is the cell as a number, equal for equal values, and `order` a
// hash of the row's number.
typedef struct bel_suspect_row {
    double key, label;
    uint64_t order;
} bel_suspect_row;

// Whether this one column predicts nearly all of the label: rows with neighboring keys nearly
// always have the same class, or nearly the same number. Sorts the rows.
bool bel_suspect_tells(bel_suspect_row *rows, int count, bool classes);

// Summary of a column's numbers.
typedef struct bel_suspect_numbers {
    double low, high; // range of nearly all: without 1/100 at each end
    bool has_mark;    // one number is frequent and far from all others:
    double mark, share;
} bel_suspect_numbers;

// Sorts the values. False: too few for a finding.
bool bel_suspect_look(double *values, int count, bel_suspect_numbers *out_numbers);

// Whether one value is so far from nearly all others that it decides their mean and deviation.
bool bel_suspect_is_far(const bel_suspect_numbers *numbers, double value);

#endif
