// Deltas of a table: rows changed, created and removed since a base, written during updates. Each
// has the digest of a full checkpoint of the same version by a table that tracks nothing, and any
// number of shards loads it. label: release
#include "checkpoint/checkpoint.h"
#include "unit/ps/test_table_fixture.h"

enum { MAX_TABLES = 3, NAMED = 400, RANGE = 1200, LATE = 2 };

typedef struct shards {
    bel_table *tables[MAX_TABLES];
    int count;
    bel_team *team;
} shards;

static shards make_shards(const bel_table_config *config, int count, bool tracks)
{
    shards made = {.count = count};
    bel_table_config own = *config;
    own.tracks_changes = tracks;
    for (int s = 0; s < count; s++)
        made.tables[s] = make_table(&own);
    return made;
}

static void free_shards(shards *s)
{
    for (int i = 0; i < s->count; i++)
        bel_table_destroy(s->tables[i]);
}

// Most steps name other keys, so that rows expire, and keys get rows again.
static void train(const shards *s, const bel_optimizer *optimizer, int64_t from, int64_t to)
{
    static int64_t keys[NAMED], mine[NAMED];
    for (int64_t step = from; step < to; step++) {
        make_keys(step % 5, RANGE, true, keys, NAMED);
        for (int i = 0; i < s->count; i++) {
            int64_t n = 0;
            for (int64_t k = 0; k < NAMED; k++)
                if (bel_table_shard(keys[k], s->count) == i) mine[n++] = keys[k];
            update_rows(s->tables[i], s->team, optimizer, step, mine, n);
            BEL_ASSERT_OK(bel_table_end_step(s->tables[i], step + 1));
        }
    }
}

static void mark(const shards *s)
{
    for (int i = 0; i < s->count; i++) {
        bel_table_snapshot_end(s->tables[i]);
        BEL_ASSERT_OK(bel_table_snapshot(s->tables[i]));
    }
}

// Writes the marked version, as a delta if there is a base.
static bel_hash128 save(const shards *s, const char *dir, int64_t step, bel_ckpt_base base)
{
    // The run's settings, without which "t/age" would be a table of the model.
    const char *const names[] = {"table_admit_after", "table_expire_after"};
    const char *const values[] = {"2", "4"};
    bel_ckpt_info info = {.step = step,
                          .base = base,
                          .setting_names = names,
                          .setting_values = values,
                          .setting_count = 2};
    bel_ckpt_shard *written[MAX_TABLES] = {NULL};
    bel_hash128 digest;
    char *folder;
    BEL_ASSERT_OK(bel_ckpt_begin(dir, step, 0, 0, &folder));
    for (int i = 0; i < s->count; i++) {
        bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
        int count = 0;
        if (base.step == 0)
            count = bel_table_rows(s->tables[i], rows);
        else
            BEL_ASSERT_OK(bel_table_changed_rows(s->tables[i], base.step, rows, &count));
        BEL_ASSERT_OK(
            bel_ckpt_write_shard_tables(folder, i, s->count, NULL, 0, rows, count, &written[i]));
        if (base.step == 0) bel_table_set_base(s->tables[i], step, written[i]);
    }
    BEL_ASSERT_OK(bel_ckpt_commit(dir, folder, &info, written, s->count, &digest));
    for (int i = 0; i < s->count; i++)
        bel_ckpt_shard_destroy(written[i]);
    bel_free(folder);
    return digest;
}

static bool same(bel_hash128 a, bel_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

// Loads the newest checkpoint into `count` shards, trains one step more, and returns the digest.
static bel_hash128 continue_from(const char *dir, const bel_table_config *config, int count,
                                 int64_t step)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    assert_int_equal(bel_ckpt_reader_info(reader)->step, step);
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    shards loaded = make_shards(config, count, false);
    for (int i = 0; i < count; i++)
        BEL_ASSERT_OK(bel_table_restore(loaded.tables[i], reader, i, count));
    bel_ckpt_close(reader);
    train(&loaded, &config->optimizer, step, step + 3);
    mark(&loaded);
    char *other = bel_test_folder();
    bel_hash128 digest = save(&loaded, other, step + 3, (bel_ckpt_base){0});
    bel_test_remove_folder(other);
    free_shards(&loaded);
    return digest;
}

// F: a full checkpoint; D: a delta; L: a delta that is written after LATE further steps; E: a full
// one that is; S: a snapshot that is not saved.
static void check_chain(const char *chain, const bel_table_config *config, int count,
                        bel_team *team)
{
    char *dir = bel_test_folder(), *plain_dir = bel_test_folder();
    shards tracked = make_shards(config, count, true), plain = make_shards(config, 1, false);
    bel_ckpt_base base = {0};
    int64_t step = 0;
    tracked.team = team;
    for (const char *kind = chain; *kind != '\0'; kind++) {
        int64_t more = kind - chain == 3 ? 0 : 1 + (kind - chain) % 3; // one delta changes nothing
        train(&tracked, &config->optimizer, step, step + more);
        train(&plain, &config->optimizer, step, step + more);
        step += more;
        if (more == 0) continue;
        mark(&tracked);
        mark(&plain);
        int64_t saved = step;
        bool full = *kind == 'F' || *kind == 'E', late = *kind == 'L' || *kind == 'E';
        if (late) {
            train(&tracked, &config->optimizer, step, step + LATE);
            train(&plain, &config->optimizer, step, step + LATE);
            step += LATE;
        }
        if (*kind == 'S') continue;
        bel_hash128 expected = save(&plain, plain_dir, saved, (bel_ckpt_base){0});
        bel_hash128 got = save(&tracked, dir, saved, full ? (bel_ckpt_base){0} : base);
        assert_true(same(expected, got));
        if (full) base = (bel_ckpt_base){.step = saved, .digest = got};
        bel_hash128 continued = continue_from(plain_dir, config, 1, saved);
        for (int other = 1; other <= MAX_TABLES; other += 2)
            assert_true(same(continued, continue_from(dir, config, other, saved)));
    }
    free_shards(&tracked);
    free_shards(&plain);
    bel_test_remove_folder(dir);
    bel_test_remove_folder(plain_dir);
}

static bel_table_config with_life(bel_optimizer_kind kind, int64_t admit, int64_t expire)
{
    bel_table_config config = make_config(kind);
    config.admit_after = admit;
    config.expire_after = expire;
    return config;
}

static void test_all_rows_stay(void **state)
{
    (void)state;
    bel_table_config sgd = with_life(BEL_OPTIMIZER_SGD, 1, 0),
                     adam = with_life(BEL_OPTIMIZER_ADAM, 2, 0);
    check_chain("FDDDFD", &sgd, 1, NULL);
    check_chain("SFSLEDLSD", &adam, 2, NULL);
}

static void test_rows_come_and_go(void **state)
{
    (void)state;
    bel_table_config one = with_life(BEL_OPTIMIZER_ADAGRAD, 1, 2),
                     many = with_life(BEL_OPTIMIZER_ADAM, 2, 3);
    check_chain("FDLDSFDDL", &one, 1, NULL);
    check_chain("FLDDSELSDSEDD", &many, 3, NULL);
}

static void test_threads(void **state)
{
    (void)state;
    bel_table_config config = with_life(BEL_OPTIMIZER_ADAM, 1, 3);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(3, &team));
    check_chain("FLDEL", &config, 2, team);
    bel_team_destroy(team);
}

// Restoring forgets the base; a delta on another one is refused.
static void test_no_base(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    bel_table_config config = with_life(BEL_OPTIMIZER_SGD, 1, 0);
    shards s = make_shards(&config, 1, true), plain = make_shards(&config, 1, false);
    bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
    int count;
    train(&s, &config.optimizer, 0, 1);
    mark(&s);
    BEL_ASSERT_FAILS(bel_table_changed_rows(s.tables[0], 1, rows, &count), BEL_FAILED_PRECONDITION,
                     "asked for the rows that changed since step 1, it knows those since step 0");
    (void)save(&s, dir, 1, (bel_ckpt_base){0});
    train(&s, &config.optimizer, 1, 2);
    mark(&s);
    BEL_ASSERT_FAILS(bel_table_changed_rows(s.tables[0], 2, rows, &count), BEL_FAILED_PRECONDITION,
                     "it knows those since step 1");
    BEL_ASSERT_OK(bel_table_changed_rows(s.tables[0], 1, rows, &count));
    assert_true(rows[0].row_count >= NAMED && rows[0].row_count < 2 * NAMED);
    bel_table_snapshot_end(s.tables[0]);
    BEL_ASSERT_OK(bel_table_clear(s.tables[0]));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    BEL_ASSERT_OK(bel_table_restore(s.tables[0], reader, 0, 1));
    bel_ckpt_close(reader);
    mark(&s);
    BEL_ASSERT_FAILS(bel_table_changed_rows(s.tables[0], 1, rows, &count), BEL_FAILED_PRECONDITION,
                     "it knows those since step 0");
    mark(&plain);
    BEL_ASSERT_FAILS(bel_table_changed_rows(plain.tables[0], 1, rows, &count),
                     BEL_FAILED_PRECONDITION, "it knows those since step 0");
    free_shards(&s);
    free_shards(&plain);
    bel_test_remove_folder(dir);
}

// A delta has the rows of the steps since its base and no others.
static void test_only_changed(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    bel_table_config config = with_life(BEL_OPTIMIZER_SGD, 1, 0);
    shards s = make_shards(&config, 1, true);
    static int64_t keys[NAMED], got[NAMED];
    train(&s, &config.optimizer, 0, 3);
    mark(&s);
    (void)save(&s, dir, 3, (bel_ckpt_base){0});
    make_keys(9, RANGE, false, keys, NAMED);
    update_rows(s.tables[0], NULL, &config.optimizer, 3, keys, 50);
    BEL_ASSERT_OK(bel_table_end_step(s.tables[0], 4));
    for (int round = 0; round < 2; round++) { // the next delta has them again
        bel_ckpt_rows rows[BEL_TABLE_MOST_SAVED];
        int count;
        mark(&s);
        BEL_ASSERT_OK(bel_table_changed_rows(s.tables[0], 3, rows, &count));
        assert_int_equal(count, 1);
        assert_int_equal(rows[0].row_count, 50);
        assert_int_equal(rows[0].change->removed_count, 0);
        assert_int_equal(rows[0].change->all, bel_table_count(s.tables[0]));
        BEL_ASSERT_OK(rows[0].read(rows[0].context, 0, 50, got, BEL_CKPT_KEYS, NULL));
        assert_memory_equal(got, keys, 50 * sizeof *keys);
    }
    free_shards(&s);
    bel_test_remove_folder(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_rows_stay), cmocka_unit_test(test_rows_come_and_go),
        cmocka_unit_test(test_threads),       cmocka_unit_test(test_no_base),
        cmocka_unit_test(test_only_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
