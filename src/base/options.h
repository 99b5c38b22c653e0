// Options: one static table of flags makes the parser, the help text and the dump of settings.
//
// A value comes from the command line, else from a YAML file, else from the table, and remembers
// which ("command line", "train.yaml:4:3", "default"). Whatever is given is checked against the
// table at once, so that a value that can be read is a good one.
//
// On the command line: --name value or --name=value; --name and --no_name for switches; -n for a
// name of one letter; dashes and underscores alike; lists cut at commas or the flag repeated;
// --files a b c; "--" ends the flags; what is no flag is an argument. In YAML: a flat mapping of
// the same names; lists as sequences (taken as they are) or as one text with commas.
//
// Thread-compatible: written while parsing, read by any thread afterwards.
#ifndef BELFRY_BASE_OPTIONS_H
#define BELFRY_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/yaml.h"
#include "belfry/status.h"

typedef enum bel_option_type {
    BEL_OPTION_STRING,
    BEL_OPTION_INT,    // 64 bits, signed
    BEL_OPTION_DOUBLE, // finite
    BEL_OPTION_BOOL,   // a switch
    BEL_OPTION_STRINGS,
    BEL_OPTION_FILES, // STRINGS whose value may be several words, as a shell makes of *.csv: those
                      // up to the next flag. Not for commands that take arguments.
    BEL_OPTION_INTS,
    BEL_OPTION_PAIRS, // NAME=VALUE, repeated and never cut at commas; in YAML also a mapping
} bel_option_type;

// A row of the table. Tables are static; nothing of a row is copied. Two rows may have the same
// name when no command has both.
typedef struct bel_option {
    const char *name; // with underscores
    bel_option_type type;
    unsigned uses; // bit set: the commands that take it (their numbering is the table's own)
    const char *otherwise; // the default, as it would be typed; "" for none
    const char
        *accepts;      // numbers: an interval, "[1, inf)" or "(0, 1]"; STRING: "sgd|adam"; or NULL
    const char *unit;  // "examples", "s"; NULL for none
    const char *group; // heading in the help; rows of a group stand together
    const char *help;  // one sentence
    // The condition on which it has an effect; NULL: always.
    //   "optimizer=adam|sgd"  that option has one of these values; the help says them
    //   "keep!=0"             that option has another value
    //   "port", "!steps"      that option is not, or is, at its default
    //   "port or mode=a|b"    one of these conditions holds
    const char *when;
} bel_option;

// In `uses`: not in YAML and not in a dump (--help, --config_file).
#define BEL_OPTION_COMMAND_LINE_ONLY (1u << 31)

typedef struct bel_options bel_options;

// Options of the command whose bit is `use`, all at their defaults. Free with bel_options_destroy.
bel_options *bel_options_create(const bel_option *table, size_t count, unsigned use);
void bel_options_destroy(bel_options *options);

// Options of the same table and command, all at their defaults.
bel_options *bel_options_create_like(const bel_options *options);

// Adds a row behind the table, at its default, before anything is parsed: for flags that are known
// only at run time. The row is copied, its texts are not. INVALID_ARGUMENT: the name is taken or is
// none, or the row does not accept its own default.
bel_status *bel_options_add(bel_options *options, const bel_option *row) BEL_MUST_USE;

// Other words of the field for an option, such as "lr" for learning_rate.
typedef struct bel_option_word {
    const char *word, *name; // the word with underscores
} bel_option_word;

// Who gives such a word is told the option's name. `words` is not copied; no word behind the last.
void bel_options_know_words(bel_options *options, const bel_option_word *words);

// The options that most users need, by name; NULL at the end. Not copied.
void bel_options_know_common(bel_options *options, const char *const *names);

// What is said to whoever gives a flag of another command ("hint: …"). Not copied; NULL, as at
// first: that --help lists those of this one.
void bel_options_say_elsewhere(bel_options *options, const char *hint);

// Reads a command line without the program's and the command's names. INVALID_ARGUMENT: an unknown
// flag (names the nearest), one of another command, a missing or bad value (names the flag, what it
// accepts and what came). The rest is read all the same, and the first error is returned: flags
// that say how to report errors count wherever they stand.
bel_status *bel_options_parse(bel_options *options, int argument_count,
                              char *const *arguments) BEL_MUST_USE;

// Reads a YAML file; the command line wins, in whatever order the two are read. Keys of other
// commands are checked and passed over, so that one file can serve several. INVALID_ARGUMENT with
// file:line:column: not YAML, an unknown key (names the nearest), a bad value.
bel_status *bel_options_read_yaml(bel_options *options, const char *path) BEL_MUST_USE;

// Values. The name must be in the table and of that type. Texts and lists live as long as the
// options and until the next parse.
const char *bel_options_string(const bel_options *options, const char *name); // NULL when empty
int64_t bel_options_int(const bel_options *options, const char *name);
double bel_options_double(const bel_options *options, const char *name);
bool bel_options_bool(const bel_options *options, const char *name);
const char *const *bel_options_list(const bel_options *options, const char *name,
                                    size_t *out_count); // STRINGS, INTS, PAIRS
int64_t bel_options_list_int(const bel_options *options, const char *name, size_t index); // INTS

// The value of any type as one text: lists joined with commas, switches "true" or "false", "" for
// none. Lives as long as the options and until the next parse.
const char *bel_options_text(const bel_options *options, const char *name);

const char *bel_options_origin(const bel_options *options, const char *name);
bool bel_options_has(const bel_options *options, const char *name);      // this command takes it
bool bel_options_is_given(const bel_options *options, const char *name); // not the default
const char *const *bel_options_arguments(const bel_options *options, size_t *out_count);

// How many of the arguments stood in front of "--"; all of them without it.
size_t bel_options_own_argument_count(const bel_options *options);

// The number of arguments before the place where the option was last given on the command line.
size_t bel_options_arguments_before(const bel_options *options, const char *name);

// What an option came to, such as "auto". `text` NULL: something else decides.
typedef struct bel_option_meaning {
    const char *name, *text;
} bel_option_meaning;

// A flag that is given and has no effect would be silently wrong. INVALID_ARGUMENT names the first
// such one and what it needs. `meanings` (no name behind the last) stand for the values of
// their options; conditions on one of which nothing is known here do not count.
bel_status *bel_options_check_read(const bel_options *options,
                                   const bel_option_meaning *meanings) BEL_MUST_USE;

// Rows of this command, in the table's order; NULL behind the last.
const bel_option *bel_options_at(const bel_options *options, size_t index);
const bel_option *bel_options_find(const bel_options *options, const char *name); // NULL: none

// Which flags a help text has.
typedef struct bel_options_choice {
    bool common;              // only those of bel_options_know_common
    const char *const *words; // only those with all of these in their row, or in another word of
    size_t word_count;        // the field for their name; large and small letters are alike
} bel_options_choice;

// The flags of this command by group, with defaults, units and ranges, for people. Returns their
// number.
size_t bel_options_help(const bel_options *options, const bel_options_choice *choice, bel_str *out);

// The same as a page of a manual (man 7 man): a subsection each group, without a page's head.
void bel_options_manual(const bel_options *options, bel_str *out);

// A text of any kind within such a page.
void bel_options_manual_text(const char *text, bel_str *out);

// All values as YAML that bel_options_read_yaml takes back, each with its origin as a comment.
void bel_options_dump(const bel_options *options, bel_str *out);

#endif
