// A number goes as text through the reader of files, so that 3 and "3" are one category and
// a number that means a missing value does so here. A description without such numbers lets a
// number pass unread.
#include "serve/cells.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "columns/cell_number.h"

enum {
    SHOWN = 40,          // bytes of a cell in a message
    MOST_TEXT = 1 << 20, // bytes of a text that becomes tokens
};

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
    if (column->kind == BEL_COLUMN_TOKENS) return BEL_SHAPE(rows, column->most);
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

// The encoder reads a piece to its end, and a text without a space may be one piece.
static bel_status *too_long(const bel_column *column)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "\"%s\": expected a text of at most %d bytes; hint: send its beginning, as the "
                   "model reads %d tokens",
                   column->name, MOST_TEXT, (int)column->most);
}

// Makes the tokens of a text by the code of files; no text means a missing value.
static bool put_tokens(const bel_cell_rows *rows, bel_cell cell, int64_t i)
{
    const bel_column *column = rows->column;
    const bel_columns_block block = {.tokens = (int64_t *)rows->tensor.data + i * column->most,
                                     .lengths = rows->lengths + i};
    if (cell.text == NULL) cell = (bel_cell){"", 0};
    return bel_columns_put(rows->columns, column, &cell, 1, &block) == 0;
}

// A text that means a missing value here; without one, an empty text.
static bel_cell missing_cell(const bel_columns *columns)
{
    if (columns->missing.count == 0) return (bel_cell){"", 0};
    return (bel_cell){columns->missing.texts[0], columns->missing.lengths[0]};
}

// Counts a value that the training did not distinguish. A later one of its column is only counted,
// as every request may have some.
static void note_unknown(const bel_cell_rows *rows, bel_cell cell)
{
    if (rows->unknown == NULL || (*rows->unknown)++ > 0) return;
    char *start = bel_strf("%.*s", (int)(cell.length < SHOWN ? cell.length : SHOWN), cell.text);
    bel_str quoted = {0};
    bel_json_write_string(&quoted, start);
    bel_log_write(BEL_LOG_WARN,
                  "model %s, column \"%s\": the value %s is not among those that training "
                  "distinguished, and counts as unknown; later ones are only counted, in /metrics",
                  rows->model, rows->column->name, quoted.text);
    bel_str_deinit(&quoted);
    bel_free(start);
}

// Returns the number of a category's value; -1: unknown. The cell is no missing value.
static int find_value(const bel_cell_rows *rows, bel_cell cell)
{
    int value = bel_column_value(rows->column, cell.text, cell.length);
    if (value < 0) note_unknown(rows, cell);
    return value;
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
        if (column->kind == BEL_COLUMN_CATEGORY &&
            !bel_column_is_missing(columns, column, cell.text, cell.length))
            (void)find_value(rows, cell); // counts an unknown one
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
        ((int64_t *)out->data)[i] =
            !absent ? find_value(rows, cell) : (column->missing_value ? column->value_count : -1);
        break;
    case BEL_COLUMN_TOKENS:
        if (cell.length > MOST_TEXT) return too_long(column);
        good = put_tokens(rows, cell, i);
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

// Writes true or false as the category's values have it. Tables of Python have True, those of
// Excel TRUE, and JSON only true.
static void put_word(const bel_column *column, bool flag, bel_str *out)
{
    static const char *const words[2][3] = {{"false", "False", "FALSE"}, {"true", "True", "TRUE"}};
    const char *word = words[flag][0];
    for (int w = 2; w >= 0; w--)
        if (bel_column_value(column, words[flag][w], strlen(words[flag][w])) >= 0)
            word = words[flag][w];
    bel_str_puts(out, word);
}

bel_status *bel_cells_take_json(void *rows, int64_t i, const bel_json_value *value)
{
    const bel_cell_rows *to = rows;
    const bel_columns *columns = to->columns;
    const bel_column *column = to->column;
    bel_str text = {0};
    double number;
    bool flag;
    if (bel_json_is_null(value)) return bel_cells_put(to, (bel_cell){NULL, 0}, i);
    if (column->kind == BEL_COLUMN_NUMBER && bel_json_value_f64(value, &number))
        return bel_cells_put_number(columns, column, number, i, &to->tensor);
    bel_str_puts(&text, ""); // an empty text is one, too
    bool is_word = column->kind == BEL_COLUMN_CATEGORY && bel_json_value_bool(value, &flag);
    if (is_word) put_word(column, flag, &text);
    bel_status *status =
        is_word || bel_cell_of_json(&text, value)
            ? bel_cells_put(to, (bel_cell){text.text, text.length}, i)
            : BEL_ERR(BEL_INVALID_ARGUMENT,
                      "\"%s\": expected a text, a number, true, false or null", column->name);
    bel_str_deinit(&text);
    return status;
}
