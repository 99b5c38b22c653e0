// Pull and push of a batch of a wide & deep model: 512 examples of 26 ids, rows of 16 floats, one
// thread, in one process. The parts are distinct ids, pull, copying rows to their places, sums (of
// given gradients), update. The peer is PyTorch's nn.Embedding(sparse=True) with forward, backward
// and the optimizer's step (table_torch.py, a process that waits while Belfry is measured), in
// turns, medians and quartiles. Then a table of ten million rows: the memory of a row, the time and
// memory of reading a snapshot, and the time of an update.
// usage: bench_table [ROUNDS] [SCRIPT]; run it in the root of the repository
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "figures.h"
#include "mlp.h"
#include "optim/settings.h"
#include "ps/client/row_batch.h"
#include "ps/table/table.h"
#include "rows.h"

enum { FIELDS = 26, EXAMPLES = 512, IDS = FIELDS * EXAMPLES, WIDTH = 16 };
enum { BATCHES = 64, STEPS = 64, MAX_ROUNDS = 100, CHUNK = 1 << 16 };

static int64_t batches[BATCHES][IDS];
static uint32_t places[IDS];
static float gradients[IDS * WIDTH], pulled[IDS * WIDTH], spread[IDS * WIDTH], sums[IDS * WIDTH];

// Ids of field f are in [f × rows, (f + 1) × rows): uniform, or with a density of 1 / (id + 1).
static void make_batches(int64_t rows, bool power)
{
    bel_rng_key key = bel_rng_key_make(1, "ids", 0);
    double times = power ? 1.0 / 1024 : 0, root = 1; // rows ^ (1 / 1024), by bisection
    for (double low = 1, high = 2; power && high - low > 1e-13;) {
        root = (low + high) / 2;
        double whole = root;
        for (int i = 0; i < 10; i++)
            whole *= whole;
        *(whole < (double)rows ? &low : &high) = root;
    }
    for (int64_t i = 0; i < (int64_t)BATCHES * IDS; i++) {
        uint32_t words[4];
        bel_rng_block(key, 0, (uint64_t)i, words);
        double u = (double)words[0] * 0x1p-32, id = (double)rows * u;
        if (times > 0) {
            id = 1;
            for (uint32_t exponent = words[0] >> 22; exponent > 0; exponent--)
                id *= root;
            id *= 1 + (root - 1) * (double)words[1] * 0x1p-32;
            id -= 1;
        }
        batches[i / IDS][i % IDS] = (int64_t)id + i % FIELDS * rows;
    }
    for (int64_t i = 0; i < (int64_t)IDS * WIDTH; i++)
        gradients[i] = (float)(i % 17) * 1e-3f;
}

static bel_table *make_table(bel_optimizer_kind kind, int64_t count)
{
    bel_optimizer optimizer = {.kind = kind, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_table *table = bench_rows_make((bel_table_config){.width = WIDTH, .optimizer = optimizer});
    int64_t *keys = bel_xcalloc(CHUNK, sizeof *keys);
    float *rows = bel_xcalloc((size_t)CHUNK * WIDTH, sizeof *rows);
    const float *slots[BEL_RULE_MAX_SLOTS] = {rows, rows};
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t n = count - first < CHUNK ? count - first : CHUNK;
        for (int64_t i = 0; i < n; i++)
            keys[i] = first + i;
        bench_check(bel_table_load(table, keys, rows, slots, n));
    }
    bel_free(keys);
    bel_free(rows);
    return table;
}

// Seconds of each part of a step, summed.
typedef struct parts {
    double set, pull, spread, sum, update;
} parts;

static double lap(int64_t *since)
{
    int64_t now = bel_clock_ns(), before = *since;
    *since = now;
    return (double)(now - before) * 1e-9;
}

static void step(bel_row_batch *batch, bel_table *table, bel_team *team, const bel_rule_step *rule,
                 int64_t number, parts *p)
{
    int64_t clock = bel_clock_ns();
    bel_row_batch_set(batch, batches[number % BATCHES], IDS);
    int64_t count = bel_row_batch_count(batch);
    p->set += lap(&clock);
    bench_check(bel_table_pull_places(table, bel_row_batch_keys(batch), count, pulled, places));
    p->pull += lap(&clock);
    const int32_t *index = bel_row_batch_index(batch);
    for (int64_t i = 0; i < IDS; i++)
        memcpy(spread + i * WIDTH, pulled + (int64_t)index[i] * WIDTH, WIDTH * sizeof *spread);
    p->spread += lap(&clock);
    bel_row_batch_sum(batch, gradients, WIDTH, sums);
    p->sum += lap(&clock);
    bench_check(
        bel_table_update(table, team, rule, 0, bel_row_batch_keys(batch), places, sums, 1, count));
    p->update += lap(&clock);
}

// --- PyTorch -------------------------------------------------------------------------------------

typedef struct peer {
    pid_t process;
    FILE *ask, *answer;
} peer;

static peer start_peer(const char *script, const char *optimizer, int64_t rows, bool power)
{
    int down[2], up[2];
    char count[32];
    snprintf(count, sizeof count, "%lld", (long long)rows);
    if (pipe(down) != 0 || pipe(up) != 0) exit(1);
    peer p = {.process = fork()};
    if (p.process == 0) {
        dup2(down[0], STDIN_FILENO);
        dup2(up[1], STDOUT_FILENO);
        close(down[1]);
        close(up[0]);
        execl("bench/torch", "torch", "1", script, optimizer, count, power ? "power" : "uniform",
              (char *)NULL);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    p.ask = fdopen(down[1], "w");
    p.answer = fdopen(up[0], "r");
    char line[64];
    if (fgets(line, sizeof line, p.answer) == NULL) p.ask = NULL; // no PyTorch here
    return p;
}

// Measures seconds a step; 0 without PyTorch.
static double ask_peer(const peer *p)
{
    char line[64] = "0";
    if (p->ask == NULL) return 0;
    fprintf(p->ask, "%d\n", STEPS);
    fflush(p->ask);
    if (fgets(line, sizeof line, p->answer) == NULL) return 0;
    return strtod(line, NULL);
}

static void end_peer(const peer *p)
{
    if (p->ask != NULL) fclose(p->ask);
    fclose(p->answer);
    waitpid(p->process, NULL, 0);
}

// --- Runs ----------------------------------------------------------------------------------------

static double turn(bel_row_batch *batch, bel_table *table, const bel_rule_step *rule, parts *p)
{
    int64_t begin = bel_clock_ns();
    for (int64_t i = 0; i < STEPS; i++)
        step(batch, table, NULL, rule, i, p);
    return (double)(bel_clock_ns() - begin) * 1e-9 / STEPS;
}

static void compare(bel_row_batch *batch, bel_optimizer_kind kind, int64_t rows, bool power,
                    int rounds, const char *script)
{
    bel_optimizer optimizer = {.kind = kind, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_rule_step rule = bel_rule_begin(&optimizer, 0);
    const char *name = bel_rule_get(&optimizer)->name;
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS];
    parts p = {0};
    make_batches(rows, power);
    bel_table *table = make_table(kind, rows * FIELDS);
    peer torch = start_peer(script, name, rows, power);
    turn(batch, table, &rule, &p);
    ask_peer(&torch);
    p = (parts){0};
    for (int i = 0; i < rounds; i++) {
        ours[i] = turn(batch, table, &rule, &p);
        theirs[i] = ask_peer(&torch);
    }
    bench_spread ratio = bench_ratio_of(theirs, ours, rounds);
    double mine = bench_median(ours, rounds), other = bench_median(theirs, rounds);
    double us = 1e6 / (rounds * (double)STEPS);
    printf("%s, 26 x %lld rows, %s ids: %.0f us a batch (set %.0f, pull %.0f, spread %.0f, sum "
           "%.0f, update %.0f)",
           name, (long long)rows, power ? "power-law" : "uniform", mine * 1e6, p.set * us,
           p.pull * us, p.spread * us, p.sum * us, p.update * us);
    if (other > 0) {
        printf(", PyTorch %.0f us, ratio %.2f [%.2f, %.2f]", other * 1e6, ratio.median, ratio.low,
               ratio.high);
        bench_figuref(&ratio, "table.%s.%lldk%s", name, (long long)rows / 1000,
                      power ? ".power" : "");
    }
    printf("\n");
    fflush(stdout);
    end_peer(&torch);
    bel_table_destroy(table);
}

// Most memory of the process since the last call, in bytes; 0: unknown.
static double peak_bytes(void)
{
    char line[256];
    long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "r"), *reset = fopen("/proc/self/clear_refs", "w");
    while (status != NULL && kilobytes == 0 && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) kilobytes = strtol(line + 6, NULL, 10);
    if (status != NULL) fclose(status);
    if (reset != NULL) {
        fputs("5", reset); // the peak becomes the present size
        fclose(reset);
    }
    return (double)kilobytes * 1024;
}

// Reads all rows in order of keys, as a checkpoint does, without writing them.
static void read_snapshot(bel_table *table, int64_t count)
{
    static int64_t keys[CHUNK];
    static float rows[CHUNK * WIDTH];
    memset(rows, 1, sizeof rows); // counts before
    memset(keys, 1, sizeof keys);
    peak_bytes();
    double before = peak_bytes();
    int64_t clock = bel_clock_ns();
    bench_check(bel_table_snapshot(table));
    bench_check(bel_table_snapshot_range(table, 0, 1, keys, NULL, NULL));
    double sort = lap(&clock);
    for (int64_t first = 0; first < count; first += CHUNK) {
        int64_t n = count - first < CHUNK ? count - first : CHUNK;
        bench_check(bel_table_snapshot_range(table, first, n, keys, rows, NULL));
    }
    double read = lap(&clock), more = (peak_bytes() - before) / (double)count;
    bel_table_snapshot_end(table);
    printf(", keys sorted in %.2f s, values read in %.2f s with %.1f more bytes a row", sort, read,
           more);
}

static void large_table(bel_row_batch *batch, bel_optimizer_kind kind, int rounds)
{
    enum { ROWS = 10000000 };
    bel_optimizer optimizer = {.kind = kind, .learning_rate = 0.01};
    bench_check(bel_optimizer_check(&optimizer));
    bel_rule_step rule = bel_rule_begin(&optimizer, 0);
    make_batches(ROWS / FIELDS, false);
    int64_t clock = bel_clock_ns();
    bel_table *table = make_table(kind, ROWS);
    double load = lap(&clock);
    printf("%s, %d rows of %d floats: %.1f bytes a row, loaded in %.1f s",
           bel_rule_get(&optimizer)->name, ROWS, WIDTH, (double)bel_table_bytes(table) / ROWS,
           load);
    read_snapshot(table, ROWS);
    for (int threads = 1; threads <= 2; threads++) {
        double updates[MAX_ROUNDS];
        bel_team *team;
        bench_check(bel_team_create(threads, &team));
        for (int i = -1; i < rounds; i++) {
            parts p = {0};
            for (int64_t s = 0; s < STEPS; s++)
                step(batch, table, team, &rule, s, &p);
            if (i >= 0) updates[i] = p.update / STEPS;
        }
        printf(", update with %d thread(s) %.0f us", threads, bench_median(updates, rounds) * 1e6);
        bel_team_destroy(team);
    }
    printf("\n");
    fflush(stdout);
    bel_table_destroy(table);
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? (int)strtol(arguments[1], NULL, 10) : 9;
    if (system("bench/torch 1 --choose") != 0) printf("no peer to compare with\n");
    const char *script = count > 2 ? arguments[2] : "bench/table_torch.py";
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
    bel_row_batch *batch;
    bench_check(bel_row_batch_create(IDS, &batch));
    static const bel_optimizer_kind kinds[] = {BEL_OPTIMIZER_SGD, BEL_OPTIMIZER_ADAGRAD};
    for (int i = 0; i < 6; i++) {
        int64_t rows = i / 2 == 1 ? 1000000 : 100000;
        compare(batch, kinds[i % 2], rows, i / 2 == 2, rounds, script);
    }
    static const bel_optimizer_kind all[] = {BEL_OPTIMIZER_SGD, BEL_OPTIMIZER_ADAGRAD,
                                             BEL_OPTIMIZER_ADAM, BEL_OPTIMIZER_FTRL};
    for (int i = 0; i < 4; i++)
        large_table(batch, all[i], rounds);
    bel_row_batch_destroy(batch);
    return 0;
}
