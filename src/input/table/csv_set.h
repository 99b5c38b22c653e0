// Opened CSV files of a dataset, with one numbering of rows over all files.
#ifndef BELFRY_INPUT_TABLE_CSV_SET_H
#define BELFRY_INPUT_TABLE_CSV_SET_H

#include "base/arena.h"
#include "input/table/csv_file.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_csv_set {
    bel_csv_file *files;
    int64_t *first_row; // [count], each file's
    int count;
    int64_t row_count;
    bel_number_list kept;          // numbers of the kept rows in the files; empty: all rows
    uint64_t size_bytes, content;  // total size, hash of all bytes
    uint64_t names;                // hash of the files' paths
    bool followed;                 // opened by bel_csv_set_open_growing
    const char *pattern;           // names followed files that appear; NULL: none do
    struct bel_csv_growth *growth; // state of following; NULL: the files do not change
} bel_csv_set;

// Opens the files that paths and patterns name, without indexing them. *out_paths are the files'
// paths. The set must be zeroed; close it also after a failure. Memory comes from `arena`.
bel_status *bel_csv_set_open(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                             int path_count, char delimiter,
                             const char *const **out_paths) BEL_MUST_USE;
void bel_csv_set_close(bel_csv_set *set);

// The same for one file that grows while it is read, or for a pattern whose files appear one after
// another, each whole, with rising names: the first one is open then. `content` is a hash of its
// first line. INVALID_ARGUMENT: more than one path.
bel_status *bel_csv_set_open_growing(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                                     int path_count, char delimiter,
                                     const char *const **out_paths) BEL_MUST_USE;

// Instead of bel_csv_set_index: indexes rows as they are wanted, from the first one on. `label` is
// copied.
bel_status *bel_csv_set_follow(bel_csv_set *set, const bel_csv_label *label,
                               bool keep_bad) BEL_MUST_USE;

// Lets the index begin after the first `rows` rows, which training has learned: `mark` is of these
// (bel_csv_set_mark), and the next look compares it with the file. Earlier rows are not read, but
// for the lines of a mark of an earlier version. 0 rows: it begins with the first row, without one.
// DATA_LOSS: no mark, that of another number of rows, or an earlier version's of a pattern.
// No thread may be between bel_csv_set_enter and bel_csv_set_leave for rows of
// before.
bel_status *bel_csv_set_begin(const bel_csv_set *set, int64_t rows, const char *mark) BEL_MUST_USE;

// Sets *out_rows to the number of rows that are there, after a look at the file if they are fewer
// than `wanted` and the last look is 10 ms ago. Files that appear are looked for by a thread of the
// set, each 100 ms, in a store each second; the call waits for it only where the index begins, for
// a second. A bad row, and a file that was removed, replaced, written anew, or that appeared before
// one that was read (DATA_LOSS), are returned again by each later call that wants more rows.
// NOT_FOUND: the rows before the index are not there, or not yet. Another error of the file is that
// of the last look. Any thread.
bel_status *bel_csv_set_look(const bel_csv_set *set, int64_t wanted,
                             int64_t *out_rows) BEL_MUST_USE;

// Whether a file that has appeared is being copied or indexed, and the last look had no error. So
// rows may come, though none does for a long time. Any thread.
bool bel_csv_set_reads(const bel_csv_set *set);

// Tells that rows before this one are not read again, nor marks of fewer rows made: the index may
// drop them, and their files are closed. Any thread.
void bel_csv_set_pass(const bel_csv_set *set, int64_t rows);

// Returns DATA_LOSS if a file that grows is no longer the one whose rows are indexed, and another
// error if that cannot be known now. Any thread.
bel_status *bel_csv_set_check_growth(const bel_csv_set *set) BEL_MUST_USE;

// Appends a text that tells the first `rows` rows, at least one, of a file that grows from those of
// another file (csv_mark.h). DATA_LOSS: they were passed, or are not there. Other errors: those of
// bel_csv_set_check_growth and bel_csv_set_look.
bel_status *bel_csv_set_mark(const bel_csv_set *set, int64_t rows, bel_str *out_text) BEL_MUST_USE;

// The path or the pattern that is followed.
const char *bel_csv_set_followed(const bel_csv_set *set);

// Appends where a last row begins that has no end yet, and its bytes so far; nothing without one.
void bel_csv_set_unfinished(const bel_csv_set *set, bel_str *out_text);

void bel_csv_set_end_growth(bel_csv_set *set); // ends its thread; part of bel_csv_set_close

// Call around the use of rows, with a row number that is used at the end of it, so that the index
// does not change meanwhile. Both do nothing if the files do not change. DATA_LOSS: there is no
// such row yet, or it was passed.
bel_status *bel_csv_set_enter(const bel_csv_set *set, int64_t number) BEL_MUST_USE;
void bel_csv_set_leave(const bel_csv_set *set);

// Hashes the files again. DATA_LOSS: their content has changed since they were opened.
bel_status *bel_csv_set_check_content(const bel_csv_set *set) BEL_MUST_USE;

// Indexes each file (bel_csv_file_index), and numbers the rows. DATA_LOSS: no rows.
bel_status *bel_csv_set_index(bel_csv_set *set, const bel_csv_label *label,
                              bool keep_bad) BEL_MUST_USE;

// Keeps only the rows in the list, which is ascending, and numbers them from 0. Takes ownership of
// the list. The caller returns DATA_LOSS if the list is empty.
void bel_csv_set_keep(bel_csv_set *set, bel_number_list *rows);

// The file of a row; *out_row is the row's first byte.
const bel_csv_file *bel_csv_set_find(const bel_csv_set *set, int64_t number, const char **out_row);

// True if the row is known to contain only plain numbers (csv_scan.h).
bool bel_csv_set_is_numbers(const bel_csv_set *set, int64_t number);

// Runs a step of fetching a row before it is read (batch/ahead.h).
void bel_csv_set_ahead(const bel_csv_set *set, int64_t number, int step);

// Call before reading a block: checks some of the files (bel_file_view_turn, bel_file_view_check).
bel_status *bel_csv_set_check(const bel_csv_set *set, int64_t block) BEL_MUST_USE;

// Appends the row's place, such as "train.csv:17".
void bel_csv_set_origin(const bel_csv_set *set, int64_t number, bel_str *out_text);

#endif
