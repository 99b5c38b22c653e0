// What is in a column, gathered in one pass: of what types its cells are, the moments of numbers,
// which values there are and how often. Rows are taken in grains of BEL_GRAIN_ROWS; each grain has
// statistics of its own, which are put together in the order of the rows. So the result has the
// same bits however many threads gather grains.
#ifndef BELFRY_COLUMNS_STATISTICS_H
#define BELFRY_COLUMNS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "columns/cell_number.h"

enum {
    BEL_GRAIN_ROWS = 4096,
    BEL_STATISTICS_MOST_VALUES = 1 << 16, // of which are counted
    BEL_STATISTICS_TEXTS = 4,             // different ones among numbers, of which are counted
    BEL_STATISTICS_PLACES = 10,           // of cells of a kind that are kept for messages
};

// Count, mean and the sum of squared differences from it.
typedef struct bel_moments {
    int64_t count;
    double mean, squares;
} bel_moments;

// The moments of two parts together.
void bel_moments_merge(bel_moments *moments, const bel_moments *more);
double bel_moments_deviation(const bel_moments *moments); // of the population

// Numbers in the order of the rows. All zero: there are none.
typedef struct bel_range {
    int64_t count;
    double low, high;
    int64_t low_at, high_at; // the first places of these, as the gatherer was given them
    double first, last;
    bool rises, falls; // each is above the one before, or each is below it
} bel_range;

// The range of two parts, one behind the other.
void bel_range_merge(bel_range *range, const bel_range *more);

typedef struct bel_value_count {
    uint64_t hash;
    const char *text; // NULL: the place is free
    size_t length;
    int64_t count;
} bel_value_count;

// Values and how often they come, by hash. All zero: empty. Of more than are counted a sample is
// kept: those whose hash begins with `level` zero bits, each with all of its cells.
typedef struct bel_value_counts {
    bel_value_count *places;
    size_t capacity, count; // capacity: 0, or a power of two
    int level;              // 0: all values are there
} bel_value_counts;

typedef struct bel_column_statistics {
    bool counts_values; // else `values` stays empty; `texts` are counted anyway
    int64_t cells, missing;
    // Of those that are not missing:
    int64_t numbers, wholes, month_dates, day_dates, timed_dates;
    int64_t commas, clear_commas; // decimal ones, where a point is expected; and nothing else
    int64_t padded;               // of several digits, with a zero in front: 00501
    int64_t longs;                // whole numbers that a double cannot hold
    // Numbers with something beside them (bel_cell_number_undress): with a unit, and with commas
    // between thousands, which some of them clearly are.
    int64_t dressed, united, grouped, clearly_grouped;
    bel_value_count unit; // the first; its count is that of the cells with the same one
    int64_t words, bytes;
    bel_moments values_of_numbers, logs;
    bel_moments values_of_dressed, logs_of_dressed;
    bel_moments month_seconds, day_seconds; // of dates that are one with the month, the day first
    bel_range range;                        // of the numbers
    bel_range dressed_range;                // of numbers with something beside them
    bel_range month_range, day_range;       // of dates in both readings, in seconds
    bel_value_counts values;
    // The first different ones that are no numbers, in their order; all, if there are fewer.
    bel_value_count texts[BEL_STATISTICS_TEXTS];
    int text_count;
    // The same of those that are no dates in either reading; of numbers only where values are
    // counted.
    bel_value_count undated[BEL_STATISTICS_TEXTS];
    int undated_count;
    // Where the first are that are no numbers: offsets that the gatherer knows.
    int64_t others[BEL_STATISTICS_PLACES];
    int other_count;
} bel_column_statistics;

// Sums of differences from the first number, so that large numbers close together keep their
// digits.
typedef struct bel_sums {
    int64_t count;
    double first, sum, squares;
} bel_sums;

// What is gathered while a grain is read.
typedef struct bel_column_gatherer {
    bel_column_statistics statistics;
    bool takes_logs;
    char decimal;
    bel_sums numbers, logs, dressed, logs_of_dressed, month_seconds, day_seconds;
} bel_column_gatherer;

// `decimal`: what stands in front of a number's decimals, '.' or ','.
void bel_column_gatherer_begin(bel_column_gatherer *gatherer, bool counts_values, bool takes_logs,
                               char decimal);

// Takes a cell that is not missing: `text` without spaces around it, which stays where it is as
// long as the statistics are used. `place` is kept where it is no number, the lowest or the
// highest.
void bel_column_gatherer_take(bel_column_gatherer *gatherer, const char *text, size_t length,
                              int64_t place);
// The same for a number that was read already, and is neither padded nor long.
void bel_column_gatherer_take_number(bel_column_gatherer *gatherer, double value, int64_t place);
// Behind the last cell: statistics.values_of_numbers and the like are set.
void bel_column_gatherer_end(bel_column_gatherer *gatherer);

// Whether a number is digits alone, several of them, with a zero in front: a name, then.
static inline bool bel_column_is_padded(const char *text, size_t length)
{
    if (length < 2 || text[0] != '0') return false;
    for (size_t i = 1; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

// Adds those of the rows behind. `more` keeps its own memory.
void bel_column_statistics_merge(bel_column_statistics *statistics,
                                 const bel_column_statistics *more);
void bel_column_statistics_deinit(bel_column_statistics *statistics);

// Adds values. `more` keeps its own memory.
void bel_value_counts_merge(bel_value_counts *values, const bel_value_counts *more);

// Leaves out what is not in the sample of a level, which others have come to: it is no more in all
// of them together.
void bel_value_counts_raise(bel_value_counts *values, int level);

// The values, most frequent first, of equal frequency by their bytes; free with bel_free. Bytes are
// compared, so the order is the same everywhere. Equal numbers are one value, by its shortest text;
// where some values are no numbers, only whole ones are, as 1.10 may be a version.
bel_value_count *bel_value_counts_sorted(const bel_value_counts *values, char decimal,
                                         size_t *out_count);

// The mark (a unit, a currency, …) that keeps most cells from being numbers. At least nine tenths
// of the cells are numbers with or without it. BEL_DRESS_NONE: there is none. `decimal`: '.' or
// ','.
bel_cell_dress bel_value_counts_dress(const bel_value_counts *values, char decimal);

#endif
