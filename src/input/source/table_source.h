// Parts of the reader of tables (source_table.c): a block of rows, and the check of all rows.
#ifndef BELFRY_INPUT_SOURCE_TABLE_SOURCE_H
#define BELFRY_INPUT_SOURCE_TABLE_SOURCE_H

#include "columns/transform.h"
#include "input/source/table_fields.h"
#include "input/table/csv_table.h"

typedef struct bel_table_source {
    bel_source base;
    bel_arena *arena;
    const bel_columns *columns;
    bel_csv_set set;
    int **places;      // per file: the column of each of its fields; -1: no column
    int *layouts;      // per file: the first file with the same places
    int *label_fields; // per file: the field of the (first) label, read or not; -1: no label
    bel_holdout holdout;
    bool unchecked; // cells are not checked before they are read
    bool labeled;   // rows have a label
    bel_table_fields at;
    bel_bad_records *bad;
} bel_table_source;

// Returns the index of a file in `places` and its like. Files that appear while they are followed
// have the columns of the first one.
static inline size_t bel_table_source_file(const bel_table_source *source, const bel_csv_file *file)
{
    return source->set.pattern != NULL ? 0 : (size_t)(file - source->set.files);
}

// Cell of a category whose value is unknown. The text of `field` points into the file.
typedef struct bel_unknown_cell {
    const bel_csv_file *file; // NULL: no such cell
    bel_csv_field field;
} bel_unknown_cell;

// One thread's memory for reading blocks.
typedef struct bel_table_scratch {
    const char **starts; // [rows of a block][fields + BEL_CSV_SPARE_STARTS]: each field's start
    size_t start_count;  // per row
    uint64_t *crossed;   // as in bel_columns_block; NULL: no columns are crossed
    bel_csv_spare spare;
    bel_arena *arena;          // cells with doubled quotes; NULL: no such cell yet
    bel_unknown_cell *unknown; // [columns]: first one of each category; NULL: not wanted
} bel_table_scratch;

// State of a row's label.
typedef enum bel_label_found {
    BEL_FOUND_GOOD, // or not the cause of its row's error
    BEL_FOUND_MISSING,
    BEL_FOUND_UNKNOWN, // a class that training did not have
} bel_label_found;

typedef struct bel_label_state {
    bel_label_found kind;
    int missing; // MISSING: its number among the description's texts
} bel_label_state;

// State of the label of the row at `at`. Among several labels, a missing one takes precedence, then
// an unknown one.
bel_label_state bel_table_source_find_label(const bel_table_source *source,
                                            const bel_csv_file *file, const char *at,
                                            bel_table_scratch *s);

// Rows that are read together, and their errors.
typedef struct bel_table_block {
    int count; // at most BEL_COLUMNS_BLOCK
    const bel_csv_file *files[BEL_COLUMNS_BLOCK];
    const char *rows[BEL_COLUMNS_BLOCK]; // start of each row
    // All rows are plain numbers, and the caller does not want their elements. Columns of numbers
    // that cannot be wrong then are skipped.
    bool known;
    bel_row_bits wrong; // rows with an error
    bel_status *errors[BEL_COLUMNS_BLOCK];
    // Labels of the rows with an error. If another cell is the error, the label is only tested for
    // being missing: a row without a label cannot be learned from, and often holds sums of others.
    bel_label_state labels[BEL_COLUMNS_BLOCK];
} bel_table_block;

// For blocks of at most `row_count` rows.
void bel_table_scratch_init(const bel_table_source *source, int64_t row_count,
                            bel_table_scratch *s);
void bel_table_scratch_deinit(bel_table_scratch *s);

// Reads the rows of a block, whose structure was checked; `crossed` of `to` is the scratch's. The
// caller owns the errors.
void bel_table_source_read_block(const bel_table_source *source, bel_table_block *block,
                                 const bel_columns_block *to, bel_table_scratch *s);

// Checks every cell of the rows, on all cores (source_table_check.c). DATA_LOSS: lists the first
// ten wrong cells. Rows without a label, and rows of classes that training did not have, are
// reported and left out from then on.
bel_status *bel_table_source_check(bel_table_source *source) BEL_MUST_USE;

#endif
