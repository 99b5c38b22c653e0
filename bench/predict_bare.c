// The least that answering a table costs: a plain loop over a mapped CSV file that reads each cell
// as a number and writes ten numbers of nine digits for each row, one thread, without a model.
// bench/predict sets `belfry predict` beside it. Prints nanoseconds of processor time a row, the
// median of five passes after a warm-up one, start left out.
//   bench_predict_bare FILE OUT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decimal.h"
#include "base/mapping.h"
#include "base/number.h"
#include "figures.h"

enum { PASSES = 5, ANSWERS = 10, MOST_COLUMNS = 4096, OUT_BYTES = 1 << 16, LINE_BYTES = 512 };

// Reads the cells of the row at `at` into `cells`; how many there are.
static int read_row(const char **at, const char *end, float *cells)
{
    int count = 0;
    for (const char *here = *at;;) {
        double value;
        const char *stop =
            end - here >= BEL_DECIMAL_ROOM ? bel_decimal_parse_short(here, &value) : NULL;
        if (stop == NULL || (*stop != ',' && *stop != '\n'))
            stop = bel_decimal_parse(here, end, &value);
        if (stop == NULL || count == MOST_COLUMNS) {
            fprintf(stderr, "bench_predict_bare: expected numbers, got another cell\n");
            exit(1);
        }
        cells[count++] = (float)value;
        *at = here = stop + 1;
        if (stop >= end || *stop == '\n') return count;
    }
}

static int64_t pass(const char *text, const char *end, FILE *out)
{
    static float cells[MOST_COLUMNS];
    static char buffer[OUT_BYTES];
    size_t used = 0;
    int64_t rows = 0;
    for (const char *at = (const char *)memchr(text, '\n', (size_t)(end - text)) + 1; at < end;) {
        int count = read_row(&at, end, cells);
        float sum = 1;
        for (int i = 0; i < count; i++)
            sum += cells[i];
        buffer[used++] = (char)('0' + (int)cells[count - 1]);
        for (int i = 0; i < ANSWERS; i++) {
            buffer[used++] = ',';
            used += bel_format_f32((cells[i % count] + 0.37F) / sum, buffer + used);
        }
        buffer[used++] = '\n';
        rows++;
        if (used < OUT_BYTES - LINE_BYTES && at < end) continue;
        fwrite(buffer, 1, used, out);
        used = 0;
    }
    return rows;
}

int main(int count, char **words)
{
    bel_mapping mapping;
    FILE *out = count == 3 ? fopen(words[2], "w") : NULL;
    bel_status *status = out != NULL ? bel_mapping_open(words[1], &mapping) : NULL;
    if (out == NULL || status != NULL) {
        fprintf(stderr, "bench_predict_bare: %s\n",
                out == NULL ? "usage: bench_predict_bare FILE OUT" : bel_status_message(status));
        return 2;
    }
    double ns[PASSES];
    for (int i = -1; i < PASSES; i++) {
        rewind(out);
        clock_t begun = clock();
        int64_t rows = pass(mapping.data, mapping.data + mapping.size, out);
        ns[i < 0 ? 0 : i] = (double)(clock() - begun) * (1e9 / CLOCKS_PER_SEC) / (double)rows;
    }
    bel_mapping_close(&mapping);
    fclose(out);
    printf("%.0f\n", bench_median(ns, PASSES));
    return 0;
}
