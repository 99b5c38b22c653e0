// Two passes: the first one finds the columns, since any line may have a new member. So a row can
// be found by its place, as in any CSV file, and everything that reads tables needs no other form.
// The file may change between the passes: the second one must look up each member again.
#include "input/table/csv_jsonl.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/index.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "columns/cell_number.h"

enum { MOST_COLUMNS = 65536 };

typedef struct jsonl {
    const char *path;
    int64_t line;     // from 1 on
    bel_arena *arena; // has the names
    bel_index index;
    const char **names;
    size_t capacity;
    int count;
    const bel_json_value **cells; // by column, of the line
    bel_str cell, csv;
} jsonl;

bool bel_csv_is_jsonl(const char *path)
{
    static const char *const ends[] = {".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t its = strlen(ends[i]);
        if (length > its && strcmp(path + length - its, ends[i]) == 0) return true;
    }
    return false;
}

// --- Lines ---------------------------------------------------------------------------------------

// Uses the object of a line.
typedef bel_status *jsonl_use_fn(jsonl *j, const bel_json_value *object);

static bel_status *use_line(jsonl *j, const char *text, size_t size, jsonl_use_fn *use)
{
    bel_json *json;
    char *place = bel_strf("%s:%lld", j->path, (long long)j->line);
    bel_status *status = bel_json_parse(text, size, place, &json);
    bel_free(place);
    BEL_TRY(status);
    status = use(j, bel_json_root(json));
    bel_json_destroy(json);
    return status;
}

// Returns the end of the text without the blank lines at its end.
static const char *last_line_end(const char *text, const char *end)
{
    while (end > text && memchr(" \t\r\n", end[-1], 4) != NULL) // a zero byte is no blank
        end--;
    return end;
}

static bel_status *use_lines(jsonl *j, const bel_file_view *view, jsonl_use_fn *use)
{
    const char *at = view->data, *end = last_line_end(at, at + view->size);
    at += bel_utf8_mark_bytes(at, view->size);
    for (j->line = 1; at < end; j->line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        BEL_TRY(use_line(j, at, (size_t)(stop - at), use));
        at = stop + 1;
    }
    return NULL;
}

// --- Columns -------------------------------------------------------------------------------------

static int find_column(const jsonl *j, const char *name)
{
    size_t at = 0;
    for (int found; (found = bel_index_next_text(&j->index, name, &at)) >= 0;)
        if (strcmp(j->names[found], name) == 0) return found;
    return -1;
}

static bel_status *note_member(void *context, const char *name, const bel_json_value *value)
{
    jsonl *j = context;
    if (bel_json_is_array(value) || bel_json_is_object(value)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s:%lld: \"%s\": expected a text, a number, true, false or null, got %s",
                       j->path, (long long)j->line, name,
                       bel_json_is_array(value) ? "a list" : "an object");
    }
    if (find_column(j, name) >= 0) return NULL;
    if (j->count == MOST_COLUMNS) {
        return BEL_ERR(BEL_DATA_LOSS, "%s:%lld: \"%s\" is one member more than %d", j->path,
                       (long long)j->line, name, MOST_COLUMNS);
    }
    j->names = bel_xgrow(j->names, &j->capacity, (size_t)j->count + 1, sizeof *j->names);
    j->names[j->count] = bel_arena_strdup(j->arena, name);
    bel_index_put_text(&j->index, j->names[j->count], j->count);
    j->count++;
    return NULL;
}

static bel_status *note_columns(jsonl *j, const bel_json_value *object)
{
    if (bel_json_is_object(object)) return bel_json_each(object, note_member, j);
    return BEL_ERR(BEL_DATA_LOSS, "%s:%lld: expected an object", j->path, (long long)j->line);
}

// --- Rows ----------------------------------------------------------------------------------------

// Quotes only if it is necessary. An only cell that is empty would be a blank line without quotes.
static void put_cell(jsonl *j, const char *text)
{
    bool quoted = text[strcspn(text, ",;\t|\"\r\n")] != '\0' || (j->count == 1 && *text == '\0');
    if (!quoted) {
        bel_str_puts(&j->csv, text);
        return;
    }
    bel_str_puts(&j->csv, "\"");
    for (const char *at = text; *at != '\0';) {
        size_t plain = strcspn(at, "\"");
        bel_str_append(&j->csv, at, plain);
        at += plain;
        if (*at == '"') {
            bel_str_puts(&j->csv, "\"\"");
            at++;
        }
    }
    bel_str_puts(&j->csv, "\"");
}

// Another process may write the file between the passes.
static bel_status *changed(const jsonl *j)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s:%lld: it changed while it was read", j->path,
                   (long long)j->line);
}

static bel_status *take_member(void *context, const char *name, const bel_json_value *value)
{
    jsonl *j = context;
    int column = find_column(j, name);
    if (column < 0) return changed(j);
    j->cells[column] = value;
    return NULL;
}

static bel_status *put_row(jsonl *j, const bel_json_value *object)
{
    memset(j->cells, 0, (size_t)j->count * sizeof *j->cells);
    if (!bel_json_is_object(object)) return changed(j);
    BEL_TRY(bel_json_each(object, take_member, j));
    for (int c = 0; c < j->count; c++) {
        const bel_json_value *value = j->cells[c];
        bool empty = value == NULL || bel_json_is_null(value);
        j->cell.length = 0;
        bel_str_puts(&j->cell, "");
        if (!empty && !bel_cell_of_json(&j->cell, value)) return changed(j);
        if (c > 0) bel_str_puts(&j->csv, ",");
        put_cell(j, j->cell.text);
    }
    bel_str_puts(&j->csv, "\n");
    if (j->csv.length <= BEL_CSV_JSONL_MOST) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "%s: as a table it takes more than %d MiB of memory; hint: write it as CSV, "
                   "which is read in place",
                   j->path, BEL_CSV_JSONL_MOST >> 20);
}

static void put_header(jsonl *j)
{
    for (int c = 0; c < j->count; c++) {
        if (c > 0) bel_str_puts(&j->csv, ",");
        put_cell(j, j->names[c]);
    }
    bel_str_puts(&j->csv, "\n");
}

// --- Files ---------------------------------------------------------------------------------------

static bel_status *convert(jsonl *j, const bel_file_view *view)
{
    BEL_TRY(use_lines(j, view, note_columns));
    if (j->count == 0)
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected objects with members, one a line", j->path);
    j->cells = bel_arena_alloc(j->arena, (size_t)j->count * sizeof *j->cells);
    put_header(j);
    BEL_TRY(use_lines(j, view, put_row));
    return bel_file_view_check(view, j->path);
}

bel_status *bel_csv_from_jsonl(const char *path, bel_file_view *view)
{
    jsonl j = {.path = path, .arena = bel_arena_create()};
    char size[32];
    bel_status *status = convert(&j, view);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "%s: %lld objects with %d members are held in memory (%s)",
                      path, (long long)j.line - 1, j.count, bel_bytes_text(j.csv.length, size));
        bel_file_view_close(view);
        *view = (bel_file_view){.data = j.csv.text, .size = j.csv.length, .memory = j.csv.text};
    } else {
        bel_str_deinit(&j.csv);
    }
    bel_str_deinit(&j.cell);
    bel_free(j.names);
    bel_index_deinit(&j.index);
    bel_arena_destroy(j.arena);
    return status;
}
