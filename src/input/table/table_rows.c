// Both parts read cells with the same functions as datasets (csv_split.h, csv_table.h), so a value
// is the same text either way. A single row is read as a file of one row, so that its messages have
// the same form; its line is counted here.
#include "input/table/table_rows.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/str.h"
#include "input/table/csv_table.h"

static int table_rows_find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

static bel_status *no_column(const bel_csv_file *file, const char *const *header, const char *name)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: no column \"%s\"%s", file->path, name,
                   bel_csv_table_delimiter_hint(header, file->column_count, file->delimiter));
}

// --- Cells of files ------------------------------------------------------------------------------

struct bel_table_cells {
    bel_arena *arena;
    bel_csv_set set;
    int name_count;
    int **fields; // per file: the field of each name's cell
};

static bel_status *open_cells(bel_table_cells *cells, const bel_columns *columns,
                              const char *const *paths, int path_count, const char *const *names)
{
    const bel_csv_label none = {.column = -1};
    const char *const *found;
    BEL_TRY(
        bel_csv_set_open(&cells->set, cells->arena, paths, path_count, columns->delimiter, &found));
    size_t files = (size_t)cells->set.count, count = (size_t)cells->name_count;
    cells->fields = bel_arena_alloc(cells->arena, files * sizeof *cells->fields);
    for (int i = 0; i < cells->set.count; i++) {
        bel_csv_file *file = &cells->set.files[i];
        const char *const *header;
        BEL_TRY(bel_csv_table_names(file, columns->header, cells->arena, &header));
        cells->fields[i] = bel_arena_alloc(cells->arena, count * sizeof **cells->fields);
        for (int n = 0; n < cells->name_count; n++) {
            cells->fields[i][n] = table_rows_find(header, file->column_count, names[n]);
            if (cells->fields[i][n] < 0) return no_column(file, header, names[n]);
        }
    }
    return bel_csv_set_index(&cells->set, &none, false);
}

bel_status *bel_table_cells_create(const bel_columns *columns, const char *const *paths,
                                   int path_count, const char *const *names, int name_count,
                                   bel_table_cells **out_cells)
{
    bel_table_cells *cells = bel_xcalloc(1, sizeof *cells);
    cells->arena = bel_arena_create();
    cells->name_count = name_count;
    bel_status *status = open_cells(cells, columns, paths, path_count, names);
    if (status != NULL) {
        bel_table_cells_destroy(cells);
        return status;
    }
    *out_cells = cells;
    return NULL;
}

void bel_table_cells_destroy(bel_table_cells *cells)
{
    if (cells == NULL) return;
    bel_csv_set_close(&cells->set);
    bel_arena_destroy(cells->arena);
    bel_free(cells);
}

static void set_text(const bel_csv_field *field, bel_csv_spare *spare, bel_str *out_text)
{
    bel_cell cell = bel_csv_table_cell(field, spare);
    out_text->length = 0;
    bel_str_append(out_text, cell.text, cell.length);
}

void bel_table_cells_get(const bel_table_cells *cells, int64_t row, int name, bel_str *out_text)
{
    const char *at;
    const bel_csv_file *file = bel_csv_set_find(&cells->set, row, &at);
    int wanted = cells->fields[file - cells->set.files][name];
    bel_csv_field field = {0};
    bel_csv_spare spare = {0};
    for (int i = 0; i <= wanted; i++)
        (void)bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
    set_text(&field, &spare, out_text);
    bel_free(spare.text);
}

// --- Rows one by one -----------------------------------------------------------------------------

// Position of a byte in a row, as in csv_split.c: a quote opens only at the start of a field.
typedef enum scan_state {
    SCAN_FIELD_BEGINS,
    SCAN_PLAIN,
    SCAN_QUOTED,
    SCAN_QUOTE, // after a quote inside quotes: it closes them unless a second one follows
} scan_state;

struct bel_table_lines {
    const bel_columns *columns;
    const char *const *names;
    int name_count;
    bel_arena *arena;
    bool bound;
    int field_count;
    int *places; // per field: the column, or -1
    int *wanted; // per field: the name, or -1
    bel_str *cells;
    int64_t line; // the next row's
    bel_csv_spare spare;
    // The text that bel_table_lines_next has scanned:
    size_t waiting;   // bytes of leading blank rows that nothing follows yet
    size_t blank;     // bytes of leading blank rows that another row follows
    size_t scanned;   // bytes of an incomplete row
    scan_state state; // after those bytes
};

#define SOURCE "standard input"

bel_table_lines *bel_table_lines_create(const bel_columns *columns, const char *const *names,
                                        int name_count)
{
    bel_table_lines *lines = bel_xcalloc(1, sizeof *lines);
    lines->columns = columns;
    lines->names = names;
    lines->name_count = name_count;
    lines->arena = bel_arena_create();
    lines->cells = bel_xcalloc((size_t)name_count + 1, sizeof *lines->cells);
    lines->line = 1;
    return lines;
}

void bel_table_lines_destroy(bel_table_lines *lines)
{
    if (lines == NULL) return;
    for (int i = 0; i < lines->name_count; i++)
        bel_str_deinit(&lines->cells[i]);
    bel_free(lines->cells);
    bel_free(lines->spare.text);
    bel_arena_destroy(lines->arena);
    bel_free(lines);
}

static scan_state scan_byte(scan_state state, char byte, char delimiter)
{
    if (state == SCAN_QUOTED) return byte == '"' ? SCAN_QUOTE : SCAN_QUOTED;
    if (byte == '"' && state == SCAN_QUOTE) return SCAN_QUOTED; // doubled
    if (byte == '"' && state == SCAN_FIELD_BEGINS) return SCAN_QUOTED;
    return byte == delimiter ? SCAN_FIELD_BEGINS : SCAN_PLAIN;
}

// Size of the blank row at the start of `text`; 0: there is no blank row, or not all of it.
static size_t blank_row(const char *text, size_t length)
{
    if (length >= 1 && text[0] == '\n') return 1;
    return length >= 2 && text[0] == '\r' && text[1] == '\n' ? 2 : 0;
}

// A line feed inside quotes belongs to the row. A quote may open directly after a byte order mark
// at the start of the first row.
size_t bel_table_lines_next(bel_table_lines *lines, const char *text, size_t length, bool last)
{
    static const char mark[] = "\xEF\xBB\xBF";
    if (lines->blank == 0 && lines->scanned == 0) {
        for (size_t bytes = 1; bytes > 0; lines->waiting += bytes)
            bytes = blank_row(text + lines->waiting, length - lines->waiting);
        size_t rest = length - lines->waiting;
        bool half = rest == 1 && text[lines->waiting] == '\r' && !last;
        if (rest == 0 || half) return 0;
        lines->blank = lines->waiting;
        lines->waiting = 0;
    }
    if (lines->blank > 0) {
        size_t bytes = blank_row(text, length);
        lines->blank -= bytes;
        return bytes;
    }
    size_t i = lines->scanned;
    scan_state state = lines->state;
    while (i < length && (text[i] != '\n' || state == SCAN_QUOTED)) {
        bool of_mark = !lines->bound && i < 3 && text[i] == mark[i];
        if (!of_mark) state = scan_byte(state, text[i], lines->columns->delimiter);
        i++;
    }
    bool whole = i < length || last;
    lines->scanned = whole ? 0 : i;
    lines->state = whole ? SCAN_FIELD_BEGINS : state;
    if (!whole) return 0;
    return i < length ? i + 1 : length;
}

static bel_status *table_lines_bind(bel_table_lines *lines, bel_csv_file *file)
{
    const bel_columns *columns = lines->columns;
    const char *const *header;
    BEL_TRY(bel_csv_table_names(file, columns->header, lines->arena, &header));
    size_t count = (size_t)file->column_count;
    lines->field_count = file->column_count;
    lines->places = bel_arena_alloc(lines->arena, count * sizeof *lines->places);
    lines->wanted = bel_arena_alloc(lines->arena, count * sizeof *lines->wanted);
    bool *found = bel_arena_alloc(lines->arena, (size_t)columns->count * sizeof *found);
    bool *asked = bel_arena_alloc(lines->arena, (size_t)lines->name_count * sizeof *asked);
    for (int i = 0; i < lines->field_count; i++) {
        int c = bel_columns_find(columns, header[i]);
        bool reads = c >= 0 && !found[c] && bel_column_is_feature(&columns->items[c]);
        lines->places[i] = reads ? c : -1;
        if (c >= 0) found[c] = true;
        int n = table_rows_find(lines->names, lines->name_count, header[i]);
        lines->wanted[i] = n < 0 || asked[n] ? -1 : n; // the first of equal names counts
        if (n >= 0) asked[n] = true;
    }
    for (int c = 0; c < columns->count; c++)
        if (!found[c] && bel_column_is_feature(&columns->items[c]))
            return no_column(file, header, columns->items[c].name);
    for (int n = 0; n < lines->name_count; n++)
        if (!asked[n]) return no_column(file, header, lines->names[n]);
    lines->bound = true;
    return NULL;
}

static bel_status *cell_error(const bel_table_lines *lines, const bel_csv_file *file,
                              const char *at, const char *message)
{
    return BEL_ERR(BEL_DATA_LOSS, SOURCE ":%lld:%lld: %s", (long long)lines->line,
                   (long long)(at - file->text) + 1, message);
}

// Reads a cell into the row; returns its error.
static bel_status *take_cell(bel_table_lines *lines, const bel_csv_file *file,
                             const bel_column *column, const bel_csv_field *field,
                             const bel_columns_block *row)
{
    char expected[BEL_COLUMN_EXPECTED];
    bel_cell cell = bel_csv_table_cell(field, &lines->spare);
    if (bel_columns_put(lines->columns, column, &cell, 1, row) == 0) return NULL;
    bel_columns_expected(lines->columns, column, cell, expected);
    char *got = bel_csv_quote(field);
    char *message = bel_strf("column \"%s\": expected %s, got %s", column->name, expected, got);
    bel_status *status = cell_error(lines, file, field->text, message);
    bel_free(message);
    bel_free(got);
    return status;
}

static bel_status *take_fields(bel_table_lines *lines, const bel_csv_file *file,
                               const bel_columns_block *row)
{
    const char *at = file->text, *zero = memchr(at, '\0', (size_t)(file->end - at));
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    if (zero != NULL) return cell_error(lines, file, zero, "expected text, got a zero byte");
    bel_columns_begin(lines->columns, row, 1);
    for (int i = 0; i < lines->field_count; i++) {
        bel_csv_field field;
        if (stop != BEL_CSV_DELIMITER) return cell_error(lines, file, at, "too few fields");
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END) return cell_error(lines, file, at, bel_csv_fault_text(stop));
        if (lines->wanted[i] >= 0) set_text(&field, &lines->spare, &lines->cells[lines->wanted[i]]);
        if (lines->places[i] < 0) continue;
        const bel_column *column = &lines->columns->items[lines->places[i]];
        BEL_TRY(take_cell(lines, file, column, &field, row));
    }
    if (stop == BEL_CSV_DELIMITER) return cell_error(lines, file, at, "too many fields");
    bel_columns_end(lines->columns, row, 1);
    return NULL;
}

bel_status *bel_table_lines_take(bel_table_lines *lines, const char *text, size_t length,
                                 const bel_columns_block *row, bool *out_is_header)
{
    bel_csv_file file = {.path = SOURCE,
                         .delimiter = lines->columns->delimiter,
                         .text = text,
                         .end = text + length,
                         .rows = text};
    if (!lines->bound) file.text += bel_utf8_mark_bytes(text, length);
    *out_is_header = !lines->bound && lines->columns->header;
    bel_status *status = lines->bound ? NULL : table_lines_bind(lines, &file);
    if (status == NULL && !*out_is_header) status = take_fields(lines, &file, row);
    for (size_t i = 0; i < length; i++)
        lines->line += text[i] == '\n';
    return status;
}

const bel_str *bel_table_lines_cell(const bel_table_lines *lines, int name)
{
    return &lines->cells[name];
}
