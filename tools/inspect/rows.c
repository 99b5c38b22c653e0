// Rows in the order of their keys come from one pass over the checkpoint, with a block of each file
// in memory. Tables have keys and no names, as a log has more names than a training should keep. So
// the user names those of interest: their keys are sorted, one pass finds their rows, and only
// these are in memory.
#include "inspect/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/table.h"
#include "command/results.h"

enum { FLUSH_BYTES = 1 << 16 };

typedef struct named_row {
    const char *path;
    const char *name; // in the file's text, not terminated
    size_t length;
    int64_t line; // from 1
    int64_t key;
    int64_t place; // among the names of all files
    float *values; // NULL: no row
} named_row;

typedef struct name_list {
    char **texts; // files
    size_t text_count;
    named_row *at;
    size_t room;
    int64_t count;
} name_list;

// --- Lines ---------------------------------------------------------------------------------------

// JSON has no words for numbers that are not finite: they are null.
static void put_values(const float *values, int width, bool json, bel_str *out)
{
    char text[BEL_F32_TEXT];
    for (int i = 0; i < width; i++) {
        if (i > 0) bel_str_puts(out, json ? "," : "\t");
        if (json && !isfinite(values[i])) {
            bel_str_puts(out, "null");
        } else {
            bel_str_append(out, text, bel_shortest_f32(values[i], text));
        }
    }
}

// `named` is NULL for a row that has only a key.
static void put_row(int64_t key, const named_row *named, const float *values, int width, bool json,
                    bel_str *out)
{
    if (json) {
        bel_str_puts(out, "{");
        if (named != NULL) {
            char *name = bel_strf("%.*s", (int)named->length, named->name);
            bel_str_puts(out, "\"name\":");
            bel_json_write_string(out, name);
            bel_str_puts(out, ",");
            bel_free(name);
        }
        bel_str_puts(out, "\"key\":");
        bel_str_put_i64(out, key);
        bel_str_puts(out, ",\"values\":[");
        put_values(values, width, true, out);
        bel_str_puts(out, "]}\n");
        return;
    }
    if (named != NULL) {
        bel_str_append(out, named->name, named->length);
    } else {
        bel_str_put_i64(out, key);
    }
    bel_str_puts(out, "\t");
    put_values(values, width, false, out);
    bel_str_puts(out, "\n");
}

static bel_status *flush_above(bel_str *out, size_t most)
{
    if (out->length <= most) return NULL;
    BEL_TRY(bel_results_write_bytes(out->text, out->length));
    out->length = 0;
    return NULL;
}

// --- All rows ------------------------------------------------------------------------------------

static bel_status *write_all(bel_ckpt_cursor *cursor, int width, bool json, bel_str *out)
{
    bel_ckpt_row row;
    bool more;
    for (;;) {
        BEL_TRY(bel_ckpt_cursor_next(cursor, &row, &more));
        if (!more) return NULL;
        put_row(row.key, NULL, row.columns[0], width, json, out);
        BEL_TRY(flush_above(out, FLUSH_BYTES));
    }
}

// --- Named rows ----------------------------------------------------------------------------------

static int compare_keys(const void *a, const void *b)
{
    const named_row *left = a, *right = b;
    if (left->key != right->key) return left->key < right->key ? -1 : 1;
    return left->place < right->place ? -1 : 1;
}

static int compare_places(const void *a, const void *b)
{
    const named_row *left = a, *right = b;
    return left->place < right->place ? -1 : 1;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Takes the lines of a file, without a byte order mark and the spaces around them.
static bel_status *take_lines(name_list *list, const char *path, uint64_t seed, const char *text,
                              size_t size, bool json)
{
    const char *end = text + size;
    int64_t number = 0;
    for (const char *at = text + bel_utf8_mark_bytes(text, size); at < end; list->count++) {
        const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        at = stop + 1;
        while (line < stop && is_blank(*line))
            line++;
        while (stop > line && is_blank(stop[-1]))
            stop--;
        size_t length = (size_t)(stop - line);
        number++;
        if (!json && memchr(line, '\t', length) != NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "%s:%lld: the name has a tab, which separates values; hint: --json",
                           path, (long long)number);
        }
        list->at = bel_xgrow(list->at, &list->room, (size_t)list->count + 1, sizeof *list->at);
        list->at[list->count] = (named_row){.path = path,
                                            .name = line,
                                            .length = length,
                                            .line = number,
                                            .place = list->count,
                                            .key = bel_hash_name(line, length, seed)};
    }
    return NULL;
}

// `pair` is COLUMN=FILE, as its option demands.
static bel_status *take_names(name_list *list, const char *pair, bool json)
{
    const char *equals = strchr(pair, '='), *path = equals + 1;
    if (path[0] == '\0')
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--names: expected COLUMN=FILE, got \"%s\"", pair);
    size_t size;
    BEL_TRY(bel_file_read(path, &list->texts[list->text_count], &size));
    const char *text = list->texts[list->text_count++];
    char *column = bel_strf("%.*s", (int)(equals - pair), pair);
    uint64_t seed = bel_hash_name_seed(column);
    bel_free(column);
    int64_t before = list->count;
    BEL_TRY(take_lines(list, path, seed, text, size, json));
    if (list->count > before) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a name a line, got no line", path);
}

static void name_list_deinit(name_list *list)
{
    for (size_t i = 0; i < list->text_count; i++)
        bel_free(list->texts[i]);
    for (int64_t i = 0; i < list->count; i++)
        bel_free(list->at[i].values);
    bel_free(list->texts);
    bel_free(list->at);
}

// Copies the rows of the names, which are in the order of their keys.
static bel_status *find_rows(bel_ckpt_cursor *cursor, int width, named_row *names, int64_t count)
{
    bel_ckpt_row row;
    bool more = true;
    for (int64_t i = 0; i < count;) {
        BEL_TRY(bel_ckpt_cursor_next(cursor, &row, &more));
        if (!more) return NULL;
        while (i < count && names[i].key < row.key)
            i++;
        for (; i < count && names[i].key == row.key; i++) {
            size_t bytes = (size_t)width * sizeof *names[i].values;
            names[i].values = bel_xmalloc(bytes);
            memcpy(names[i].values, row.columns[0], bytes);
        }
    }
    return NULL;
}

// Checks the names of one file, which begin at `first` and are in its order; returns the place of
// the next file's in *out_end. NOT_FOUND: none has a row.
static bel_status *check_file(const name_list *list, const char *table, int64_t first,
                              int64_t *out_end)
{
    const named_row *names = list->at, *lacks = NULL;
    int64_t end = first, missing = 0;
    for (; end < list->count && names[end].path == names[first].path; end++) {
        if (names[end].values != NULL) continue;
        if (missing++ == 0) lacks = &names[end];
    }
    *out_end = end;
    if (missing == end - first) {
        return BEL_ERR(BEL_NOT_FOUND,
                       "%s: no name of %lld has a row in table \"%s\"; hint: COLUMN must be the "
                       "column of ids that has these names, and rows that are not admitted yet or "
                       "have expired are not in it",
                       names[first].path, (long long)missing, table);
    }
    if (missing > 0) {
        bel_log_write(BEL_LOG_WARN,
                      "%s: %lld of %lld names have no row in table \"%s\" and are left out; the "
                      "first is \"%.*s\" in line %lld",
                      lacks->path, (long long)missing, (long long)(end - first), table,
                      (int)lacks->length, lacks->name, (long long)lacks->line);
    }
    return NULL;
}

static bel_status *write_named(bel_ckpt_cursor *cursor, const bel_ckpt_table *table,
                               name_list *list, bool json, bel_str *out)
{
    named_row *names = list->at;
    int64_t count = list->count;
    if (count > 1) qsort(names, (size_t)count, sizeof *names, compare_keys);
    BEL_TRY(find_rows(cursor, table->width, names, count));
    if (count > 1) qsort(names, (size_t)count, sizeof *names, compare_places);
    for (int64_t first = 0, end; first < count; first = end)
        BEL_TRY(check_file(list, table->name, first, &end));
    for (int64_t i = 0; i < count; i++) {
        if (names[i].values == NULL) continue;
        put_row(names[i].key, &names[i], names[i].values, table->width, json, out);
        BEL_TRY(flush_above(out, FLUSH_BYTES));
    }
    return NULL;
}

static bel_status *write_names(bel_ckpt_cursor *cursor, const bel_ckpt_table *table,
                               const char *const *pairs, size_t pair_count, bool json, bel_str *out)
{
    name_list list = {.texts = bel_xcalloc(pair_count, sizeof *list.texts)};
    bel_status *status = NULL;
    for (size_t i = 0; i < pair_count && status == NULL; i++)
        status = take_names(&list, pairs[i], json);
    if (status == NULL) status = write_named(cursor, table, &list, json, out);
    name_list_deinit(&list);
    return status;
}

// --- The table -----------------------------------------------------------------------------------

static bel_status *find_table(const bel_ckpt_reader *reader, const char *name, int *out_index)
{
    bel_str others = {0};
    for (int i = 0; i < bel_ckpt_table_count(reader); i++) {
        int64_t rows;
        bel_ckpt_table table = bel_ckpt_table_at(reader, i, &rows);
        if (strcmp(table.name, name) == 0) {
            bel_str_deinit(&others);
            *out_index = i;
            return NULL;
        }
        bel_str_printf(&others, "%s%s", others.length > 0 ? ", " : "", table.name);
    }
    bel_status *status =
        BEL_ERR(BEL_NOT_FOUND, "%s: there is no table \"%s\"; tables: %s", bel_ckpt_folder(reader),
                name, others.length > 0 ? others.text : "none");
    bel_str_deinit(&others);
    return status;
}

bel_status *bel_inspect_rows(const bel_ckpt_reader *reader, const char *table,
                             const char *const *names, size_t name_count, bool json)
{
    int index = 0;
    int64_t row_count;
    BEL_TRY(find_table(reader, table, &index));
    bel_ckpt_table info = bel_ckpt_table_at(reader, index, &row_count);
    bel_ckpt_cursor *cursor = bel_ckpt_cursor_open(reader, index, true);
    bel_str out = {0};
    bel_status *status = name_count == 0
                             ? write_all(cursor, info.width, json, &out)
                             : write_names(cursor, &info, names, name_count, json, &out);
    if (status == NULL) status = flush_above(&out, 0);
    if (status == NULL) status = bel_results_flush();
    bel_str_deinit(&out);
    bel_ckpt_cursor_close(cursor);
    return status;
}
