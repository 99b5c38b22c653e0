// A table that grows to ROWS rows of WIDTH floats, adagrad, by updates of 65,536 new keys each,
// with a team of THREADS: seconds a million rows at each tenth, and the bytes of a row. Then
// updates of old rows with 1 thread and with the team; a checkpoint, written to a new folder in
// FOLDER and synced; and reading it into another table. Each phase has its resident memory, and the
// most while it ran.
// usage: bench_tables_grow [ROWS [WIDTH [THREADS [FOLDER]]]], ROWS as 1e8 or 100000000
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "checkpoint/checkpoint.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/table/table.h"
#include "rows.h"

enum { BATCH = 1 << 16, MOST_WIDTH = 64, ROUNDS = 20 };

static int64_t keys[BATCH];
static float sums[BATCH * MOST_WIDTH];

static double seconds_since(int64_t begun)
{
    return (double)(bel_clock_ns() - begun) * 1e-9;
}

// The process's memory, now and the most since the last call, in bytes; 0: unknown.
typedef struct memory {
    double now, most;
} memory;

static memory look_at_memory(void)
{
    char line[256];
    memory seen = {0};
    FILE *status = fopen("/proc/self/status", "r"), *reset = fopen("/proc/self/clear_refs", "w");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) seen.most = strtod(line + 6, NULL) * 1024;
        if (strncmp(line, "VmRSS:", 6) == 0) seen.now = strtod(line + 6, NULL) * 1024;
    }
    if (status != NULL) fclose(status);
    if (reset != NULL) {
        fputs("5", reset); // the most becomes the present size
        fclose(reset);
    }
    return seen;
}

static void show(const char *phase, int64_t rows, double seconds, double timed_rows)
{
    memory m = look_at_memory();
    printf("%s: %.2f s, %.3f s a million rows; %.1f bytes a row resident, most %.1f\n", phase,
           seconds, seconds / timed_rows * 1e6, m.now / (double)rows, m.most / (double)rows);
    fflush(stdout);
}

// Updates n rows from `first` on, and every stride-th of those after it.
static void update(bel_table *table, bel_team *team, const bel_rule_step *rule, int64_t first,
                   int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        keys[i] = (int64_t)((uint64_t)(first + i * stride) * UINT64_C(0x9E3779B97F4A7C15) >> 1);
    bench_check(bel_table_update(table, team, rule, 0, keys, NULL, sums, 1, n));
}

static void grow(bel_table *table, bel_team *team, const bel_rule_step *rule, int64_t rows)
{
    char phase[32];
    int64_t begun = bel_clock_ns(), done = 0;
    for (int tenth = 1; tenth <= 10; tenth++) {
        int64_t first = done, end = rows * tenth / 10, start = bel_clock_ns();
        for (; done < end; done += end - done < BATCH ? end - done : BATCH)
            update(table, team, rule, done, 1, end - done < BATCH ? end - done : BATCH);
        snprintf(phase, sizeof phase, "%3d %% created", 10 * tenth);
        show(phase, end, seconds_since(start), (double)(end - first));
    }
    printf("%lld rows in %.1f s, %.1f bytes a row\n", (long long)rows, seconds_since(begun),
           (double)bel_table_bytes(table) / (double)rows);
}

static void change(bel_table *table, bel_team *team, const bel_rule_step *rule, int64_t rows)
{
    double seconds[2][ROUNDS];
    int64_t stride = rows / BATCH;
    if (stride < 1) return;
    for (int r = 0; r < ROUNDS; r++) {
        for (int t = 0; t < 2; t++) {
            int64_t begun = bel_clock_ns();
            update(table, t == 1 ? team : NULL, rule, (2 * r + t) % stride, stride, BATCH);
            seconds[t][r] = seconds_since(begun);
        }
    }
    bench_spread ratio = bench_ratio_of(seconds[1], seconds[0], ROUNDS);
    printf("update of %d old rows: 1 thread %.0f ns a row, %d threads %.0f ns, %.2f [%.2f, %.2f] "
           "times, n = %d\n",
           BATCH, bench_median(seconds[0], ROUNDS) * 1e9 / BATCH, bel_team_size(team),
           bench_median(seconds[1], ROUNDS) * 1e9 / BATCH, ratio.median, ratio.low, ratio.high,
           ratio.count);
}

static bel_hash128 save(bel_table *table, const char *folder, int64_t rows)
{
    bel_ckpt_rows tables[BEL_TABLE_MOST_SAVED];
    const bel_ckpt_info info = {.step = 1};
    bel_ckpt_shard *shard;
    bel_hash128 digest;
    char *path;
    int64_t begun = bel_clock_ns();
    bench_check(bel_table_snapshot(table));
    int count = bel_table_rows(table, tables);
    bench_check(bel_ckpt_begin(folder, 1, 0, 0, &path));
    bench_check(bel_ckpt_write_shard_tables(path, 0, 1, NULL, 0, tables, count, &shard));
    bench_check(bel_ckpt_commit(folder, path, &info, &shard, 1, &digest));
    show("saved", rows, seconds_since(begun), (double)rows);
    bel_table_snapshot_end(table);
    bel_ckpt_shard_destroy(shard);
    bel_free(path);
    return digest;
}

int main(int count, char **arguments)
{
    int64_t rows = count > 1 ? (int64_t)strtod(arguments[1], NULL) : 10000000;
    int width = count > 2 ? atoi(arguments[2]) : 4;
    int threads = count > 3 ? atoi(arguments[3]) : 2;
    char *folder = bench_new_folder(count > 4 ? arguments[4] : ".");
    width = width < 1 ? 1 : width > MOST_WIDTH ? MOST_WIDTH : width;
    bel_optimizer optimizer = {.kind = BEL_OPTIMIZER_ADAGRAD, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_rule_step rule = bel_rule_begin(&optimizer, 0);
    bel_team *team;
    bench_check(bel_team_create(threads, &team));
    for (int i = 0; i < BATCH * MOST_WIDTH; i++)
        sums[i] = (float)(i % 17) * 1e-3f;
    bel_table *table = bench_rows_make((bel_table_config){.width = width, .optimizer = optimizer});
    grow(table, team, &rule, rows);
    change(table, team, &rule, rows);
    look_at_memory();
    save(table, folder, rows);
    bel_table_destroy(table);
    table = bench_rows_make((bel_table_config){.width = width, .optimizer = optimizer});
    bel_ckpt_reader *reader;
    look_at_memory();
    int64_t begun = bel_clock_ns();
    bench_check(bel_ckpt_open_latest(folder, &reader));
    bench_check(bel_table_restore(table, reader, 0, 1));
    show("restored", rows, seconds_since(begun), (double)rows);
    bel_ckpt_close(reader);
    if (bel_table_count(table) != rows) printf("%lld rows\n", (long long)bel_table_count(table));
    bel_table_destroy(table);
    bel_team_destroy(team);
    bench_check(bel_dir_remove(folder));
    bel_free(folder);
    return 0;
}
