// Rows of a table: start values, updates against the dense rule, limits, loading.
#include <math.h>

#include "unit/ps/test_table_fixture.h"

static const bel_optimizer_kind row_kinds[] = {BEL_OPTIMIZER_SGD, BEL_OPTIMIZER_ADAGRAD,
                                               BEL_OPTIMIZER_ADAM, BEL_OPTIMIZER_ADAMW,
                                               BEL_OPTIMIZER_FTRL};
enum { KINDS = sizeof row_kinds / sizeof row_kinds[0] };

// --- Settings ------------------------------------------------------------------------------------

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        bel_optimizer_kind kind;
        double clip_norm, clip_global_norm;
        int width;
        float scale;
        const char *part;
    } rows[] = {
        {BEL_OPTIMIZER_MOMENTUM, 0, 0, 4, 1, "table \"users\": expected the optimizer sgd, adag"},
        {BEL_OPTIMIZER_RMSPROP, 0, 0, 4, 1, "got rmsprop"},
        {BEL_OPTIMIZER_LAMB, 0, 0, 4, 1, "got lamb"},
        {BEL_OPTIMIZER_SGD, 1, 0, 4, 1, "clip_norm needs the gradient of the whole variable"},
        {BEL_OPTIMIZER_SGD, 0, 1, 4, 1, "clip_global_norm needs"},
        {BEL_OPTIMIZER_SGD, 0, 0, 0, 1, "width must be from 1 to 1048576, got 0"},
        {BEL_OPTIMIZER_SGD, 0, 0, 1 << 21, 1, "got 2097152"},
        {BEL_OPTIMIZER_SGD, 0, 0, 4, -1, "scale must be 0 or above, got -1"},
        {BEL_OPTIMIZER_SGD, 0, 0, 4, NAN, "scale"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
        config.optimizer = make_optimizer(rows[i].kind);
        config.optimizer.clip_norm = rows[i].clip_norm;
        config.optimizer.clip_global_norm = rows[i].clip_global_norm;
        config.width = rows[i].width;
        config.scale = rows[i].scale;
        bel_table *table = NULL;
        BEL_ASSERT_FAILS(bel_table_create(&config, &table), BEL_INVALID_ARGUMENT, rows[i].part);
        assert_null(table);
    }
}

static void test_shards(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    for (int shards = 1; shards <= 7; shards++) {
        int64_t held[8] = {0};
        for (int64_t key = -COUNT / 2; key < COUNT / 2; key++) {
            int shard = bel_table_shard(key, shards);
            assert_true(shard >= 0 && shard < shards);
            held[shard]++;
        }
        for (int s = 0; s < shards; s++)
            assert_true(llabs(held[s] - COUNT / shards) < COUNT / 50);
    }
    // Never changes: workers and shards of different versions must agree.
    static const int64_t keys[] = {0, 1, -1, 42, INT64_MAX};
    static const int expected[] = {0, 595, 438, 782, 148};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(bel_table_shard(keys[i], 1000), expected[i]);
}

// --- Start values --------------------------------------------------------------------------------

static void test_pull_changes_nothing(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static int64_t keys[2 * COUNT];
    static float rows[2 * COUNT * WIDTH];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *pulled = make_table(&config), *plain = make_table(&config);
    int64_t bytes = bel_table_bytes(pulled);
    make_keys(0, 5000, true, keys, COUNT);
    memcpy(keys + COUNT, keys, COUNT * sizeof *keys); // repeated keys are allowed
    for (int64_t step = 0; step < 3; step++) {
        bel_table_pull(pulled, keys, (int64_t)2 * COUNT, rows);
        assert_memory_equal(rows, rows + COUNT * WIDTH, COUNT * WIDTH * sizeof *rows);
        assert_int_equal(bel_table_count(pulled), step == 0 ? 0 : 500);
        if (step == 0) assert_int_equal(bel_table_bytes(pulled), bytes);
        update_rows(pulled, NULL, &config.optimizer, step, keys, 500);
        update_rows(plain, NULL, &config.optimizer, step, keys, 500);
    }
    content a = read_table(pulled), b = read_table(plain);
    assert_same(&a, &b);
    free_content(&a);
    free_content(&b);
    bel_table_destroy(pulled);
    bel_table_destroy(plain);
}

// Mean, deviation and limits of 40,000 start values.
static void moments(const bel_table *table, double *out_mean, double *out_deviation,
                    double *out_max)
{
    enum { COUNT = 4000 };
    static int64_t keys[COUNT];
    static float rows[COUNT * WIDTH];
    for (int64_t i = 0; i < COUNT; i++)
        keys[i] = i - 50;
    bel_table_pull(table, keys, COUNT, rows);
    double sum = 0, square = 0, max = 0;
    for (int64_t i = 0; i < (int64_t)COUNT * WIDTH; i++) {
        double x = (double)rows[i];
        sum += x;
        square += x * x;
        max = fmax(max, fabs(x));
    }
    *out_mean = sum / (COUNT * WIDTH);
    *out_deviation = sqrt(square / (COUNT * WIDTH));
    *out_max = max;
}

static void test_start_values(void **state)
{
    (void)state;
    static const struct {
        bel_table_start start;
        double deviation, max;
    } rows[] = {
        {BEL_TABLE_ZEROS, 0, 0},
        {BEL_TABLE_UNIFORM, 0.57735, 1}, // 1 / sqrt(3)
        {BEL_TABLE_NORMAL, 0.87963, 2},  // a normal distribution cut off at two deviations
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
        config.start = rows[i].start;
        config.scale = 0.5f;
        bel_table *table = make_table(&config);
        double mean, deviation, max;
        moments(table, &mean, &deviation, &max);
        assert_true(fabs(mean) < 0.01);
        assert_true(fabs(deviation - 0.5 * rows[i].deviation) < 0.005);
        assert_true(max <= 0.5 * rows[i].max && max >= 0.499 * rows[i].max);
        bel_table_destroy(table);
    }
}

// The bits are the same on every machine.
static void test_start_bits(void **state)
{
    (void)state;
    static const float expected[][3] = {
        {0x1.965df4p-4f, -0x1.9525f6p-4f, -0x1.1a5a26p-4f},
        {0x1.8c36fap-3f, -0x1.8794acp-3f, -0x1.852ff6p-4f},
    };
    static const int64_t key = -3;
    for (int i = 0; i < 2; i++) {
        bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
        config.start = i == 0 ? BEL_TABLE_UNIFORM : BEL_TABLE_NORMAL;
        bel_table *table = make_table(&config);
        float row[WIDTH];
        bel_table_pull(table, &key, 1, row);
        assert_memory_equal(row, expected[i], sizeof expected[i]);
        bel_table_destroy(table);
    }
}

// Start values depend only on seed, name and key.
static void test_start_keys(void **state)
{
    (void)state;
    static const int64_t keys[] = {5, -5, 5};
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD), seeded = config, named = config;
    bel_table_config slots = make_config(BEL_OPTIMIZER_ADAM);
    seeded.seed++;
    named.name = "items";
    const bel_table_config *others[] = {&config, &slots, &seeded, &named};
    float first[3 * WIDTH], rows[3 * WIDTH];
    for (int i = 0; i < 4; i++) {
        bel_table *table = make_table(others[i]);
        bel_table_pull(table, keys, 3, rows);
        assert_memory_equal(rows, rows + (ptrdiff_t)2 * WIDTH, WIDTH * sizeof *rows);
        assert_memory_not_equal(rows, rows + WIDTH, WIDTH * sizeof *rows);
        if (i == 0) memcpy(first, rows, sizeof rows);
        if (i == 1) assert_memory_equal(first, rows, sizeof rows);
        if (i >= 2) assert_memory_not_equal(first, rows, sizeof rows);
        bel_table_destroy(table);
    }
}

// --- Updates against the dense rule --------------------------------------------------------------

// Values and slots of one row, kept as a separate dense variable.
typedef struct dense {
    float values[64], slots[MAX_SLOTS][64];
} dense;

static void dense_step(const bel_optimizer *optimizer, int64_t step, const float *sums, dense *d,
                       int width)
{
    float gradient[64], *slots[BEL_RULE_MAX_SLOTS] = {d->slots[0], d->slots[1]};
    bel_rule_step numbers = bel_rule_begin(optimizer, step);
    bel_rule_scale(&numbers, sums, 0.25f, gradient, width);
    bel_rule_apply(&numbers, gradient, 1.0f, d->values, d->values, slots, width);
}

// A table of `width` floats. Each step updates three of four rows and leaves the fourth unchanged.
static void check_against_dense(bel_optimizer optimizer, int width)
{
    enum { ROWS = 4, STEPS = 6 };
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.optimizer = optimizer;
    config.width = width;
    bel_table *table = make_table(&config);
    static dense rows[ROWS];
    static const int64_t keys[ROWS] = {11, -4, 1 << 30, 7};
    for (int r = 0; r < ROWS; r++) {
        bel_table_pull(table, &keys[r], 1, rows[r].values);
        for (int i = 0; i < MAX_SLOTS * 64; i++)
            rows[r].slots[i / 64][i % 64] = bel_rule_slot_start(&optimizer, i / 64);
    }
    for (int64_t step = 0; step < STEPS; step++) {
        int64_t named[ROWS];
        float sums[ROWS * 64], values[64];
        int n = 0;
        for (int r = 0; r < ROWS; r++) {
            if (r == step % ROWS) continue;
            named[n] = keys[r];
            make_sums(&keys[r], 1, width, step, sums + n * width);
            dense_step(&optimizer, step, sums + n++ * width, &rows[r], width);
        }
        bel_rule_step numbers = bel_rule_begin(&optimizer, step);
        BEL_ASSERT_OK(bel_table_update(table, NULL, &numbers, 0, named, NULL, sums, 0.25f, n));
        for (int r = 0; r < ROWS; r++) {
            bel_table_pull(table, &keys[r], 1, values);
            assert_memory_equal(values, rows[r].values, (size_t)width * sizeof *values);
        }
    }
    bel_table_destroy(table);
}

static void test_against_dense(void **state)
{
    (void)state;
    static const int widths[] = {1, 7, 8, 16, 32, 64};
    for (int k = 0; k < KINDS; k++) {
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            bel_optimizer optimizer = make_optimizer(row_kinds[k]);
            check_against_dense(optimizer, widths[w]);
            optimizer.clip_value = 0.2;
            check_against_dense(optimizer, widths[w]);
            optimizer.clip_value = optimizer.weight_decay = 0;
            check_against_dense(optimizer, widths[w]);
        }
    }
}

// Wider than a piece of the clipping loop.
static void test_wide_clip(void **state)
{
    (void)state;
    enum { WIDE = 1000 };
    bel_optimizer optimizer = make_optimizer(BEL_OPTIMIZER_ADAM);
    optimizer.clip_value = 0.1;
    bel_rule_step numbers = bel_rule_begin(&optimizer, 0);
    static float record[3 * WIDE], values[WIDE], m[WIDE], v[WIDE], sums[WIDE], gradient[WIDE];
    float *row = record, *slots[BEL_RULE_MAX_SLOTS] = {m, v};
    for (int i = 0; i < WIDE; i++) {
        sums[i] = gradient_at(9, 1, i);
        record[i] = values[i] = gradient_at(9, 2, i);
    }
    bel_rule_apply_rows(&numbers, sums, 0.5f, &row, 0, WIDE, 1);
    bel_rule_scale(&numbers, sums, 0.5f, gradient, WIDE);
    bel_rule_apply(&numbers, gradient, 1.0f, values, values, slots, WIDE);
    assert_memory_equal(record, values, sizeof values);
    assert_memory_equal(record + WIDE, m, sizeof m);
    assert_memory_equal(record + (ptrdiff_t)2 * WIDE, v, sizeof v);
}

// ADAM leaves rows that a step does not name unchanged, with their moments. The dense rule would
// update them.
static void test_lazy_adam(void **state)
{
    (void)state;
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *table = make_table(&config);
    static const int64_t both[] = {1, 2};
    update_rows(table, NULL, &config.optimizer, 0, both, 2);
    content before = read_table(table);
    for (int64_t step = 1; step < 4; step++)
        update_rows(table, NULL, &config.optimizer, step, &both[1], 1);
    content after = read_table(table);
    assert_memory_equal(before.rows, after.rows, WIDTH * sizeof(float));
    for (int k = 0; k < MAX_SLOTS; k++) {
        assert_memory_equal(before.slots[k], after.slots[k], WIDTH * sizeof(float));
        assert_memory_not_equal(before.slots[k] + WIDTH, after.slots[k] + WIDTH,
                                WIDTH * sizeof(float));
    }
    free_content(&before);
    free_content(&after);
    bel_table_destroy(table);
}

// --- Places --------------------------------------------------------------------------------------

// Places of an older pull: rows made since then are found too.
static void test_places(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static int64_t keys[COUNT];
    static uint32_t places[COUNT];
    static float rows[COUNT * WIDTH], sums[COUNT * WIDTH];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *noted = make_table(&config), *plain = make_table(&config);
    make_keys(0, 5000, true, keys, COUNT);
    update_rows(noted, NULL, &config.optimizer, 0, keys, 300);
    update_rows(plain, NULL, &config.optimizer, 0, keys, 300);
    BEL_ASSERT_OK(bel_table_pull_places(noted, keys, COUNT, rows, places));
    for (int i = 0; i < COUNT; i++)
        assert_true((places[i] == BEL_TABLE_NOWHERE) == (i >= 300));
    for (int64_t step = 1; step < 4; step++) {
        int64_t n = step * COUNT / 3;
        make_sums(keys, n, WIDTH, step, sums);
        bel_rule_step numbers = bel_rule_begin(&config.optimizer, step);
        BEL_ASSERT_OK(bel_table_update(noted, NULL, &numbers, 0, keys, places, sums, 0.25f, n));
        BEL_ASSERT_OK(bel_table_update(plain, NULL, &numbers, 0, keys, NULL, sums, 0.25f, n));
    }
    content a = read_table(noted), b = read_table(plain);
    assert_same(&a, &b);
    free_content(&a);
    free_content(&b);
    bel_table_destroy(noted);
    bel_table_destroy(plain);
}

// --- Limits --------------------------------------------------------------------------------------

static bel_status *load(bel_table *table, const content *c)
{
    const float *slots[MAX_SLOTS] = {c->slots[0], c->slots[1]};
    return bel_table_load(table, c->keys, c->rows, slots, c->count);
}

// Limit for 65,536 rows, if all parts of the index are equally full: two blocks of rows of 80
// bytes, one of keys, and 32 parts of 2,048 rows. Not all keys of a full part are the last ones.
enum { LIMIT = 8 << 20, FIRST = 64000, SECOND = 20000, HELD = 65536 };

static bel_table *make_limited(bel_table_config *out_config)
{
    *out_config = make_config(BEL_OPTIMIZER_ADAGRAD);
    out_config->memory_limit = LIMIT;
    return make_table(out_config);
}

static void fill_first(bel_table *table, bel_team *team, const bel_optimizer *o, int64_t batch)
{
    static int64_t keys[FIRST];
    make_keys(0, 10 * FIRST, false, keys, FIRST);
    for (int64_t i = 0; i < FIRST; i += batch)
        update_rows(table, team, o, 0, keys + i, FIRST - i < batch ? FIRST - i : batch);
}

static void fill_second(bel_table *table, bel_team *team, const bel_optimizer *o, int64_t batch)
{
    static int64_t keys[SECOND];
    make_keys(1, 10 * SECOND, false, keys, SECOND);
    for (int64_t i = 0; i < SECOND; i += batch)
        update_rows(table, team, o, 1, keys + i, SECOND - i < batch ? SECOND - i : batch);
}

// Rows of a full table: those of an unlimited one, or start values.
static void check_full_rows(const bel_table *full, const bel_table *all)
{
    static int64_t keys[FIRST + SECOND];
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_table *none = make_table(&config);
    int64_t held = 0, n = FIRST + SECOND;
    make_keys(0, 10 * FIRST, false, keys, FIRST);
    make_keys(1, 10 * SECOND, false, keys + FIRST, SECOND);
    float *got = bel_xcalloc((size_t)n * WIDTH, sizeof *got);
    uint32_t *places = bel_xcalloc((size_t)n, sizeof *places);
    BEL_ASSERT_OK(bel_table_pull_places(full, keys, n, got, places));
    for (int64_t i = 0; i < n; i++) {
        float expected[WIDTH];
        bool has_row = places[i] != BEL_TABLE_NOWHERE;
        bel_table_pull(has_row ? all : none, keys + i, 1, expected);
        assert_memory_equal(got + i * WIDTH, expected, sizeof expected);
        held += has_row;
    }
    assert_true(held >= bel_table_count(full)); // the two lists may share keys
    bel_free(got);
    bel_free(places);
    bel_table_destroy(none);
}

// A full table continues with the rows that it has. The rows that it admits are a function of the
// updates' keys in order: neither of batches, nor of threads, nor of a restart from a checkpoint.
static void test_full(void **state)
{
    (void)state;
    bel_table_config config;
    bel_table *table = make_limited(&config), *other = make_limited(&config);
    bel_table *loaded = make_limited(&config);
    const bel_optimizer *o = &config.optimizer;
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(2, &team));
    fill_first(table, NULL, o, FIRST);
    fill_first(other, team, o, 37);
    int64_t refused = bel_table_refused(table);
    assert_true(refused > 0); // some parts of the index are full before others
    assert_int_equal(bel_table_count(table), FIRST - refused);
    assert_int_equal(bel_table_refused(other), refused);
    content saved = read_table(table);
    BEL_ASSERT_OK(load(loaded, &saved)); // in order of keys
    assert_int_equal(bel_table_bytes(loaded), bel_table_bytes(table));
    fill_second(table, team, o, SECOND);
    fill_second(other, NULL, o, 41);
    fill_second(loaded, NULL, o, 1000);
    content a = read_table(table), b = read_table(other), c = read_table(loaded);
    assert_true(a.count > saved.count && a.count <= HELD);
    assert_same(&a, &b);
    assert_same(&a, &c);
    BEL_ASSERT_OK(bel_table_clear(table)); // its memory stays, and does not count
    BEL_ASSERT_OK(load(table, &saved));
    fill_second(table, NULL, o, SECOND);
    content d = read_table(table);
    assert_same(&a, &d);
    assert_int_equal(bel_table_bytes(table), bel_table_bytes(other));
    assert_true(bel_table_bytes(table) <= LIMIT);
    config.memory_limit = 0;
    bel_table *all = make_table(&config);
    fill_first(all, NULL, o, FIRST);
    fill_second(all, NULL, o, SECOND);
    check_full_rows(table, all);
    assert_int_equal(bel_table_refused(all), 0);
    content *contents[] = {&saved, &a, &b, &c, &d};
    for (int i = 0; i < 5; i++)
        free_content(contents[i]);
    bel_table *tables[] = {table, other, loaded, all};
    for (int i = 0; i < 4; i++)
        bel_table_destroy(tables[i]);
    bel_team_destroy(team);
}

// Rows that no part of the index can hold are refused while a snapshot is read, too.
static void test_full_snapshot(void **state)
{
    (void)state;
    bel_table_config config;
    bel_table *table = make_limited(&config);
    const bel_optimizer *o = &config.optimizer;
    fill_first(table, NULL, o, FIRST);
    fill_second(table, NULL, o, SECOND);
    content before = read_table(table);
    BEL_ASSERT_OK(bel_table_snapshot(table));
    fill_second(table, NULL, o, SECOND);
    content during = read_snapshot(table);
    assert_same(&before, &during);
    bel_table_snapshot_end(table);
    assert_int_equal(bel_table_count(table), before.count);
    free_content(&before);
    free_content(&during);
    bel_table_destroy(table);
}

static void test_memory_limit(void **state)
{
    (void)state;
    bel_table_config config;
    bel_table *table = make_limited(&config), *small;
    fill_first(table, NULL, &config.optimizer, FIRST);
    content saved = read_table(table);
    config.memory_limit = 1 << 20;
    BEL_ASSERT_FAILS(
        bel_table_create(&config, &small), BEL_RESOURCE_EXHAUSTED,
        "table \"users\": a limit of 1048576 bytes holds no row, the first takes 4849664");
    config.memory_limit = 4849664;
    small = make_table(&config);
    update_rows(small, NULL, &config.optimizer, 0, saved.keys, 1);
    assert_int_equal(bel_table_bytes(small), config.memory_limit);
    BEL_ASSERT_OK(bel_table_clear(small));
    char expected[200];
    snprintf(expected, sizeof expected, "has 0 rows in 131072 bytes; %lld more rows would take",
             (long long)saved.count);
    BEL_ASSERT_FAILS(load(small, &saved), BEL_RESOURCE_EXHAUSTED, expected);
    BEL_ASSERT_FAILS(load(small, &saved), BEL_RESOURCE_EXHAUSTED,
                     "expected at most 4849664 bytes and 4294967293 rows on a shard; hint: raise "
                     "table_memory, or use more shards");
    assert_int_equal(bel_table_count(small), 0);
    assert_int_equal(bel_table_bytes(small), 131072);
    free_content(&saved);
    bel_table_destroy(small);
    bel_table_destroy(table);
}

// --- Loading -------------------------------------------------------------------------------------

static void test_load(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static int64_t keys[COUNT];
    for (int k = 0; k < KINDS; k++) {
        bel_table_config config = make_config(row_kinds[k]);
        bel_table *table = make_table(&config), *loaded = make_table(&config);
        for (int64_t step = 0; step < 4; step++) {
            make_keys(step, 9000, true, keys, COUNT);
            update_rows(table, NULL, &config.optimizer, step, keys, COUNT);
            if (step != 1) continue;
            content saved = read_table(table);
            BEL_ASSERT_OK(load(loaded, &saved));
            int64_t bytes = bel_table_bytes(loaded);
            BEL_ASSERT_OK(bel_table_clear(loaded)); // and again into the existing memory
            assert_int_equal(bel_table_count(loaded), 0);
            assert_true(bel_table_bytes(loaded) < bytes);
            BEL_ASSERT_OK(load(loaded, &saved));
            assert_int_equal(bel_table_bytes(loaded), bytes);
            free_content(&saved);
        }
        for (int64_t step = 2; step < 4; step++) {
            make_keys(step, 9000, true, keys, COUNT);
            update_rows(loaded, NULL, &config.optimizer, step, keys, COUNT);
        }
        content a = read_table(table), b = read_table(loaded);
        assert_same(&a, &b);
        free_content(&a);
        free_content(&b);
        bel_table_destroy(table);
        bel_table_destroy(loaded);
    }
}

static void test_clear_forgets(void **state)
{
    (void)state;
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    bel_table *table = make_table(&config);
    static const int64_t keys[] = {3, 4};
    float start[2 * WIDTH], rows[2 * WIDTH];
    bel_table_pull(table, keys, 2, start);
    update_rows(table, NULL, &config.optimizer, 0, keys, 2);
    bel_table_pull(table, keys, 2, rows);
    assert_memory_not_equal(start, rows, sizeof rows);
    BEL_ASSERT_OK(bel_table_clear(table));
    bel_table_pull(table, keys, 2, rows);
    assert_memory_equal(start, rows, sizeof rows);
    bel_table_destroy(table);
}

static void test_malformed_load(void **state)
{
    (void)state;
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAM);
    bel_table *table = make_table(&config);
    content c = make_content(4);
    static const int64_t first[] = {1, 5, 9, 20}, again[] = {2, 6, 9, 30}, twice[] = {7, 3, 8, 7};
    memcpy(c.keys, first, sizeof first);
    BEL_ASSERT_OK(load(table, &c));
    memcpy(c.keys, again, sizeof again);
    BEL_ASSERT_FAILS(load(table, &c), BEL_DATA_LOSS,
                     "table \"users\": expected each key once, 9 comes twice");
    assert_int_equal(bel_table_count(table), 4);
    memcpy(c.keys, twice, sizeof twice);
    BEL_ASSERT_FAILS(load(table, &c), BEL_DATA_LOSS, "each key once, 7 comes twice");
    assert_int_equal(bel_table_count(table), 4);
    c.keys[3] = 100; // any order is valid
    BEL_ASSERT_OK(load(table, &c));
    assert_int_equal(bel_table_count(table), 8);
    free_content(&c);
    bel_table_destroy(table);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_start_values),   cmocka_unit_test(test_start_keys),
        cmocka_unit_test(test_start_bits),     cmocka_unit_test(test_against_dense),
        cmocka_unit_test(test_wide_clip),      cmocka_unit_test(test_lazy_adam),
        cmocka_unit_test(test_places),         cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_full),           cmocka_unit_test(test_full_snapshot),
        cmocka_unit_test(test_load),           cmocka_unit_test(test_clear_forgets),
        cmocka_unit_test(test_malformed_load), cmocka_unit_test(test_pull_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
