// Cells of a table in memory. A number has no text, but may be a class or stand for a missing value
// (-999). It then gets the text that a file would have: a model is the same from either. Columns
// are read in place, and checked before.
#include "input/table/memory_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "input/table/csv_file.h"

static bel_status *check_texts(const bel_memory_table *rows, const bel_memory_column *column)
{
    for (int64_t i = 0; i < column->text_count; i++) {
        if (column->texts[i] != NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "column \"%s\": text %lld is NULL", column->name,
                       (long long)i);
    }
    for (int64_t i = 0; i < rows->row_count; i++) {
        const int64_t row = bel_memory_row(rows, i);
        if (column->codes[row] < column->text_count) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT, "row %lld, column \"%s\": expected a code below %lld, got %d",
            (long long)row, column->name, (long long)column->text_count, column->codes[row]);
    }
    return NULL;
}

static bel_status *check_column(const bel_memory_table *rows, int number)
{
    const bel_memory_column *column = &rows->columns[number];
    if (column->name == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table in memory: column %d has no name", number);
    bool numbers = column->numbers != NULL;
    if (!numbers && (column->codes == NULL || (column->texts == NULL && column->text_count > 0)))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "column \"%s\": it has no cells", column->name);
    if (!numbers) return check_texts(rows, column);
    if (column->stride == 0 && rows->row_count > 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "column \"%s\": a stride of 0 reads one row",
                       column->name);
    if (column->dtype == BEL_DTYPE_F32 || column->dtype == BEL_DTYPE_F64) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "column \"%s\": expected numbers of f32 or f64, got type %d", column->name,
                   (int)column->dtype);
}

static bel_status *check_names(const bel_memory_table *rows)
{
    bel_index names = {0};
    bel_status *status = NULL;
    for (int i = 0; i < rows->column_count && status == NULL; i++) {
        const char *name = rows->columns[i].name;
        size_t at = 0;
        for (int found; (found = bel_index_next_text(&names, name, &at)) >= 0;) {
            if (strcmp(rows->columns[found].name, name) != 0) continue;
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "columns %d and %d have the same name, \"%s\"",
                             found, i, name);
            break;
        }
        bel_index_put_text(&names, name, i);
    }
    bel_index_deinit(&names);
    return status;
}

bel_status *bel_memory_table_take(const bel_memory_table *given, bel_memory_table *out_rows)
{
    BEL_TRY(bel_sized_take(out_rows, sizeof *out_rows, given, "bel_memory_table"));
    if (out_rows->column_count < 1 || out_rows->columns == NULL)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table in memory: expected columns, got none");
    if (out_rows->row_count < 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "table in memory: expected rows, got none");
    for (int i = 0; i < out_rows->column_count; i++)
        BEL_TRY(check_column(out_rows, i));
    return check_names(out_rows);
}

// --- Order by content ----------------------------------------------------------------------------

typedef struct hashed_row {
    uint64_t hash;
    int64_t row;
} hashed_row;

static int compare_rows(const void *left, const void *right)
{
    const hashed_row *a = left, *b = right;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

// MurmurHash3's finalizer (public domain), over what came before.
static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) + UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 33;
}

// Equal cells have equal bits: all kinds of missing are one, and so are 0 and -0.
static void hash_numbers(const bel_memory_table *rows, const bel_memory_column *column,
                         hashed_row *out)
{
    for (int64_t i = 0; i < rows->row_count; i++) {
        double value = bel_memory_number(column, out[i].row) + 0.0;
        uint64_t bits = 1;
        if (!isnan(value)) memcpy(&bits, &value, sizeof bits);
        out[i].hash = mix(out[i].hash, bits);
    }
}

static void hash_texts(const bel_memory_table *rows, const bel_memory_column *column,
                       hashed_row *out)
{
    uint64_t *hashes = bel_xcalloc((size_t)column->text_count + 1, sizeof *hashes);
    for (int64_t t = 0; t < column->text_count; t++)
        hashes[t] = bel_hash64(column->texts[t], strlen(column->texts[t]));
    for (int64_t i = 0; i < rows->row_count; i++) {
        int32_t code = column->codes[out[i].row];
        out[i].hash = mix(out[i].hash, code < 0 ? 1 : hashes[code]);
    }
    bel_free(hashes);
}

bel_status *bel_memory_table_order(const bel_memory_table *rows, int64_t *out_order)
{
    bel_memory_table table;
    BEL_TRY(bel_memory_table_take(rows, &table));
    hashed_row *found = bel_xcalloc((size_t)table.row_count, sizeof *found);
    for (int64_t i = 0; i < table.row_count; i++)
        found[i].row = bel_memory_row(&table, i);
    for (int c = 0; c < table.column_count; c++) {
        const bel_memory_column *column = &table.columns[c];
        (column->numbers != NULL ? hash_numbers : hash_texts)(&table, column, found);
    }
    qsort(found, (size_t)table.row_count, sizeof *found, compare_rows);
    for (int64_t i = 0; i < table.row_count; i++)
        out_order[i] = found[i].row;
    bel_free(found);
    return NULL;
}

// --- Cells ---------------------------------------------------------------------------------------

int bel_memory_table_find(const bel_memory_table *rows, const char *name)
{
    for (int i = 0; i < rows->column_count; i++)
        if (strcmp(rows->columns[i].name, name) == 0) return i;
    return -1;
}

// The fewest digits that restore the number, in its type.
static size_t write_number(double value, bel_dtype dtype, char decimal, char room[BEL_MEMORY_CELL])
{
    enum { ENOUGH = 17 };
    int length = 0;
    for (int digits = 6; digits <= ENOUGH; digits++) {
        length = bel_snprintf(room, BEL_MEMORY_CELL, "%.*g", digits, value);
        double read = bel_strtod(room, NULL);
        if (dtype == BEL_DTYPE_F32 ? (float)read == (float)value : read == value) break;
    }
    char *point = memchr(room, '.', (size_t)length);
    if (point != NULL) *point = decimal;
    return (size_t)length;
}

bel_cell bel_memory_cell(const bel_memory_column *column, int64_t row, char decimal,
                         char room[BEL_MEMORY_CELL])
{
    if (column->numbers != NULL) {
        double value = bel_memory_number(column, row);
        if (isnan(value)) return (bel_cell){"", 0};
        return (bel_cell){room, write_number(value, column->dtype, decimal, room)};
    }
    int32_t code = column->codes[row];
    if (code < 0) return (bel_cell){"", 0};
    const char *text = column->texts[code];
    const bel_csv_field field = {.text = text, .length = strlen(text)};
    const bel_csv_field trimmed = bel_csv_trim(&field);
    return (bel_cell){trimmed.text, trimmed.length};
}

bel_status *bel_memory_cell_error(const bel_memory_column *column, int64_t row,
                                  const char *expected)
{
    char room[BEL_MEMORY_CELL];
    bel_cell cell = bel_memory_cell(column, row, '.', room);
    const bel_csv_field field = {.text = cell.text, .length = cell.length};
    char *got = bel_csv_quote(&field);
    bel_status *status =
        BEL_ERR(BEL_INVALID_ARGUMENT, "row %lld, column \"%s\": expected %s, got %s",
                (long long)row, column->name, expected, got);
    bel_free(got);
    return status;
}
