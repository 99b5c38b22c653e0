// Inference of a table's columns beside a bare parse. The bare parse indexes the same file, splits
// each cell and reads numbers, on the same number of threads, and stores nothing. It is compared
// with bel_columns_infer (statistics and the check of every cell in one pass), and with opening the
// dataset with that description. Seconds are the least of three runs; the ratio is rows a second
// over those of the bare parse.
//   bench_columns FILE THREADS
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "belfry/columns.h"
#include "input/csv_table.h"
#include "input/input.h"

enum { RUNS = 3, MOST_SLOTS = 1024 };

typedef struct bare {
    bel_csv_set set;
    double sums[MOST_SLOTS]; // keeps the compiler from removing the parse
    int64_t texts[MOST_SLOTS];
} bare;

static void parse_rows(void *user, int slot, int64_t first, int64_t count)
{
    bare *b = user;
    double sum = 0;
    int64_t texts = 0;
    for (int64_t row = first; row < first + count; row++) {
        const char *at;
        const bel_csv_file *file = bel_csv_set_find(&b->set, row, &at);
        for (int i = 0; i < file->column_count; i++) {
            double value;
            const char *stop = bel_decimal_parse(at, file->end, &value);
            if (stop != NULL && stop < file->end && *stop == file->delimiter) {
                sum += value;
                at = stop + 1;
                continue;
            }
            bel_csv_field field;
            (void)bel_csv_next_field(at, file->end, file->delimiter, &field, &at);
            texts += (int64_t)field.length;
        }
    }
    b->sums[slot] += sum;
    b->texts[slot] += texts;
}

static bool go_on(void *user, int slot)
{
    (void)user, (void)slot;
    return true;
}

static bel_status *parse_bare(const char *path, int threads)
{
    static bare b;
    b = (bare){0};
    bel_arena *arena = bel_arena_create();
    const char *const *paths, *const *names;
    const bel_csv_label none = {.column = -1};
    bel_status *status = bel_csv_set_open(&b.set, arena, &path, 1, ',', &paths);
    if (status == NULL) status = bel_csv_table_names(&b.set.files[0], true, arena, &names);
    if (status == NULL) status = bel_csv_set_index(&b.set, &none, false);
    if (status == NULL) {
        status = bel_csv_grains_run(&(bel_csv_grains){.row_count = b.set.row_count,
                                                      .thread_count = threads,
                                                      .gather = parse_rows,
                                                      .merge = go_on,
                                                      .user = &b});
    }
    bel_csv_set_close(&b.set);
    bel_arena_destroy(arena);
    return status;
}

static bel_status *open_with(const char *path, const bel_columns *columns)
{
    bel_dataset *data =
        bel_dataset_from_csv(&(bel_csv_options){.paths = &path, .path_count = 1, .table = columns});
    bel_dataset_batch(data, 256);
    bel_input *input = NULL;
    bel_status *status = bel_input_open(data, NULL, &input);
    bel_dataset_destroy(data);
    bel_input_destroy(input);
    return status;
}

static void require(bel_status *status)
{
    if (status == NULL) return;
    fprintf(stderr, "bench_columns: %s\n", bel_status_message(status));
    exit(1);
}

int main(int count, char **words)
{
    if (count != 3) {
        fprintf(stderr, "usage: bench_columns FILE THREADS\n");
        return 2;
    }
    int threads = atoi(words[2]);
    double best[3] = {1e30, 1e30, 1e30};
    bel_columns *columns = NULL;
    for (int run = 0; run < RUNS; run++) {
        bel_columns_destroy(columns);
        double times[4] = {(double)bel_clock_ns() / 1e9};
        require(parse_bare(words[1], threads));
        times[1] = (double)bel_clock_ns() / 1e9;
        const bel_csv_options csv = {.paths = (const char *[]){words[1]}, .path_count = 1};
        require(bel_columns_infer(&csv, &(bel_columns_options){.thread_count = threads}, &columns));
        times[2] = (double)bel_clock_ns() / 1e9;
        require(open_with(words[1], columns));
        times[3] = (double)bel_clock_ns() / 1e9;
        for (int part = 0; part < 3; part++)
            if (times[part + 1] - times[part] < best[part])
                best[part] = times[part + 1] - times[part];
    }
    double rows = (double)bel_columns_rows(columns);
    printf("rows %.0f, threads %d\n", rows, threads);
    printf("bare parse      %8.0f rows/s\n", rows / best[0]);
    printf("look and check  %8.0f rows/s  ratio %.2f\n", rows / best[1], best[0] / best[1]);
    printf("and opening     %8.0f rows/s  ratio %.2f\n", rows / (best[1] + best[2]),
           best[0] / (best[1] + best[2]));
    bel_columns_destroy(columns);
    return 0;
}
