// A row's cells to the elements of its record: the one place that does it, in training, evaluation
// and prediction alike.
#ifndef BELFRY_COLUMNS_TRANSFORM_H
#define BELFRY_COLUMNS_TRANSFORM_H

#include "columns/description.h"

// Cells of a category that are not missing, and those among them that training did not tell apart.
typedef struct bel_category_cells {
    int64_t cells, unknown;
} bel_category_cells;

// Where a row goes. Pointers that the description has no elements for are not used.
typedef struct bel_columns_row {
    float *x;       // [x_width]
    int64_t *ids;   // [id_count]
    int64_t *lists; // [list_count][list_most]
    int64_t *class_number;
    double *number; // the label; of several, class_number is an array
    float *weight;
    uint64_t *crossed;        // [count]: hashes of the columns that are crossed
    bel_category_cells *seen; // [count]: cells of categories are added; NULL: nobody counts
} bel_columns_row;

enum { BEL_COLUMN_EXPECTED = 256 };

// Before a row's cells: nothing is set.
void bel_columns_row_begin(const bel_columns *columns, const bel_columns_row *row);

// Takes the cell of a column. `text` has no spaces around it and no quotes. False: it is something
// else than `expected` then says.
bool bel_columns_row_put(const bel_columns *columns, const bel_column *column, const char *text,
                         size_t length, const bel_columns_row *row,
                         char expected[BEL_COLUMN_EXPECTED]);

// The same for the cell of a NUMBER that was read already.
bool bel_columns_row_put_number(const bel_column *column, double value, const bel_columns_row *row);

// The id of a category's value by its number: value_count is a missing one, -1 one that training
// did not have.
uint64_t bel_columns_category_hash(const bel_column *column, int value);

// Behind the last cell: what is made of several.
void bel_columns_row_end(const bel_columns *columns, const bel_columns_row *row);

#endif
