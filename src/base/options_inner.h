// Inside view of options, for options.c (values and where they come from) and options_text.c (what
// people read).
#ifndef BELFRY_BASE_OPTIONS_INNER_H
#define BELFRY_BASE_OPTIONS_INNER_H

#include "base/options.h"

// Where a value came from; a higher one wins.
typedef enum bel_option_source {
    BEL_OPTION_FROM_TABLE,
    BEL_OPTION_FROM_FILE,
    BEL_OPTION_FROM_COMMAND_LINE,
} bel_option_source;

typedef struct bel_option_value {
    char **items; // checked texts: at most one, but for lists
    size_t count, capacity;
    char *joined; // the items with commas between them
    char *origin;
    bel_option_source source;
    size_t arguments_before; // on the command line
} bel_option_value;

struct bel_options {
    const bel_option *table;
    bel_option *own_table; // the same once a row was added
    size_t count;
    unsigned use;
    const bel_option_word *words; // NULL: none are known
    const char *const *common;    // NULL: all are
    const char *elsewhere;        // of flags of other commands; NULL: nothing
    bel_option_value *values;     // one a row
    char **arguments;
    size_t argument_count, argument_capacity;
    size_t own_argument_count; // in front of "--"
};

static inline bool bel_option_is_list(const bel_option *option)
{
    return option->type == BEL_OPTION_STRINGS || option->type == BEL_OPTION_FILES ||
           option->type == BEL_OPTION_INTS || option->type == BEL_OPTION_PAIRS;
}

// A text, or several.
static inline bool bel_option_is_text(const bel_option *option)
{
    return option->type == BEL_OPTION_STRING || option->type == BEL_OPTION_STRINGS ||
           option->type == BEL_OPTION_FILES;
}

// What a row accepts, for errors and help: "a whole number in [1, inf)".
void bel_option_describe(const bel_option *option, bel_str *out);

// Whether one text (an item of a list, or the value) is what the row accepts. INVALID_ARGUMENT with
// `place` (a flag or a place in a file) in front.
bel_status *bel_option_check(const bel_option *option, const char *place,
                             const char *text) BEL_MUST_USE;

enum { BEL_OPTION_MAX_NAME = 63 }; // characters

// The row of a name, that of this command before those of others; -1: there is none.
int bel_option_row(const bel_options *options, const char *name);

// The row that a name as typed means, or -1. "no_x" means switch x, and sets *out_negated.
int bel_option_typed_row(const bel_options *options, const char *typed, size_t length,
                         bool *out_negated);

// "; did you mean --train_files?", or what else to do. Free with bel_free.
char *bel_option_suggestion(const bel_options *options, const char *typed, size_t length,
                            const char *dashes);

#endif
