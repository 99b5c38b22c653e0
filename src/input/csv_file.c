// Every row is looked at once, when the file is opened, for the number of fields, quotes and
// labels; only the offset of its beginning is kept, 8 bytes a row. So a record can be read at
// any place later on, and structure is never wrong in the middle of training. Rows are not lines,
// as a quoted field may hold line breaks; rows that do are few, and are noted, so that the line of
// a row is known. Blank lines count as rows but for those at the end, which are cut off.
#include "input/csv_file.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "input/csv_kind.h"
#include "input/csv_numbers.h"

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
    BEL_TRY(bel_csv_kind_check(path, file->text, (size_t)(file->end - file->text)));
    file->end = trim_blank_lines(file->text, file->end);
    file->rows = file->text;
    if (file->text == file->end) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected CSV, got an empty file", path);
    }
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

// A row of `got` fields; `at` is its last, or the first too many.
static bel_status *count_error(const bel_csv_file *file, const char *row, const char *at,
                               int expected, int got)
{
    bool blank = got == 1 && bel_csv_is_row_end(row, file->end);
    bool first = row == file->rows && file->rows != file->text; // after a header
    bool unnamed = first && got == expected + 1;
    bool ended = unnamed && bel_csv_is_row_end(at, file->end); // with a delimiter
    const char *hint = blank   ? " (a blank line)"
                       : ended ? "; hint: rows end with a delimiter, and the header does not: end "
                                 "them all alike"
                       : unnamed
                           ? "; hint: the header has one name less than the rows have fields, "
                             "as R's write.table writes it: col.names = NA adds it"
                       : first && expected < got
                           ? "; hint: is the first line a title? the names of the columns belong "
                             "there (tail -n +2)"
                           : "";
    return bel_csv_file_error(file, at, "expected %d fields, got %d%s", expected, got, hint);
}

static int64_t count_breaks(const char *text, const char *end)
{
    int64_t breaks = 0;
    for (const char *p = text; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        breaks++;
    return breaks;
}

// Field `column` of a row without quotes that has it, looked for from the nearer end.
static bel_csv_field plain_field(const char *row, const char *end, char delimiter, int column,
                                 int column_count)
{
    const char *from = row, *to = end;
    if (column < column_count / 2) {
        for (int i = 0; i < column; i++)
            from = (const char *)memchr(from, delimiter, (size_t)(end - from)) + 1;
        to = memchr(from, delimiter, (size_t)(end - from)); // there is one: it is not the last
        return (bel_csv_field){.text = from, .length = (size_t)(to - from)};
    }
    for (int i = column_count - 1;; i--) {
        from = to;
        while (from > row && from[-1] != delimiter)
            from--;
        if (i == column) return (bel_csv_field){.text = from, .length = (size_t)(to - from)};
        to = from - 1;
    }
}

// Result of a pass over a row.
typedef struct row_pass {
    const char *next; // start of the next row
    int64_t breaks;   // line breaks within
    bool numbers;     // it is plain numbers
} row_pass;

// How many delimiters a line has. *out_others: it has quotes, carriage returns or zero bytes, too.
// Eight bytes are looked at together.
static size_t count_delimiters(const char *row, size_t length, char delimiter, bool *out_others)
{
    const uint64_t wanted = bel_csv_eight(delimiter), quote = bel_csv_eight('"'),
                   turn = bel_csv_eight('\r');
    size_t count = 0, i = 0;
    uint64_t others = 0;
    for (; length - i >= 8; i += 8) {
        uint64_t bytes;
        memcpy(&bytes, row + i, sizeof bytes);
        count += (size_t)bel_csv_count_marked(bel_csv_equal_bytes(bytes, wanted));
        others |= bel_csv_equal_bytes(bytes, quote) | bel_csv_equal_bytes(bytes, turn) |
                  bel_csv_equal_bytes(bytes, 0);
    }
    for (; i < length; i++) {
        count += row[i] == delimiter;
        others |= row[i] == '"' || row[i] == '\r' || row[i] == '\0';
    }
    *out_others = others != 0;
    return count;
}

// The row at `row` where it is like nearly all: a line of text without quotes that has all its
// fields. *out_next stays where it is when the row is another one.
static bel_status *pass_plain_row(const bel_csv_file *file, const char *row,
                                  const bel_csv_label *label, row_pass *out)
{
    const char *stop = memchr(row, '\n', (size_t)(file->end - row));
    if (stop == NULL) return NULL;
    const char *end = stop > row && stop[-1] == '\r' ? stop - 1 : stop;
    const char delimiter = file->delimiter;
    const int column_count = file->column_count;
    bool others = false;
    size_t delimiters;
    bool numbers = label != NULL && bel_csv_line_is_numbers(row, end, delimiter, &delimiters);
    if (!numbers) delimiters = count_delimiters(row, (size_t)(end - row), delimiter, &others);
    if (others) return NULL;
    if (label != NULL) {
        if (delimiters + 1 != (size_t)column_count) return NULL;
        if (label->column >= 0) {
            int64_t value;
            bel_csv_field field = plain_field(row, end, delimiter, label->column, column_count);
            BEL_TRY(bel_csv_file_read_label(file, label, &field, &value));
        }
    }
    out->next = stop + 1;
    out->numbers = numbers;
    return NULL;
}

// Finds the end of the row at `row`, and its contents. With `label` (NULL: the row may be bad) it
// counts the fields and checks the label.
static bel_status *pass_row(const bel_csv_file *file, const char *row, const bel_csv_label *label,
                            row_pass *out)
{
    const char *at = row, *extra = NULL;
    bel_csv_stop stop = BEL_CSV_DELIMITER;
    const int column_count = file->column_count;
    int count = 0;
    *out = (row_pass){.next = NULL};
    BEL_TRY(pass_plain_row(file, row, label, out));
    if (out->next != NULL) return NULL;
    while (stop == BEL_CSV_DELIMITER) {
        const char *start = at;
        bel_csv_field field;
        stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        if (stop > BEL_CSV_ROW_END) {
            return bel_csv_file_error(file, at, "%s", bel_csv_fault_text(stop));
        }
        if (field.text != start) // it is quoted
            out->breaks += count_breaks(field.text, field.text + field.length);
        if (label == NULL) continue;
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
    const char *zero = label == NULL ? NULL : memchr(row, '\0', (size_t)(at - row));
    if (zero != NULL) return bel_csv_file_error(file, zero, "expected text, got a zero byte");
    out->next = at;
    return NULL;
}

bel_status *bel_csv_file_check_row(const bel_csv_file *file, const char *row,
                                   const bel_csv_label *label)
{
    row_pass passed;
    return pass_row(file, row, label, &passed);
}

static bel_status *note_numbers(bel_csv_file *file, bool numbers)
{
    const size_t row = file->row_starts.count;
    if (row % 64 == 0) BEL_TRY(bel_number_list_append(&file->numbers, 0));
    uint64_t bits = (uint64_t)file->numbers.items[row / 64] | (uint64_t)numbers << row % 64;
    file->numbers.items[row / 64] = (int64_t)bits;
    return NULL;
}

static bel_status *note_row(bel_csv_file *file, const char *row, int64_t breaks)
{
    BEL_TRY(bel_offset_list_append(&file->row_starts, &(int64_t){row - file->text}, 1));
    if (breaks == 0) return NULL;
    const bel_number_list *tall = &file->tall_breaks;
    int64_t before = tall->count > 0 ? tall->items[tall->count - 1] : 0;
    BEL_TRY(bel_number_list_append(&file->tall_rows, (int64_t)file->row_starts.count));
    return bel_number_list_append(&file->tall_breaks, before + breaks);
}

bel_status *bel_csv_file_index(bel_csv_file *file, const bel_csv_label *label, bool keep_bad)
{
    const char *row = file->rows;
    while (row < file->end) {
        row_pass passed;
        BEL_TRY(pass_row(file, row, keep_bad ? NULL : label, &passed));
        if (!keep_bad) BEL_TRY_CTX(note_numbers(file, passed.numbers), "%s", file->path);
        BEL_TRY_CTX(note_row(file, row, passed.breaks), "%s", file->path);
        row = passed.next;
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
    char expected[64] = "an integer";
    if (label->class_count > 0) {
        bel_snprintf(expected, sizeof expected, "an integer in 0..%lld",
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
    const bel_offset_list *starts = &file->row_starts;
    const bel_number_list *tall = &file->tall_rows;
    int64_t offset = at - file->text;
    if (starts->count == 0 || offset < bel_offset_list_at(starts, 0))
        return 1 + count_breaks(file->text, at);
    int64_t row = (int64_t)bel_offset_list_last_at_most(starts, offset);
    int64_t line = 1 + count_breaks(file->text, file->rows) + row;
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
