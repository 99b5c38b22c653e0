// Table in memory (bel_memory_table of belfry/columns.h): its check, and its cells as the readers
// of files see theirs.
#ifndef BELFRY_INPUT_TABLE_MEMORY_TABLE_H
#define BELFRY_INPUT_TABLE_MEMORY_TABLE_H

#include "columns/transform.h"

// Copies the caller's struct. INVALID_ARGUMENT: no columns, a column without a name or cells, two
// columns of one name, a code out of range.
bel_status *bel_memory_table_take(const bel_memory_table *given,
                                  bel_memory_table *out_rows) BEL_MUST_USE;

// Number in the columns of the table's row `row`.
static inline int64_t bel_memory_row(const bel_memory_table *rows, int64_t row)
{
    return rows->order == NULL ? row : rows->order[row];
}

// Number of the column of this name; -1: none.
int bel_memory_table_find(const bel_memory_table *rows, const char *name);

// Cells are found by the row in their column.
//
// Number in a cell of a column of numbers.
static inline double bel_memory_number(const bel_memory_column *column, int64_t row)
{
    const ptrdiff_t at = (ptrdiff_t)(row * column->stride);
    return column->dtype == BEL_DTYPE_F32 ? (double)((const float *)column->numbers)[at]
                                          : ((const double *)column->numbers)[at];
}

// Text of a cell; "" if it is missing. A number is written to `room` with the fewest digits that
// restore it, and with the decimal separator of the description that reads it.
enum { BEL_MEMORY_CELL = 40 };
bel_cell bel_memory_cell(const bel_memory_column *column, int64_t row, char decimal,
                         char room[BEL_MEMORY_CELL]);

// The error of a wrong cell, INVALID_ARGUMENT: its row and column, what was expected, and its text.
bel_status *bel_memory_cell_error(const bel_memory_column *column, int64_t row,
                                  const char *expected) BEL_MUST_USE;

#endif
