// Columns of a table as inputs: cells by name, as a CSV file has them, become the elements that an
// exported model takes (docs/formats/export.md, "What goes in").
//
// A cell is a text, a number, or null for a missing value. A text has the same meaning as in a
// file, because the same code reads it.
#ifndef BELFRY_SERVE_CELLS_H
#define BELFRY_SERVE_CELLS_H

#include "base/json.h"
#include "belfry/tensor.h"
#include "columns/transform.h"

// Returns true if cells of this kind can be read: numbers, categories and dates; with `ids`, also
// values that are hashed. The others need places or ids, which the caller sends.
bool bel_cells_can_read(const bel_column *column, bool ids);

// True if the column's values have rows in a table, so that a checkpoint takes their ids.
bool bel_cells_are_ids(const bel_column *column);

// Replaces the index of a category's value, as exported models take it, by the value's id.
// INVALID_ARGUMENT: there is no such value.
bel_status *bel_cells_index_to_id(const bel_column *column, int64_t *element) BEL_MUST_USE;

// Type and row of the model's input: F64 [] for a number, F32 [parts] for a date, I64 [most] for
// the tokens of a text, I64 [] for others.
bel_dtype bel_cells_dtype(const bel_column *column);
bel_shape bel_cells_shape(const bel_column *column, int64_t rows);

// The cells of a column as elements of an input.
typedef struct bel_cell_rows {
    const bel_columns *columns;
    const bel_column *column;
    bel_tensor tensor; // type and shape: bel_cells_dtype, bel_cells_shape
    bool ids;          // a column with rows in a table takes ids, instead of numbers of values
    int64_t *lengths;  // if the elements are tokens: how many of each text count
    const char *model; // its name, for the log
    // Grows by each category's value that the training did not distinguish. The first is logged.
    // NULL: no count.
    _Atomic uint64_t *unknown;
} bel_cell_rows;

// Writes a cell as row `i`. A text without bytes NULL is a missing value. INVALID_ARGUMENT: the
// cell is no value of the column, or is missing where it must not be.
bel_status *bel_cells_put(const bel_cell_rows *rows, bel_cell cell, int64_t i) BEL_MUST_USE;

// The same for the number of a column of numbers; NaN is a missing value.
bel_status *bel_cells_put_number(const bel_columns *columns, const bel_column *column,
                                 double number, int64_t i, const bel_tensor *out) BEL_MUST_USE;

// The same for a value of JSON; `rows` is a bel_cell_rows. For bel_json_tensor_each. In a category
// true is "true", "True" or "TRUE", the first of them that is among its values, and false likewise.
bel_status *bel_cells_take_json(void *rows, int64_t i, const bel_json_value *value) BEL_MUST_USE;

#endif
