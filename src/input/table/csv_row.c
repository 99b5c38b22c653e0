// Checks of a row, and their errors. Finding a fault and making its error are two steps, because
// threads check rows before all earlier rows are numbered, so that the line is unknown. The scan of
// csv_scan.h passes nearly all rows; the loop over fields here decides for all others.
#include "input/table/csv_row.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "input/table/csv_scan.h"

// --- Labels --------------------------------------------------------------------------------------

static bool label_value(const bel_csv_label *label, const bel_csv_field *field, int64_t *out_value)
{
    bel_csv_field trimmed = bel_csv_trim(field);
    int64_t value;
    if (!bel_parse_i64(trimmed.text, trimmed.length, &value)) return false;
    if (label->class_count > 0 && (value < 0 || value >= label->class_count)) return false;
    *out_value = value;
    return true;
}

bel_status *bel_csv_file_read_label(const bel_csv_file *file, const bel_csv_label *label,
                                    const bel_csv_field *field, int64_t *out_label)
{
    if (label_value(label, field, out_label)) return NULL;
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

bool bel_csv_row_label_fits(const bel_csv_file *file, const char *row, const char *end,
                            const bel_csv_label *label)
{
    int64_t value;
    if (end > row && end[-1] == '\r') end--;
    bel_csv_field field = plain_field(row, end, file->delimiter, label->column, file->column_count);
    return label_value(label, &field, &value);
}

// --- Rows ----------------------------------------------------------------------------------------

static int64_t breaks_in(const bel_csv_field *field)
{
    const char *at = field->text, *end = at + field->length;
    int64_t breaks = 0;
    for (; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        breaks++;
    return breaks;
}

bel_csv_look bel_csv_row_look(const bel_csv_file *file, const char *row, const bel_csv_label *label)
{
    const char *at = row, *extra = NULL;
    const int column_count = file->column_count;
    bel_csv_look look = {.stop = BEL_CSV_DELIMITER};
    while (look.stop == BEL_CSV_DELIMITER) {
        const char *start = at;
        bel_csv_field field;
        look.stop = bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
        look.at = at;
        look.fault = look.stop > BEL_CSV_ROW_END ? BEL_CSV_WRONG_QUOTE : BEL_CSV_NO_FAULT;
        if (look.fault != BEL_CSV_NO_FAULT) return look;
        if (field.text != start) look.breaks += breaks_in(&field); // it is quoted
        if (label == NULL) continue;
        if (look.count == column_count) extra = start;
        int64_t value;
        if (look.count == label->column && !label_value(label, &field, &value)) {
            look.fault = BEL_CSV_WRONG_LABEL;
            look.label = field;
            return look;
        }
        if (look.count < INT32_MAX) look.count++;
        if (look.stop == BEL_CSV_ROW_END && look.count < column_count)
            extra = field.text + field.length;
    }
    look.next = at;
    if (label == NULL) return look;
    const char *zero = memchr(row, '\0', (size_t)(at - row));
    look.at = extra != NULL ? extra : zero;
    look.fault = extra != NULL  ? BEL_CSV_WRONG_COUNT
                 : zero != NULL ? BEL_CSV_ZERO_BYTE
                                : BEL_CSV_NO_FAULT;
    return look;
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
    if (got == 1 && expected > 1 && hint[0] == '\0')
        return bel_csv_file_error(
            file, at, "expected %d fields, got 1; fields end at '%s'; hint: --delimiter", expected,
            file->delimiter == '\t' ? "tab" : (char[]){file->delimiter, '\0'});
    return bel_csv_file_error(file, at, "expected %d fields, got %d%s", expected, got, hint);
}

bel_status *bel_csv_row_error(const bel_csv_file *file, const char *row, const bel_csv_label *label,
                              const bel_csv_look *look)
{
    int64_t value;
    switch (look->fault) {
    case BEL_CSV_NO_FAULT: break;
    case BEL_CSV_WRONG_QUOTE:
        return bel_csv_file_error(file, look->at, "%s", bel_csv_fault_text(look->stop));
    case BEL_CSV_WRONG_LABEL: return bel_csv_file_read_label(file, label, &look->label, &value);
    case BEL_CSV_WRONG_COUNT:
        return count_error(file, row, look->at, file->column_count, look->count);
    case BEL_CSV_ZERO_BYTE:
        return bel_csv_file_error(file, look->at, "expected text, got a zero byte");
    }
    return NULL;
}

bel_status *bel_csv_file_check_row(const bel_csv_file *file, const char *row,
                                   const bel_csv_label *label)
{
    bel_csv_scanned found;
    const bel_csv_scan scan = {file->delimiter, label == NULL ? -1 : file->column_count - 1};
    bool plain = bel_csv_scan_rows(&scan, row, file->end, 1, &found) == 1;
    bool labeled = label != NULL && label->column >= 0;
    if (plain && (!labeled || bel_csv_row_label_fits(file, row, row + found.end, label)))
        return NULL;
    bel_csv_look look = bel_csv_row_look(file, row, label);
    return bel_csv_row_error(file, row, label, &look);
}
