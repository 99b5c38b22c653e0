// From what is in a table's columns to what they are: the rules of docs/columns.md.
#ifndef BELFRY_COLUMNS_GUESS_H
#define BELFRY_COLUMNS_GUESS_H

#include "columns/description.h"
#include "columns/statistics.h"

// Raised whenever the rules give another description of the same table: what was seen by others is
// not used then (input/look_cache.h).
enum { BEL_GUESS_RULES = 3 };

typedef struct bel_guess_column {
    const char *name;
    const bel_column_statistics *statistics; // NULL until they are gathered
} bel_guess_column;

// What the options say of the columns: which one each list names.
typedef enum bel_guess_use {
    BEL_GUESS_FREE, // nothing
    BEL_GUESS_LABEL,
    BEL_GUESS_WEIGHT,
    BEL_GUESS_IGNORED,
    BEL_GUESS_CATEGORY,
    BEL_GUESS_NUMBER,
    BEL_GUESS_LOG, // a number, too
    BEL_GUESS_KEY,
} bel_guess_use;

// Which column has which use, the label among them. INVALID_ARGUMENT: a name or pattern fits none
// (names the nearest), or a column has two uses.
bel_status *bel_guess_uses(const bel_guess_column *columns, int count,
                           const bel_columns_options *options, const char *source,
                           bel_guess_use *out_uses) BEL_MUST_USE;

// How many items of a list that was cut at commas, from the first on, are one name with commas in
// it; *out_name is that name, to be freed with bel_free. 1 and NULL: the first one stands alone.
int bel_guess_join_name(const char *const *items, int count,
                        bool (*is_name)(const void *user, const char *name), const void *user,
                        char **out_name);

// Whether a column can only be described with its values counted.
bool bel_guess_needs_values(const bel_guess_column *column, bel_guess_use use);

// Adds the columns to `description`, each with a note of why it is what it is. Finish it then.
// INVALID_ARGUMENT: a label that cannot be one, or wrong cells among numbers; *out_wrong is then a
// column whose cells are wrong (its statistics say which), or -1.
bel_status *bel_guess(const bel_guess_column *columns, const bel_guess_use *uses, int count,
                      const bel_columns_options *options, const char *source,
                      bel_columns *description, int *out_wrong) BEL_MUST_USE;

#endif
