// Inside of guess.c and guess_fill.c: a column that is being guessed, and the parts of its
// description that its statistics decide.
#ifndef BELFRY_COLUMNS_GUESS_INNER_H
#define BELFRY_COLUMNS_GUESS_INNER_H

#include "base/str.h"
#include "columns/description.h"
#include "columns/statistics.h"

enum { BEL_GUESS_FEW_ROWS = 20 }; // with fewer rows, distinct values prove nothing

// State of guessing one column.
typedef struct bel_guess_state {
    const bel_column_statistics *s;
    const bel_columns_options *options;
    const char *source;
    bel_columns *description;
    bel_column *column; // the added column
    bel_str note;
    int64_t rest; // cells that are not missing
} bel_guess_state;

// --- Of an added column (guess_fill.c) -----------------------------------------------------------

void bel_guess_fill_number(bel_guess_state *g);
// Numbers with marks; `whole` has the statistics of all of them.
void bel_guess_fill_dressed(bel_guess_state *g, const bel_column_statistics *whole);
void bel_guess_fill_date(bel_guess_state *g);
// Keeps the values that are frequent enough to learn from, the most frequent first.
void bel_guess_fill_category(bel_guess_state *g);
// Classes are numbered by their values, or by their bytes, so that their numbers do not depend on
// the order of the rows. Takes ownership of the values.
void bel_guess_fill_classes(bel_guess_state *g, bel_value_count *values, size_t count);
// Classes in the order of `values`.
void bel_guess_set_classes(bel_guess_state *g, const bel_value_count *values, size_t count);

// Takes the texts among numbers, or among dates, as missing values of this column if they are few;
// in another column the same text may have a meaning. `good`: number of cells that are a `what`.
bool bel_guess_take_markers(bel_guess_state *g, const bel_value_count *markers, int count,
                            int64_t good, const char *what, bel_missing_texts *out_markers);
void bel_guess_note_missing(bel_guess_state *g);

#endif
