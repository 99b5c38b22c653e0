// Medians and quartiles of a benchmark's rounds, and the file of figures that bench/run --check
// compares with the documents.
//
// A ratio belongs to one round, in which both sides are measured in turns, and a program reports
// the spread of its ratios. Load from outside then hits both sides of a ratio.
#ifndef BELFRY_BENCH_FIGURES_H
#define BELFRY_BENCH_FIGURES_H

#include <stdbool.h>

#include "belfry/status.h"

// Ends the program with the error's message, if there is one.
void bench_check(bel_status *status);

// Ends the program with a message, which says what was expected or has failed.
void bench_expect(bool good, const char *what);

// Returns the path of a new folder in a folder, which must exist; free it with bel_free.
char *bench_new_folder(const char *parent);

// Returns the processor time of this process so far. Load from outside changes it little.
double bench_processor_seconds(void);

// Median and quartiles of `count` values: order statistics, not interpolated. Counted from 0, they
// are the sorted values (count - 1) / 4, count / 2, and count - 1 - (count - 1) / 4.
typedef struct bench_spread {
    double low, median, high;
    int count;
} bench_spread;

// Sorts the values. `count` ≥ 1.
bench_spread bench_spread_of(double *values, int count);

// Returns the spread of above[i] / below[i], which are of round i. Call it before bench_median,
// which sorts.
bench_spread bench_ratio_of(const double *above, const double *below, int count);

// Returns the geometric means of the rows' medians, and of their quartiles. `count` ≥ 1; count of
// the result: the rounds of the first row.
bench_spread bench_spread_mean(const bench_spread *rows, int count);

// Returns the median of `count` values; sorts them.
double bench_median(double *values, int count);

// Appends a line "NAME MEDIAN LOW HIGH COUNT", with tabs, to the file that the environment variable
// BENCH_FIGURES names; does nothing if it is unset or empty. `name`: program, row and variant with
// dots, "product.64x512x784". A failure to write ends the program with a message.
void bench_figure(const char *name, const bench_spread *ratio);
// The same, with the name made by printf's rules.
void bench_figuref(const bench_spread *ratio, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
