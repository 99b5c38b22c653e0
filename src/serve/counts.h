// Counts of answers: by code, and a histogram of the times of inferences that succeeded. Any thread
// adds, without a lock.
#ifndef BELFRY_SERVE_COUNTS_H
#define BELFRY_SERVE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { BEL_COUNT_CODES = 14, BEL_COUNT_BOUNDS = 16 };

typedef struct bel_times {
    _Atomic uint64_t buckets[BEL_COUNT_BOUNDS + 1]; // each without the ones before
    _Atomic uint64_t sum_ns;
} bel_times;

typedef struct bel_counts {
    _Atomic uint64_t requests[BEL_COUNT_CODES];
    bel_times times;
} bel_counts;

void bel_times_add(bel_times *times, int64_t spent_ns);

// Only inferences with code 200 count in the histogram.
void bel_counts_add(bel_counts *counts, int code, bool is_inference, int64_t spent_ns);

// Write samples in the text format 0.0.4. `labels`: `model="digits"`, for example. The histogram's
// `name` gets the usual ends.
void bel_counts_write_requests(const bel_counts *counts, const char *name, const char *labels,
                               bel_str *out);
void bel_times_write(const bel_times *times, const char *name, const char *labels, bel_str *out);
void bel_counts_write_times(const bel_counts *counts, const char *name, const char *labels,
                            bel_str *out);

#endif
