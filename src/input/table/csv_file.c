// Opening a file looks at every row once (csv_index.c) for the number of fields, quotes and labels.
// It keeps only the offset where each row begins. So a record can be read at any place later on,
// and structure is never wrong in the middle of training. Rows are not lines, as a quoted field may
// hold line breaks; rows that do are few, and are noted, so that the line of a row is known. Blank
// lines count as rows but for those at the end, which are cut off.
#include "input/table/csv_file.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "input/table/csv_index.h"
#include "input/table/csv_jsonl.h"
#include "input/table/csv_kind.h"

// --- Open ----------------------------------------------------------------------------------------

// The end of the text without the blank lines at its end.
static const char *trim_blank_lines(const char *text, const char *end)
{
    while (end > text && end[-1] == '\n') {
        const char *before = end - 1;
        if (before > text && before[-1] == '\r') before--;
        if (before > text && before[-1] != '\n') break; // ends a line that is not blank
        end = before;
    }
    return end;
}

// Finds the text in the view.
static bel_status *find_text(bel_csv_file *file)
{
    file->text = file->view.data;
    file->end = file->view.data + file->view.size;
    file->text += bel_utf8_mark_bytes(file->text, file->view.size);
    BEL_TRY(bel_csv_kind_check(file->path, file->text, (size_t)(file->end - file->text)));
    file->rows = file->text;
    return NULL;
}

bel_status *bel_csv_file_open(bel_csv_file *file, const char *path, char delimiter)
{
    file->path = path;
    file->delimiter = delimiter;
    BEL_TRY(bel_file_view_open(path, &file->view));
    file->of_objects = bel_csv_is_jsonl(path);
    if (file->of_objects) {
        BEL_TRY(bel_csv_from_jsonl(path, &file->view));
        file->delimiter = ',';
    }
    BEL_TRY(find_text(file));
    file->end = trim_blank_lines(file->text, file->end);
    if (file->text == file->end) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected CSV, got an empty file", path);
    }
    return NULL;
}

// --- Growing files -------------------------------------------------------------------------------

// The end of the row at `row`; `row` itself: its line feed is not there. *out_fault: its quotes are
// wrong, whatever follows.
static const char *row_end(const char *row, const char *seen, char delimiter, bool *out_fault)
{
    const char *line = memchr(row, '\n', (size_t)(seen - row));
    const char *stop = line != NULL ? line + 1 : seen;
    bool quoted = memchr(row, '"', (size_t)(stop - row)) != NULL;
    *out_fault = false;
    if (!quoted) return line != NULL ? stop : row;
    const char *at = row;
    bel_csv_field field;
    bel_csv_stop found = BEL_CSV_DELIMITER;
    while (found == BEL_CSV_DELIMITER)
        found = bel_csv_next_field(at, seen, delimiter, &field, &at);
    *out_fault = found == BEL_CSV_STRAY_QUOTE || found == BEL_CSV_AFTER_QUOTE;
    return found == BEL_CSV_ROW_END && at > row && at[-1] == '\n' ? at : row;
}

const char *bel_csv_complete_end(const char *from, const char *seen, char delimiter)
{
    const char *row = from, *quote = memchr(from, '"', (size_t)(seen - from));
    bool fault = false;
    for (row = quote != NULL ? quote : seen; row > from && row[-1] != '\n'; row--)
        continue; // rows before the first quote are lines
    for (const char *end = NULL; quote != NULL && end != row;) {
        end = row;
        row = row_end(end, seen, delimiter, &fault);
        if (fault) return seen; // the index finds it again
    }
    return trim_blank_lines(from, row);
}

bel_status *bel_csv_file_open_growing(bel_csv_file *file, const char *path, char delimiter)
{
    bool fault;
    file->path = path;
    file->delimiter = delimiter;
    BEL_TRY(bel_file_view_open_growing(path, &file->view));
    BEL_TRY(find_text(file));
    const char *end = row_end(file->text, file->end, delimiter, &fault);
    if (!fault) file->end = trim_blank_lines(file->text, end); // otherwise its reader reports it
    if (file->text < file->end) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: expected a first line to follow; hint: write the header before training "
                   "begins",
                   path);
}

bel_status *bel_csv_file_grow(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                              bool *out_more)
{
    const char *from = file->view.data + file->grown, *end = from;
    const char *seen = file->view.data + file->view.size, *stop = seen;
    if (from < file->rows) end = from = file->rows;
    *out_more = false;
    for (size_t some = BEL_CSV_AT_A_TIME; end == from && (some == BEL_CSV_AT_A_TIME || stop < seen);
         some *= 2) {
        stop = (size_t)(seen - from) < some ? seen : from + some;
        end = bel_csv_complete_end(from, stop, file->delimiter);
        if (end == from && stop - from >= BEL_CSV_LONGEST_ROW)
            return bel_csv_file_error(file, from,
                                      "expected a row of at most %d bytes; hint: is a quote open?",
                                      BEL_CSV_LONGEST_ROW);
    }
    if (end == from) return NULL;
    file->end = end;
    file->grown = (size_t)(end - file->view.data);
    *out_more = stop < seen;
    return bel_csv_file_index_from(file, from, label, keep_bad);
}

void bel_csv_file_begin_at(bel_csv_file *file, const char *from, int64_t line)
{
    bel_offset_list_drop(&file->row_starts, file->row_starts.count);
    file->tall_rows.count = file->tall_breaks.count = file->numbers.count = 0;
    file->from = line > 0 ? from : NULL;
    file->from_line = line;
    file->grown = (size_t)(from - file->view.data);
    if (file->view.reserved > 0) file->end = from;
}

static void drop_numbers(bel_number_list *list, size_t count)
{
    list->count -= count;
    if (list->count > 0)
        memmove(list->items, list->items + count, list->count * sizeof *list->items);
}

void bel_csv_file_drop(bel_csv_file *file, size_t rows)
{
    bel_offset_list *starts = &file->row_starts;
    bel_number_list *tall = &file->tall_rows, *breaks = &file->tall_breaks;
    const char *from =
        rows < starts->count ? file->text + bel_offset_list_at(starts, rows) : file->end;
    int64_t line = bel_csv_file_line(file, from), broken = 0;
    size_t past = 0; // rows with line breaks
    for (; past < tall->count && tall->items[past] <= (int64_t)rows; past++)
        broken = breaks->items[past];
    drop_numbers(tall, past);
    drop_numbers(breaks, past);
    for (size_t i = 0; i < tall->count; i++) {
        tall->items[i] -= (int64_t)rows;
        breaks->items[i] -= broken;
    }
    if (file->numbers.count > 0) drop_numbers(&file->numbers, rows / 64);
    bel_offset_list_drop(starts, rows);
    file->from = from;
    file->from_line = line;
}

bel_status *bel_csv_file_move(bel_csv_file *file)
{
    bel_file_view *view = &file->view;
    const uint64_t base = view->base, text = base + (uint64_t)(file->text - view->data);
    const uint64_t from = base + (uint64_t)(file->from - view->data);
    const uint64_t end = base + (uint64_t)(file->end - view->data);
    BEL_TRY(bel_file_view_move(view, file->path, from));
    bel_offset_list_shift(&file->row_starts, (int64_t)(view->base - text));
    file->text = file->rows = view->data;
    file->from = view->data + (from - view->base);
    file->end = view->data + (end - view->base);
    file->grown = (size_t)(end - view->base);
    return NULL;
}

void bel_csv_file_close(bel_csv_file *file)
{
    bel_offset_list_deinit(&file->row_starts);
    bel_number_list_deinit(&file->tall_rows);
    bel_number_list_deinit(&file->tall_breaks);
    bel_number_list_deinit(&file->numbers);
    bel_file_view_close(&file->view);
}

// --- Rows ----------------------------------------------------------------------------------------

bel_status *bel_csv_file_split(const bel_csv_file *file, const char *row,
                               bel_csv_field **out_fields, int *out_count, const char **out_next)
{
    bel_csv_field *fields = NULL;
    size_t capacity = 0, count = 0;
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    while (stop == BEL_CSV_DELIMITER) {
        fields = bel_xgrow(fields, &capacity, count + 1, sizeof *fields);
        stop = bel_csv_next_field(row, file->end, file->delimiter, &fields[count], &row);
        count++;
    }
    if (stop != BEL_CSV_ROW_END || count > INT32_MAX) {
        bel_free(fields);
        return bel_csv_file_error(file, row, "%s", bel_csv_fault_text(stop));
    }
    *out_fields = fields;
    *out_count = (int)count;
    *out_next = row;
    return NULL;
}

// --- Places and texts ----------------------------------------------------------------------------

static int64_t count_breaks(const char *text, const char *end)
{
    int64_t breaks = 0;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        breaks++;
    return breaks;
}

// Counts the rows before `at` from the one at `row` on.
static int64_t rows_before(const bel_csv_file *file, const char *row, const char *at)
{
    int64_t rows = 0;
    bel_csv_field field;
    for (bel_csv_stop stop; row < at; rows += stop == BEL_CSV_ROW_END && row <= at) {
        stop = bel_csv_next_field(row, file->end, file->delimiter, &field, &row);
        if (stop != BEL_CSV_ROW_END && stop != BEL_CSV_DELIMITER) break;
    }
    return rows;
}

// The line of an object: rows of it are no lines, as texts may hold line breaks. The header is not
// in the file.
static int64_t object_line(const bel_csv_file *file, const char *at)
{
    const bel_offset_list *starts = &file->row_starts;
    int64_t offset = at - file->text;
    if (starts->count == 0 || offset < bel_offset_list_at(starts, 0))
        return rows_before(file, file->text, at);
    size_t row = bel_offset_list_last_at_most(starts, offset);
    const char *begin = file->text + bel_offset_list_at(starts, row);
    return (int64_t)row + 1 + rows_before(file, begin, at);
}

int64_t bel_csv_file_line(const bel_csv_file *file, const char *at)
{
    if (file->of_objects) return object_line(file, at);
    const bel_offset_list *starts = &file->row_starts;
    const bel_number_list *tall = &file->tall_rows;
    int64_t offset = at - file->text;
    if (file->from != NULL && at >= file->from && starts->count == 0)
        return file->from_line + count_breaks(file->from, at);
    if (starts->count == 0 || offset < bel_offset_list_at(starts, 0))
        return 1 + count_breaks(file->text, at);
    int64_t row = (int64_t)bel_offset_list_last_at_most(starts, offset);
    int64_t first = file->from != NULL ? file->from_line : 1 + count_breaks(file->text, file->rows);
    int64_t line = first + row;
    if (tall->count > 0 && tall->items[0] <= row)
        line += file->tall_breaks.items[bel_last_at_most(tall->items, tall->count, row)];
    return line + count_breaks(file->text + bel_offset_list_at(starts, (size_t)row), at);
}

bel_status *bel_csv_file_error(const bel_csv_file *file, const char *at, const char *format, ...)
{
    const char *line_start = at;
    while (line_start > file->text && line_start[-1] != '\n')
        line_start--;
    char message[512];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (file->of_objects) // its columns are in no file
        return BEL_ERR(BEL_DATA_LOSS, "%s:%lld: %s", file->path,
                       (long long)bel_csv_file_line(file, at), message);
    return BEL_ERR(BEL_DATA_LOSS, "%s:%lld:%lld: %s", file->path,
                   (long long)bel_csv_file_line(file, at), (long long)(at - line_start) + 1,
                   message);
}

bel_csv_field bel_csv_trim(const bel_csv_field *field)
{
    bel_csv_field trimmed = *field;
    while (trimmed.length > 0 && (*trimmed.text == ' ' || *trimmed.text == '\t')) {
        trimmed.text++;
        trimmed.length--;
    }
    while (trimmed.length > 0 &&
           (trimmed.text[trimmed.length - 1] == ' ' || trimmed.text[trimmed.length - 1] == '\t'))
        trimmed.length--;
    return trimmed;
}

char *bel_csv_quote(const bel_csv_field *field)
{
    enum { SHOWN_BYTES = 40 };
    if (field->length == 0) return bel_xstrdup("an empty field");
    size_t length = field->length < SHOWN_BYTES ? field->length : SHOWN_BYTES;
    // Not in the middle of a UTF-8 character.
    while (length < field->length && length > 0 && (field->text[length] & 0xC0) == 0x80)
        length--;
    bel_str shown = {0}, text = {0};
    for (size_t i = 0; i < length; i++) { // a zero byte as the character that pictures it
        bool zero = field->text[i] == '\0';
        bel_str_append(&shown, zero ? "\xE2\x90\x80" : &field->text[i], zero ? 3 : 1);
    }
    bel_json_write_string(&text, length > 0 ? shown.text : "");
    if (length < field->length) bel_str_puts(&text, " …");
    bel_str_deinit(&shown);
    return text.text;
}
