// Memory and time of a table whose rows come and go, beside one that keeps all rows: batches of
// 13,312 ids of a power law (density 1 / (id + 1) up to 10^8), rows of 16 floats, adagrad, one
// thread. The tables have the same updates in turns, block by block. Printed at each tenth: rows,
// waiting keys and resident memory of each table. At the end: the ratio of the memories, and of the
// processor times of a block's pulls and updates (with the removals) over the blocks of the second
// half, median and quartiles.
// usage: bench_table_life [STEPS [ADMIT_AFTER EXPIRE_AFTER]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/client/row_batch.h"
#include "ps/table/table.h"
#include "rows.h"

enum { IDS = 26 * 512, WIDTH = 16, BLOCK = 25, MOST_BLOCKS = 4000, TABLES = 2 };

static int64_t ids[IDS];
static uint32_t places[IDS];
static float pulled[IDS * WIDTH], sums[IDS * WIDTH];

typedef struct life {
    const char *name;
    bel_table *table;
    double resident;                 // bytes
    int64_t removals_ns, longest_ns; // removals: the sum of all steps, and the longest
    double pulls[MOST_BLOCKS], updates[MOST_BLOCKS]; // seconds of a block
} life;

static void draw_ids(int64_t step)
{
    const double most = 1e8;
    bel_rng_key key = bel_rng_key_make(1, "ids", (uint64_t)step);
    for (int i = 0; i < IDS; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        double u = ((double)words[0] + (double)words[1] * 0x1p-32) * 0x1p-32;
        ids[i] = (int64_t)exp(u * log(most)) - 1;
    }
}

static double resident_bytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static int64_t thread_ns(void)
{
    return bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
}

// Pulls and updates the batch's rows, as a shard does for a step.
static void step_of(life *l, bel_row_batch *batch, const bel_rule_step *rule, int64_t step,
                    int block)
{
    int64_t count = bel_row_batch_count(batch), begin = thread_ns();
    bench_check(bel_table_pull_places(l->table, bel_row_batch_keys(batch), count, pulled, places));
    int64_t middle = thread_ns();
    bench_check(bel_table_update(l->table, NULL, rule, 0, bel_row_batch_keys(batch), places, sums,
                                 1, count));
    int64_t updated = thread_ns();
    bench_check(bel_table_end_step(l->table, step + 1));
    int64_t removals = thread_ns() - updated;
    l->removals_ns += removals;
    if (removals > l->longest_ns) l->longest_ns = removals;
    l->pulls[block] += (double)(middle - begin) * 1e-9;
    l->updates[block] += (double)(thread_ns() - middle) * 1e-9;
}

// Runs a block for a table; the resident memory that it adds is the table's. Returns the number of
// its updates of rows.
static int64_t run_block(life *l, bel_row_batch *batch, const bel_rule_step *rule, int block)
{
    int64_t updates = 0;
    double before = resident_bytes();
    for (int64_t step = (int64_t)block * BLOCK; step < (int64_t)(block + 1) * BLOCK; step++) {
        draw_ids(step);
        bel_row_batch_set(batch, ids, IDS);
        updates += bel_row_batch_count(batch);
        step_of(l, batch, rule, step, block);
    }
    l->resident += resident_bytes() - before;
    return updates;
}

static void show(const life *l, int64_t updates)
{
    bel_table_tally t = bel_table_count_all(l->table);
    printf("%5.1f M updates, %s: %.2f M rows, %.2f M keys wait, %.2f M rows expired, %.0f MB, "
           "resident %.0f MB\n",
           (double)updates * 1e-6, l->name, (double)t.rows * 1e-6, (double)t.waiting * 1e-6,
           (double)t.expired * 1e-6, (double)bel_table_bytes(l->table) * 1e-6, l->resident * 1e-6);
    fflush(stdout);
}

static void compare(const char *what, const double *of, const double *base, int blocks,
                    double updates)
{
    int first = blocks / 2;
    bench_spread ratio = bench_ratio_of(of + first, base + first, blocks - first);
    double seconds = 0, base_seconds = 0;
    for (int b = 0; b < blocks; b++) {
        seconds += of[b];
        base_seconds += base[b];
    }
    printf("%s: %.1f ns a row over %.1f ns, in the second half %.2f [%.2f, %.2f] times, n = %d\n",
           what, seconds / updates * 1e9, base_seconds / updates * 1e9, ratio.median, ratio.low,
           ratio.high, ratio.count);
}

int main(int count, char **arguments)
{
    int64_t steps = count > 1 ? strtoll(arguments[1], NULL, 10) : 4000;
    int64_t admit_after = count > 3 ? strtoll(arguments[2], NULL, 10) : 2;
    int64_t expire_after = count > 3 ? strtoll(arguments[3], NULL, 10) : 500;
    int blocks = (int)(steps / BLOCK);
    blocks = blocks < 10 ? 10 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_rule_step rule = bel_rule_begin(&optimizer, 0);
    bel_row_batch *batch;
    bench_check(bel_row_batch_create(IDS, &batch));
    for (int i = 0; i < IDS * WIDTH; i++)
        sums[i] = (float)(i % 17) * 1e-3f;
    static life lives[TABLES] = {{.name = "all rows"}, {.name = "come and go"}};
    bel_table_config config = {.width = WIDTH, .optimizer = optimizer, .admit_after = 1};
    lives[0].table = bench_rows_make(config);
    config.admit_after = admit_after;
    config.expire_after = expire_after;
    lives[1].table = bench_rows_make(config);
    int64_t updates = 0;
    for (int b = 0; b < blocks; b++) {
        updates += run_block(&lives[b % 2], batch, &rule, b);
        run_block(&lives[1 - b % 2], batch, &rule, b);
        for (int i = 0; i < TABLES && (b + 1) % (blocks / 10) == 0; i++)
            show(&lives[i], updates);
    }
    printf("memory: %.2f times that of all rows, resident %.2f times\n",
           (double)bel_table_bytes(lives[1].table) / (double)bel_table_bytes(lives[0].table),
           lives[1].resident / lives[0].resident);
    compare("pull", lives[1].pulls, lives[0].pulls, blocks, (double)updates);
    compare("update", lives[1].updates, lives[0].updates, blocks, (double)updates);
    printf("removals of a step: %.0f us, at most %.0f us\n",
           (double)lives[1].removals_ns * 1e-3 / (blocks * BLOCK),
           (double)lives[1].longest_ns * 1e-3);
    for (int i = 0; i < TABLES; i++)
        bel_table_destroy(lives[i].table);
    bel_row_batch_destroy(batch);
    return 0;
}
