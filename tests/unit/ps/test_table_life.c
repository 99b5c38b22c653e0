// Life of rows: keys are admitted by their N-th use and removed when they are not used any more, as
// in a plain model of both, under random schedules of updates, snapshots and threads.
// label: threads, label: release
#include <math.h>

#include "ps/table/table_inner.h"
#include "unit/ps/test_table_fixture.h"

enum { KEYS = 9000, MOST_SHARDS = 3 };

// --- A model -------------------------------------------------------------------------------------

typedef struct known {
    bool has_row;
    int64_t uses, last; // uses: 0: not known
    float record[WIDTH * (1 + MAX_SLOTS)];
} known;

typedef struct model {
    const bel_table_config *config;
    bel_table *empty; // start values
    int slots;
    uint64_t slices;
    known keys[KEYS];
    int64_t admitted, expired;
    int64_t small, spared; // rows that became idle: removed as they were small, and not
} model;

static int64_t key_of(int64_t k)
{
    return (k - KEYS / 2) * 7919;
}

static model *make_model(const bel_table_config *config)
{
    model *m = bel_xcalloc(1, sizeof *m);
    m->config = config;
    bel_table_config plain = *config;
    plain.admit_after = plain.expire_after = 0;
    plain.expire_below = 0;
    m->empty = make_table(&plain);
    m->slots = bel_rule_get(&config->optimizer)->slot_count;
    m->slices = 1;
    while (m->slices < 65536 && m->slices * 2 <= (uint64_t)config->expire_after / 4)
        m->slices *= 2;
    return m;
}

static void free_model(model *m)
{
    bel_table_destroy(m->empty);
    bel_free(m);
}

static void model_use(model *m, int64_t step, int64_t k)
{
    known *key = &m->keys[k];
    int64_t id = key_of(k);
    key->last = step + 1;
    if (!key->has_row && ++key->uses < m->config->admit_after) return;
    if (!key->has_row) {
        pull_rows(m->empty, &id, 1, key->record);
        for (int s = 0; s < m->slots * WIDTH; s++)
            key->record[WIDTH + s] = bel_rule_slot_start(&m->config->optimizer, s / WIDTH);
        m->admitted++;
    }
    key->has_row = true;
    float sums[WIDTH], *record = key->record;
    make_sums(&id, 1, WIDTH, step, sums);
    bel_rule_step numbers = bel_rule_begin(&m->config->optimizer, step);
    bel_rule_apply_rows(&numbers, sums, 0.25f, &record, 0, WIDTH, 1);
}

// Whether a row is small when it is first looked at after a quarter of the steps.
static bool model_is_small(model *m, const known *key, int64_t age)
{
    int64_t idle = m->config->expire_after / 4 > 1 ? m->config->expire_after / 4 : 1;
    if (m->config->expire_below == 0 || !key->has_row) return false;
    if (age < idle || age >= idle + (int64_t)m->slices) return false;
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += (double)key->record[i] * (double)key->record[i];
    bool small = sqrt(sum) < m->config->expire_below;
    m->small += small;
    m->spared += !small;
    return small;
}

static void model_end_step(model *m, int64_t version)
{
    if (m->config->expire_after == 0) return;
    for (int64_t k = 0; k < KEYS; k++) {
        known *key = &m->keys[k];
        uint64_t slice = (bel_table_hash(key_of(k)) >> 32) * m->slices >> 32;
        if (key->uses == 0 || (uint64_t)version % m->slices != slice) continue;
        int64_t age = version - key->last;
        if (age < m->config->expire_after && !model_is_small(m, key, age)) continue;
        m->expired += key->has_row;
        key->has_row = false;
        key->uses = 0;
    }
}

static content model_content(const model *m)
{
    content made = make_content(KEYS);
    made.count = 0;
    for (int64_t k = 0; k < KEYS; k++) {
        if (!m->keys[k].has_row) continue;
        int64_t at = made.count++;
        const float *record = m->keys[k].record;
        made.keys[at] = key_of(k);
        memcpy(made.rows + at * WIDTH, record, WIDTH * sizeof *record);
        for (int s = 0; s < m->slots; s++)
            memcpy(made.slots[s] + at * WIDTH, record + (s + 1) * WIDTH, WIDTH * sizeof *record);
    }
    return made;
}

// --- Random schedules ----------------------------------------------------------------------------

typedef struct schedule {
    int64_t admit_after, expire_after, steps, range; // range: number of keys
    int most;                                        // keys of a step
    int shards, threads;
    bool places; // updates get the places of a pull
    double expire_below;
} schedule;

static uint32_t draw(int64_t step, int64_t i, uint32_t below)
{
    uint32_t words[4];
    bel_rng_block(bel_rng_key_make(11, "life", (uint64_t)below), (uint64_t)step, (uint64_t)i,
                  words);
    return words[0] % below;
}

// Names some keys, in their order. A window moves around them, and few others are named, so that
// keys expire and return.
static int64_t name_keys(const schedule *s, int64_t step, int64_t *out_numbers)
{
    int64_t around = 40 + 3 * s->expire_after, from = step * s->range / around % s->range, n = 0;
    uint32_t strays = (uint32_t)(2000 / (1 + s->expire_after));
    for (int64_t k = 0; k < s->range && n < s->most; k++) {
        bool inside = (k + s->range - from) % s->range < s->range / 3;
        if (draw(step, k, 10000) < (inside ? 6000 : strays)) out_numbers[n++] = k;
    }
    return n;
}

// Pulls keys for an update that does not follow.
static void pull_others(const schedule *s, const bel_table *table, int shard, int64_t step)
{
    enum { EACH = 11 };
    static int64_t keys[KEYS];
    static float rows[KEYS * WIDTH];
    static uint32_t places[KEYS];
    int64_t n = 0;
    for (int64_t k = step % EACH; k < s->range; k += EACH)
        if (bel_table_shard(key_of(k), s->shards) == shard) keys[n++] = key_of(k);
    BEL_ASSERT_OK(bel_table_pull_places(table, keys, n, rows, places));
}

static void update_shard(const schedule *s, bel_table *table, bel_team *team, int shard,
                         int64_t step, const bel_optimizer *optimizer, const int64_t *numbers,
                         int64_t n)
{
    static int64_t keys[KEYS];
    static float rows[KEYS * WIDTH], sums[KEYS * WIDTH];
    static uint32_t places[KEYS];
    int64_t mine = 0;
    for (int64_t i = 0; i < n; i++)
        if (bel_table_shard(key_of(numbers[i]), s->shards) == shard)
            keys[mine++] = key_of(numbers[i]);
    pull_others(s, table, shard, step);
    BEL_ASSERT_OK(bel_table_pull_places(table, keys, mine, rows, places));
    make_sums(keys, mine, WIDTH, step, sums);
    bel_rule_step rule = bel_rule_begin(optimizer, step);
    BEL_ASSERT_OK(bel_table_update(table, team, &rule, 0, keys, s->places ? places : NULL, sums,
                                   0.25f, mine));
    BEL_ASSERT_OK(bel_table_end_step(table, step + 1));
}

// Compares the shards' snapshots, together, with what the model had.
static void check_snapshots(bel_table *const *tables, int shards, const content *expected)
{
    int64_t count = 0;
    for (int i = 0; i < shards; i++) {
        content read = read_snapshot(tables[i]);
        count += read.count;
        for (int64_t r = 0, e = 0; r < read.count; r++) {
            while (e < expected->count && expected->keys[e] < read.keys[r])
                e++;
            assert_true(e < expected->count && expected->keys[e] == read.keys[r]);
            size_t bytes = WIDTH * sizeof(float);
            assert_memory_equal(read.rows + r * WIDTH, expected->rows + e * WIDTH, bytes);
            for (int s = 0; s < MAX_SLOTS; s++)
                assert_memory_equal(read.slots[s] + r * WIDTH, expected->slots[s] + e * WIDTH,
                                    bytes);
        }
        free_content(&read);
    }
    assert_int_equal(count, expected->count);
}

static void check_tally(bel_table *const *tables, int shards, const model *m)
{
    bel_table_tally sum = {0};
    int64_t rows = 0, waiting = 0;
    for (int i = 0; i < shards; i++) {
        bel_table_tally t = bel_table_count_all(tables[i]);
        sum.rows += t.rows;
        sum.waiting += t.waiting;
        sum.admitted += t.admitted;
        sum.expired += t.expired;
    }
    for (int64_t k = 0; k < KEYS; k++) {
        rows += m->keys[k].has_row;
        waiting += !m->keys[k].has_row && m->keys[k].uses > 0;
    }
    assert_int_equal(sum.rows, rows);
    assert_int_equal(sum.waiting, waiting);
    assert_int_equal(sum.admitted, m->admitted);
    assert_int_equal(sum.expired, m->expired);
}

// Snapshots are marked now and then, and read some steps later.
static void run_schedule(const schedule *s, bel_optimizer_kind kind)
{
    static int64_t numbers[KEYS];
    bel_table_config config = make_config(kind);
    config.admit_after = s->admit_after;
    config.expire_after = s->expire_after;
    config.expire_below = s->expire_below;
    bel_table *tables[MOST_SHARDS];
    bel_team *team = NULL;
    if (s->threads > 0) BEL_ASSERT_OK(bel_team_create(s->threads, &team));
    for (int i = 0; i < s->shards; i++)
        tables[i] = make_table(&config);
    model *m = make_model(&config);
    content marked = {0};
    for (int64_t step = 0; step < s->steps; step++) {
        int64_t n = name_keys(s, step, numbers);
        for (int64_t i = 0; i < n; i++)
            model_use(m, step, numbers[i]);
        model_end_step(m, step + 1);
        for (int i = 0; i < s->shards; i++)
            update_shard(s, tables[i], team, i, step, &config.optimizer, numbers, n);
        check_tally(tables, s->shards, m);
        bool reads = marked.keys != NULL && draw(step, -1, 5) == 0;
        if (reads) {
            check_snapshots(tables, s->shards, &marked);
            free_content(&marked);
            marked = (content){0};
        }
        for (int i = 0; i < s->shards && reads; i++)
            bel_table_snapshot_end(tables[i]);
        if (marked.keys != NULL || draw(step, -2, 3) != 0) continue;
        marked = model_content(m);
        for (int i = 0; i < s->shards; i++)
            BEL_ASSERT_OK(bel_table_snapshot(tables[i]));
    }
    if (s->expire_after > 0) assert_true(m->expired > 100); // otherwise the schedule tests little
    if (s->expire_below > 0) assert_true(m->small > 50 && m->spared > 50);
    if (marked.keys != NULL) free_content(&marked);
    for (int i = 0; i < s->shards; i++)
        bel_table_snapshot_end(tables[i]);
    content last = model_content(m);
    for (int i = 0; i < s->shards; i++)
        BEL_ASSERT_OK(bel_table_snapshot(tables[i]));
    check_snapshots(tables, s->shards, &last);
    free_content(&last);
    for (int i = 0; i < s->shards; i++)
        bel_table_destroy(tables[i]);
    bel_team_destroy(team);
    free_model(m);
}

// With one shard and many keys the parts are nearly full, so buckets overflow; 8,192 rows are four
// to a bucket. Long ages have several slices.
static void test_schedules(void **state)
{
    (void)state;
    static const schedule schedules[] = {
        {1, 1, 40, 3000, 2000, 1, 0, false, 0},   {1, 3, 60, 3000, 2000, 1, 2, true, 0},
        {2, 0, 40, 3000, 2000, 2, 0, true, 0},    {3, 5, 60, 3000, 2000, 3, 0, false, 0},
        {2, 8, 60, 9000, 9000, 1, 2, true, 0},    {1, 20, 90, 9000, 9000, 1, 0, true, 0},
        {2, 16, 80, 9000, 4000, 2, 2, true, 0},   {5, 150, 500, 600, 600, 1, 0, true, 0},
        {1, 256, 900, 400, 400, 1, 0, true, 0},   {1, 3, 60, 3000, 2000, 1, 2, true, 0.2},
        {3, 5, 60, 3000, 2000, 3, 0, false, 0.2}, {1, 20, 90, 9000, 9000, 1, 0, true, 0.2},
        {2, 150, 500, 600, 600, 2, 0, true, 2},
    };
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        if (BEL_TEST_RACES && schedules[i].threads == 0) continue;
        run_schedule(&schedules[i], i % 2 == 0 ? BEL_OPTIMIZER_ADAM : BEL_OPTIMIZER_SGD);
    }
}

// Names keys, all of them in one update.
static void name_range(bel_table *table, const bel_optimizer *optimizer, int64_t step,
                       int64_t first, int64_t n)
{
    int64_t *keys = bel_xcalloc((size_t)n, sizeof *keys);
    for (int64_t i = 0; i < n; i++)
        keys[i] = first + i;
    update_rows(table, NULL, optimizer, step, keys, n);
    BEL_ASSERT_OK(bel_table_end_step(table, step + 1));
    bel_free(keys);
}

// Each version removes the due rows of its slice and no others, in an index whose parts are as full
// as they may be: buckets of one slice overflow into those of the next.
static void test_slices(void **state)
{
    (void)state;
    enum { AGE = 1024, SLICES = 256, COUNT = 8100 };
    static int left[SLICES];
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.expire_after = AGE;
    bel_table *table = make_table(&config);
    name_range(table, &config.optimizer, 0, 0, COUNT);
    for (int64_t key = 0; key < COUNT; key++)
        left[bel_table_hash(key) >> 56]++;
    BEL_ASSERT_OK(bel_table_end_step(table, AGE)); // the rows' last use was in version 1
    assert_int_equal(bel_table_count(table), COUNT);
    int64_t count = COUNT;
    for (int64_t version = AGE + 1; version <= AGE + SLICES; version++) {
        BEL_ASSERT_OK(bel_table_end_step(table, version));
        count -= left[version % SLICES];
        assert_int_equal(bel_table_count(table), count);
    }
    assert_int_equal(count, 0);
    bel_table_destroy(table);
}

// --- Memory --------------------------------------------------------------------------------------

// Ever new keys take no more places than those of two steps: each is used for one step and removed
// after the next. The bytes are those of a table that never had other keys.
static void test_memory_is_flat(void **state)
{
    (void)state;
    enum { NAMED = 4000, STEPS = 60 };
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    config.expire_after = 1;
    bel_table *table = make_table(&config), *fresh = make_table(&config);
    for (int64_t step = 0; step < STEPS; step++)
        name_range(table, &config.optimizer, step, step * NAMED, NAMED);
    assert_int_equal(bel_table_count(table), NAMED);
    assert_int_equal(table->top, 2 * NAMED);
    name_range(fresh, &config.optimizer, 0, (STEPS - 1) * NAMED, NAMED);
    assert_int_equal(bel_table_bytes(table), bel_table_bytes(fresh));
    // Rows of a snapshot keep their places until it ends.
    BEL_ASSERT_OK(bel_table_snapshot(table));
    for (int64_t step = STEPS; step < STEPS + 5; step++)
        name_range(table, &config.optimizer, step, step * NAMED, NAMED);
    assert_int_equal(table->top, 3 * NAMED);
    bel_table_snapshot_end(table);
    for (int64_t step = STEPS + 5; step < STEPS + 9; step++)
        name_range(table, &config.optimizer, step, step * NAMED, NAMED);
    assert_int_equal(table->top, 3 * NAMED);
    bel_table_destroy(table);
    bel_table_destroy(fresh);
}

// Keys that wait take no memory of rows, and a full table has room again when rows are removed.
static void test_limit(void **state)
{
    (void)state;
    enum { LIMIT = 20 << 20 };
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.admit_after = 2;
    config.expire_after = 3;
    config.memory_limit = 16 << 20;
    bel_table *table;
    BEL_ASSERT_FAILS(bel_table_create(&config, &table), BEL_RESOURCE_EXHAUSTED,
                     "table \"users/uses\": a limit of 4194304 bytes holds no row");
    config.memory_limit = LIMIT;
    table = make_table(&config);
    const int64_t many = 400000;
    name_range(table, &config.optimizer, 0, 0, many); // each waits: 2^18 keys fit a block
    bel_table_tally tally = bel_table_count_all(table);
    assert_int_equal(tally.rows, 0);
    assert_true(tally.waiting > 20000 && tally.waiting < many);
    assert_int_equal(bel_table_refused(table), many - tally.waiting);
    int64_t waited = tally.waiting;
    name_range(table, &config.optimizer, 1, 0, many); // those that waited get rows, others wait
    tally = bel_table_count_all(table);
    assert_int_equal(tally.rows, waited);
    assert_true(bel_table_bytes(table) <= LIMIT);
    for (int64_t step = 2; step < 5; step++) // nothing is named
        name_range(table, &config.optimizer, step, 0, 0);
    tally = bel_table_count_all(table);
    assert_int_equal(tally.rows, 0);
    assert_int_equal(tally.waiting, 0);
    assert_int_equal(tally.expired, waited);
    name_range(table, &config.optimizer, 5, many, 100); // and there is room
    name_range(table, &config.optimizer, 6, many, 100);
    assert_int_equal(bel_table_count(table), 100);
    bel_table_destroy(table);
}

// A key that reaches its number of uses in a full table gets a row when another one leaves.
static void test_full(void **state)
{
    (void)state;
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.admit_after = 2;
    config.expire_after = 3;
    config.memory_limit = 20 << 20;
    bel_table *table = make_table(&config);
    int64_t step = 0, first = 0, rows = 0;
    enum { NAMED = 20000 };
    while (bel_table_refused(table) == 0) { // all rows stay in use
        name_range(table, &config.optimizer, step++, 0, first + NAMED);
        first += step % 2 == 0 ? NAMED : 0;
        assert_true(step < 100);
    }
    rows = bel_table_count(table);
    bel_table_tally tally = bel_table_count_all(table);
    assert_true(rows > 100000 && tally.waiting > 0);
    int64_t waits = first + NAMED - tally.waiting;
    for (int i = 0; i < 3; i++) // only keys without a row are named
        name_range(table, &config.optimizer, step++, waits, tally.waiting);
    assert_int_equal(bel_table_count_all(table).expired, rows);
    name_range(table, &config.optimizer, step++, waits, tally.waiting);
    assert_int_equal(bel_table_count(table), tally.waiting);
    assert_int_equal(bel_table_count_all(table).waiting, 0);
    bel_table_destroy(table);
}

// --- Another thread reads ------------------------------------------------------------------------

typedef struct reading {
    bel_table *table;
    content read;
} reading;

static void *read_beside(void *argument)
{
    reading *r = argument;
    r->read = read_snapshot(r->table);
    return NULL;
}

// Rows are removed, and others get free places, while the snapshot is read.
static void test_read_during_removals(void **state)
{
    (void)state;
    enum { NAMED = 3000 };
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    config.expire_after = 1;
    bel_table *table = make_table(&config);
    int64_t step = 0;
    for (; step < 4; step++)
        name_range(table, &config.optimizer, step, step * NAMED, NAMED);
    BEL_ASSERT_OK(bel_table_snapshot(table));
    content before = read_snapshot(table);
    bel_table_snapshot_end(table);
    BEL_ASSERT_OK(bel_table_snapshot(table));
    reading r = {.table = table};
    pthread_t thread;
    BEL_ASSERT_OK(bel_thread_start(&thread, read_beside, &r));
    for (; step < 12; step++)
        name_range(table, &config.optimizer, step, step * NAMED, NAMED);
    pthread_join(thread, NULL);
    assert_same(&r.read, &before);
    free_content(&r.read);
    free_content(&before);
    bel_table_destroy(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),      cmocka_unit_test(test_slices),
        cmocka_unit_test(test_memory_is_flat), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_full),           cmocka_unit_test(test_read_during_removals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
