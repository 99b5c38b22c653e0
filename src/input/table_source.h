// The parts of the reader of tables (source_table.c): a block of rows, and the look at all of them.
#ifndef BELFRY_INPUT_TABLE_SOURCE_H
#define BELFRY_INPUT_TABLE_SOURCE_H

#include "columns/transform.h"
#include "input/csv_table.h"
#include "input/source.h"

typedef struct bel_table_source {
    bel_source base;
    bel_arena *arena;
    const bel_columns *columns;
    bel_csv_set set;
    int **places;      // of each file: the column that each of its fields is; -1: none
    int *layouts;      // of each file: the first one with the same places
    int *label_fields; // of each file: the field of the (first) label, read or not; -1: none
    bel_holdout holdout;
    bool unchecked; // cells are read and not looked at before
    bool labelled;  // rows have a label
    int x_field, id_field, list_field, label_field, weight_field; // -1: there is none
    bel_bad_records *bad;
} bel_table_source;

// A cell of a category with a value that is not known; its place is the file's own.
typedef struct bel_unknown_cell {
    const bel_csv_file *file; // NULL: there is none
    bel_csv_field field;
} bel_unknown_cell;

// Memory for reading blocks; of one thread.
typedef struct bel_table_scratch {
    const char **starts; // [rows of a block][fields, and BEL_CSV_SPARE_STARTS]: of each field
    size_t start_count;  // of a row
    uint64_t *crossed;   // of bel_columns_block; NULL: no columns are crossed
    bel_csv_spare spare;
    bel_arena *arena;          // of cells with doubled quotes; NULL: there was none
    bel_unknown_cell *unknown; // [columns]: the first of each category; NULL: not wanted
} bel_table_scratch;

// What a row's label is.
typedef enum bel_label_found {
    BEL_FOUND_GOOD, // or something else than its row's error
    BEL_FOUND_MISSING,
    BEL_FOUND_UNKNOWN, // a class that training did not have
} bel_label_found;

typedef struct bel_label_state {
    bel_label_found kind;
    int missing; // MISSING: which of the description's texts it is
} bel_label_state;

// The label of the row at `at`; of several a missing one counts, then an unknown one.
bel_label_state bel_table_source_find_label(const bel_table_source *source,
                                            const bel_csv_file *file, const char *at,
                                            bel_table_scratch *s);

// Rows that are read together, and what was found out about them.
typedef struct bel_table_block {
    int count; // at most BEL_COLUMNS_BLOCK
    const bel_csv_file *files[BEL_COLUMNS_BLOCK];
    const char *rows[BEL_COLUMNS_BLOCK]; // where each begins
    bool
        known; // all rows are plain numbers, whose elements are not wanted: columns of numbers that cannot
               // be wrong then are passed over
    bel_row_bits wrong; // those that are errors
    bel_status *errors[BEL_COLUMNS_BLOCK];
    // Those of rows that are errors. Where another cell is the error, only whether the label is
    // missing: such rows are none to learn from, and often hold sums of the others.
    bel_label_state labels[BEL_COLUMNS_BLOCK];
} bel_table_block;

// For blocks of at most `row_count` rows.
void bel_table_scratch_init(const bel_table_source *source, int64_t row_count,
                            bel_table_scratch *s);
void bel_table_scratch_deinit(bel_table_scratch *s);

// Reads the rows of a block, whose structure was checked; `crossed` of `to` is the scratch's.
// Errors are the caller's.
void bel_table_source_read_block(const bel_table_source *source, bel_table_block *block,
                                 const bel_columns_block *to, bel_table_scratch *s);

// Looks at every cell of the rows, on all cores (source_table_check.c): DATA_LOSS with the first
// ten that are wrong. Rows without a label, and those of classes that training did not have, are
// left out from then on, and said.
bel_status *bel_table_source_check(bel_table_source *source) BEL_MUST_USE;

#endif
