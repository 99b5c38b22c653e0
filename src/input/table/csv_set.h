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
    struct bel_csv_growth *growth; // a followed file's; NULL: the files do not change
} bel_csv_set;

// Opens the files that paths and patterns name, without indexing them. *out_paths are the files'
// paths. The set must be zeroed; close it also after a failure. Memory comes from `arena`.
bel_status *bel_csv_set_open(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                             int path_count, char delimiter,
                             const char *const **out_paths) BEL_MUST_USE;
void bel_csv_set_close(bel_csv_set *set);

// The same for one file that grows while it is read. `content` is a hash of its first line.
// INVALID_ARGUMENT: more than one file.
bel_status *bel_csv_set_open_growing(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                                     int path_count, char delimiter,
                                     const char *const **out_paths) BEL_MUST_USE;

// Instead of bel_csv_set_index: indexes the rows so far. `label` is copied.
bel_status *bel_csv_set_follow(bel_csv_set *set, const bel_csv_label *label,
                               bool keep_bad) BEL_MUST_USE;

// Sets *out_rows to the number of rows that are there, after a look at the file if they are fewer
// than `wanted` and the last look is 10 ms ago. A bad row, and a file that was removed, replaced or
// written anew (DATA_LOSS), are returned again by each later call that wants more rows. After
// another error of the file the next call looks again. Any thread.
bel_status *bel_csv_set_look(const bel_csv_set *set, int64_t wanted,
                             int64_t *out_rows) BEL_MUST_USE;

// Returns DATA_LOSS if a file that grows is no longer the one whose rows are indexed, and another
// error if that cannot be known now. Any thread.
bel_status *bel_csv_set_check_growth(const bel_csv_set *set) BEL_MUST_USE;

// Appends a text that tells the first `rows` rows, at least one, of a file that grows from those of
// another file: their size, and a hash of the first and last 64 KiB. Errors: those of
// bel_csv_set_check_growth and bel_csv_set_enter.
bel_status *bel_csv_set_mark(const bel_csv_set *set, int64_t rows, bel_str *out_text) BEL_MUST_USE;

// Appends where a last row begins that has no end yet, and its bytes so far; nothing without one.
void bel_csv_set_unfinished(const bel_csv_set *set, bel_str *out_text);

void bel_csv_set_end_growth(bel_csv_set *set); // part of bel_csv_set_close

// Call around the use of rows, with a row number that is used at the end of it, so that the index
// does not change meanwhile. Both do nothing if the files do not change. DATA_LOSS: there is no
// such row yet.
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
