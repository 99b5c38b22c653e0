// CSV files whose columns are found by name, each file by its own header: for inferring what they
// are (csv_infer.c) and for reading them as described (source_table.c).
#ifndef BELFRY_INPUT_CSV_TABLE_H
#define BELFRY_INPUT_CSV_TABLE_H

#include <string.h>

#include "base/arena.h"
#include "columns/transform.h"
#include "input/csv_set.h"

// The names of a file's columns in `arena`, as UTF-8: from its header, behind which its rows then
// begin, or their numbers. DATA_LOSS names the place.
bel_status *bel_csv_table_names(bel_csv_file *file, bool header, bel_arena *arena,
                                const char *const **out_names) BEL_MUST_USE;

// What to say behind an error of missing columns: that fields are told apart by another delimiter
// than the description's, or "". `names`: those that the file has instead.
const char *bel_csv_table_delimiter_hint(const char *const *names, int count, char delimiter);

// Warns when all names are numbers that do not count: the first row may be data.
void bel_csv_table_warn_of_numbers(const char *path, const char *const *names, int count);

// A cell's text without spaces around it. A value with doubled quotes is made in *spare, which
// grows (bel_free) and holds one.
typedef struct bel_csv_spare {
    char *text;
    size_t capacity;
} bel_csv_spare;
bel_cell bel_csv_table_cell(const bel_csv_field *field, bel_csv_spare *spare);

// Whether a bare number, read with a point, is another one where commas are in front of decimals:
// "1.500" is 1500 then, and "1.5" none.
static inline bool bel_csv_table_may_be_other(const bel_columns *columns, const char *from,
                                              const char *to)
{
    return columns->decimal == ',' && memchr(from, '.', (size_t)(to - from)) != NULL;
}

// Rows in grains of BEL_GRAIN_ROWS, on several threads: `gather` is called once for each grain, in
// any order and on any thread, with a slot that no other call has at that time; then `merge`, in
// the order of the grains, on the calling thread, with the same slot. It returns false to stop.
typedef struct bel_csv_grains {
    int64_t row_count;
    int thread_count; // 0: the cores
    void (*gather)(void *user, int slot, int64_t first, int64_t count);
    bool (*merge)(void *user, int slot);
    void *user;
} bel_csv_grains;

// How many slots there are, for who makes room for them, and how many of them are filled at a time.
int bel_csv_grain_slots(int thread_count);
int bel_csv_grain_threads(int thread_count);

// RESOURCE_EXHAUSTED: no thread can be started.
bel_status *bel_csv_grains_run(const bel_csv_grains *grains) BEL_MUST_USE;

#endif
