// Rows of a table outside a dataset. Cells of files are found by row, and are passed through to
// predictions. Rows of requests are read one by one.
#ifndef BELFRY_INPUT_TABLE_TABLE_ROWS_H
#define BELFRY_INPUT_TABLE_TABLE_ROWS_H

#include "columns/transform.h"

typedef struct bel_str bel_str; // base/str.h

// --- Cells of files ------------------------------------------------------------------------------

typedef struct bel_table_cells bel_table_cells;

// Opens files for the cells of some columns, read as the description says. Free with
// bel_table_cells_destroy. INVALID_ARGUMENT: a file has no such column.
bel_status *bel_table_cells_create(const bel_columns *columns, const char *const *paths,
                                   int path_count, const char *const *names, int name_count,
                                   bel_table_cells **out_cells) BEL_MUST_USE;
void bel_table_cells_destroy(bel_table_cells *cells); // accepts NULL

// Sets *out_text to the value of column `name` (its number in `names`) in a row, as it is in the
// file. Rows are counted through all files.
void bel_table_cells_get(const bel_table_cells *cells, int64_t row, int name, bel_str *out_text);

// --- Rows one by one -----------------------------------------------------------------------------

// Reader of rows that arrive as CSV text.
typedef struct bel_table_lines bel_table_lines;

// The first row is the header if the description has one. `names`: columns whose cells the caller
// wants in addition. Free with bel_table_lines_destroy.
bel_table_lines *bel_table_lines_create(const bel_columns *columns, const char *const *names,
                                        int name_count);
void bel_table_lines_destroy(bel_table_lines *lines); // accepts NULL

// Size in bytes of the next row in `text`, with its line end; 0: the row is incomplete. `last`: no
// text follows. After a row the caller passes the text after it. After 0 the caller passes the same
// text with more at its end, and only the new part is scanned. Blank rows wait until another row
// follows. Blank rows at the end are not rows, as in a file.
size_t bel_table_lines_next(bel_table_lines *lines, const char *text, size_t length, bool last);

// Reads a row. *out_is_header: it was the header, and nothing was written. DATA_LOSS: the message
// begins with "SOURCE:line:column: ". INVALID_ARGUMENT: the header lacks a column.
bel_status *bel_table_lines_take(bel_table_lines *lines, const char *text, size_t length,
                                 const bel_columns_block *row, bool *out_is_header) BEL_MUST_USE;

// The cell of wanted column `name` in the row that was read last.
const bel_str *bel_table_lines_cell(const bel_table_lines *lines, int name);

#endif
