// Internals of options, shared by options.c (values and their sources) and options_text.c (texts
// for people).
#ifndef BELFRY_BASE_OPTIONS_INNER_H
#define BELFRY_BASE_OPTIONS_INNER_H

#include "base/options.h"

// Source of a value; a higher one takes precedence.
typedef enum bel_option_source {
    BEL_OPTION_FROM_TABLE,
    BEL_OPTION_FROM_FILE,
    BEL_OPTION_FROM_COMMAND_LINE,
} bel_option_source;

typedef struct bel_option_value {
    char **items; // checked texts: at most one, except for lists
    size_t count, capacity;
    char *joined; // the items with commas between them
    char *meant;  // bel_options_mean; NULL: the value itself
    char *origin;
    bel_option_source source;
    size_t arguments_before; // on the command line
} bel_option_value;

struct bel_options {
    const bel_option *table;
    bel_option *own_table; // copy of the table with added rows
    size_t count;
    uint64_t use;
    const bel_option_word *words; // NULL: no synonyms
    const char *const *common;    // NULL: all options
    const char *elsewhere;        // hint for flags of other commands; NULL: unset
    bel_option_value *values;     // one for each row
    char **arguments;
    size_t argument_count, argument_capacity;
    size_t own_argument_count; // before "--"
};

static inline bool bel_option_is_list(const bel_option *option)
{
    return option->type == BEL_OPTION_STRINGS || option->type == BEL_OPTION_FILES ||
           option->type == BEL_OPTION_INTS || option->type == BEL_OPTION_PAIRS;
}

// A text, or several texts.
static inline bool bel_option_is_text(const bel_option *option)
{
    return option->type == BEL_OPTION_STRING || option->type == BEL_OPTION_STRINGS ||
           option->type == BEL_OPTION_FILES;
}

// Describes the values that a row accepts, for errors and help: "an integer in [1, inf)".
void bel_option_describe(const bel_option *option, bel_str *out);

// Checks one text (an item of a list, or the value) against the row. INVALID_ARGUMENT begins with
// `place` (a flag or a place in a file).
bel_status *bel_option_check(const bel_option *option, const char *place,
                             const char *text) BEL_MUST_USE;

enum { BEL_OPTION_MAX_NAME = 63 }; // characters

// Returns the row of a name, this command's before those of others; -1: no such name.
int bel_option_row(const bel_options *options, const char *name);

// Returns the row of a name as typed, or -1. "no_x" means switch x, and sets *out_negated.
int bel_option_typed_row(const bel_options *options, const char *typed, size_t length,
                         bool *out_negated);

// Returns the option for a synonym that users of other programs type. NULL: this command has none.
const char *bel_option_of_word(const bel_options *options, const char *typed);

// Returns "; did you mean --train_files?", or another hint. Free with bel_free.
char *bel_option_suggestion(const bel_options *options, const char *typed, size_t length,
                            const char *dashes);

#endif
