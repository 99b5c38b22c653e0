// A table four times as large as the memory for its rows, with the others on disk, beside the same
// table in memory: ROWS rows of 16 floats, adagrad, loaded in an order without meaning; batches of
// 13,312 ids of a power law (density 1 / (id + 1) up to ROWS), one thread. The tables have the same
// pulls and updates in turns, block by block, after as many blocks that are not counted. First the
// system's cache may have the file, and times are of the processor. Then the cache is dropped
// before each step, without the time for that, so that rows come from the disk, and times are of
// the clock. At the end: reading all rows in order of keys, in one pass where a checkpoint has one
// for each column, and whether they are equal.
// usage: bench_table_disk [ROWS [BLOCKS [FOLDER]]]
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "checkpoint/table.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/client/row_batch.h"
#include "ps/table/table.h"
#include "rows.h"

enum { IDS = 26 * 512, WIDTH = 16, STEPS = 10, CHUNK = 1 << 14, MOST_BLOCKS = 400 };

static int64_t ids[IDS], keys[CHUNK];
static uint32_t places[IDS];
static float pulled[IDS * WIDTH], sums[IDS * WIDTH], rows[CHUNK * WIDTH], slots[CHUNK * WIDTH];

// Neighboring ids have no neighboring keys.
static int64_t key_of(int64_t id)
{
    return (int64_t)((uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) >> 1);
}

// Loads each id once, in the order of i × an odd number modulo a power of two.
static void fill(bel_table *table, int64_t count)
{
    int64_t n = 0, power = 1;
    const float *const columns[] = {slots};
    while (power < count)
        power *= 2;
    for (int64_t i = 0; i < power; i++) {
        int64_t id = (int64_t)((uint64_t)i * 0x9E3779B1 & (uint64_t)(power - 1));
        if (id < count) keys[n++] = key_of(id);
        if (n < CHUNK && i + 1 < power) continue;
        bench_check(bel_table_load(table, keys, rows, columns, n));
        n = 0;
    }
}

static void draw_ids(int64_t step, int64_t count)
{
    bel_rng_key key = bel_rng_key_make(1, "ids", (uint64_t)step);
    for (int i = 0; i < IDS; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        double u = ((double)words[0] + (double)words[1] * 0x1p-32) * 0x1p-32;
        ids[i] = key_of((int64_t)exp(u * log((double)count)) - 1);
    }
}

// Writes the process's files without a name in the folder to the disk, and drops them from the
// system's cache.
static void drop_files(const char *folder)
{
    char name[64], path[4096];
    for (int file = 3; file < 64; file++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, path, sizeof path - 1);
        if (length <= 0) continue;
        path[length] = 0;
        if (strstr(path, folder) == NULL || strstr(path, "(deleted)") == NULL) continue;
        if (fdatasync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0) exit(1);
    }
}

static int64_t clock_ns(bool waits)
{
    return waits ? bel_clock_ns() : bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Returns the seconds of a block's pulls and updates: of the clock if the cache is dropped.
static double run_block(bel_table *table, bel_row_batch *batch, const bel_rule_step *rule,
                        int64_t block, int64_t count, const char *folder, bool drops)
{
    double seconds = 0;
    for (int64_t step = block * STEPS; step < (block + 1) * STEPS; step++) {
        draw_ids(step, count);
        bel_row_batch_set(batch, ids, IDS);
        int64_t n = bel_row_batch_count(batch);
        if (drops) drop_files(folder);
        int64_t begun = clock_ns(drops);
        bench_check(bel_table_pull_places(table, bel_row_batch_keys(batch), n, pulled, places));
        bench_check(
            bel_table_update(table, NULL, rule, 0, bel_row_batch_keys(batch), places, sums, 1, n));
        seconds += (double)(clock_ns(drops) - begun) * 1e-9;
    }
    return seconds;
}

static void compare(const char *what, bel_table *const *tables, bel_row_batch *batch,
                    const bel_rule_step *rule, int64_t first, int blocks, int64_t count,
                    const char *folder, bool drops)
{
    static double seconds[2][MOST_BLOCKS];
    for (int b = 0; b < 2 * blocks; b++) {
        for (int i = 0; i < 2; i++) {
            int t = (i + b) % 2;
            double s = run_block(tables[t], batch, rule, first + b, count, folder, drops);
            if (b >= blocks) seconds[t][b - blocks] = s;
        }
    }
    bench_spread ratio = bench_ratio_of(seconds[0], seconds[1], blocks);
    printf("%s: %.2f ms a step in memory, %.2f ms with the disk, rate %.3f [%.3f, %.3f] times, "
           "n = %d\n",
           what, bench_median(seconds[0], blocks) * 1e3 / STEPS,
           bench_median(seconds[1], blocks) * 1e3 / STEPS, ratio.median, ratio.low, ratio.high,
           ratio.count);
    fflush(stdout);
}

// Reads all rows in order of keys; returns the sum of their hashes.
static bel_hash128 read_all(bel_table *table, const char *what)
{
    bel_hash128 sum = {0};
    float *const out_slots[] = {slots};
    int64_t begun = bel_clock_ns();
    bench_check(bel_table_snapshot(table));
    int64_t count = bel_table_snapshot_count(table);
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t n = count - first < CHUNK ? count - first : CHUNK;
        bench_check(bel_table_snapshot_range(table, first, n, keys, rows, out_slots));
        bel_ckpt_hash_rows(keys, rows, WIDTH, n, &sum);
        bel_ckpt_hash_rows(keys, slots, WIDTH, n, &sum);
    }
    bel_table_snapshot_end(table);
    printf("%s: %lld rows, %.1f MB in memory, %.1f MB on disk, read and hashed in %.2f s\n", what,
           (long long)count, (double)bel_table_bytes(table) * 1e-6,
           (double)bel_table_count_all(table).file_bytes * 1e-6,
           (double)(bel_clock_ns() - begun) * 1e-9);
    return sum;
}

int main(int argument_count, char **arguments)
{
    int64_t count = argument_count > 1 ? strtoll(arguments[1], NULL, 10) : 4000000;
    int blocks = argument_count > 2 ? atoi(arguments[2]) : 40;
    const char *folder = argument_count > 3 ? arguments[3] : "table_disk";
    blocks = blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_rule_step rule = bel_rule_begin(&optimizer, 0);
    bel_row_batch *batch;
    bench_check(bel_row_batch_create(IDS, &batch));
    for (int i = 0; i < IDS * WIDTH; i++)
        sums[i] = (float)(i % 17) * 1e-3f;
    for (int i = 0; i < CHUNK * WIDTH; i++)
        slots[i] = 0.1f;
    bench_check(bel_dir_create(folder));
    int64_t memory = count * 2 * WIDTH * (int64_t)sizeof(float) / 4;
    bel_table_config config = {.width = WIDTH, .optimizer = optimizer};
    bel_table *tables[2] = {bench_rows_make(config)};
    config.memory_limit = memory;
    config.disk_folder = folder;
    tables[1] = bench_rows_make(config);
    for (int t = 0; t < 2; t++) {
        int64_t begun = bel_clock_ns();
        fill(tables[t], count);
        printf("%s: loaded in %.2f s\n", t == 0 ? "in memory" : "with the disk",
               (double)(bel_clock_ns() - begun) * 1e-9);
    }
    compare("rows from the system's cache", tables, batch, &rule, 0, blocks, count, folder, false);
    int few = blocks / 4 < 1 ? 1 : blocks / 4;
    compare("rows from the disk", tables, batch, &rule, 2 * blocks, few, count, folder, true);
    bel_hash128 a = read_all(tables[0], "in memory"), b = read_all(tables[1], "with the disk");
    bool same = a.low == b.low && a.high == b.high;
    printf("the rows are %s\n", same ? "equal" : "not equal");
    for (int t = 0; t < 2; t++)
        bel_table_destroy(tables[t]);
    bel_row_batch_destroy(batch);
    return same ? 0 : 1;
}
