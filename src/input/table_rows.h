// Rows of a table outside a dataset: cells of files by their row, for what is passed through to
// predictions, and rows that come one by one, for requests.
#ifndef BELFRY_INPUT_TABLE_ROWS_H
#define BELFRY_INPUT_TABLE_ROWS_H

#include "base/str.h"
#include "columns/transform.h"

// --- Cells of files ------------------------------------------------------------------------------

typedef struct bel_table_cells bel_table_cells;

// Opens files for the cells of some columns, as the description reads them. Free with
// bel_table_cells_destroy. INVALID_ARGUMENT: a file has no such column.
bel_status *bel_table_cells_create(const bel_columns *columns, const char *const *paths,
                                   int path_count, const char *const *names, int name_count,
                                   bel_table_cells **out_cells) BEL_MUST_USE;
void bel_table_cells_destroy(bel_table_cells *cells); // accepts NULL

// Sets *out_text to the value of column `name` (its number in `names`) in a row, counted through
// all files, as it is in the file.
void bel_table_cells_get(const bel_table_cells *cells, int64_t row, int name, bel_str *out_text);

// --- Rows one by one -----------------------------------------------------------------------------

typedef struct bel_table_lines bel_table_lines;

// For rows as CSV text, the first of which is the header where the description has one. `names`:
// columns whose cells are wanted beside. Free with bel_table_lines_destroy.
bel_table_lines *bel_table_lines_create(const bel_columns *columns, const char *const *names,
                                        int name_count);
void bel_table_lines_destroy(bel_table_lines *lines); // accepts NULL

// How many bytes of `text` the next whole row takes, with its line end; 0: it is not whole yet.
// `last`: nothing comes behind it. After a row `text` begins behind it, else where it did before,
// with more at its end: what was looked at is not looked at again. Blank rows wait until another
// one follows; at the end there are none, as in a file.
size_t bel_table_lines_next(bel_table_lines *lines, const char *text, size_t length, bool last);

// Takes a row. *out_is_header: it was that, and nothing was written. DATA_LOSS begins with
// "SOURCE:line:column: "; INVALID_ARGUMENT: the header has no such column.
bel_status *bel_table_lines_take(bel_table_lines *lines, const char *text, size_t length,
                                 const bel_columns_block *row, bool *out_is_header) BEL_MUST_USE;

// The cell of a wanted column in the row that was taken last.
const bel_str *bel_table_lines_cell(const bel_table_lines *lines, int name);

#endif
