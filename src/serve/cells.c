// A number goes as text through the reader of files, so that 3 and "3" are one category and
// a number that means a missing value does so here. A description without such numbers lets a
// number pass unread.
#include "serve/cells.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

enum { SHOWN = 40 }; // bytes of a cell in a message

bool bel_cells_can_read(const bel_column *column, bool ids)
{
    return (ids && column->kind == BEL_COLUMN_HASH) || column->kind == BEL_COLUMN_NUMBER ||
           column->kind == BEL_COLUMN_CATEGORY || column->kind == BEL_COLUMN_DATE;
}

bel_dtype bel_cells_dtype(const bel_column *column)
{
    if (column->kind == BEL_COLUMN_NUMBER) return BEL_DTYPE_F64;
    return column->kind == BEL_COLUMN_DATE ? BEL_DTYPE_F32 : BEL_DTYPE_I64;
}

bel_shape bel_cells_shape(const bel_column *column, int64_t rows)
{
    return column->kind == BEL_COLUMN_DATE ? BEL_SHAPE(rows, column->x_width) : BEL_SHAPE(rows);
}

static bel_status *unexpected(const bel_columns *columns, const bel_column *column, bel_cell cell)
{
    char expected[BEL_COLUMN_EXPECTED];
    if (cell.text == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "\"%s\": expected a value, got null, which the training refused, too",
                       column->name);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %s, got \"%.*s\"", column->name,
                   bel_columns_expected(columns, column, cell, expected),
                   (int)(cell.length < SHOWN ? cell.length : SHOWN), cell.text);
}

// Fills a date's elements by the code of files, in a row that has only this column's.
static bool put_date(const bel_columns *columns, const bel_column *column, bel_cell cell,
                     float *out)
{
    float *row = bel_xcalloc((size_t)columns->x_width + 1, sizeof *row);
    const bel_columns_block block = {.x = row};
    bool good = bel_columns_put(columns, column, &cell, 1, &block) == 0;
    memcpy(out, row + column->x_place, (size_t)column->x_width * sizeof *out);
    bel_free(row);
    return good;
}

// Makes the id of a value by the code of files, in a row that has only this column's.
static int64_t id_of(const bel_columns *columns, const bel_column *column, bel_cell cell)
{
    int64_t *row = bel_xcalloc((size_t)columns->id_count, sizeof *row);
    uint64_t *crossed = bel_xcalloc((size_t)columns->count, sizeof *crossed);
    const bel_columns_block block = {.ids = row, .crossed = crossed};
    bel_row_bits wrong = bel_columns_put(columns, column, &cell, 1, &block);
    (void)wrong; // every text has an id
    int64_t id = row[column->id_place];
    bel_free(row);
    bel_free(crossed);
    return id;
}

// A text that means a missing value here; without one, an empty text.
static bel_cell missing_cell(const bel_columns *columns)
{
    if (columns->missing.count == 0) return (bel_cell){"", 0};
    return (bel_cell){columns->missing.texts[0], columns->missing.lengths[0]};
}

// Spaces around a text do not count, as in a file.
static bel_cell trimmed(bel_cell cell)
{
    for (; cell.length > 0 && strchr(" \t", cell.text[0]) != NULL; cell.length--)
        cell.text++;
    while (cell.length > 0 && strchr(" \t", cell.text[cell.length - 1]) != NULL)
        cell.length--;
    return cell;
}

bel_status *bel_cells_put(const bel_cell_rows *rows, bel_cell cell, int64_t i)
{
    const bel_columns *columns = rows->columns;
    const bel_column *column = rows->column;
    const bel_tensor *out = &rows->tensor;
    cell = trimmed(cell);
    bool absent = cell.text == NULL, good = true;
    double number = NAN;
    if (rows->ids && bel_cells_are_ids(column)) {
        if (absent) cell = missing_cell(columns);
        ((int64_t *)out->data)[i] = id_of(columns, column, cell);
        return NULL;
    }
    switch (column->kind) {
    case BEL_COLUMN_NUMBER:
        if (absent) {
            good = column->missing != BEL_MISSING_ERROR;
        } else {
            good = bel_columns_read_number(columns, column, cell, &number, &absent);
        }
        ((double *)out->data)[i] = absent ? NAN : number; // the graph fills a missing one in
        break;
    case BEL_COLUMN_CATEGORY:
        absent = absent || bel_column_is_missing(columns, column, cell.text, cell.length);
        ((int64_t *)out->data)[i] = !absent ? bel_column_value(column, cell.text, cell.length)
                                            : (column->missing_value ? column->value_count : -1);
        break;
    default:
        if (absent && columns->missing.count > 0) cell = missing_cell(columns);
        good = cell.text != NULL &&
               put_date(columns, column, cell, (float *)out->data + i * column->x_width);
    }
    return good ? NULL : unexpected(columns, column, cell);
}

bool bel_cells_are_ids(const bel_column *column)
{
    return column->id_place >= 0;
}

bel_status *bel_cells_index_to_id(const bel_column *column, int64_t *element)
{
    const int64_t index = *element;
    if (index < -1 || index > column->value_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "\"%s\": expected the index of a value, from -1 to %d, got %lld",
                       column->name, column->value_count, (long long)index);
    }
    bool unknown = index == column->value_count && !column->missing_value;
    *element = (int64_t)bel_columns_category_hash(column, unknown ? -1 : (int)index);
    return NULL;
}

bel_status *bel_cells_put_number(const bel_columns *columns, const bel_column *column,
                                 double number, int64_t i, const bel_tensor *out)
{
    const bel_cell_rows rows = {.columns = columns, .column = column, .tensor = *out};
    if (isnan(number)) return bel_cells_put(&rows, (bel_cell){NULL, 0}, i);
    // Infinity has no text, and means no missing value.
    if (isinf(number) || (!columns->missing.has_number && !column->absent.has_number)) {
        ((double *)out->data)[i] = number;
        return NULL;
    }
    bel_str digits = {0};
    bel_json_write_number(&digits, number);
    char *point = strchr(digits.text, '.');
    if (point != NULL) *point = columns->decimal;
    bel_status *status = bel_cells_put(&rows, (bel_cell){digits.text, digits.length}, i);
    bel_str_deinit(&digits);
    return status;
}

bel_status *bel_cells_take_json(void *rows, int64_t i, const bel_json_value *value)
{
    const bel_cell_rows *to = rows;
    const bel_columns *columns = to->columns;
    const bel_column *column = to->column;
    const char *text = bel_json_value_string(value);
    double number;
    if (text != NULL) return bel_cells_put(to, (bel_cell){text, strlen(text)}, i);
    if (bel_json_is_null(value)) return bel_cells_put(to, (bel_cell){NULL, 0}, i);
    if (!bel_json_value_f64(value, &number))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected a text, a number or null",
                       column->name);
    if (column->kind == BEL_COLUMN_NUMBER)
        return bel_cells_put_number(columns, column, number, i, &to->tensor);
    bel_str digits = {0};
    int64_t integer;
    if (bel_json_value_i64(value, &integer)) {
        bel_str_printf(&digits, "%lld", (long long)integer);
    } else {
        bel_json_write_number(&digits, number);
    }
    char *point = strchr(digits.text, '.');
    if (point != NULL && column->kind == BEL_COLUMN_NUMBER) *point = columns->decimal;
    bel_status *status = bel_cells_put(to, (bel_cell){digits.text, digits.length}, i);
    bel_str_deinit(&digits);
    return status;
}
