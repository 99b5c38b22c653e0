// Statistics of a column, gathered in one pass: types of the cells, moments of the numbers, values
// and their counts. Rows are read in grains of BEL_GRAIN_ROWS. Each grain has separate statistics,
// which are merged in the order of the rows. So the result has the same bits for any number of
// threads.
#ifndef BELFRY_COLUMNS_STATISTICS_H
#define BELFRY_COLUMNS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "columns/cell_number.h"

enum {
    BEL_GRAIN_ROWS = 4096,
    BEL_STATISTICS_MOST_VALUES = 1 << 16, // distinct values that are counted
    BEL_STATISTICS_TEXTS = 4,             // distinct texts among numbers that are counted
    BEL_STATISTICS_PLACES = 10,           // places of cells of one kind that are kept for messages
};

// Count, mean, and sum of squared differences from the mean.
typedef struct bel_moments {
    int64_t count;
    double mean, squares;
} bel_moments;

// Merges the moments of two parts.
void bel_moments_merge(bel_moments *moments, const bel_moments *more);
double bel_moments_deviation(const bel_moments *moments); // population deviation

// Range of numbers in the order of the rows. All zero: no numbers.
typedef struct bel_range {
    int64_t count;
    double low, high;
    int64_t low_at, high_at; // their first places, as passed to the gatherer
    double first, last;
    bool rises, falls; // each is above the one before, or each is below it
} bel_range;

// Appends the range of a later part.
void bel_range_merge(bel_range *range, const bel_range *more);

typedef struct bel_value_count {
    uint64_t hash;
    const char *text; // NULL: the place is free
    size_t length;
    int64_t count;
} bel_value_count;

// Hash table from values to their counts, with linear probing. All zero: empty. If there are more
// values than are counted, it keeps a sample: the values whose hash begins with `level` zero bits,
// each with all of its cells.
typedef struct bel_value_counts {
    bel_value_count *places;
    size_t capacity, count; // capacity: 0, or a power of two
    int level;              // 0: all values are there
} bel_value_counts;

typedef struct bel_column_statistics {
    bool counts_values; // else `values` stays empty; `texts` are counted anyway
    int64_t cells, missing;
    // Counts of cells that are not missing:
    int64_t numbers, wholes, month_dates, day_dates, timed_dates;
    int64_t commas, clear_commas; // decimal ones instead of points; those that are clearly that
    int64_t padded;               // several digits with a leading zero: 00501
    int64_t longs;                // integers that a double cannot hold
    // Numbers with marks (bel_cell_number_undress): with a unit, with commas between thousands, and
    // those whose commas clearly are that.
    int64_t dressed, united, grouped, clearly_grouped;
    bel_value_count unit; // the first one; count: cells with the same unit
    int64_t words, bytes;
    bel_moments values_of_numbers, logs;
    bel_moments values_of_dressed, logs_of_dressed;
    bel_moments month_seconds, day_seconds; // valid dates with the month, or the day, first
    bel_range range;                        // range of the numbers
    bel_range dressed_range;                // range of the numbers with marks
    bel_range month_range, day_range;       // dates in both readings, in seconds
    bel_value_counts values;
    // The first distinct texts that are no numbers, in their order; all, if there are fewer.
    bel_value_count texts[BEL_STATISTICS_TEXTS];
    int text_count;
    // The same for texts that are no dates in either reading; numbers count only if values are
    // counted.
    bel_value_count undated[BEL_STATISTICS_TEXTS];
    int undated_count;
    // Places of the first cells that are no numbers, as passed to the gatherer.
    int64_t others[BEL_STATISTICS_PLACES];
    int other_count;
} bel_column_statistics;

// Sums of differences from the first number. Large numbers close together keep their digits this
// way.
typedef struct bel_sums {
    int64_t count;
    double first, sum, squares;
} bel_sums;

// Statistics of a grain that is being read.
typedef struct bel_column_gatherer {
    bel_column_statistics statistics;
    bool takes_logs;
    char decimal;
    bel_sums numbers, logs, dressed, logs_of_dressed, month_seconds, day_seconds;
} bel_column_gatherer;

// `decimal`: the decimal separator, '.' or ','.
void bel_column_gatherer_begin(bel_column_gatherer *gatherer, bool counts_values, bool takes_logs,
                               char decimal);

// Adds a cell that is not missing. `text` has no spaces around it, and must stay in place as long
// as the statistics are used. If the cell is a number with the lowest or highest value, or no
// number, `place` is kept.
void bel_column_gatherer_take(bel_column_gatherer *gatherer, const char *text, size_t length,
                              int64_t place);
// The same for a number that was already read, and is neither padded nor long.
void bel_column_gatherer_take_number(bel_column_gatherer *gatherer, double value, int64_t place);
// Call after the last cell: sets statistics.values_of_numbers and the like.
void bel_column_gatherer_end(bel_column_gatherer *gatherer);

// Whether a number consists of several digits with a leading zero: then it is a name.
static inline bool bel_column_is_padded(const char *text, size_t length)
{
    if (length < 2 || text[0] != '0') return false;
    for (size_t i = 1; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

// Appends the statistics of later rows. `more` keeps its memory.
void bel_column_statistics_merge(bel_column_statistics *statistics,
                                 const bel_column_statistics *more);
void bel_column_statistics_deinit(bel_column_statistics *statistics);

// Adds values. `more` keeps its memory.
void bel_value_counts_merge(bel_value_counts *values, const bel_value_counts *more);

// Drops values that are not in the sample of a level. Once other counts have reached that level,
// the merged counts hold no other values.
void bel_value_counts_raise(bel_value_counts *values, int level);

// The values, most frequent first, and by their bytes if they are equally frequent; free with
// bel_free. Bytes are compared, so the order is the same everywhere. Equal numbers are one value,
// by its shortest text; if some values are no numbers, only integers are merged, as 1.10 may be a
// version.
bel_value_count *bel_value_counts_sorted(const bel_value_counts *values, char decimal,
                                         size_t *out_count);

// The mark (a percent sign, a currency, …) that keeps most cells from being numbers. At least nine
// tenths of the cells are numbers with or without it. BEL_DRESS_NONE: no such mark. `decimal`: '.'
// or ','.
bel_cell_dress bel_value_counts_dress(const bel_value_counts *values, char decimal);

#endif
