// Source of rows of a table in memory, read as a description of columns says (belfry/columns.h).
// It gives the records that source_table.c gives for a file with the same cells. Opening reads
// every cell once, so that no error shows up in the middle of a training. The features of all rows
// at once (bel_columns_features) are the same reading without a dataset.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "columns/transform.h"
#include "input/source/table_fields.h"
#include "input/table/memory_table.h"

typedef struct memory_table_source {
    bel_source base;
    bel_arena *arena;
    const bel_columns *columns;
    bel_memory_table rows;
    const bel_memory_column **cells; // per column of the description; NULL: not read
    bool labeled;
    bool crosses;
    bel_table_fields at;
} memory_table_source;

// --- Cells ---------------------------------------------------------------------------------------

// Whether a number stands for a missing value.
static bool is_marker(const bel_columns *columns, const bel_column *column,
                      const bel_memory_column *cells, int64_t row)
{
    if (!columns->missing.has_number && !column->absent.has_number) return false;
    char room[BEL_MEMORY_CELL];
    bel_cell cell = bel_memory_cell(cells, row, columns->decimal, room);
    return bel_column_is_missing_number(columns, column, cell.text, cell.length);
}

// Reads a cell of a NUMBER column, as bel_columns_read_number does.
static bool read_number(const bel_columns *columns, const bel_column *column,
                        const bel_memory_column *cells, int64_t row, double *out_value,
                        bool *out_missing)
{
    if (cells->numbers == NULL) {
        bel_cell cell = bel_memory_cell(cells, row, columns->decimal, NULL);
        return bel_columns_read_number(columns, column, cell, out_value, out_missing);
    }
    double value = bel_memory_number(cells, row);
    *out_missing = isnan(value) || is_marker(columns, column, cells, row);
    *out_value = *out_missing ? column->fill : value;
    return *out_missing ? column->missing != BEL_MISSING_ERROR : !isinf(value);
}

static bel_row_bits put_numbers(const bel_columns *columns, const bel_column *column,
                                const bel_memory_column *cells, const int64_t *rows, int count,
                                const bel_columns_block *to)
{
    double values[BEL_COLUMNS_BLOCK];
    bel_row_bits missing = 0, wrong = 0;
    for (int i = 0; i < count; i++) {
        bool none;
        bool good = read_number(columns, column, cells, rows[i], &values[i], &none);
        if (!good) values[i] = 0;
        wrong |= (bel_row_bits)!good << i;
        missing |= (bel_row_bits)(good && none) << i;
    }
    return wrong | bel_columns_put_numbers(columns, column, values, missing, count, to);
}

// Labels and weights that are numbers already.
static bel_row_bits put_plain(const bel_column *column, const bel_memory_column *cells,
                              const int64_t *rows, int count, const bel_columns_block *to)
{
    bool weight = column->kind == BEL_COLUMN_WEIGHT;
    bel_row_bits wrong = 0;
    for (int i = 0; i < count; i++) {
        double value = bel_memory_number(cells, rows[i]);
        bool good = weight ? value >= 0 && isfinite((float)value) : isfinite(value);
        wrong |= (bel_row_bits)!good << i;
        if (weight) {
            to->weight[i] = (float)value;
        } else {
            to->number[i] = value;
        }
    }
    return wrong;
}

static bel_row_bits put_texts(const bel_columns *columns, const bel_column *column,
                              const bel_memory_column *cells, const int64_t *rows, int count,
                              const bel_columns_block *to)
{
    bel_cell block[BEL_COLUMNS_BLOCK];
    char rooms[BEL_COLUMNS_BLOCK][BEL_MEMORY_CELL];
    for (int i = 0; i < count; i++)
        block[i] = bel_memory_cell(cells, rows[i], columns->decimal, rooms[i]);
    return bel_columns_put(columns, column, block, bel_row_bits_first(count), to);
}

static bel_row_bits put_column(const bel_columns *columns, const bel_column *column,
                               const bel_memory_column *cells, const int64_t *rows, int count,
                               const bel_columns_block *to)
{
    bool plain = column->kind == BEL_COLUMN_WEIGHT ||
                 (column->kind == BEL_COLUMN_LABEL && column->label == BEL_LABEL_NUMBER);
    if (column->kind == BEL_COLUMN_NUMBER)
        return put_numbers(columns, column, cells, rows, count, to);
    if (plain && cells->numbers != NULL) return put_plain(column, cells, rows, count, to);
    return put_texts(columns, column, cells, rows, count, to);
}

// The error of the first wrong row of a block.
static bel_status *wrong_cell(const bel_columns *columns, const bel_column *column,
                              const bel_memory_column *cells, const int64_t *rows,
                              bel_row_bits wrong)
{
    char expected[BEL_COLUMN_EXPECTED], room[BEL_MEMORY_CELL];
    int64_t row = rows[__builtin_ctz(wrong)];
    bel_cell cell = bel_memory_cell(cells, row, columns->decimal, room);
    return bel_memory_cell_error(cells, row, bel_columns_expected(columns, column, cell, expected));
}

// Reads at most BEL_COLUMNS_BLOCK rows, by their numbers in the columns.
static bel_status *read_block(const memory_table_source *source, const int64_t *rows, int count,
                              const bel_columns_block *to)
{
    const bel_columns *columns = source->columns;
    bel_columns_begin(columns, to, count);
    for (int c = 0; c < columns->count; c++) {
        if (source->cells[c] == NULL) continue;
        const bel_column *column = &columns->items[c];
        bel_row_bits wrong = put_column(columns, column, source->cells[c], rows, count, to);
        if (wrong != 0) return wrong_cell(columns, column, source->cells[c], rows, wrong);
    }
    bel_columns_end(columns, to, count);
    return NULL;
}

// --- Source --------------------------------------------------------------------------------------

static bel_status *memory_table_read_rows(const bel_source *base, const int64_t *numbers,
                                          int64_t count, void *const *places)
{
    const memory_table_source *source = (const memory_table_source *)base;
    const size_t crossed = source->crosses ? BEL_COLUMNS_BLOCK * (size_t)source->columns->count : 0;
    const bel_columns_block rows = bel_table_fields_block(&source->at, places);
    uint64_t *hashes = crossed > 0 ? bel_xcalloc(crossed, sizeof *hashes) : NULL;
    bel_status *status = NULL;
    for (int64_t at = 0; at < count && status == NULL; at += BEL_COLUMNS_BLOCK) {
        int some = count - at < BEL_COLUMNS_BLOCK ? (int)(count - at) : BEL_COLUMNS_BLOCK;
        int64_t in_columns[BEL_COLUMNS_BLOCK];
        for (int i = 0; i < some; i++)
            in_columns[i] = bel_memory_row(&source->rows, numbers[at + i]);
        bel_columns_block to = bel_columns_block_from(source->columns, &rows, at);
        to.crossed = hashes;
        status = read_block(source, in_columns, some, &to);
    }
    bel_free(hashes);
    return status;
}

static bel_status *memory_table_read(const bel_source *base, int64_t number, const bel_sink *sink)
{
    void *places[BEL_TABLE_MOST_FIELDS] = {NULL};
    for (int i = 0; i < base->field_count; i++)
        places[i] = bel_sink_place(sink, base, i, 0);
    return memory_table_read_rows(base, &number, 1, places);
}

static void memory_table_origin(const bel_source *base, int64_t number, bel_str *out_text)
{
    const memory_table_source *source = (const memory_table_source *)base;
    bel_str_printf(out_text, "row %lld", (long long)bel_memory_row(&source->rows, number));
}

static void memory_table_describe(const bel_source *base, bel_str *out_text)
{
    const memory_table_source *source = (const memory_table_source *)base;
    bel_str_printf(out_text, "columns=%016llx label=%d",
                   (unsigned long long)source->columns->fingerprint, source->labeled);
}

static void memory_table_destroy(bel_source *base)
{
    memory_table_source *source = (memory_table_source *)base;
    bel_arena_destroy(source->arena);
    bel_free(source);
}

static const bel_source_kind memory_table_kind = {
    .name = "memory table",
    .read = memory_table_read,
    .read_rows = memory_table_read_rows,
    .origin = memory_table_origin,
    .describe = memory_table_describe,
    .destroy = memory_table_destroy,
};

// --- Opening -------------------------------------------------------------------------------------

static bool is_read(const memory_table_source *source, const bel_column *column)
{
    bool beside = column->kind == BEL_COLUMN_LABEL || column->kind == BEL_COLUMN_WEIGHT;
    return beside ? source->labeled : bel_column_is_feature(column);
}

// Lists the columns of the rows that the description lacks.
static void list_others(const memory_table_source *source, bel_str *out_names)
{
    for (int i = 0; i < source->rows.column_count; i++) {
        const char *name = source->rows.columns[i].name;
        if (bel_columns_find(source->columns, name) < 0)
            bel_str_printf(out_names, "%s\"%s\"", out_names->length > 0 ? ", " : "", name);
    }
}

static bel_status *place_columns(memory_table_source *source)
{
    const bel_columns *columns = source->columns;
    bel_str missing = {0}, others = {0};
    source->cells =
        bel_arena_alloc(source->arena, ((size_t)columns->count + 1) * sizeof *source->cells);
    for (int c = 0; c < columns->count; c++) {
        const bel_column *column = &columns->items[c];
        source->crosses = source->crosses || column->crossed;
        if (!is_read(source, column)) continue;
        int place = bel_memory_table_find(&source->rows, column->name);
        if (place >= 0) {
            source->cells[c] = &source->rows.columns[place];
        } else {
            bel_str_printf(&missing, "%s\"%s\"", missing.length > 0 ? ", " : "", column->name);
        }
    }
    list_others(source, &others);
    bel_status *status = NULL;
    if (missing.length > 0) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "no column %s, with which the model was trained%s%s",
                         missing.text,
                         others.length > 0 ? "; columns here that training did not have: " : "",
                         others.length > 0 ? others.text : "");
    } else if (others.length > 0) {
        bel_log_write(BEL_LOG_INFO, "left out, as the model was not trained with them: %s",
                      others.text);
    }
    bel_str_deinit(&missing);
    bel_str_deinit(&others);
    return status;
}

// The fingerprint of the data: numbers by their bits, texts by their bytes.
static uint64_t hash_column(const bel_memory_table *rows, const bel_memory_column *column,
                            uint64_t hash)
{
    enum { PART = 512 };
    double numbers[PART];
    for (int64_t first = 0; first < rows->row_count; first += PART) {
        int count = rows->row_count - first < PART ? (int)(rows->row_count - first) : PART;
        for (int i = 0; i < count; i++) {
            const int64_t row = bel_memory_row(rows, first + i);
            numbers[i] = column->numbers != NULL ? bel_memory_number(column, row)
                                                 : (double)column->codes[row];
        }
        hash = bel_hash64_more(hash, numbers, (size_t)count * sizeof *numbers);
    }
    for (int64_t i = 0; i < column->text_count && column->numbers == NULL; i++)
        hash = bel_hash64_more(hash, column->texts[i], strlen(column->texts[i]) + 1);
    return hash;
}

// Opens the rows without looking at their cells.
static bel_status *open_rows(const bel_memory_table *rows, const bel_columns *columns,
                             bool unlabeled, memory_table_source **out_source)
{
    memory_table_source *source = bel_xcalloc(1, sizeof *source);
    source->base = (bel_source){.kind = &memory_table_kind, .table = columns};
    source->arena = bel_arena_create();
    source->columns = columns;
    source->labeled = !unlabeled && columns->label >= 0;
    bel_status *status = bel_memory_table_take(rows, &source->rows);
    if (status == NULL) status = place_columns(source);
    if (status != NULL) {
        memory_table_destroy(&source->base);
        return status;
    }
    source->base.record_count = source->rows.row_count;
    source->at =
        bel_table_fields_make(source->columns, source->labeled, &source->base, source->arena);
    *out_source = source;
    return NULL;
}

// Warns of categories most of whose values are new, as a file's reader does.
static void tell_unknown_values(const memory_table_source *source, const bel_category_cells *seen)
{
    for (int c = 0; c < source->columns->count; c++) {
        const bel_column *column = &source->columns->items[c];
        if (column->value_count == 0 || 2 * seen[c].unknown <= seen[c].cells) continue;
        bel_log_write(BEL_LOG_WARN,
                      "column \"%s\": %lld of %lld values are not among those that training "
                      "distinguished, and count as unknown",
                      column->name, (long long)seen[c].unknown, (long long)seen[c].cells);
    }
}

// Reads all rows in their order. `to` is the place of the first block; with `steps` the
// blocks follow each other there, else all share it.
static bel_status *read_all(const memory_table_source *source, const bel_columns_block *to,
                            bool steps)
{
    const bel_columns *columns = source->columns;
    bel_category_cells *seen = bel_xcalloc((size_t)columns->count + 1, sizeof *seen);
    const size_t crossed = source->crosses ? BEL_COLUMNS_BLOCK * (size_t)columns->count : 0;
    uint64_t *hashes = bel_xcalloc(crossed + 1, sizeof *hashes);
    bel_status *status = NULL;
    for (int64_t at = 0; at < source->rows.row_count && status == NULL; at += BEL_COLUMNS_BLOCK) {
        int64_t numbers[BEL_COLUMNS_BLOCK], rest = source->rows.row_count - at;
        int count = rest < BEL_COLUMNS_BLOCK ? (int)rest : BEL_COLUMNS_BLOCK;
        for (int i = 0; i < count; i++)
            numbers[i] = bel_memory_row(&source->rows, at + i);
        bel_columns_block block = bel_columns_block_from(columns, to, steps ? at : 0);
        block.seen = seen;
        block.crossed = hashes;
        status = read_block(source, numbers, count, &block);
    }
    if (status == NULL) tell_unknown_values(source, seen);
    if (status == NULL) bel_table_fields_tell_cut(columns, seen, "table in memory");
    bel_free(hashes);
    bel_free(seen);
    return status;
}

static bel_status *check_all(memory_table_source *source)
{
    const bel_columns *c = source->columns;
    const size_t rows = BEL_COLUMNS_BLOCK;
    bel_arena *arena = bel_arena_create();
    size_t lists = (size_t)c->list_count * (size_t)c->list_most;
    size_t tokens = c->tokens < 0 ? 0 : (size_t)c->items[c->tokens].most;
    bel_columns_block block = {
        .tokens = bel_arena_alloc(arena, rows * tokens * sizeof *block.tokens),
        .lengths = bel_arena_alloc(arena, rows * sizeof *block.lengths),
        .x = bel_arena_alloc(arena, rows * (size_t)c->x_width * sizeof *block.x),
        .ids = bel_arena_alloc(arena, rows * (size_t)c->id_count * sizeof *block.ids),
        .lists = bel_arena_alloc(arena, rows * lists * sizeof *block.lists),
        .class_number =
            bel_arena_alloc(arena, rows * ((size_t)c->label_count + 1) * sizeof(int64_t)),
        .number = bel_arena_alloc(arena, rows * sizeof *block.number),
        .weight = bel_arena_alloc(arena, rows * sizeof *block.weight)};
    bel_status *status = read_all(source, &block, false);
    bel_arena_destroy(arena);
    return status;
}

bel_status *bel_source_open_memory_table(const bel_memory_table_description *description,
                                         bel_source **out_source)
{
    memory_table_source *source;
    BEL_TRY(open_rows(description->rows, description->columns, description->unlabeled, &source));
    bel_status *status = check_all(source);
    if (status != NULL) {
        memory_table_destroy(&source->base);
        return status;
    }
    for (int c = 0; c < source->columns->count; c++) {
        const bel_memory_column *cells = source->cells[c];
        if (cells == NULL) continue;
        source->base.content = hash_column(&source->rows, cells, source->base.content);
        size_t size = cells->numbers == NULL ? sizeof *cells->codes : bel_dtype_size(cells->dtype);
        source->base.size_bytes += (uint64_t)source->rows.row_count * size;
    }
    *out_source = &source->base;
    return NULL;
}

// --- Features of all rows ------------------------------------------------------------------------

bel_columns_widths bel_columns_feature_widths(const bel_columns *columns)
{
    return (bel_columns_widths){.x = columns->x_width,
                                .ids = columns->id_count,
                                .id_lists = columns->list_count,
                                .most = columns->list_most};
}

bel_status *bel_columns_features(const bel_columns *columns, const bel_memory_table *rows,
                                 float *out_x, int64_t *out_ids, int64_t *out_id_lists)
{
    memory_table_source *source;
    if (columns->tokens >= 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the features of \"%s\" are tokens and a length, which only datasets give",
                       columns->items[columns->tokens].name);
    BEL_TRY(open_rows(rows, columns, true, &source));
    const bel_columns_block to = {.x = out_x, .ids = out_ids, .lists = out_id_lists};
    bel_status *status = read_all(source, &to, true);
    memory_table_destroy(&source->base);
    return status;
}

// --- Inputs of an exported model -----------------------------------------------------------------

static bel_status *input_of_numbers(const bel_columns *columns, const bel_column *column,
                                    const bel_memory_table *rows, const bel_memory_column *cells,
                                    double *out)
{
    for (int64_t i = 0; i < rows->row_count; i++) {
        const int64_t row = bel_memory_row(rows, i);
        bool none;
        if (!read_number(columns, column, cells, row, &out[i], &none))
            return wrong_cell(columns, column, cells, &row, 1);
        if (none) out[i] = (double)NAN;
    }
    return NULL;
}

static void input_of_categories(const bel_columns *columns, const bel_column *column,
                                const bel_memory_table *rows, const bel_memory_column *cells,
                                double *out)
{
    char room[BEL_MEMORY_CELL];
    for (int64_t i = 0; i < rows->row_count; i++) {
        const int64_t row = bel_memory_row(rows, i);
        bel_cell cell = bel_memory_cell(cells, row, columns->decimal, room);
        bool none = bel_column_is_missing(columns, column, cell.text, cell.length);
        int value = none ? -1 : bel_column_value(column, cell.text, cell.length);
        if (none && column->missing_value) value = column->value_count;
        out[i] = value;
    }
}

static bel_status *input_of_dates(const bel_columns *columns, const bel_column *column,
                                  const bel_memory_table *table, const bel_memory_column *cells,
                                  double *out)
{
    const int64_t row_count = table->row_count;
    const ptrdiff_t width = column->x_width, stride = columns->x_width;
    float *x = bel_xcalloc(BEL_COLUMNS_BLOCK * (size_t)columns->x_width, sizeof *x);
    const bel_columns_block to = {.x = x};
    bel_status *status = NULL;
    for (int64_t at = 0; at < row_count && status == NULL; at += BEL_COLUMNS_BLOCK) {
        int64_t rows[BEL_COLUMNS_BLOCK];
        int count = row_count - at < BEL_COLUMNS_BLOCK ? (int)(row_count - at) : BEL_COLUMNS_BLOCK;
        for (int i = 0; i < count; i++)
            rows[i] = bel_memory_row(table, at + i);
        memset(x, 0, (size_t)(count * stride) * sizeof *x);
        bel_row_bits wrong = put_column(columns, column, cells, rows, count, &to);
        if (wrong != 0) status = wrong_cell(columns, column, cells, rows, wrong);
        for (int i = 0; i < count; i++)
            for (ptrdiff_t p = 0; p < width; p++)
                out[((ptrdiff_t)at + i) * width + p] = (double)x[i * stride + column->x_place + p];
    }
    bel_free(x);
    return status;
}

bel_status *bel_columns_input(const bel_columns *columns, const bel_memory_table *rows,
                              const char *name, int64_t width, double *out)
{
    bel_memory_table table;
    BEL_TRY(bel_memory_table_take(rows, &table));
    const int number = bel_columns_find(columns, name), place = bel_memory_table_find(&table, name);
    const bel_column *column = number < 0 ? NULL : &columns->items[number];
    if (column == NULL || place < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "no column \"%s\" in the %s", name,
                       column == NULL ? "description" : "table");
    }
    bool date = column->kind == BEL_COLUMN_DATE, category = column->kind == BEL_COLUMN_CATEGORY;
    if (!date && !category && column->kind != BEL_COLUMN_NUMBER) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "column \"%s\": its input in an exported model has ids; hint: use the "
                       "checkpoint instead of the export",
                       name);
    }
    int64_t expected = date ? column->x_width : 1;
    if (width != expected) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "column \"%s\": expected a width of %lld, got %lld",
                       name, (long long)expected, (long long)width);
    }
    const bel_memory_column *cells = &table.columns[place];
    if (date) return input_of_dates(columns, column, &table, cells, out);
    if (!category) return input_of_numbers(columns, column, &table, cells, out);
    input_of_categories(columns, column, &table, cells, out);
    return NULL;
}
