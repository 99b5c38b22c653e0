// A table's description: what each column is, and where in a record's fields its elements stand.
// Built by reading its text (description_read.c) or from what is in the files (guess.c); then it is
// laid out, and does not change any more. Everything lives in its arena.
#ifndef BELFRY_COLUMNS_DESCRIPTION_H
#define BELFRY_COLUMNS_DESCRIPTION_H

#include "base/arena.h"
#include "base/index.h"
#include "belfry/columns.h"

typedef enum bel_column_kind {
    BEL_COLUMN_NUMBER,
    BEL_COLUMN_CATEGORY, // one of several values
    BEL_COLUMN_HASH,     // one of too many to list them
    BEL_COLUMN_LIST,     // several values with a separator between
    BEL_COLUMN_TEXT,     // words
    BEL_COLUMN_DATE,
    BEL_COLUMN_CROSS, // of other columns; kinds above it are read from cells to predict
    BEL_COLUMN_KEY,
    BEL_COLUMN_WEIGHT,
    BEL_COLUMN_LABEL,
    BEL_COLUMN_IGNORE,
    BEL_COLUMN_KINDS,
} bel_column_kind;

// What becomes of a number v.
typedef enum bel_column_scale {
    BEL_SCALE_STANDARD, // (v - mean) / deviation
    BEL_SCALE_MIN_MAX,  // (v - low) / (high - low)
    BEL_SCALE_LOG,      // ((log(1 + |v|), with the sign of v) - mean) / deviation, of these
    BEL_SCALE_BUCKETS,  // one of several: how many bounds are at most v
    BEL_SCALE_AS_IS,
    BEL_SCALES,
} bel_column_scale;

// What a missing number counts as.
typedef enum bel_column_missing {
    BEL_MISSING_MEAN,
    BEL_MISSING_MEDIAN,
    BEL_MISSING_CONSTANT,
    BEL_MISSING_ERROR,
    BEL_MISSINGS,
} bel_column_missing;

// Parts of a date, bits.
enum {
    BEL_DATE_TIME = 1,    // seconds since 1970, standardised: one number
    BEL_DATE_SEASON = 2,  // sine and cosine of the share of the year that is over
    BEL_DATE_MONTH = 4,   // one of 12
    BEL_DATE_WEEKDAY = 8, // one of 7, Monday first
    BEL_DATE_HOUR = 16,   // one of 24
    BEL_DATE_PARTS = 5,   // how many there are
};

// Texts that stand for a missing value, with what tells of nearly every cell that it is none.
typedef struct bel_missing_texts {
    const char *const *texts;
    int count;
    const size_t *lengths;
    const double *numbers; // NaN: it is none
    uint64_t of_length;    // bit n: one has n bytes; the last bit: so many or more
    uint64_t of_first[4];  // bits of their first bytes
    bool has_number;       // one of them reads as a number
} bel_missing_texts;

typedef struct bel_column {
    const char *name;
    bel_column_kind kind;
    int line, place;     // where it begins in its description; 0: it was made
    const char *note;    // why it is what it is; NULL: nobody said
    const char *warning; // what in it is likely a mistake; NULL: nothing is

    // NUMBER; DATE: the time's mean and deviation; LABEL of numbers: these and `low`; WEIGHT: mean
    bel_column_scale scale;
    bel_column_missing missing;
    bool indicator;           // an element more: 1 where it is missing
    bel_missing_texts absent; // NUMBER, DATE: texts that stand for a missing one here alone
    double mean, deviation;   // of the values, of LOG those of logarithms; deviation > 0
    double low, high, fill;
    const char *unit;     // NUMBER, LABEL of numbers: beside each of them; NULL: nothing is
    char thousands;       // of these: ',' stands between thousands; '\0': nothing does
    double clip;          // NUMBER, DATE: the most that a scaled number may be; 0: anything
    const double *bounds; // BUCKETS, ascending
    int bound_count;

    // CATEGORY; LABEL: the classes
    const char *const *values;
    int value_count;
    const double *rows; // LABEL: of each class in the training data; NULL: not said
    int row_count;
    bool missing_value; // CATEGORY: a missing one is a value, behind the others
    bool embedded;      // CATEGORY: a row of a table in place of one of several
    bel_index index;    // of the values, by bel_column_hash, and by that of bel_cell_number_key
    bool all_numbers;   // are the values
    char decimal;       // in front of decimals, as the table has it

    // LIST, TEXT
    char separator; // LIST
    int most;       // values or words
    int grams;      // TEXT: so many words in a row count as one, too; 1: single words

    int parts;             // DATE
    bool day_first;        // DATE: 3/4/2020 is in April
    const char *const *of; // CROSS: names
    int of_count;
    int of_places[8]; // their numbers among the columns

    bel_label_kind label; // LABEL: classes or a number
    int label_place;      // which of several it is, in the order of the columns

    // Where its elements stand. -1: it has none there.
    int x_place, x_width, id_place, list_place;
    uint64_t seed; // of its values' hashes
    bool crossed;  // a CROSS needs its value
} bel_column;

enum {
    BEL_CROSS_MOST = 8,
    BEL_TEXT_MOST_GRAMS = 8,
    BEL_COLUMN_MOST_VALUES = 1000,
    BEL_COLUMN_MOST_BOUNDS = 1000,
};

struct bel_columns {
    bel_arena *arena;
    bel_column *items;
    int count;
    bel_index names;         // of the columns, by text
    char delimiter, decimal; // decimal: '.' or ','
    bool header;
    bel_missing_texts missing; // in every column
    int64_t rows;
    int x_width, id_count, list_count, list_most;
    int label, weight; // numbers of columns; -1: none. The first of several labels
    int label_count;   // of labels
    // Files whose every cell was looked at when the description was made, and is good: they need no
    // second look. 0: there are none.
    uint64_t seen_content;    // hash of them
    bel_holdout seen_holdout; // the rows of them
    // The files that this process has looked at, and what was in them: hashes; 0: it has not.
    uint64_t looked_names, looked_content;
    char *text; // as bel_columns_text gives it
    uint64_t fingerprint;
};

// The names of kinds, scales, ways of missing values and parts of dates, as they are written.
extern const char *const bel_column_kind_names[BEL_COLUMN_KINDS];
extern const char *const bel_column_scale_names[BEL_SCALES];
extern const char *const bel_column_missing_names[BEL_MISSINGS];
extern const char *const bel_date_part_names[BEL_DATE_PARTS];

// An empty description, and a column behind its others. A column's pointer is good until the next.
bel_columns *bel_columns_create(void);
bel_column *bel_columns_add(bel_columns *columns, const char *name, bel_column_kind kind);

// The column of this name; -1: there is none.
int bel_columns_find(const bel_columns *columns, const char *name);

// True when cells of the column are read to predict.
bool bel_column_is_feature(const bel_column *column);

// Gives elements their places, and the description its text. INVALID_ARGUMENT: two labels, a cross
// of a column that is no category, a number without deviation …; `source` names it.
bel_status *bel_columns_finish(bel_columns *columns, const char *source) BEL_MUST_USE;

// Another number of rows in a finished description, before anybody uses it.
void bel_columns_set_rows(bel_columns *columns, int64_t rows);

// What in a column of a finished description is likely a mistake, before anybody uses it.
void bel_columns_set_warning(bel_columns *columns, int column, const char *warning);

// More texts that stand for a missing value, in every column of a finished description, before
// anybody uses it. Its text stays as it is.
void bel_columns_add_missing(bel_columns *columns, const char *const *texts, int count);

// Whether the text of a finished description comes back to itself: a checkpoint keeps nothing else.
// INVALID_ARGUMENT: it does not; before the first step is when to say so.
bel_status *bel_columns_check_text(const bel_columns *columns, const char *source) BEL_MUST_USE;

// The text (description_text.c).
char *bel_columns_write(const bel_columns *columns);

// Reads a cell of a number, with its column's unit and what stands between thousands, or without.
bool bel_column_read_number(const bel_columns *columns, const bel_column *column, const char *text,
                            size_t length, double *out_value);

// The hash by which a value of a column is known.
uint64_t bel_column_hash(const bel_column *column, const char *text, size_t length);
// The number of a value, or of a class; -1: it is none. Equal numbers are one value: "1.0" and
// "1e0" are the value "1", unless they are values themselves. Where some values are no numbers,
// only whole ones are equal so.
int bel_column_value(const bel_column *column, const char *text, size_t length);

// Makes texts and their count ready to be looked for.
void bel_missing_texts_prepare(bel_missing_texts *missing, bel_arena *arena);
// Which of them a text is, without spaces around it; -1: none. Equal numbers are one: -999.0 is
// -999.
int bel_missing_texts_find(const bel_missing_texts *missing, char decimal, const char *text,
                           size_t length);

// Whether a text stands for a missing value in every column; and in this one.
bool bel_columns_is_missing(const bel_columns *columns, const char *text, size_t length);
bool bel_column_is_missing(const bel_columns *columns, const bel_column *column, const char *text,
                           size_t length);
// The same for a text that is a number, which hardly ever is one of them.
bool bel_column_is_missing_number(const bel_columns *columns, const bel_column *column,
                                  const char *text, size_t length);

#endif
