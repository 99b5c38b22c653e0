// CSV files whose columns are found by name in each file's header. csv_infer.c infers the columns
// from them, and source_table.c reads them by a description.
#ifndef BELFRY_INPUT_TABLE_CSV_TABLE_H
#define BELFRY_INPUT_TABLE_CSV_TABLE_H

#include <string.h>

#include "base/arena.h"
#include "columns/transform.h"
#include "input/table/csv_set.h"

// The names of a file's columns in `arena`, as UTF-8. With `header` they come from the first row,
// and the file's rows begin after it. Otherwise they are the columns' numbers. DATA_LOSS names the
// place.
bel_status *bel_csv_table_names(bel_csv_file *file, bool header, bel_arena *arena,
                                const char *const **out_names) BEL_MUST_USE;

// Hint to append to an error about missing columns, if the file seems to use another delimiter than
// the description; otherwise "". `names`: the file's columns.
const char *bel_csv_table_delimiter_hint(const char *const *names, int count, char delimiter);

// Warns if all names are numbers other than 0, 1, 2 … or 1, 2, 3 …: the first row may be data.
void bel_csv_table_warn_of_numbers(const char *path, const char *const *names, int count);

// A cell's text without spaces around it. A value with doubled quotes is copied to *spare, which
// grows and holds one value. Free spare->text with bel_free.
typedef struct bel_csv_spare {
    char *text;
    size_t capacity;
} bel_csv_spare;
bel_cell bel_csv_table_cell(const bel_csv_field *field, bel_csv_spare *spare);

// True if a bare number that was read with a decimal point may differ in a table with decimal
// commas: there "1.500" is 1500, and "1.5" is invalid.
static inline bool bel_csv_table_may_be_other(const bel_columns *columns, const char *from,
                                              const char *to)
{
    return columns->decimal == ',' && memchr(from, '.', (size_t)(to - from)) != NULL;
}

// A pass over rows in grains of BEL_GRAIN_ROWS, on several threads. `gather` is called once for
// each grain, in any order and on any thread, with a slot that no concurrent call has. Then `merge`
// is called with the same slot, in the order of the grains, on the calling thread. It returns false
// to stop the pass.
typedef struct bel_csv_grains {
    int64_t row_count;
    int thread_count; // 0: one for each core
    void (*gather)(void *user, int slot, int64_t first, int64_t count);
    bool (*merge)(void *user, int slot);
    void *user;
} bel_csv_grains;

// Number of slots, for which the caller allocates memory.
int bel_csv_grain_slots(int thread_count);
// Number of slots that are filled at the same time.
int bel_csv_grain_threads(int thread_count);

// RESOURCE_EXHAUSTED: cannot start a thread.
bel_status *bel_csv_grains_run(const bel_csv_grains *grains) BEL_MUST_USE;

#endif
