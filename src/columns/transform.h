// Transformation of table cells to the elements of records. Training, evaluation and prediction all
// use this code and no other. It transforms one column of a block of rows at a time, so that it
// checks the column's kind once for all rows.
#ifndef BELFRY_COLUMNS_TRANSFORM_H
#define BELFRY_COLUMNS_TRANSFORM_H

#include "columns/description.h"

enum { BEL_COLUMNS_BLOCK = 32 }; // most rows of a block

// Set of rows of a block, one bit a row.
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

// Counts of a category's cells that are not missing, and of those outside the vocabulary. For texts
// that become tokens: all, those that are cut, and those without a token.
typedef struct bel_category_cells {
    int64_t cells, unknown, empty;
} bel_category_cells;

// Destination of consecutive rows; a record is a block of one row. A pointer is unused if the
// description has no elements for it.
typedef struct bel_columns_block {
    float *x;                  // [rows][x_width]
    int64_t *ids;              // [rows][id_count]
    int64_t *lists;            // [rows][list_count][list_most]
    int64_t *tokens, *lengths; // [rows][most] of the column of tokens, and [rows]
    int64_t *class_number;
    double *number; // the label; with several labels class_number is [rows][label_count]
    float *weight;
    uint64_t *crossed;        // [rows][count]: hashes of the crossed columns
    bel_category_cells *seen; // [count]: counts of categories' cells grow; NULL: no counting
} bel_columns_block;

// The same block from row `first` on.
bel_columns_block bel_columns_block_from(const bel_columns *columns, const bel_columns_block *rows,
                                         int64_t first);

// Call before the cells of `count` rows: clears their elements.
void bel_columns_begin(const bel_columns *columns, const bel_columns_block *rows, int count);

// Transforms a column's cells of the rows in `live`, whose highest row is the last of the block.
// Returns the rows with an invalid cell; bel_columns_expected gives the reason.
bel_row_bits bel_columns_put(const bel_columns *columns, const bel_column *column,
                             const bel_cell *cells, bel_row_bits live,
                             const bel_columns_block *rows) BEL_MUST_USE;

// Reads a cell of a NUMBER column. A missing cell becomes the column's fill. False: invalid cell.
bool bel_columns_read_number(const bel_columns *columns, const bel_column *column, bel_cell cell,
                             double *out_value, bool *out_missing);

// The same as bel_columns_put for a NUMBER column whose cells of all `count` rows are already read.
// `missing`: rows with a missing cell, whose value is the fill.
bel_row_bits bel_columns_put_numbers(const bel_columns *columns, const bel_column *column,
                                     const double *values, bel_row_bits missing, int count,
                                     const bel_columns_block *rows) BEL_MUST_USE;

// Call after the last cells of `count` rows: sets the elements made of several columns.
void bel_columns_end(const bel_columns *columns, const bel_columns_block *rows, int count);

// Writes what was expected of a cell that bel_columns_put found invalid, and returns `text`.
enum { BEL_COLUMN_EXPECTED = 256 };
const char *bel_columns_expected(const bel_columns *columns, const bel_column *column,
                                 bel_cell cell, char text[BEL_COLUMN_EXPECTED]);

// The id of a category's value by the value's number. value_count: missing; -1: not in the
// vocabulary.
uint64_t bel_columns_category_hash(const bel_column *column, int value);

#endif
