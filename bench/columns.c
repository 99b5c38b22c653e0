// Inference of a table's columns beside a bare parse. The bare parse indexes the same file, splits
// each cell and reads numbers, on the same number of threads, and stores nothing. It is compared
// with bel_columns_infer (statistics and the check of every cell in one pass), and with opening the
// dataset with that description. In turns, after a warm-up run; the rates are medians of the
// rounds. The ratio is rows a second over those of the bare parse, with quartiles.
//   bench_columns FILE THREADS [ROUNDS]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "belfry/columns.h"
#include "figures.h"
#include "input/batch/input.h"
#include "input/table/csv_table.h"

enum { MOST_ROUNDS = 99, MOST_SLOTS = 1024 };

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
    const bel_csv_options csv = {
        .size = sizeof csv, .paths = &path, .path_count = 1, .table = columns};
    bel_dataset *data = bel_dataset_from_csv(&csv);
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

// Seconds of each round: the bare parse, inferring, and inferring and opening.
typedef enum part { BARE, LOOK, OPEN, PARTS } part;
static double seconds[PARTS][MOST_ROUNDS];

// Measures one round; returns the rows.
static int64_t run_round(const char *path, int threads, int round)
{
    const bel_csv_options csv = {.size = sizeof csv, .paths = &path, .path_count = 1};
    bel_columns *columns = NULL;
    int64_t begun = bel_clock_ns();
    require(parse_bare(path, threads));
    int64_t parsed = bel_clock_ns();
    require(bel_columns_infer(
        &csv, &(bel_columns_options){.size = sizeof(bel_columns_options), .num_threads = threads},
        &columns));
    int64_t looked = bel_clock_ns();
    require(open_with(path, columns));
    int64_t opened = bel_clock_ns();
    seconds[BARE][round] = (double)(parsed - begun) * 1e-9;
    seconds[LOOK][round] = (double)(looked - parsed) * 1e-9;
    seconds[OPEN][round] = (double)(opened - parsed) * 1e-9;
    int64_t rows = bel_columns_rows(columns);
    bel_columns_destroy(columns);
    return rows;
}

int main(int count, char **words)
{
    int rounds = count > 3 ? atoi(words[3]) : 5;
    if (count < 3 || count > 4 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: bench_columns FILE THREADS [ROUNDS], rounds from 1 to %d\n",
                MOST_ROUNDS);
        return 2;
    }
    unsetenv("HOME"); // else a cache would answer the later rounds
    unsetenv("XDG_CACHE_HOME");
    int threads = atoi(words[2]);
    double rows = (double)run_round(words[1], threads, 0); // warm-up, overwritten
    for (int round = 0; round < rounds; round++)
        (void)run_round(words[1], threads, round);
    bench_spread look = bench_ratio_of(seconds[BARE], seconds[LOOK], rounds);
    bench_spread open = bench_ratio_of(seconds[BARE], seconds[OPEN], rounds);
    printf("rows %.0f, threads %d\n", rows, threads);
    printf("bare parse      %8.0f rows/s\n", rows / bench_median(seconds[BARE], rounds));
    printf("look and check  %8.0f rows/s  ratio %.2f [%.2f, %.2f]\n",
           rows / bench_median(seconds[LOOK], rounds), look.median, look.low, look.high);
    printf("and opening     %8.0f rows/s  ratio %.2f [%.2f, %.2f]\n",
           rows / bench_median(seconds[OPEN], rounds), open.median, open.low, open.high);
    bench_figuref(&look, "columns.look.%d", threads);
    bench_figuref(&open, "columns.open.%d", threads);
    return 0;
}
