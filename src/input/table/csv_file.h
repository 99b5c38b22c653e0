// One CSV file, opened: where its rows begin, and where in it an error is.
#ifndef BELFRY_INPUT_TABLE_CSV_FILE_H
#define BELFRY_INPUT_TABLE_CSV_FILE_H

#include <stdint.h>

#include "input/files/file_view.h"
#include "input/files/number_list.h"
#include "input/files/offset_list.h"
#include "input/table/csv_split.h"

// Immutable once opened and indexed, so thread-safe.
typedef struct bel_csv_file {
    const char *path; // not owned
    char delimiter;
    bool of_objects;  // lines of JSONL (csv_jsonl.h): row i, after the header, is line i + 1
    int column_count; // set by the reader of the header
    bel_file_view view;
    const char *text; // after the byte-order mark
    const char *end;  // before blank lines at the end
    const char *rows; // after the header
    size_t grown;     // bytes of a growing file's view up to the last row that is indexed
    // The index begins here, in this line; NULL: it begins at `rows`.
    const char *from;
    int64_t from_line;
    bel_offset_list row_starts;
    // A row is a line, unless line breaks are inside quotes. For each such row: the number of the
    // next row, and the number of such breaks before that one.
    bel_number_list tall_rows, tall_breaks;
    // Rows that are plain numbers (csv_scan.h): bit r % 64 of item r / 64 says so of row r.
    // Empty where bad rows are kept.
    bel_number_list numbers;
} bel_csv_file;

// Valid labels.
typedef struct bel_csv_label {
    int column; // -1: no label
    const char *name;
    int64_t class_count;
} bel_csv_label;

// Opens without looking at the rows. Close also after a failure; `file` starts zeroed.
// Errors: those of bel_file_view_open; DATA_LOSS when the file is empty.
bel_status *bel_csv_file_open(bel_csv_file *file, const char *path, char delimiter) BEL_MUST_USE;
void bel_csv_file_close(bel_csv_file *file);

// Splits the row at `row` into a new array of fields (free with bel_free).
bel_status *bel_csv_file_split(const bel_csv_file *file, const char *row,
                               bel_csv_field **out_fields, int *out_count,
                               const char **out_next) BEL_MUST_USE;

// Opens a file that grows (bel_file_view_open_growing). `end` is that of its first row, which must
// be complete, and the rows are those that bel_csv_file_grow finds. The column count of the header
// is known after the caller has read it.
bel_status *bel_csv_file_open_growing(bel_csv_file *file, const char *path,
                                      char delimiter) BEL_MUST_USE;

// The end of the last row between `from` and `seen` whose line feed is there, without blank lines
// after it. A line feed in quotes ends no row. `seen` itself: a row has a quote that is wrong
// whatever follows it, which bel_csv_file_index reports.
const char *bel_csv_complete_end(const char *from, const char *seen, char delimiter);

// Takes rows that bel_file_view_grow has found since the last call and indexes them like
// bel_csv_file_index: those of BEL_CSV_AT_A_TIME bytes, or a longer row. A row counts when its line
// feed is there, outside of quotes; blank lines count when a row follows. *out_more: there may be
// more. DATA_LOSS: a bad row, or one of more than BEL_CSV_LONGEST_ROW bytes without an end.
// RESOURCE_EXHAUSTED: no memory. No call may follow an error.
enum { BEL_CSV_AT_A_TIME = 16 << 20, BEL_CSV_LONGEST_ROW = 64 << 20 };
bel_status *bel_csv_file_grow(bel_csv_file *file, const bel_csv_label *label, bool keep_bad,
                              bool *out_more) BEL_MUST_USE;

// Lets the index begin at `from`, where a row begins, in line `line`, and drops all rows. 0: the
// line is counted when it is needed, as `from` is `rows`.
void bel_csv_file_begin_at(bel_csv_file *file, const char *from, int64_t line);

// Drops the first `rows` rows from the index: a multiple of BEL_CSV_DROPPED_ROWS.
enum { BEL_CSV_DROPPED_ROWS = 16 * BEL_OFFSETS_A_GROUP }; // whole groups, and words of `numbers`
void bel_csv_file_drop(bel_csv_file *file, size_t rows);

// Moves the window of a growing file (bel_file_view_move), so that it begins shortly before the
// index. No other thread may use the file.
bel_status *bel_csv_file_move(bel_csv_file *file) BEL_MUST_USE;

// Goes over all rows from `rows` on: every one must have column_count fields, closed quotes, no
// zero byte and a good label. Notes where each begins. With `keep_bad` it checks only quotes,
// which decide where rows begin.
bel_status *bel_csv_file_index(bel_csv_file *file, const bel_csv_label *label,
                               bool keep_bad) BEL_MUST_USE;

// The same for one row.
bel_status *bel_csv_file_check_row(const bel_csv_file *file, const char *row,
                                   const bel_csv_label *label) BEL_MUST_USE;

// Reads a label. DATA_LOSS with its place.
bel_status *bel_csv_file_read_label(const bel_csv_file *file, const bel_csv_label *label,
                                    const bel_csv_field *field, int64_t *out_label) BEL_MUST_USE;

// A status DATA_LOSS that begins with file:line:column of `at`. Lines and columns count from 1, as
// in an editor; columns count bytes.
bel_status *bel_csv_file_error(const bel_csv_file *file, const char *at, const char *format, ...)
    BEL_PRINTF(3, 4) BEL_MUST_USE;

// The line of `at`. Rows that are indexed are found without a pass over the file.
int64_t bel_csv_file_line(const bel_csv_file *file, const char *at);

// The same field without spaces and tabs around it.
bel_csv_field bel_csv_trim(const bel_csv_field *field);

// The text of a field for a message, quoted, with escapes, cut when long. Free with bel_free.
char *bel_csv_quote(const bel_csv_field *field);

#endif
