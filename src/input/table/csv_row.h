// Check of one row of CSV: its end, and whether it agrees with the description of its file.
#ifndef BELFRY_INPUT_TABLE_CSV_ROW_H
#define BELFRY_INPUT_TABLE_CSV_ROW_H

#include "input/table/csv_file.h"

typedef enum bel_csv_fault {
    BEL_CSV_NO_FAULT,
    BEL_CSV_WRONG_QUOTE, // `stop` says which
    BEL_CSV_WRONG_LABEL,
    BEL_CSV_WRONG_COUNT,
    BEL_CSV_ZERO_BYTE,
} bel_csv_fault;

typedef struct bel_csv_look {
    const char *next; // start of the next row; unset after a fault
    int64_t breaks;   // line breaks within the row
    bel_csv_fault fault;
    const char *at; // place of the fault
    bel_csv_stop stop;
    bel_csv_field label;
    int count; // fields
} bel_csv_look;

// Checks the row at `row`: its quotes, the number of its fields and its label. If `label` is NULL
// the row may be bad, and only its quotes are checked.
bel_csv_look bel_csv_row_look(const bel_csv_file *file, const char *row,
                              const bel_csv_label *label);

// Returns the error of a look with a fault.
bel_status *bel_csv_row_error(const bel_csv_file *file, const char *row, const bel_csv_label *label,
                              const bel_csv_look *look) BEL_MUST_USE;

// Checks the label of a plain row (csv_scan.h) that ends before `end`.
bool bel_csv_row_label_fits(const bel_csv_file *file, const char *row, const char *end,
                            const bel_csv_label *label);

#endif
