// Look at all rows of a table (csv_infer.c): gathers the statistics of each column on all cores.
#ifndef BELFRY_INPUT_TABLE_TABLE_LOOK_H
#define BELFRY_INPUT_TABLE_TABLE_LOOK_H

#include <stdatomic.h>

#include "columns/guess.h"
#include "input/table/csv_table.h"

// Slot of a wave.
typedef struct bel_look_slot {
    bel_column_gatherer *gatherers; // one per column
    bel_csv_field *fields;          // the row's, by column
    double *numbers;
    bool *is_number;
    bel_arena *arena; // values with doubled quotes
    bel_csv_spare spare;
} bel_look_slot;

// Counts of each column's values, added by one grain at a time. The order of grains does not
// matter. Separate tables per grain would be created and merged hundreds of times.
typedef struct bel_look_counter {
    atomic_bool taken;
    bel_value_counts *values;
} bel_look_counter;

typedef struct bel_table_look {
    const bel_columns_options *options;
    bel_columns *description;
    bel_arena *arena;
    bel_csv_set set;
    const char *source; // the first file
    const char **names; // column names: those of the first file, each once
    int count;
    bel_index index; // the column names
    int **places;    // per file: the column of each of its fields; -1: none
    bel_guess_use *uses;
    bool *counts; // whether a column's values are counted
    int label;    // the first label; -1: none
    bel_holdout holdout;
    bel_look_slot *slots;
    int slot_count;
    bel_look_counter *counters; // one per grain that is gathered at a time
    int counter_count;
    bel_column_statistics *totals;
} bel_table_look;

// Call before and after the look; the files are open, and their columns known.
void bel_table_look_make_room(bel_table_look *in);
void bel_table_look_free_room(bel_table_look *in);

// Gathers the rows of the set into `totals`. It takes several passes if the decimal separator, or
// the columns whose values must be counted, become known only on the way. RESOURCE_EXHAUSTED:
// threads.
bel_status *bel_table_look_gather(bel_table_look *in) BEL_MUST_USE;

// Position and text of a cell, as an error of its file: "t.csv:17:3: "x"". The caller uses and
// destroys it.
bel_status *bel_table_look_cell(const bel_table_look *in, int64_t row, int column) BEL_MUST_USE;

// Looks at a sample of the rows, after the look and with the description finished, and notes each
// column's likely mistake (table_suspects.c).
void bel_table_look_suspect(bel_table_look *in);

// Counts the rows of the files, except those that the holdout excludes. It does not look at their
// content, so some may lack a label. Errors: those of opening and indexing.
bel_status *bel_csv_table_count(const bel_columns *columns, const char *const *paths,
                                int path_count, const bel_holdout *holdout,
                                int64_t *out_rows) BEL_MUST_USE;

#endif
