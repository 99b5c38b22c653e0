// See figures.h.
#include "figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

void bench_check(bel_status *status)
{
    if (status != NULL) exit(bel_status_report(status));
}

void bench_expect(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

char *bench_new_folder(const char *parent)
{
    char *folder = bel_strf("%s/bench-XXXXXX", parent);
    if (mkdtemp(folder) == NULL) {
        fprintf(stderr, "bench: no folder can be created in %s\n", parent);
        exit(1);
    }
    return folder;
}

double bench_processor_seconds(void)
{
    return (double)bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

bench_spread bench_spread_of(double *values, int count)
{
    int quarter = (count - 1) / 4;
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (bench_spread){.low = values[quarter],
                          .median = values[count / 2],
                          .high = values[count - 1 - quarter],
                          .count = count};
}

bench_spread bench_ratio_of(const double *above, const double *below, int count)
{
    double *ratios = bel_xcalloc((size_t)count, sizeof *ratios);
    for (int i = 0; i < count; i++)
        ratios[i] = above[i] / below[i];
    bench_spread spread = bench_spread_of(ratios, count);
    bel_free(ratios);
    return spread;
}

bench_spread bench_spread_mean(const bench_spread *rows, int count)
{
    double low = 0, median = 0, high = 0;
    for (int i = 0; i < count; i++) {
        low += log(rows[i].low) / count;
        median += log(rows[i].median) / count;
        high += log(rows[i].high) / count;
    }
    return (bench_spread){
        .low = exp(low), .median = exp(median), .high = exp(high), .count = rows[0].count};
}

double bench_median(double *values, int count)
{
    return bench_spread_of(values, count).median;
}

void bench_figure(const char *name, const bench_spread *ratio)
{
    const char *path = getenv("BENCH_FIGURES");
    if (path == NULL || path[0] == '\0') return;
    FILE *file = fopen(path, "a");
    bool written = file != NULL && fprintf(file, "%s\t%.6g\t%.6g\t%.6g\t%d\n", name, ratio->median,
                                           ratio->low, ratio->high, ratio->count) > 0;
    if (file != NULL && fclose(file) != 0) written = false;
    if (written) return;
    fprintf(stderr, "BENCH_FIGURES: cannot write %s\n", path);
    exit(1);
}

void bench_figuref(const bench_spread *ratio, const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    bench_figure(name, ratio);
}
