// Table description: the kind of each column, and the positions of its elements in a record's
// fields. It is built by reading its text (description_read.c) or from the content of the files
// (guess.c); then it is laid out, and does not change any more. Everything lives in its arena.
#ifndef BELFRY_COLUMNS_DESCRIPTION_H
#define BELFRY_COLUMNS_DESCRIPTION_H

#include "base/arena.h"
#include "base/index.h"
#include "belfry/columns.h"

typedef enum bel_column_kind {
    BEL_COLUMN_NUMBER,
    BEL_COLUMN_CATEGORY, // one of several values
    BEL_COLUMN_HASH,     // one of too many values to list
    BEL_COLUMN_LIST,     // several values with a separator between
    BEL_COLUMN_TEXT,     // words
    BEL_COLUMN_TOKENS,   // a text's tokens
    BEL_COLUMN_DATE,
    BEL_COLUMN_CROSS, // cross of other columns; the kinds above are read from cells to predict
    BEL_COLUMN_KEY,
    BEL_COLUMN_WEIGHT,
    BEL_COLUMN_LABEL,
    BEL_COLUMN_IGNORE,
    BEL_COLUMN_KINDS,
} bel_column_kind;

enum { BEL_COLUMN_MOST_TOKENS = 1 << 20 };

// Transformation of a number v.
typedef enum bel_column_scale {
    BEL_SCALE_STANDARD, // (v - mean) / deviation
    BEL_SCALE_MIN_MAX,  // (v - low) / (high - low)
    BEL_SCALE_LOG,      // (sign(v) log(1 + |v|) - mean) / deviation, both of the logarithms
    BEL_SCALE_BUCKETS,  // one of several: the number of bounds <= v
    BEL_SCALE_AS_IS,
    BEL_SCALES,
} bel_column_scale;

// Replacement of a missing number.
typedef enum bel_column_missing {
    BEL_MISSING_MEAN,
    BEL_MISSING_MEDIAN,
    BEL_MISSING_CONSTANT,
    BEL_MISSING_ERROR,
    BEL_MISSINGS,
} bel_column_missing;

// Parts of a date, bits.
enum {
    BEL_DATE_TIME = 1,    // seconds since 1970, standardized: one number
    BEL_DATE_SEASON = 2,  // sine and cosine of the fraction of the year that has passed
    BEL_DATE_MONTH = 4,   // one of 12
    BEL_DATE_WEEKDAY = 8, // one of 7, 0 is Monday
    BEL_DATE_HOUR = 16,   // one of 24
    BEL_DATE_PARTS = 5,   // number of parts
};

// Texts that mean a missing value, with filters that rule out nearly every other cell.
typedef struct bel_missing_texts {
    const char *const *texts;
    int count;
    const size_t *lengths;
    const double *numbers; // NaN: no number
    uint64_t of_length;    // bit n: a text has n bytes; the last bit: that length or more
    uint64_t of_first[4];  // bits of their first bytes
    bool has_number;       // one of them reads as a number
} bel_missing_texts;

typedef struct bel_column {
    const char *name;
    bel_column_kind kind;
    int line, place;     // position in the description's text; 0: it has none
    const char *note;    // reason for its kind; NULL: unset
    const char *warning; // likely mistake in it; NULL: none

    // NUMBER; DATE: mean and deviation of the time; LABEL of numbers: these and `low`; WEIGHT: mean
    bel_column_scale scale;
    bel_column_missing missing;
    bool indicator;           // one more element: 1 where the value is missing
    bel_missing_texts absent; // NUMBER, DATE: missing-value texts of only this column
    double mean, deviation;   // the values', or with LOG the logarithms'; deviation > 0
    double low, high, fill;
    const char *unit;     // NUMBER, LABEL of numbers: written at each of them; NULL: none
    char thousands;       // thousands separator of these numbers: ','; '\0': none
    double clip;          // NUMBER, DATE: limit of |scaled number|; 0: no limit
    const double *bounds; // BUCKETS, ascending
    int bound_count;

    // CATEGORY; LABEL: the classes
    const char *const *values;
    int value_count;
    const double *rows; // LABEL: number per class in the training data; NULL: unset
    int row_count;
    bool missing_value; // CATEGORY: missing is one more value, after the others
    bool embedded;      // CATEGORY: a row of an embedding table instead of one-hot
    bel_index index;    // the values by bel_column_hash, and by bel_cell_number_key's hash
    bool all_numbers;   // whether all values are numbers
    char decimal;       // decimal separator, as in the table

    // LIST, TEXT, TOKENS
    char separator; // LIST
    int most;       // maximum number of values, words or tokens; 0: unset
    int grams;      // TEXT: up to N consecutive words count as one, too; 1: single words

    int parts;             // DATE
    bool day_first;        // DATE: 3/4/2020 is in April
    const char *const *of; // CROSS: names
    int of_count;
    int of_places[8]; // their indices among the columns

    bel_label_kind label; // LABEL: classes or a number
    int label_place;      // index among several labels, in the order of the columns

    // Positions of its elements. -1: none there.
    int x_place, x_width, id_place, list_place;
    uint64_t seed; // seed of its values' hashes
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
    bel_index names;         // the columns by name
    char delimiter, decimal; // decimal: '.' or ','
    bool header;
    bel_missing_texts missing; // in every column
    int64_t rows;
    int x_width, id_count, list_count, list_most;
    int label, weight;              // indices of columns; -1: none. The first of several labels
    int label_count;                // number of labels
    int tokens;                     // index of the column of kind TOKENS; -1: none
    const bel_tokenizer *tokenizer; // tokenizer of that column; NULL: not set
    // Files whose cells were all read and found good when the description was made: they need no
    // second look. 0: no such files.
    uint64_t seen_content;    // hash of these files
    bel_holdout seen_holdout; // their rows that were read
    // Hashes of the names and the content of the files that this process has read; 0: not yet.
    uint64_t looked_names, looked_content;
    char *text; // as bel_columns_text gives it
    uint64_t fingerprint;
};

// Names of kinds, scales, missing-value replacements and parts of dates, as descriptions write
// them.
extern const char *const bel_column_kind_names[BEL_COLUMN_KINDS];
extern const char *const bel_column_scale_names[BEL_SCALES];
extern const char *const bel_column_missing_names[BEL_MISSINGS];
extern const char *const bel_date_part_names[BEL_DATE_PARTS];

// Creates an empty description.
bel_columns *bel_columns_create(void);
// Appends a column. The pointer is valid until the next column is added.
bel_column *bel_columns_add(bel_columns *columns, const char *name, bel_column_kind kind);

// Index of the column of this name; -1: none.
int bel_columns_find(const bel_columns *columns, const char *name);

// Whether cells of the column are read to predict.
bool bel_column_is_feature(const bel_column *column);

// Assigns positions to the elements, and the text to the description. INVALID_ARGUMENT: one of
// several labels has other than two classes, a cross is of a column that is no category, a number
// has no deviation …; `source` names it.
bel_status *bel_columns_finish(bel_columns *columns, const char *source) BEL_MUST_USE;

// Sets another number of rows in a finished description, before its first use.
void bel_columns_set_rows(bel_columns *columns, int64_t rows);

// Sets the likely mistake in a column of a finished description, before its first use.
void bel_columns_set_warning(bel_columns *columns, int column, const char *warning);

// Adds texts that mean a missing value to every column of a finished description, before its first
// use. Its text does not change.
void bel_columns_add_missing(bel_columns *columns, const char *const *texts, int count);

// Checks that the text of a finished description can be read back to the same text: a checkpoint
// keeps nothing else. INVALID_ARGUMENT: it cannot; the job must fail so before the first step.
bel_status *bel_columns_check_text(const bel_columns *columns, const char *source) BEL_MUST_USE;

// Writes the text (description_text.c).
char *bel_columns_write(const bel_columns *columns);

// Reads a cell as a number, with or without its column's unit and thousands separators.
bool bel_column_read_number(const bel_columns *columns, const bel_column *column, const char *text,
                            size_t length, double *out_value);

// Hash of a column's value.
uint64_t bel_column_hash(const bel_column *column, const char *text, size_t length);
// Index of a value or class; -1: none. Equal numbers are one value: "1.0" and "1e0" are the value
// "1", unless they are values themselves. If some values are no numbers, this holds only for
// integers.
int bel_column_value(const bel_column *column, const char *text, size_t length);

// Fills in the filters from `texts` and `count`.
void bel_missing_texts_prepare(bel_missing_texts *missing, bel_arena *arena);
// Index of a text, which has no spaces around it; -1: none. Equal numbers are one: -999.0 is -999.
int bel_missing_texts_find(const bel_missing_texts *missing, char decimal, const char *text,
                           size_t length);

// Whether a text means a missing value in every column.
bool bel_columns_is_missing(const bel_columns *columns, const char *text, size_t length);
// The same in this column.
bool bel_column_is_missing(const bel_columns *columns, const bel_column *column, const char *text,
                           size_t length);
// The same for a text that is a number, which hardly ever is a missing value.
bool bel_column_is_missing_number(const bel_columns *columns, const bel_column *column,
                                  const char *text, size_t length);

#endif
