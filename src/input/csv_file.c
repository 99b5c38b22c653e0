// Every row is looked at once, when the file is opened, for the number of fields, quotes and
// labels; only the offset of its beginning is kept, 8 bytes a row. So a record can be read at
// any place later on, and structure is never wrong in the middle of training. Lines are not
// stored: an error counts line breaks up to its place, and nothing else needs them. Rows are not
// lines, as a quoted field may hold line breaks. Blank lines count as rows but for those at the
// end, which are cut off.
#include "input/csv_file.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"

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

bel_status *bel_csv_file_open(bel_csv_file *file, const char *path, char delimiter)
{
    file->path = path;
    file->delimiter = delimiter;
    BEL_TRY(bel_file_view_open(path, &file->view));
    file->text = file->view.data;
    file->end = file->view.data + file->view.size;
    bool has_mark = file->view.size >= 3 && memcmp(file->text, "\xEF\xBB\xBF", 3) == 0;
    if (has_mark) file->text += 3;
    file->end = trim_blank_lines(file->text, file->end);
    file->rows = file->text;
    if (file->text == file->end) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected CSV, got an empty file", path);
    }
    return NULL;
}

void bel_csv_file_close(bel_csv_file *file)
{
    bel_number_list_deinit(&file->row_starts);
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

// A row of `got` fields; `at` is its last, or the first too many.
static bel_status *count_error(const bel_csv_file *file, const char *row, const char *at,
                               int expected, int got)
{
    bool blank = got == 1 && bel_csv_is_row_end(row, file->end);
    return bel_csv_file_error(file, at, "expected %d fields, got %d%s", expected, got,
                              blank ? " (a blank line)" : "");
}

// Checks the row at `row`.
static bel_status *check_row(const bel_csv_file *file, const char *row, int column_count,
                             const bel_csv_label *label, const char **out_next)
{
    const char *at = row, *extra = NULL;
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    int count = 0;
    while (stop == BEL_CSV_DELIMITER) {
        const char *start = at;
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END) {
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(stop));
        }
        if (count == column_count) extra = start;
        if (count == label->column) {
            int64_t value;
            BEL_TRY(bel_csv_file_read_label(file, label, &field, &value));
        }
        if (count < INT32_MAX) count++;
        if (stop == BEL_CSV_ROW_END && count < column_count) {
            return count_error(file, row, field.text + field.length, column_count, count);
        }
    }
    if (extra != NULL) return count_error(file, row, extra, column_count, count);
    *out_next = at;
    return NULL;
}

bel_status *bel_csv_file_check_row(const bel_csv_file *file, const char *row, int column_count,
                                   const bel_csv_label *label)
{
    const char *next;
    return check_row(file, row, column_count, label, &next);
}

// The end of a row, whatever is in it.
static bel_status *pass_row(const bel_csv_file *file, const char *row, const char **out_next)
{
    const char *at = row;
    bel_csv_field field;
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    while (stop == BEL_CSV_DELIMITER)
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
    if (stop > BEL_CSV_ROW_END) return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(stop));
    *out_next = at;
    return NULL;
}

bel_status *bel_csv_file_index(bel_csv_file *file, int column_count, const bel_csv_label *label,
                               bool keep_bad)
{
    const char *row = file->rows;
    while (row < file->end) {
        const char *next = file->end;
        if (keep_bad) {
            BEL_TRY(pass_row(file, row, &next));
        } else {
            BEL_TRY(check_row(file, row, column_count, label, &next));
        }
        BEL_TRY_CTX(bel_number_list_append(&file->row_starts, row - file->text), "%s", file->path);
        row = next;
    }
    return NULL;
}

bel_status *bel_csv_file_read_label(const bel_csv_file *file, const bel_csv_label *label,
                                    const bel_csv_field *field, int64_t *out_label)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    int64_t value;
    bool number = bel_parse_i64(trimmed.text, trimmed.length, &value);
    if (number && (label->class_count == 0 || (value >= 0 && value < label->class_count))) {
        *out_label = value;
        return NULL;
    }
    char expected[64] = "a whole number";
    if (label->class_count > 0) {
        bel_snprintf(expected, sizeof expected, "a whole number in 0..%lld",
                     (long long)label->class_count - 1);
    }
    char *got = bel_csv_quote(field);
    bel_status *status = bel_csv_file_error(file, field->text, "label \"%s\": expected %s, got %s",
                                            label->name, expected, got);
    bel_free(got);
    return status;
}

// --- Places and texts ----------------------------------------------------------------------------

int64_t bel_csv_file_line(const bel_csv_file *file, const char *at)
{
    int64_t line = 1;
    for (const char *p = file->text; (p = memchr(p, '\n', (size_t)(at - p))) != NULL; p++)
        line++;
    return line;
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
    char *shown = bel_xstrndup(field->text, length);
    bel_str text = {0};
    bel_json_write_string(&text, shown);
    if (length < field->length) bel_str_puts(&text, " …");
    bel_free(shown);
    return text.text;
}
