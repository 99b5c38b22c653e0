// A table has the same bits for any number of threads and shards and any order of keys. So does a
// snapshot taken while updates continue. The bound of memory holds without a sanitizer.
// label: threads, label: release
#include <sys/resource.h>

#include "optim/settings.h"
#include "unit/ps/test_table_fixture.h"

enum { STEPS = 5, RANGE = 12000, NAMED = 4000 };

// --- Threads, order, shards ----------------------------------------------------------------------

typedef struct topology {
    int shards, threads; // threads 0: no team
    bool shuffled;
} topology;

static void update_shards(bel_table *const *tables, const topology *t, bel_team *team,
                          const bel_optimizer *optimizer, int64_t step)
{
    static int64_t keys[NAMED], mine[NAMED];
    make_keys(step, RANGE, t->shuffled, keys, NAMED);
    for (int s = 0; s < t->shards; s++) {
        int64_t n = 0;
        for (int64_t i = 0; i < NAMED; i++)
            if (bel_table_shard(keys[i], t->shards) == s) mine[n++] = keys[i];
        update_rows(tables[s], team, optimizer, step, mine, n);
    }
}

// Collects all shards' rows, by key.
static content gather(bel_table *const *tables, int shards)
{
    content parts[3], all;
    int64_t count = 0, at[3] = {0};
    for (int s = 0; s < shards; s++) {
        parts[s] = read_table(tables[s]);
        count += parts[s].count;
    }
    all = make_content(count);
    for (int64_t i = 0; i < count; i++) {
        int from = -1;
        for (int s = 0; s < shards; s++) {
            if (at[s] == parts[s].count) continue;
            if (from < 0 || parts[s].keys[at[s]] < parts[from].keys[at[from]]) from = s;
        }
        int64_t row = at[from]++;
        all.keys[i] = parts[from].keys[row];
        memcpy(all.rows + i * WIDTH, parts[from].rows + row * WIDTH, WIDTH * sizeof(float));
        for (int k = 0; k < MAX_SLOTS; k++)
            memcpy(all.slots[k] + i * WIDTH, parts[from].slots[k] + row * WIDTH,
                   WIDTH * sizeof(float));
    }
    for (int s = 0; s < shards; s++)
        free_content(&parts[s]);
    return all;
}

static content train(bel_optimizer_kind kind, const topology *t)
{
    bel_table_config config = make_config(kind);
    bel_table *tables[3];
    bel_team *team = NULL;
    if (t->threads > 0) BEL_ASSERT_OK(bel_team_create(t->threads, &team));
    for (int s = 0; s < t->shards; s++)
        tables[s] = make_table(&config);
    for (int64_t step = 0; step < STEPS; step++)
        update_shards(tables, t, team, &config.optimizer, step);
    content all = gather(tables, t->shards);
    for (int s = 0; s < t->shards; s++)
        bel_table_destroy(tables[s]);
    if (team != NULL) bel_team_destroy(team);
    return all;
}

static void test_topologies(void **state)
{
    (void)state;
    static const topology topologies[] = {{1, 1, false}, {1, 2, true}, {1, 3, false},
                                          {2, 0, true},  {2, 3, true}, {3, 2, false}};
    static const bel_optimizer_kind kinds[] = {BEL_OPTIMIZER_ADAGRAD, BEL_OPTIMIZER_ADAM};
    for (int k = 0; k < 2; k++) {
        content expected = train(kinds[k], &(topology){1, 0, false});
        assert_true(expected.count > RANGE / 2 && expected.count < RANGE);
        for (size_t i = 0; i < sizeof topologies / sizeof topologies[0]; i++) {
            content got = train(kinds[k], &topologies[i]);
            assert_same(&expected, &got);
            free_content(&got);
        }
        free_content(&expected);
    }
}

// --- Snapshots -----------------------------------------------------------------------------------

// Updates after the mark do not change the snapshot, and are applied completely.
static void test_snapshot_holds(void **state)
{
    (void)state;
    static int64_t keys[NAMED];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *table = make_table(&config), *plain = make_table(&config);
    for (int64_t step = 0; step < 4 * STEPS; step++) {
        content expected = {0};
        if (step % STEPS == 0) { // also for an empty table
            expected = read_table(table);
            BEL_ASSERT_OK(bel_table_snapshot(table));
        }
        int64_t last = step + 3;
        for (; step < last; step++) {
            make_keys(step, RANGE * (step + 1), step % 2 == 0, keys, NAMED);
            update_rows(table, NULL, &config.optimizer, step, keys, NAMED);
            update_rows(plain, NULL, &config.optimizer, step, keys, NAMED);
        }
        if (expected.keys == NULL) continue;
        content got = read_snapshot(table);
        assert_same(&expected, &got);
        bel_table_snapshot_end(table);
        free_content(&got);
        free_content(&expected);
    }
    content a = read_table(table), b = read_table(plain);
    assert_same(&a, &b);
    free_content(&a);
    free_content(&b);
    bel_table_destroy(table);
    bel_table_destroy(plain);
}

static void test_ranges(void **state)
{
    (void)state;
    static int64_t keys[NAMED];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *table = make_table(&config);
    make_keys(0, RANGE, true, keys, NAMED);
    update_rows(table, NULL, &config.optimizer, 0, keys, NAMED);
    content all = read_table(table), pieces = make_content(NAMED);
    BEL_ASSERT_OK(bel_table_snapshot(table));
    for (int64_t first = 0; first < NAMED; first += 999) {
        int64_t n = NAMED - first < 999 ? NAMED - first : 999;
        float *slots[MAX_SLOTS] = {NULL, pieces.slots[1] + first * WIDTH}, *other[MAX_SLOTS] = {0};
        other[0] = pieces.slots[0] + first * WIDTH;
        BEL_ASSERT_OK(bel_table_snapshot_range(table, first, n, NULL, NULL, slots));
        BEL_ASSERT_OK(bel_table_snapshot_range(table, first, n, pieces.keys + first, NULL, NULL));
        BEL_ASSERT_OK(
            bel_table_snapshot_range(table, first, n, NULL, pieces.rows + first * WIDTH, other));
    }
    assert_same(&all, &pieces);
    free_content(&all);
    free_content(&pieces);
    bel_table_destroy(table);
}

typedef struct reading {
    const bel_table *table;
    content read;
    bel_status *status;
} reading;

static void *read_beside(void *argument)
{
    reading *r = argument;
    r->read = make_content(bel_table_snapshot_count(r->table));
    r->status = bel_table_snapshot_range(r->table, 0, r->read.count, r->read.keys, r->read.rows,
                                         r->read.slots);
    return NULL;
}

// Another thread reads while a team updates.
static void test_snapshot_beside_updates(void **state)
{
    (void)state;
    static int64_t keys[NAMED];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_table *table = make_table(&config);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(2, &team));
    int64_t step = 0;
    for (int round = 0; round < 6; round++) {
        content expected = read_table(table);
        BEL_ASSERT_OK(bel_table_snapshot(table));
        reading r = {.table = table};
        pthread_t thread;
        BEL_ASSERT_OK(bel_thread_start(&thread, read_beside, &r));
        for (int i = 0; i < 4; i++, step++) {
            make_keys(step, RANGE, true, keys, NAMED);
            update_rows(table, team, &config.optimizer, step, keys, NAMED);
        }
        pthread_join(thread, NULL);
        BEL_ASSERT_OK(r.status);
        assert_same(&expected, &r.read);
        bel_table_snapshot_end(table);
        free_content(&expected);
        free_content(&r.read);
    }
    bel_table_destroy(table);
    bel_team_destroy(team);
}

// Keys at both ends of the range, dense ones, those of fields, and random ones: in order, each with
// its row.
static void test_order(void **state)
{
    (void)state;
    enum { PART = 20000, ALL = 4 * PART };
    static int64_t keys[ALL], read[ALL];
    static float rows[ALL], sums[ALL];
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.width = 1;
    for (int64_t i = 0; i < PART; i++) {
        uint64_t mixed = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
        keys[i] = INT64_MAX - i;
        keys[PART + i] = INT64_MIN + i * (i % 2 == 0 ? 1 : 3);
        keys[2 * PART + i] = (i % 26) << 32 | i;
        keys[3 * PART + i] = (int64_t)(mixed | UINT64_C(1) << 50) / 4;
    }
    for (int64_t n = ALL; n >= 0; n -= n > 4 ? ALL / 4 - 1 : 1) {
        bel_table *table = make_table(&config);
        make_sums(keys, n, 1, 0, sums);
        bel_rule_step numbers = bel_rule_begin(&config.optimizer, 0);
        BEL_ASSERT_OK(bel_table_update(table, NULL, &numbers, 0, keys, NULL, sums, 1, n));
        BEL_ASSERT_OK(bel_table_snapshot(table));
        BEL_ASSERT_OK(bel_table_snapshot_range(table, 0, n, read, rows, NULL));
        bool right = bel_table_snapshot_count(table) == n;
        for (int64_t i = 1; i < n; i++)
            right = right && read[i - 1] < read[i];
        assert_true(right);
        pull_rows(table, read, n, sums);
        assert_memory_equal(rows, sums, (size_t)n * sizeof *rows);
        bel_table_destroy(table);
    }
}

// --- Many rows -----------------------------------------------------------------------------------

static long peak_kilobytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

// Reads keys that are known, in order. Memory beside the table stays small meanwhile: 8 bytes a row
// and a constant.
static void check_reading(bel_table *table, int64_t count)
{
    enum { BATCH = 50000 };
    static int64_t keys[BATCH];
    memset(keys, 1, sizeof keys);
    long before = peak_kilobytes();
    BEL_ASSERT_OK(bel_table_snapshot(table));
    for (int64_t first = 0; first < count; first += BATCH) {
        BEL_ASSERT_OK(bel_table_snapshot_range(table, first, BATCH, keys, NULL, NULL));
        bool right = true;
        for (int64_t i = 0; i < BATCH; i++)
            right = right && keys[i] == (first + i) * 1000003 - count;
        assert_true(right);
    }
    long more = peak_kilobytes() - before;
    bel_table_snapshot_end(table);
#ifdef BEL_SANITIZE
    print_message("%ld KB more, with the memory of sanitizers (%s)\n", more, BEL_SANITIZE);
#else
    assert_in_range(more, 0, (8 * count + (6 << 20)) / 1024);
#endif
}

// A million rows of two floats: each is found, no two are confused, and the index stays small.
static void test_million(void **state)
{
    (void)state;
    enum { COUNT = 1000000, BATCH = 50000 };
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.width = 2;
    config.start = BEL_TABLE_ZEROS;
    config.optimizer = (bel_optimizer){.learning_rate = 1};
    BEL_ASSERT_OK(bel_optimizer_check(&config.optimizer));
    bel_table *table = make_table(&config);
    bel_rule_step numbers = bel_rule_begin(&config.optimizer, 0);
    static int64_t keys[BATCH];
    static float rows[2 * BATCH];
    for (int64_t first = 0; first < COUNT; first += BATCH) {
        for (int64_t i = 0; i < BATCH; i++) {
            keys[i] = (first + i) * 1000003 - COUNT;
            rows[2 * i] = -(float)(first + i); // exact: below 2^24
            rows[2 * i + 1] = 1;
        }
        BEL_ASSERT_OK(bel_table_update(table, NULL, &numbers, 0, keys, NULL, rows, 1, BATCH));
    }
    assert_int_equal(bel_table_count(table), COUNT);
    for (int64_t first = 0; first < COUNT; first += BATCH) {
        for (int64_t i = 0; i < BATCH; i++)
            keys[i] = (COUNT - 1 - first - i) * 1000003 - COUNT;
        pull_rows(table, keys, BATCH, rows);
        bool right = true;
        for (int64_t i = 0; i < BATCH; i++)
            right = right && rows[2 * i] == (float)(COUNT - 1 - first - i) && rows[2 * i + 1] == -1;
        assert_true(right);
    }
    assert_true(bel_table_bytes(table) < COUNT * (8 + 8 + 24) + (4 << 20));
    check_reading(table, COUNT);
    bel_table_destroy(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_topologies), cmocka_unit_test(test_snapshot_holds),
        cmocka_unit_test(test_ranges),     cmocka_unit_test(test_snapshot_beside_updates),
        cmocka_unit_test(test_order),      cmocka_unit_test(test_million),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
