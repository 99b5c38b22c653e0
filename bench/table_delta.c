// Deltas of a table of ROWS rows of 16 floats, adagrad, of which a fiftieth changed since the base:
// time and bytes of a delta over a full checkpoint of the same snapshot, written in turns to a new
// folder in FOLDER and synced, without and with ages. A time is from the snapshot to the visible
// checkpoint; that of reading is the rows of base and delta over those of the full one. Also the
// update of a row with tracked changes over one without, in turns: the first one after a mark, and
// the next one.
// usage: bench_table_delta [ROUNDS [ROWS [FOLDER]]]
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/files.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/table/table.h"
#include "rows.h"

enum { WIDTH = 16, BATCH = 10000, PART = 50, MOST_ROUNDS = 50, BASE = 1 };

static int64_t keys[BATCH];
static float sums[BATCH * WIDTH];

static double seconds_since(int64_t begun)
{
    return (double)(bel_clock_ns() - begun) * 1e-9;
}

// Updates every `part`-th row once, in a random order of keys; returns the seconds of updates.
static double update(bel_table *table, const bel_rule_step *rule, int64_t rows, int64_t part)
{
    double seconds = 0;
    int64_t n = 0;
    for (int64_t row = 0; row < rows; row += part) {
        keys[n++] = (int64_t)((uint64_t)row * UINT64_C(0x9E3779B97F4A7C15) >> 1);
        if (n < BATCH && row + part < rows) continue;
        int64_t begun = bel_clock_ns();
        bench_check(bel_table_update(table, NULL, rule, 0, keys, NULL, sums, 1, n));
        seconds += seconds_since(begun);
        n = 0;
    }
    return seconds;
}

typedef struct saved {
    double seconds, bytes;
    bel_hash128 digest;
} saved;

// Writes the snapshot, as a delta if there is a base, and notes the base of a first one.
static saved save(bel_table *table, const char *folder, int64_t step, bel_ckpt_base base)
{
    bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
    bel_ckpt_info info = {.step = step, .base = base};
    bel_ckpt_shard *shard;
    saved made;
    char *path;
    int count = 0;
    int64_t begun = bel_clock_ns(), size;
    uint32_t crc32c;
    if (base.step > 0)
        bench_check(bel_table_changed_rows(table, base.step, rows, &count));
    else
        count = bel_table_rows(table, rows);
    bench_check(bel_ckpt_begin(folder, step, 0, 0, &path));
    bench_check(bel_ckpt_write_shard_tables(path, 0, 1, NULL, 0, rows, count, &shard));
    bel_ckpt_shard_file(shard, &size, &crc32c);
    if (step == BASE) bel_table_set_base(table, step, shard);
    bench_check(bel_ckpt_commit(folder, path, &info, &shard, 1, &made.digest));
    made.seconds = seconds_since(begun);
    made.bytes = (double)size;
    bel_ckpt_shard_destroy(shard);
    bel_free(path);
    return made;
}

static bel_status *take(void *context, int64_t n, const int64_t *some, const float *const *columns)
{
    (void)some;
    (void)columns;
    *(int64_t *)context += n;
    return NULL;
}

// Reads all rows of the newest checkpoint.
static double read_rows(const char *folder)
{
    int64_t begun = bel_clock_ns(), count = 0;
    bel_ckpt_reader *reader;
    bench_check(bel_ckpt_open_latest(folder, &reader));
    const bel_ckpt_row_sink sink = {.take = take, .context = &count};
    bench_check(bel_ckpt_read_rows(reader, "deep", WIDTH, &sink));
    bel_ckpt_close(reader);
    return seconds_since(begun);
}

static void show(const char *what, bench_spread s, double above, double below, const char *unit)
{
    printf("%s: %.4g over %.4g %s, %.4f [%.4f, %.4f] times, n = %d\n", what, above, below, unit,
           s.median, s.low, s.high, s.count);
    fflush(stdout);
}

// A delta and a full checkpoint of each round's snapshot, in turns.
static void measure_saves(const bel_optimizer *optimizer, int64_t expire_after, int64_t rows,
                          int rounds, const char *root)
{
    double delta[MOST_ROUNDS], full[MOST_ROUNDS], small = 0, large = 0, marks[MOST_ROUNDS];
    double read_delta[MOST_ROUNDS], read_full[MOST_ROUNDS];
    bel_rule_step rule = bel_rule_begin(optimizer, 0);
    bel_table *table = bench_rows_make((bel_table_config){.width = WIDTH,
                                                          .optimizer = *optimizer,
                                                          .expire_after = expire_after,
                                                          .tracks_changes = true});
    char *folder = bel_path_join(root, "deltas"), *other = bel_path_join(root, "full");
    update(table, &rule, rows, 1);
    bench_check(bel_table_end_step(table, BASE));
    bench_check(bel_table_snapshot(table));
    bel_ckpt_base base = {.step = BASE};
    base.digest = save(table, folder, BASE, (bel_ckpt_base){0}).digest;
    for (int r = 0; r < rounds; r++) {
        bel_table_snapshot_end(table);
        update(table, &rule, rows, PART);
        bench_check(bel_table_end_step(table, BASE + r + 1));
        int64_t begun = bel_clock_ns();
        bench_check(bel_table_snapshot(table));
        marks[r] = seconds_since(begun);
        saved a, b;
        if (r % 2 == 0) b = save(table, other, BASE + r + 1, (bel_ckpt_base){0});
        a = save(table, folder, BASE + r + 1, base);
        if (r % 2 == 1) b = save(table, other, BASE + r + 1, (bel_ckpt_base){0});
        if (a.digest.low != b.digest.low || a.digest.high != b.digest.high) {
            printf("the digests differ\n");
            exit(1);
        }
        delta[r] = a.seconds + marks[r];
        full[r] = b.seconds + marks[r];
        small = a.bytes;
        large = b.bytes;
        read_delta[r] = read_rows(folder);
        read_full[r] = read_rows(other);
        bel_ckpt_retain(folder, 1, 0, -1);
        bel_ckpt_retain(other, 1, 0, -1);
    }
    printf("%lld rows, %s\n", (long long)rows, expire_after > 0 ? "with ages" : "without ages");
    bench_spread time = bench_ratio_of(delta, full, rounds);
    bench_spread reading = bench_ratio_of(read_delta, read_full, rounds);
    show("delta over full, time", time, bench_median(delta, rounds), bench_median(full, rounds),
         "s");
    printf("bytes: %.1f MB over %.1f MB, %.4f times\n", small * 1e-6, large * 1e-6, small / large);
    show("reading base and delta", reading, bench_median(read_delta, rounds),
         bench_median(read_full, rounds), "s");
    printf("mark: %.2f ms\n", bench_median(marks, rounds) * 1e3);
    bel_table_snapshot_end(table);
    bel_table_destroy(table);
    bel_free(folder);
    bel_free(other);
}

// Updates of a twentieth of the rows after a mark, twice, with and without tracking.
static void measure_updates(const bel_optimizer *optimizer, int64_t rows, int rounds)
{
    double seconds[2][2][MOST_ROUNDS];
    bel_rule_step rule = bel_rule_begin(optimizer, 0);
    bel_table *tables[2];
    for (int t = 0; t < 2; t++) {
        tables[t] = bench_rows_make(
            (bel_table_config){.width = WIDTH, .optimizer = *optimizer, .tracks_changes = t == 1});
        update(tables[t], &rule, rows, 1);
    }
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < 2; i++) {
            int t = (i + r) % 2;
            bench_check(bel_table_snapshot(tables[t]));
            bel_table_snapshot_end(tables[t]);
            for (int again = 0; again < 2; again++)
                seconds[again][t][r] = update(tables[t], &rule, rows, 20);
        }
    }
    for (int again = 0; again < 2; again++) {
        bench_spread ratio = bench_ratio_of(seconds[again][1], seconds[again][0], rounds);
        double row = 1e9 * 20 / (double)rows;
        show(again == 0 ? "first update after a mark" : "next update", ratio,
             bench_median(seconds[again][1], rounds) * row,
             bench_median(seconds[again][0], rounds) * row, "ns a row");
    }
    for (int t = 0; t < 2; t++)
        bel_table_destroy(tables[t]);
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 5;
    int64_t rows = count > 2 ? strtoll(arguments[2], NULL, 10) : 10000000;
    char *folder = bench_new_folder(count > 3 ? arguments[3] : ".");
    rounds = rounds < 1 ? 1 : rounds > MOST_ROUNDS ? MOST_ROUNDS : rounds;
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    for (int i = 0; i < BATCH * WIDTH; i++)
        sums[i] = (float)(i % 17) * 1e-3f;
    measure_updates(&optimizer, rows, rounds);
    for (int64_t expire = 0; expire <= 1000; expire += 1000) {
        bench_check(bel_dir_create(folder));
        measure_saves(&optimizer, expire, rows, rounds, folder);
        bench_check(bel_dir_remove(folder));
    }
    bel_free(folder);
    return 0;
}
