// A table's shards saved to a checkpoint and restored: any other number of shards continues with
// the same bits. label: release
#include <math.h>

#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "unit/ps/test_table_fixture.h"

enum { MAX_TABLES = 3, NAMED = 3000, RANGE = 9000 };

typedef struct shards {
    bel_table *tables[MAX_TABLES];
    int count;
} shards;

static shards make_shards(const bel_table_config *config, int count)
{
    shards made = {.count = count};
    for (int s = 0; s < count; s++)
        made.tables[s] = make_table(config);
    return made;
}

static void free_shards(shards *s)
{
    for (int i = 0; i < s->count; i++)
        bel_table_destroy(s->tables[i]);
}

static void train(const shards *s, const bel_optimizer *optimizer, int64_t from, int64_t to)
{
    static int64_t keys[NAMED], mine[NAMED];
    for (int64_t step = from; step < to; step++) {
        make_keys(step, RANGE, true, keys, NAMED);
        for (int i = 0; i < s->count; i++) {
            int64_t n = 0;
            for (int64_t k = 0; k < NAMED; k++)
                if (bel_table_shard(keys[k], s->count) == i) mine[n++] = keys[k];
            update_rows(s->tables[i], NULL, optimizer, step, mine, n);
            BEL_ASSERT_OK(bel_table_end_step(s->tables[i], step + 1));
        }
    }
}

static bel_status *save(const shards *s, const char *dir, int64_t step, bel_hash128 *out_digest)
{
    bel_ckpt_info info = {.step = step};
    bel_ckpt_shard *written[MAX_TABLES] = {NULL};
    char *folder = NULL;
    bel_status *status = bel_ckpt_begin(dir, step, 0, 0, &folder);
    for (int i = 0; i < s->count && status == NULL; i++) {
        BEL_ASSERT_OK(bel_table_snapshot(s->tables[i]));
        bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
        int count = bel_table_rows(s->tables[i], rows);
        status =
            bel_ckpt_write_shard_tables(folder, i, s->count, NULL, 0, rows, count, &written[i]);
        bel_table_snapshot_end(s->tables[i]);
    }
    if (status == NULL) {
        status = bel_ckpt_commit(dir, folder, &info, written, s->count, out_digest);
    }
    for (int i = 0; i < s->count; i++)
        bel_ckpt_shard_destroy(written[i]);
    bel_free(folder);
    return status;
}

static void restore(const shards *s, const char *dir)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    for (int i = 0; i < s->count; i++)
        BEL_ASSERT_OK(bel_table_restore(s->tables[i], reader, i, s->count));
    bel_ckpt_close(reader);
}

static bool same(bel_hash128 a, bel_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

static void check_kind(bel_optimizer_kind kind, int64_t admit_after, int64_t expire_after)
{
    bel_table_config config = make_config(kind);
    config.admit_after = admit_after;
    config.expire_after = expire_after;
    bel_hash128 expected = {0}, digest;
    for (int before = 1; before <= MAX_TABLES; before++) {
        for (int after = 1; after <= MAX_TABLES; after++) {
            char *dir = bel_test_folder();
            shards first = make_shards(&config, before), second = make_shards(&config, after);
            train(&first, &config.optimizer, 0, 2);
            BEL_ASSERT_OK(save(&first, dir, 2, &digest));
            restore(&second, dir);
            train(&second, &config.optimizer, 2, 4);
            BEL_ASSERT_OK(save(&second, dir, 4, &digest));
            if (before == 1 && after == 1) expected = digest;
            assert_true(same(expected, digest));
            train(&first, &config.optimizer, 2, 4); // as without a restart
            BEL_ASSERT_OK(save(&first, dir, 4, &digest));
            assert_true(same(expected, digest));
            free_shards(&first);
            free_shards(&second);
            bel_test_remove_folder(dir);
        }
    }
}

static void test_other_shards(void **state)
{
    (void)state;
    check_kind(BEL_OPTIMIZER_SGD, 1, 0);
    check_kind(BEL_OPTIMIZER_ADAM, 1, 0);
}

// Ages and counts are part of the checkpoint.
static void test_life(void **state)
{
    (void)state;
    check_kind(BEL_OPTIMIZER_ADAM, 2, 0);
    check_kind(BEL_OPTIMIZER_ADAM, 1, 2);
    check_kind(BEL_OPTIMIZER_ADAGRAD, 2, 2);
}

static void test_other_optimizer(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    bel_table_config sgd = make_config(BEL_OPTIMIZER_SGD), adam = make_config(BEL_OPTIMIZER_ADAM);
    shards saved = make_shards(&sgd, 1), other = make_shards(&adam, 1);
    bel_hash128 digest;
    train(&saved, &sgd.optimizer, 0, 1);
    BEL_ASSERT_OK(save(&saved, dir, 1, &digest));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    BEL_ASSERT_FAILS(bel_table_restore(other.tables[0], reader, 0, 1), BEL_DATA_LOSS,
                     "table \"users\": expected width 10, columns values, adam/m, adam/v; got");
    BEL_ASSERT_FAILS(bel_table_restore(saved.tables[0], reader, 0, 1), BEL_DATA_LOSS,
                     "expected each key once"); // it has the rows already
    bel_ckpt_close(reader);
    free_shards(&saved);
    free_shards(&other);
    bel_test_remove_folder(dir);
}

static bel_ckpt_reader *open_latest(const char *dir)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    return reader;
}

// Saves with one admission and expiry, loads with another; `tally` is that of the loaded table.
static bel_table_tally change_life(int64_t admit, int64_t expire, int64_t admit_then,
                                   int64_t expire_then, bel_table_tally *out_saved)
{
    char *dir = bel_test_folder();
    bel_table_config before = make_config(BEL_OPTIMIZER_ADAM), after = before;
    before.admit_after = admit;
    before.expire_after = expire;
    after.admit_after = admit_then;
    after.expire_after = expire_then;
    shards saved = make_shards(&before, 2), loaded = make_shards(&after, 1);
    bel_hash128 digest;
    train(&saved, &before.optimizer, 0, 3);
    BEL_ASSERT_OK(save(&saved, dir, 3, &digest));
    restore(&loaded, dir);
    *out_saved = bel_table_count_all(saved.tables[0]);
    bel_table_tally other = bel_table_count_all(saved.tables[1]);
    out_saved->rows += other.rows;
    out_saved->waiting += other.waiting;
    bel_table_tally tally = bel_table_count_all(loaded.tables[0]);
    // Rows whose ages are not known are as if updated at the checkpoint's step, 3. Keys that the
    // next step names wait from then on.
    if (expire == 0 && expire_then == 2) {
        train(&loaded, &after.optimizer, 3, 4);
        assert_int_equal(bel_table_count(loaded.tables[0]), tally.rows);
        assert_true(bel_table_count_all(loaded.tables[0]).waiting > 100);
        BEL_ASSERT_OK(bel_table_end_step(loaded.tables[0], 6));
        assert_int_equal(bel_table_count(loaded.tables[0]), 0);
    }
    free_shards(&saved);
    free_shards(&loaded);
    bel_test_remove_folder(dir);
    return tally;
}

static void test_changed_life(void **state)
{
    (void)state;
    bel_table_tally saved, loaded = change_life(3, 0, 1, 0, &saved);
    assert_true(saved.waiting > 100 && saved.rows > 100);
    assert_int_equal(loaded.rows, saved.rows);
    assert_int_equal(loaded.waiting, 0);
    loaded = change_life(3, 2, 2, 2, &saved);
    assert_int_equal(loaded.rows, saved.rows);
    assert_int_equal(loaded.waiting, saved.waiting);
    loaded = change_life(1, 0, 3, 2, &saved);
    assert_int_equal(loaded.rows, saved.rows);
    assert_int_equal(loaded.waiting, 0);
    loaded = change_life(2, 2, 2, 0, &saved);
    assert_int_equal(loaded.rows, saved.rows);
    assert_int_equal(loaded.waiting, saved.waiting);
}

typedef struct fake {
    const char *name;
    float value;
} fake;

static bel_status *read_fake(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    const fake *f = context;
    (void)first;
    (void)n;
    out_keys[0] = 12345;
    if (column != BEL_CKPT_KEYS) out_floats[0] = f->value;
    return NULL;
}

// A checkpoint with an age, or a count, that no table has written.
static void expect_bad_life(fake *f, const char *text)
{
    static const char *const columns[] = {"values"};
    char *dir = bel_test_folder(), *folder;
    bel_table_config config = make_config(BEL_OPTIMIZER_SGD);
    config.admit_after = config.expire_after = 2;
    bel_table *table = make_table(&config), *other = make_table(&config);
    BEL_ASSERT_OK(bel_table_snapshot(table));
    bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
    int count = bel_table_rows(table, rows);
    assert_int_equal(count, BEL_TABLE_MOST_SAVED);
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].table.name, f->name) != 0) continue;
        rows[i] = (bel_ckpt_rows){
            .table = {f->name, 1, 1, columns}, .row_count = 1, .read = read_fake, .context = f};
    }
    bel_ckpt_shard *written;
    bel_ckpt_info info = {.step = 1};
    bel_hash128 digest;
    BEL_ASSERT_OK(bel_ckpt_begin(dir, 1, 0, 0, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, 0, 1, NULL, 0, rows, count, &written));
    BEL_ASSERT_OK(bel_ckpt_commit(dir, folder, &info, &written, 1, &digest));
    bel_ckpt_reader *reader = open_latest(dir);
    BEL_ASSERT_FAILS(bel_table_restore(other, reader, 0, 1), BEL_DATA_LOSS, text);
    bel_ckpt_close(reader);
    bel_ckpt_shard_destroy(written);
    bel_free(folder);
    bel_table_destroy(table);
    bel_table_destroy(other);
    bel_test_remove_folder(dir);
}

static void test_bad_life(void **state)
{
    (void)state;
    expect_bad_life(&(fake){"users/age", 1},
                    "table \"users/age\": expected a row for key 12345, got none");
    expect_bad_life(&(fake){"users/age", -1}, "expected an integer from 0 to 16777216, got -1");
    expect_bad_life(&(fake){"users/uses", 0.5f},
                    "table \"users/uses\", key 12345: expected an integer from 1 to");
    expect_bad_life(&(fake){"users/uses", NAN}, "got nan");
    expect_bad_life(&(fake){"users/uses/age", 0}, "expected a row for key 12345, got none");
}

// Checks a new row. Its values and slots have different numbers, so that a mix-up shows.
static void check_warm_row(const bel_table *warm, int64_t key, const float *values, float slot)
{
    int64_t count = bel_table_snapshot_count(warm), found;
    float row[WIDTH], accumulator[WIDTH], *const slots[BEL_RULE_MAX_SLOTS] = {accumulator};
    for (int64_t i = 0; i < count; i++) {
        BEL_ASSERT_OK(bel_table_snapshot_range(warm, i, 1, &found, row, slots));
        if (found != key) continue;
        assert_memory_equal(row, values, sizeof row);
        for (int k = 0; k < WIDTH; k++)
            assert_true(accumulator[k] == slot);
        return;
    }
    fail_msg("no row %lld", (long long)key);
}

// Warm start from a training with another optimizer and another name, by any number of shards: only
// values are read, slots have their start values.
static void test_warm_rows(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    bel_table_config adam = make_config(BEL_OPTIMIZER_ADAM),
                     adagrad = make_config(BEL_OPTIMIZER_ADAGRAD), wide = adam;
    adagrad.name = "guests";
    adagrad.optimizer.initial_accumulator = 0.25;
    wide.width = WIDTH + 1;
    shards saved = make_shards(&adam, 3), warm = make_shards(&adagrad, 2);
    bel_hash128 digest;
    train(&saved, &adam.optimizer, 0, 2);
    BEL_ASSERT_OK(save(&saved, dir, 2, &digest));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    int64_t rows = 0, expected = 0;
    for (int i = 0; i < 3; i++)
        expected += bel_table_count(saved.tables[i]);
    for (int i = 0; i < 2; i++) {
        BEL_ASSERT_OK(bel_table_warm_up(warm.tables[i], reader, "users", i, 2));
        BEL_ASSERT_OK(bel_table_snapshot(warm.tables[i]));
        rows += bel_table_count(warm.tables[i]);
    }
    assert_int_equal(rows, expected);
    static int64_t keys[NAMED];
    make_keys(0, RANGE, true, keys, NAMED);
    for (int i = 0; i < 20; i++) {
        float values[WIDTH];
        pull_rows(saved.tables[bel_table_shard(keys[i], 3)], &keys[i], 1, values);
        check_warm_row(warm.tables[bel_table_shard(keys[i], 2)], keys[i], values, 0.25f);
    }
    shards wider = make_shards(&wide, 1);
    BEL_ASSERT_FAILS(
        bel_table_warm_up(wider.tables[0], reader, "users", 0, 1), BEL_DATA_LOSS,
        "table \"users\": expected width 11, columns values, adam/m, adam/v; got width "
        "10, columns");
    BEL_ASSERT_FAILS(bel_table_warm_up(wider.tables[0], reader, "guests", 0, 1), BEL_NOT_FOUND,
                     "has no table \"guests\"");
    bel_ckpt_close(reader);
    free_shards(&saved);
    free_shards(&warm);
    free_shards(&wider);
    bel_test_remove_folder(dir);
}

static void expect_not_finite(bel_optimizer_kind kind, float gradient, const char *text)
{
    char *dir = bel_test_folder();
    bel_table_config config = make_config(kind);
    shards s = make_shards(&config, 1);
    static const int64_t key = 77;
    float sums[WIDTH] = {0};
    sums[3] = gradient;
    bel_rule_step numbers = bel_rule_begin(&config.optimizer, 0);
    BEL_ASSERT_OK(bel_table_update(s.tables[0], NULL, &numbers, 0, &key, NULL, sums, 1, 1));
    bel_hash128 digest;
    BEL_ASSERT_FAILS(save(&s, dir, 1, &digest), BEL_ABORTED, text);
    free_shards(&s);
    bel_test_remove_folder(dir);
}

// If an accumulator overflows, the value stays finite but never changes again; the save still
// fails.
static void test_not_finite(void **state)
{
    (void)state;
    expect_not_finite(BEL_OPTIMIZER_SGD, NAN, "row 77 of table \"users\" is not finite (values)");
    expect_not_finite(BEL_OPTIMIZER_ADAGRAD, 2e38f,
                      "row 77 of table \"users\" is not finite (adagrad/accumulator)");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_shards),    cmocka_unit_test(test_life),
        cmocka_unit_test(test_changed_life),    cmocka_unit_test(test_bad_life),
        cmocka_unit_test(test_other_optimizer), cmocka_unit_test(test_warm_rows),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
