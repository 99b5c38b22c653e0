// Rules that decide a table's columns from their content: those of docs/columns.md.
#ifndef BELFRY_COLUMNS_GUESS_H
#define BELFRY_COLUMNS_GUESS_H

#include "columns/description.h"
#include "columns/statistics.h"

// Raised whenever the rules give another description of the same table: descriptions that other
// processes kept are then not used (input/table/look_cache.h).
enum { BEL_GUESS_RULES = 3 };

typedef struct bel_guess_column {
    const char *name;
    const bel_column_statistics *statistics; // NULL until they are gathered
} bel_guess_column;

// Use of a column that the options demand, by the list that names it.
typedef enum bel_guess_use {
    BEL_GUESS_FREE, // no list names it
    BEL_GUESS_LABEL,
    BEL_GUESS_WEIGHT,
    BEL_GUESS_IGNORED,
    BEL_GUESS_CATEGORY,
    BEL_GUESS_NUMBER,
    BEL_GUESS_LOG, // a number, too
    BEL_GUESS_KEY,
    BEL_GUESS_TEXT, // tokens are made of it
} bel_guess_use;

// Finds the use of each column, the label among them. INVALID_ARGUMENT: a name or pattern fits no
// column (names the nearest), or a column has two uses.
bel_status *bel_guess_uses(const bel_guess_column *columns, int count,
                           const bel_columns_options *options, const char *source,
                           bel_guess_use *out_uses) BEL_MUST_USE;

// Number of items, from the first on, that are one name with commas in it, in a list that was cut
// at commas. *out_name is that name, to be freed with bel_free. 1 and NULL: the first item is a
// name.
int bel_guess_join_name(const char *const *items, int count,
                        bool (*is_name)(const void *user, const char *name), const void *user,
                        char **out_name);

// Whether the column's values must be counted to describe it.
bool bel_guess_needs_values(const bel_guess_column *column, bel_guess_use use);

// Adds the columns to `description`, each with a note of the reason for its kind. Finish it then.
// INVALID_ARGUMENT: a label that cannot be one, or wrong cells among numbers; *out_wrong is then a
// column whose cells are wrong (its statistics say which), or -1.
bel_status *bel_guess(const bel_guess_column *columns, const bel_guess_use *uses, int count,
                      const bel_columns_options *options, const char *source,
                      bel_columns *description, int *out_wrong) BEL_MUST_USE;

#endif
