// Options: one static table of flags makes the parser, the help text and the dump of settings.
//
// A value comes from the command line, else from a YAML file, else from the table, and records its
// source ("command line", "train.yaml:4:3", "default"). Every given value is checked against the
// table at once, so a value that can be read is valid.
//
// On the command line:
// - `--name value` or `--name=value`; `--name` and `--no_name` for switches; `-n` for a name of one
//   letter; dashes and underscores are equivalent;
// - lists are split at commas or the flag is repeated; `--files a b c`;
// - `--` ends the flags; any other word is an argument.
// In YAML: a flat mapping of the same names; lists as sequences (used unchanged) or as one text
// with commas.
//
// Thread-compatible: written while parsing, read by any thread afterwards.
#ifndef BELFRY_BASE_OPTIONS_H
#define BELFRY_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/yaml.h"
#include "belfry/status.h"

typedef struct bel_str bel_str; // base/str.h

typedef enum bel_option_type {
    BEL_OPTION_STRING,
    BEL_OPTION_INT,    // 64 bits, signed
    BEL_OPTION_DOUBLE, // finite
    BEL_OPTION_BOOL,   // a switch
    BEL_OPTION_STRINGS,
    BEL_OPTION_FILES, // STRINGS whose value may be several words, as a shell makes of *.csv: those
                      // up to the next flag. Not for commands with arguments.
    BEL_OPTION_INTS,
    BEL_OPTION_PAIRS, // NAME=VALUE, repeated and never split at commas; in YAML also a mapping
} bel_option_type;

// Row of the table. Tables are static; nothing of a row is copied. Two rows may have the same name
// if no command has both.
typedef struct bel_option {
    const char *name; // with underscores
    bel_option_type type;
    uint64_t uses; // bits of the commands that accept it (the table defines their numbering)
    const char *otherwise; // default, as it would be typed; "" for none
    const char
        *accepts;      // numbers: an interval, "[1, inf)" or "(0, 1]"; STRING: "sgd|adam"; or NULL
    const char *unit;  // "examples", "s"; NULL for none
    const char *group; // heading in the help; rows of a group are adjacent
    const char *help;  // one sentence
    // Condition on which it has an effect; NULL: always.
    //   "optimizer=adam|sgd"  that option has one of these values; the help lists them
    //   "keep!=0"             that option has another value
    //   "port", "!steps"      that option is not, or is, at its default
    //   "port or mode=a|b"    one of these conditions holds
    const char *when;
} bel_option;

// In `uses`: not in YAML and not in a dump (--help, --config_file).
#define BEL_OPTION_COMMAND_LINE_ONLY (UINT64_C(1) << 63)

typedef struct bel_options bel_options;

// Makes the options of the command with bit `use`, all at their defaults. Free with
// bel_options_destroy.
bel_options *bel_options_create(const bel_option *table, size_t count, uint64_t use);
void bel_options_destroy(bel_options *options);

// Makes options of the same table and command, all at their defaults.
bel_options *bel_options_create_like(const bel_options *options);

// Adds a row after the table, at its default, before anything is parsed: for flags known only at
// run time. The row is copied, its texts are not. INVALID_ARGUMENT: the name is taken or invalid,
// or the row does not accept its default.
bel_status *bel_options_add(bel_options *options, const bel_option *row) BEL_MUST_USE;

// Common synonym of an option, such as "lr" for learning_rate.
typedef struct bel_option_word {
    const char *word, *name; // the word with underscores
} bel_option_word;

// Sets the synonyms for "did you mean" hints. `words` is not copied and ends with a NULL word.
void bel_options_know_words(bel_options *options, const bel_option_word *words);

// Sets the options that most users need, by name; NULL at the end. Not copied.
void bel_options_know_common(bel_options *options, const char *const *names);

// Sets the hint ("hint: …") for a flag of another command. Not copied; NULL, as by default: that
// --help lists this command's flags.
void bel_options_say_elsewhere(bel_options *options, const char *hint);

// Parses a command line without the names of the program and the command. INVALID_ARGUMENT: an
// unknown flag (names the nearest), one of another command, a missing or invalid value (names the
// flag, the accepted and the actual value). The rest is still parsed, and the first error is
// returned: flags for error reports thus apply wherever they are.
bel_status *bel_options_parse(bel_options *options, int argument_count,
                              char *const *arguments) BEL_MUST_USE;

// Reads a YAML file; the command line overrides it, in any order of the two. Keys of other commands
// are checked but not used, so one file can serve several commands. INVALID_ARGUMENT with
// file:line:column: not YAML, an unknown key (names the nearest), an invalid value.
bel_status *bel_options_read_yaml(bel_options *options, const char *path) BEL_MUST_USE;

// The functions below return values. The name must be in the table and of that type. Texts and
// lists live as long as the options and until the next parse.
const char *bel_options_string(const bel_options *options, const char *name); // NULL when empty
int64_t bel_options_int(const bel_options *options, const char *name);
double bel_options_double(const bel_options *options, const char *name);
bool bel_options_bool(const bel_options *options, const char *name);
const char *const *bel_options_list(const bel_options *options, const char *name,
                                    size_t *out_count); // STRINGS, INTS, PAIRS
int64_t bel_options_list_int(const bel_options *options, const char *name, size_t index); // INTS

// Returns the value of any type as one text: lists joined with commas, switches "true" or "false",
// "" if empty. Lives as long as the options and until the next parse.
const char *bel_options_text(const bel_options *options, const char *name);

// From now on bel_options_string returns `text` for a given text, for example the folder of this
// host for a URL. bel_options_text and a dump keep the given one.
void bel_options_mean(bel_options *options, const char *name, const char *text);

const char *bel_options_origin(const bel_options *options, const char *name);
bool bel_options_has(const bel_options *options, const char *name);      // this command accepts it
bool bel_options_is_given(const bel_options *options, const char *name); // not the default
const char *const *bel_options_arguments(const bel_options *options, size_t *out_count);

// Returns the number of arguments before "--"; all of them without it.
size_t bel_options_own_argument_count(const bel_options *options);

// Returns the number of arguments before the option's last place on the command line.
size_t bel_options_arguments_before(const bel_options *options, const char *name);

// Effective value of an option, such as the choice for "auto". `text` NULL: unknown here.
typedef struct bel_option_meaning {
    const char *name, *text;
} bel_option_meaning;

// Refuses a given flag that has no effect, which would be silently wrong. INVALID_ARGUMENT names
// the first such flag and its conditions. `meanings` (ends with a NULL name) replace the values of
// their options; conditions on an unknown one are ignored.
bel_status *bel_options_check_read(const bel_options *options,
                                   const bel_option_meaning *meanings) BEL_MUST_USE;

// Returns a row of this command, in the table's order; NULL after the last.
const bel_option *bel_options_at(const bel_options *options, size_t index);
const bel_option *bel_options_find(const bel_options *options, const char *name); // NULL: no such
                                                                                  // option

// Selection of flags for a help text.
typedef struct bel_options_choice {
    bool common;              // only those of bel_options_know_common
    const char *const *words; // only those with all of these in their row, or in a synonym of their
    size_t word_count;        // name; case-insensitive
} bel_options_choice;

// Writes the flags of this command by group, with defaults, units and ranges, for people. Returns
// their number.
size_t bel_options_help(const bel_options *options, const bel_options_choice *choice, bel_str *out);

// The same as part of a manual page (man 7 man): a subsection for each group, without the page's
// header.
void bel_options_manual(const bel_options *options, bel_str *out);

// Writes any text for such a page.
void bel_options_manual_text(const char *text, bel_str *out);

// Writes all values as YAML for bel_options_read_yaml, each with its origin as a comment.
void bel_options_dump(const bel_options *options, bel_str *out);

#endif
