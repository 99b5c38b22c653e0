// Reader of a block of a table's rows, one column at a time. Rows are split, then
// columns/transform.h turns each column's cells into elements. The check of all cells, training,
// evaluation and prediction all use it. Cells of numbers are read as they are in the file. Cells
// that are not bare numbers are read carefully, to the same bits. Columns come in the order of the
// fields, and a row is not read further after its first wrong cell. So a row's error is the one
// that reading from left to right finds.
#include <string.h>

#include "base/alloc.h"
#include "base/decimal.h"
#include "input/source/table_source.h"

// Part of a block whose files have the same columns at the same places.
typedef struct run {
    const bel_table_source *source;
    bel_table_block *block;
    bel_table_scratch *s;
    int first, count;        // rows of the block
    bel_row_bits live;       // the run's rows without an error so far
    bel_columns_block to;    // from the run's first row on
    const char *const *ends; // end of each row's file; NULL: no row is near it
} run;

void bel_table_scratch_init(const bel_table_source *source, int64_t row_count, bel_table_scratch *s)
{
    const size_t rows = row_count < BEL_COLUMNS_BLOCK ? (size_t)row_count : BEL_COLUMNS_BLOCK;
    const bel_columns *columns = source->columns;
    int most = 0;
    bool crosses = false;
    const int files = source->set.pattern != NULL ? 1 : source->set.count; // alike, when followed
    for (int i = 0; i < files; i++)
        if (source->set.files[i].column_count > most) most = source->set.files[i].column_count;
    for (int c = 0; c < columns->count; c++)
        crosses = crosses || columns->items[c].crossed;
    *s = (bel_table_scratch){.start_count = (size_t)most + BEL_CSV_SPARE_STARTS};
    s->starts = bel_xmalloc(rows * s->start_count * sizeof *s->starts);
    if (crosses) s->crossed = bel_xcalloc(rows * (size_t)columns->count, sizeof *s->crossed);
}

void bel_table_scratch_deinit(bel_table_scratch *s)
{
    bel_free(s->starts);
    bel_free(s->crossed);
    bel_free(s->spare.text);
    bel_arena_destroy(s->arena);
    bel_free(s->unknown);
}

// --- Labels --------------------------------------------------------------------------------------

static bel_label_state judge_label(const bel_table_source *source, const bel_column *column,
                                   bel_cell cell)
{
    bool classes = column->label == BEL_LABEL_CLASSES;
    if (classes && bel_column_value(column, cell.text, cell.length) >= 0)
        return (bel_label_state){BEL_FOUND_GOOD, -1};
    int missing = bel_missing_texts_find(&source->columns->missing, source->columns->decimal,
                                         cell.text, cell.length);
    return (bel_label_state){missing >= 0 ? BEL_FOUND_MISSING
                             : classes    ? BEL_FOUND_UNKNOWN
                                          : BEL_FOUND_GOOD,
                             missing};
}

bel_label_state bel_table_source_find_label(const bel_table_source *source,
                                            const bel_csv_file *file, const char *at,
                                            bel_table_scratch *s)
{
    const int *places = source->places[bel_table_source_file(source, file)];
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    bel_label_state state = {BEL_FOUND_GOOD, -1};
    for (int i = 0; i < file->column_count && stop == BEL_CSV_DELIMITER; i++) {
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        const bel_column *column = places[i] < 0 ? NULL : &source->columns->items[places[i]];
        if (column == NULL || column->kind != BEL_COLUMN_LABEL || stop > BEL_CSV_ROW_END) continue;
        bel_label_state one = judge_label(source, column, bel_csv_table_cell(&field, &s->spare));
        if (one.kind == BEL_FOUND_MISSING || state.kind == BEL_FOUND_GOOD) state = one;
        if (one.kind == BEL_FOUND_MISSING) break;
    }
    return state;
}

// --- Errors --------------------------------------------------------------------------------------

static bel_csv_field field_of(const run *r, int row, int field)
{
    const char *const *starts = r->s->starts + (size_t)row * r->s->start_count + field;
    return bel_csv_field_between(starts[0], starts[1]);
}

static void note_error(run *r, int row, bel_status *status, bool of_label)
{
    bel_table_block *block = r->block;
    const int i = r->first + row;
    bel_label_state *label = &block->labels[i];
    *label = bel_table_source_find_label(r->source, block->files[i], block->rows[i], r->s);
    if (label->kind == BEL_FOUND_UNKNOWN && !of_label) label->kind = BEL_FOUND_GOOD;
    block->errors[i] = status;
    block->wrong |= (bel_row_bits)1 << i;
    r->live &= ~((bel_row_bits)1 << row);
}

static void note_wrong_cell(run *r, int row, int field_number, const bel_column *column)
{
    const bel_csv_file *file = r->block->files[r->first + row];
    bel_csv_field field = field_of(r, row, field_number);
    bel_cell cell = bel_csv_table_cell(&field, &r->s->spare);
    bool of_label = column->kind == BEL_COLUMN_LABEL;
    char expected[BEL_COLUMN_EXPECTED];
    char *got = bel_csv_quote(&field);
    bel_columns_expected(r->source->columns, column, cell, expected);
    note_error(r, row,
               bel_csv_file_error(file, field.text, "%s \"%s\": expected %s, got %s",
                                  of_label ? "label" : "column", column->name, expected, got),
               of_label);
    bel_free(got);
}

// Keeps the first cell that was counted as unknown.
static void note_unknown(run *r, int field_number, const bel_column *column, const bel_cell *cells)
{
    const ptrdiff_t number = column - r->source->columns->items;
    bel_unknown_cell *first = &r->s->unknown[number];
    bool known = column->kind == BEL_COLUMN_TOKENS || r->to.seen[number].unknown == 0;
    if (known || first->file != NULL) return;
    for (int row = 0; row < r->count && first->file == NULL; row++) {
        const bel_cell cell = cells[row];
        if ((r->live >> row & 1) == 0 ||
            bel_column_is_missing(r->source->columns, column, cell.text, cell.length) ||
            bel_column_value(column, cell.text, cell.length) >= 0)
            continue;
        *first =
            (bel_unknown_cell){r->block->files[r->first + row], field_of(r, row, field_number)};
    }
}

// --- Columns -------------------------------------------------------------------------------------

// A cell without quotes and spaces, valid until the block is read.
static bel_cell cell_of(run *r, int row, int field_number)
{
    bel_table_scratch *s = r->s;
    bel_csv_field field = field_of(r, row, field_number);
    bel_cell cell = bel_csv_table_cell(&field, &s->spare);
    if (cell.text != s->spare.text || cell.length == 0) return cell;
    if (s->arena == NULL) s->arena = bel_arena_create();
    cell.text = bel_arena_copy(s->arena, cell.text, cell.length);
    return cell;
}

// Whether the careful way would read the same number from a text that was read as it is.
static bool is_bare(const bel_columns *columns, const bel_column *column, const char *from,
                    const char *to)
{
    return !bel_csv_table_may_be_other(columns, from, to) &&
           !bel_column_is_missing_number(columns, column, from, (size_t)(to - from));
}

// Reads the short numbers of a column; returns the rows whose cell is something else. The loop
// makes no calls. `ends` is NULL if every row has BEL_DECIMAL_ROOM bytes after it.
static bel_row_bits read_short_numbers(const char *const *starts, size_t stride,
                                       const char *const *ends, int count, double *values)
{
    bel_row_bits others = 0;
    for (int row = 0; row < count; row++, starts += stride) {
        const char *text = starts[0];
        const size_t length = (size_t)(starts[1] - 1 - text);
        const size_t room = ends == NULL ? BEL_DECIMAL_ROOM : (size_t)(ends[row] - text);
        bool read = bel_decimal_read_short(text, length, room, &values[row]);
        others |= (bel_row_bits)!read << row;
    }
    return others;
}

// Reads the bare numbers of a column as they are in the files; returns the rows whose cell is
// something else.
static bel_row_bits read_bare_numbers(const run *r, int field, const bel_column *column,
                                      double *values)
{
    const bel_columns *columns = r->source->columns;
    const bool any =
        columns->decimal == '.' && !columns->missing.has_number && !column->absent.has_number;
    const size_t stride = r->s->start_count;
    const char *const *starts = r->s->starts + field;
    const bel_row_bits longer = read_short_numbers(starts, stride, r->ends, r->count, values);
    bel_row_bits others = 0;
    for (bel_row_bits left = any ? longer : r->live; left != 0; left &= left - 1) {
        const int row = __builtin_ctz(left);
        const char *text = starts[(size_t)row * stride],
                   *end = starts[(size_t)row * stride + 1] - 1;
        bool read = (longer >> row & 1) == 0 || bel_decimal_parse(text, end, &values[row]) == end;
        if (read && !any) read = is_bare(columns, column, text, end);
        others |= (bel_row_bits)!read << row;
    }
    return others;
}

static bel_row_bits read_numbers(run *r, int field, const bel_column *column)
{
    const bel_columns *columns = r->source->columns;
    double values[BEL_COLUMNS_BLOCK];
    bel_row_bits missing = 0, wrong = 0;
    for (bel_row_bits left = read_bare_numbers(r, field, column, values); left != 0;
         left &= left - 1) {
        const int row = __builtin_ctz(left);
        const bel_row_bits bit = (bel_row_bits)1 << row;
        bool none = false, live = (r->live & bit) != 0;
        values[row] = column->fill;
        bool good = !live || bel_columns_read_number(columns, column, cell_of(r, row, field),
                                                     &values[row], &none);
        if (!good) wrong |= bit;
        if (good && none) missing |= bit;
    }
    return r->live &
           (wrong | bel_columns_put_numbers(columns, column, values, missing, r->count, &r->to));
}

static bel_row_bits read_cells(run *r, int field, const bel_column *column)
{
    bel_cell cells[BEL_COLUMNS_BLOCK];
    for (bel_row_bits left = r->live; left != 0; left &= left - 1) {
        int row = __builtin_ctz(left);
        cells[row] = cell_of(r, row, field);
    }
    bel_row_bits wrong = bel_columns_put(r->source->columns, column, cells, r->live, &r->to);
    if (r->s->unknown != NULL) note_unknown(r, field, column, cells);
    return wrong;
}

// --- Blocks --------------------------------------------------------------------------------------

static void split_rows(run *r)
{
    bool near = false;
    for (int row = 0; row < r->count; row++) {
        const int i = r->first + row;
        const bel_csv_file *file = r->block->files[i];
        const char **starts = r->s->starts + (size_t)row * r->s->start_count, *fault;
        bel_csv_stop stop = bel_csv_split_row(r->block->rows[i], file->end, file->delimiter,
                                              file->column_count, starts, &fault);
        near = near || stop > BEL_CSV_ROW_END ||
               file->end - starts[file->column_count] < BEL_DECIMAL_ROOM;
        if (stop <= BEL_CSV_ROW_END) continue;
        // Only if the file was changed since it was indexed.
        for (int f = 0; f <= file->column_count; f++)
            starts[f] = r->block->rows[i] + 1;
        note_error(r, row, bel_csv_file_error(file, fault, "%s", bel_csv_fault_text(stop)), false);
    }
    if (!near) r->ends = NULL;
}

// Whether a column accepts every double, and no number stands for a missing value.
static bool takes_all_numbers(const bel_columns *columns, const bel_column *column)
{
    return column->kind == BEL_COLUMN_NUMBER && columns->decimal == '.' &&
           !columns->missing.has_number && !column->absent.has_number &&
           (column->scale == BEL_SCALE_BUCKETS || column->clip > 0);
}

// Column of a field; NULL: the field is not read.
static const bel_column *column_of(const run *r, int field)
{
    const bel_table_source *source = r->source;
    const bel_csv_file *file = r->block->files[r->first];
    const int place = source->places[bel_table_source_file(source, file)][field];
    const bel_column *column = place < 0 ? NULL : &source->columns->items[place];
    if (column == NULL || (r->block->known && takes_all_numbers(source->columns, column)))
        return NULL;
    return column;
}

static void read_run(run *r)
{
    const int fields = r->block->files[r->first]->column_count;
    int first = 0;
    while (first < fields && column_of(r, first) == NULL)
        first++;
    if (first == fields) return;
    r->live = bel_row_bits_first(r->count);
    split_rows(r);
    for (int field = first; field < fields; field++) {
        const bel_column *column = column_of(r, field);
        if (column == NULL) continue;
        bel_row_bits wrong = column->kind == BEL_COLUMN_NUMBER ? read_numbers(r, field, column)
                                                               : read_cells(r, field, column);
        for (; wrong != 0; wrong &= wrong - 1)
            note_wrong_cell(r, __builtin_ctz(wrong), field, column);
    }
}

static int layout_of(const bel_table_source *source, const bel_csv_file *file)
{
    return source->layouts[bel_table_source_file(source, file)];
}

void bel_table_source_read_block(const bel_table_source *source, bel_table_block *block,
                                 const bel_columns_block *to, bel_table_scratch *s)
{
    const char *ends[BEL_COLUMNS_BLOCK];
    bel_columns_block all = *to;
    all.crossed = s->crossed;
    block->wrong = 0;
    if (s->arena != NULL) bel_arena_reset(s->arena);
    bel_columns_begin(source->columns, &all, block->count);
    for (int first = 0, next; first < block->count; first = next) {
        const int layout = layout_of(source, block->files[first]);
        for (next = first; next < block->count && layout_of(source, block->files[next]) == layout;
             next++)
            ends[next] = block->files[next]->end;
        run r = {.source = source,
                 .block = block,
                 .s = s,
                 .first = first,
                 .count = next - first,
                 .to = bel_columns_block_from(source->columns, &all, first),
                 .ends = ends + first};
        read_run(&r);
    }
    bel_columns_end(source->columns, &all, block->count);
}
