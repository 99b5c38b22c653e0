// The CSV files of a dataset, opened: their rows are numbered through all of them.
#ifndef BELFRY_INPUT_CSV_SET_H
#define BELFRY_INPUT_CSV_SET_H

#include "base/arena.h"
#include "base/str.h"
#include "input/csv_file.h"

typedef struct bel_csv_set {
    bel_csv_file *files;
    int64_t *first_row; // of each file
    int count;
    int64_t row_count;
    bel_number_list kept;         // the numbers of the rows in the files; empty: all are there
    uint64_t size_bytes, content; // of all, and a hash of it
    uint64_t names;               // a hash of the files' paths
} bel_csv_set;

// Opens the files that paths and patterns name; *out_paths are theirs. Nothing is indexed. Close it
// also after a failure; it starts zeroed. Memory comes from `arena`.
bel_status *bel_csv_set_open(bel_csv_set *set, bel_arena *arena, const char *const *paths,
                             int path_count, char delimiter,
                             const char *const **out_paths) BEL_MUST_USE;
void bel_csv_set_close(bel_csv_set *set);

// Hashes the files anew. DATA_LOSS: they are other ones than when they were opened.
bel_status *bel_csv_set_check_content(const bel_csv_set *set) BEL_MUST_USE;

// Indexes each file (bel_csv_file_index), and numbers the rows. DATA_LOSS: there is none.
bel_status *bel_csv_set_index(bel_csv_set *set, const bel_csv_label *label,
                              bool keep_bad) BEL_MUST_USE;

// From now on only some of the rows are there, and numbered anew: those in the list, ascending,
// which it takes over. DATA_LOSS is the caller's to say where there are none.
void bel_csv_set_keep(bel_csv_set *set, bel_number_list *rows);

// The file of a row, and where the row begins.
const bel_csv_file *bel_csv_set_find(const bel_csv_set *set, int64_t number, const char **out_row);

// Whether a row is known to be plain numbers (csv_numbers.h).
bool bel_csv_set_is_numbers(const bel_csv_set *set, int64_t number);

// A step of fetching a row before it is read (ahead.h).
void bel_csv_set_ahead(const bel_csv_set *set, int64_t number, int step);

// Before a block is read: files that have become shorter are errors (bel_file_view_turn).
bel_status *bel_csv_set_check(const bel_csv_set *set, int64_t block) BEL_MUST_USE;

// "train.csv:17".
void bel_csv_set_origin(const bel_csv_set *set, int64_t number, bel_str *out_text);

#endif
