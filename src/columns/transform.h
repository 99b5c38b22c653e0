// Cells of tables to the elements of their records: the one place that does it, in training,
// evaluation and prediction alike. A column is taken at a time, for a block of rows, so that what
// it is is asked once for all of them.
#ifndef BELFRY_COLUMNS_TRANSFORM_H
#define BELFRY_COLUMNS_TRANSFORM_H

#include "columns/description.h"

enum { BEL_COLUMNS_BLOCK = 32 }; // rows of a block at most

// Rows of a block, a bit each.
typedef uint32_t bel_row_bits;

static inline bel_row_bits bel_row_bits_first(int count)
{
    return count == BEL_COLUMNS_BLOCK ? ~(bel_row_bits)0 : ((bel_row_bits)1 << count) - 1;
}

// A cell's text without spaces around it and without quotes.
typedef struct bel_cell {
    const char *text;
    size_t length;
} bel_cell;

// Cells of a category that are not missing, and those among them that training did not tell apart.
typedef struct bel_category_cells {
    int64_t cells, unknown;
} bel_category_cells;

// Where rows go, one after the other; a record is a block of one. Pointers that the description has
// no elements for are not used.
typedef struct bel_columns_block {
    float *x;       // [rows][x_width]
    int64_t *ids;   // [rows][id_count]
    int64_t *lists; // [rows][list_count][list_most]
    int64_t *class_number;
    double *number; // the label; of several, class_number is [rows][label_count]
    float *weight;
    uint64_t *crossed;        // [rows][count]: hashes of the columns that are crossed
    bel_category_cells *seen; // [count]: cells of categories are added; NULL: they are not counted
} bel_columns_block;

// The same from row `first` on.
bel_columns_block bel_columns_block_from(const bel_columns *columns, const bel_columns_block *rows,
                                         int64_t first);

// Before the cells of `count` rows: nothing is set.
void bel_columns_begin(const bel_columns *columns, const bel_columns_block *rows, int count);

// Takes a column's cells of the rows in `live`, of which the highest is the last of the block.
// Returns the rows whose cell is wrong: bel_columns_expected says why.
bel_row_bits bel_columns_put(const bel_columns *columns, const bel_column *column,
                             const bel_cell *cells, bel_row_bits live,
                             const bel_columns_block *rows) BEL_MUST_USE;

// The number that a cell of a NUMBER is: its fill where it is missing. False: it is wrong.
bool bel_columns_read_number(const bel_columns *columns, const bel_column *column, bel_cell cell,
                             double *out_value, bool *out_missing);

// The same as bel_columns_put for cells of a NUMBER that were read already, those of all `count`
// rows. `missing`: the rows that have none, and so the fill.
bel_row_bits bel_columns_put_numbers(const bel_columns *columns, const bel_column *column,
                                     const double *values, bel_row_bits missing, int count,
                                     const bel_columns_block *rows) BEL_MUST_USE;

// After the last cells of `count` rows: elements made of several columns.
void bel_columns_end(const bel_columns *columns, const bel_columns_block *rows, int count);

// What was expected of a cell that bel_columns_put found wrong.
enum { BEL_COLUMN_EXPECTED = 256 };
const char *bel_columns_expected(const bel_columns *columns, const bel_column *column,
                                 bel_cell cell, char text[BEL_COLUMN_EXPECTED]);

// The id of a category's value by its number: value_count is a missing one, -1 one that training
// did not have.
uint64_t bel_columns_category_hash(const bel_column *column, int value);

#endif
