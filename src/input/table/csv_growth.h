// Parts of a followed set of CSV files (csv_set.h) that a file that grows (csv_follow.c) and files
// that appear (csv_appear.c) share.
#ifndef BELFRY_INPUT_TABLE_CSV_GROWTH_H
#define BELFRY_INPUT_TABLE_CSV_GROWTH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "input/table/csv_mark.h"
#include "input/table/csv_set.h"

// A file that appeared.
typedef struct bel_csv_appeared {
    int64_t first_row; // number of its first row, which may be no longer in the index
    uint64_t hash;     // covers it and the files before it
    bool gone;         // it was passed, and removed
} bel_csv_appeared;

typedef struct bel_csv_growth {
    bel_csv_set *set;      // to which rows and files are added, and which loses them
    pthread_mutex_t mutex; // guards the file's view and the fields below; taken before the lock
    pthread_rwlock_t lock; // written to by the thread that changes the index
    atomic_llong rows;     // number of rows up to the last that is there
    atomic_llong passed;   // rows before this one are not read again
    atomic_llong wanted;   // the most rows that a reader asked for
    bel_csv_label label;
    bool keep_bad;
    bool begun;            // the index begins as `from` says
    const char *from_text; // mark of the rows before the index; NULL: it begins with the first row
    bel_csv_mark from;
    bool from_old;    // its form is that of an earlier version
    bel_arena *texts; // the mark's
    int64_t looked_ns;
    uint64_t tried;    // end of the file's bytes when no whole row was left; UINT64_MAX: none yet
    bel_status *error; // the first one that stays, after which nothing is indexed
    bel_status *lost;  // the file is not the one whose rows are indexed: they cannot be read either

    // For files that appear.
    bel_status *passing;        // the last look has met it; the next one may not
    atomic_bool reads;          // the thread copies or indexes a file
    bel_csv_appeared *appeared; // [capacity], of the files of the set; under the lock
    size_t capacity, first_rows_capacity, appeared_capacity;
    int64_t begins;       // number of calls of bel_csv_set_begin; under the mutex and the lock
    char *header;         // the first line, which all files have
    size_t header_size;   // 0: none
    int64_t read_files;   // files before those of the set
    uint64_t read_hash;   // their hash
    int64_t listed_files; // the most of them that a listing may have
    uint64_t listed_hash; // covers their names in the last listing; 0: unknown
    pthread_t looker;
    pthread_cond_t may_end;  // or has something to do
    pthread_cond_t may_read; // the index has begun, or has an error
    bool looks, ends;        // whether the thread was started; whether it is to end
} bel_csv_growth;

// A copy of an error that is kept.
bel_status *bel_csv_growth_again(const bel_status *error) BEL_MUST_USE;

// Keeps the error if no later look could find the file as it was.
bel_status *bel_csv_growth_keep_lost(bel_csv_growth *growth, bel_status *status) BEL_MUST_USE;

// A table of objects may get a column with each line. INVALID_ARGUMENT: it is one.
bel_status *bel_csv_growth_refuse_objects(const char *path) BEL_MUST_USE;

// Opens the first of the files so far, for its columns.
bel_status *bel_csv_appear_open(bel_csv_set *set, bel_arena *arena, const char *pattern,
                                char delimiter, const char *const **out_paths) BEL_MUST_USE;

void bel_csv_appear_close(bel_csv_set *set); // closes all its files

// Starts the thread that lists, opens and indexes files; it ends with the growth.
bel_status *bel_csv_appear_start(bel_csv_growth *growth) BEL_MUST_USE;

// Checks the last file that is indexed.
bel_status *bel_csv_appear_check_last(bel_csv_growth *growth) BEL_MUST_USE;

// The part of a file's path, or of its URL, from the pattern's first component with a wildcard on:
// the folders before it may move, names stay.
const char *bel_csv_appear_name(const char *pattern, const char *path);

#endif
