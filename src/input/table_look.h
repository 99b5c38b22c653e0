// A look at all rows of a table (csv_infer.c): what is gathered of each column, on all cores.
#ifndef BELFRY_INPUT_TABLE_LOOK_H
#define BELFRY_INPUT_TABLE_LOOK_H

#include <stdatomic.h>

#include "columns/guess.h"
#include "input/csv_table.h"

// A slot of a wave.
typedef struct bel_look_slot {
    bel_column_gatherer *gatherers; // of each column
    bel_csv_field *fields;          // of the row, by column
    double *numbers;
    bool *is_number;
    bel_arena *arena; // values with doubled quotes
    bel_csv_spare spare;
} bel_look_slot;

// Counts of values, of each column: for one grain at a time, one grain behind the other. Their
// order does not matter, and tables of a grain's own would be made and put together hundreds of
// times.
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
    const char **names; // of the columns: those of the first file, each once
    int count;
    bel_index index; // of the names
    int **places;    // of each file: the column that each of its fields is; -1: none
    bel_guess_use *uses;
    bool *counts; // whether a column's values are counted
    int label;    // the first of them; -1: there is none
    bel_holdout holdout;
    bel_look_slot *slots;
    int slot_count;
    bel_look_counter *counters; // as many as grains are gathered at a time
    int counter_count;
    bel_column_statistics *totals;
} bel_table_look;

// Before and behind the look: the files are open, and their columns known.
void bel_table_look_make_room(bel_table_look *in);
void bel_table_look_free_room(bel_table_look *in);

// Gathers the rows of the set into `totals`, in one pass or as many as it takes to know which
// values are to be counted, and what stands in front of decimals. RESOURCE_EXHAUSTED: threads.
bel_status *bel_table_look_gather(bel_table_look *in) BEL_MUST_USE;

// The place and text of a cell, as an error of its file has it: "t.csv:17:3: "x"". The message is
// the caller's to use and destroy.
bel_status *bel_table_look_cell(const bel_table_look *in, int64_t row, int column) BEL_MUST_USE;

// Behind the look, with the description finished: looks at a sample of the rows, and notes in each
// column what is likely a mistake (table_suspects.c).
void bel_table_look_suspect(bel_table_look *in);

// How many rows the files have, less those of the holdout that are not wanted; nothing in them is
// looked at, so some may lack a label. Errors: those of opening and indexing.
bel_status *bel_csv_table_count(const bel_columns *columns, const char *const *paths,
                                int path_count, const bel_holdout *holdout,
                                int64_t *out_rows) BEL_MUST_USE;

#endif
