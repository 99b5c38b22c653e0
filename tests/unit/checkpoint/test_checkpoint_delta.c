// Deltas: the reader merges them with their base, and has the rows and the digest of a full
// checkpoint. The base may be missing, replaced or damaged; it is kept, shared and fetched with its
// deltas.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/best.h"
#include "checkpoint/files.h"
#include "checkpoint/row_map.h"
#include "checkpoint/setting_names.h"
#include "checkpoint/share.h"
#include "checkpoint/table.h"
#include "unit/checkpoint/test_fixture.h"

enum { KEYS = 30000, WIDTH = 2, COLUMNS = 2, BASE = 10, STEP = 25 };

static const char *const columns[COLUMNS] = {"values", "adagrad/accumulator"};
static const bel_ckpt_table deep = {"deep", WIDTH, COLUMNS, columns};
static const bel_ckpt_table ages = {"deep/age", 1, 1, columns};

// Rows of all shards: by number of the key, the step of its last use; 0: no row.
typedef struct rows_at {
    int64_t step;
    int32_t used[KEYS];
} rows_at;

// A part of a shard's rows.
typedef struct part {
    const rows_at *all;
    int shard, shards;
    bool is_age;
    int64_t count;
    int32_t numbers[KEYS]; // numbers of its rows' keys
    bel_ckpt_change change;
    int64_t removed[KEYS];
    const rows_at *base;
} part;

static int64_t key_of(int64_t number)
{
    return number * 7 - 90000;
}

// The run has the setting table_expire_after. Without it "deep/age" is a table of the model.
static bool expires = true;

static float element(const rows_at *rows, bool is_age, int64_t number, int column, int i)
{
    int32_t used = rows->used[number];
    if (is_age && expires) return (float)(rows->step - used);
    return (float)(used * 1000 + column * 100 + i) + (float)(number % 64) / 64;
}

static bel_status *read_part(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    const part *p = context;
    int width = p->is_age ? 1 : WIDTH;
    for (int64_t i = 0; i < n; i++) {
        int64_t number = p->numbers[first + i];
        out_keys[i] = key_of(number);
        for (int j = 0; out_floats != NULL && j < width; j++)
            out_floats[i * width + j] = element(p->all, p->is_age, number, column, j);
    }
    return NULL;
}

static bool is_as_in_base(const part *p, int64_t number)
{
    return p->base != NULL && p->all->used[number] == p->base->used[number];
}

static bel_status *add_rest(void *context, bel_hash128 *sums)
{
    const part *p = context;
    for (int64_t k = p->shard; k < KEYS; k += p->shards) {
        if (p->all->used[k] == 0 || !is_as_in_base(p, k)) continue;
        int64_t key = key_of(k);
        for (int c = 0; c < (p->is_age ? 1 : COLUMNS); c++) {
            float row[WIDTH];
            for (int j = 0; j < WIDTH; j++)
                row[j] = element(p->all, p->is_age, k, c, j);
            bel_ckpt_hash_rows(&key, row, p->is_age ? 1 : WIDTH, 1, &sums[c]);
        }
    }
    return NULL;
}

static bel_ckpt_rows rows_of(part *p, const rows_at *all, const rows_at *base, int shard,
                             int shards, bool is_age)
{
    *p = (part){.all = all, .base = base, .shard = shard, .shards = shards, .is_age = is_age};
    for (int32_t k = shard; k < KEYS; k += shards) {
        p->change.all += all->used[k] != 0;
        if (all->used[k] != 0 && !is_as_in_base(p, k)) p->numbers[p->count++] = k;
        if (base != NULL && base->used[k] != 0 && all->used[k] == 0)
            p->removed[p->change.removed_count++] = key_of(k);
    }
    p->change.removed = p->removed;
    p->change.add_rest = add_rest;
    return (bel_ckpt_rows){.table = is_age ? ages : deep,
                           .row_count = p->count,
                           .read = read_part,
                           .context = p,
                           .change = base != NULL ? &p->change : NULL};
}

// Saves rows, as a delta if there is a base; `spoil` may change a shard's part.
static bel_status *save(const char *dir, const rows_at *all, const rows_at *base,
                        bel_hash128 base_digest, int shards, void (*spoil)(part *p),
                        bel_hash128 *out_digest)
{
    static const float bias[2] = {1, -2};
    static part parts[2];
    bel_ckpt_piece piece = {"bias", BEL_DTYPE_F32, BEL_SHAPE(2), 0, 2, bias};
    bel_ckpt_shard *written[MAX_SHARDS] = {NULL};
    bel_ckpt_info about = fixture_info(all->step);
    const char *names[] = {fixture_names[0], fixture_names[1], BEL_SETTING_EXPIRE},
               *values[] = {fixture_values[0], fixture_values[1], "8"};
    about.setting_names = names;
    about.setting_values = values;
    about.setting_count = expires ? 3 : 2;
    if (base != NULL) about.base = (bel_ckpt_base){.step = base->step, .digest = base_digest};
    char *folder;
    bel_status *status = bel_ckpt_begin(dir, all->step, 2, 1, &folder);
    for (int s = 0; s < shards && status == NULL; s++) {
        bel_ckpt_rows rows[2];
        for (int t = 0; t < 2; t++)
            rows[t] = rows_of(&parts[t], all, base, s, shards, t == 1);
        if (spoil != NULL) spoil(&parts[0]);
        rows[0].row_count = parts[0].count;
        status =
            bel_ckpt_write_shard_tables(folder, s, shards, &piece, s == 0, rows, 2, &written[s]);
    }
    if (status == NULL) status = bel_ckpt_commit(dir, folder, &about, written, shards, out_digest);
    for (int s = 0; s < shards; s++)
        bel_ckpt_shard_destroy(written[s]);
    bel_free(folder);
    return status;
}

// The rows of step BASE: two keys of three, among them runs of thousands without a row.
static void make_base(rows_at *rows)
{
    *rows = (rows_at){.step = BASE};
    for (int64_t k = 0; k < KEYS; k++)
        rows->used[k] = k % 3 == 0 || k / 5000 % 3 == 1 ? 0 : (int32_t)(1 + k % BASE);
}

// Then rows change, come and go: single ones, and runs longer than a block.
static void make_next(const rows_at *base, int64_t step, rows_at *rows)
{
    *rows = *base;
    rows->step = step;
    for (int64_t k = 0; k < KEYS; k++) {
        bool run = k / 6000 % 4 == 2;
        uint64_t draw = (uint64_t)k * 2654435761u % 97;
        if (draw < (run ? 90u : 10u)) rows->used[k] = BASE + 1 + (int32_t)(k % (step - BASE));
        if (draw > 85 || (k > 20000 && k < 26000)) rows->used[k] = 0;
    }
    rows->used[0] = (int32_t)step; // the first and the last key are new
    rows->used[KEYS - 1] = (int32_t)step;
}

// --- The merge -----------------------------------------------------------------------------------

typedef struct taken {
    const rows_at *expected;
    bool is_age, all;
    int64_t count, last;
    int file_count;
} taken;

static bool wants(void *context, int64_t key)
{
    const taken *t = context;
    return t->all || (key + 90000) / 7 % 2 == 0;
}

static bel_status *take(void *context, int64_t n, const int64_t *keys, const float *const *got)
{
    taken *t = context;
    for (int64_t i = 0; i < n; i++) {
        int64_t number = (keys[i] + 90000) / 7;
        assert_true(wants(t, keys[i]) && t->expected->used[number] != 0);
        for (int c = 0; c < (t->is_age ? 1 : COLUMNS); c++)
            for (int j = 0; j < (t->is_age ? 1 : WIDTH); j++)
                assert_true(got[c][i * (t->is_age ? 1 : WIDTH) + j] ==
                            element(t->expected, t->is_age, number, c, j));
        assert_true(t->count == 0 || keys[i] > t->last || t->file_count > 1);
        t->last = keys[i];
        t->count++;
    }
    return NULL;
}

// The rows of "deep", and whether the base has them, without reading others.
typedef struct maps {
    bel_ckpt_row_map *own, *base; // NULL: the checkpoint is full
} maps;

static bel_status *maps_open(const bel_ckpt_reader *reader, maps *m)
{
    int64_t rows;
    *m = (maps){0};
    (void)bel_ckpt_table_at(reader, 0, &rows);
    BEL_TRY(bel_ckpt_row_map_open(reader, "deep", WIDTH, &m->own));
    if (bel_ckpt_base_reader(reader) == NULL) return NULL;
    BEL_TRY(bel_ckpt_row_map_open(bel_ckpt_base_reader(reader), "deep", WIDTH, &m->base));
    return bel_ckpt_row_map_check(m->own, m->base, rows);
}

static void maps_close(maps *m)
{
    bel_ckpt_row_map_destroy(m->own);
    bel_ckpt_row_map_destroy(m->base);
}

static bool maps_get(const maps *m, int64_t key, float *values)
{
    if (bel_ckpt_row_map_get(m->own, key, values)) return true;
    return m->base != NULL && !bel_ckpt_row_map_removes(m->own, key) &&
           bel_ckpt_row_map_get(m->base, key, values);
}

static void check_maps(const bel_ckpt_reader *reader, const rows_at *expected)
{
    maps m;
    float values[WIDTH];
    BEL_ASSERT_OK(maps_open(reader, &m));
    assert_false(maps_get(&m, INT64_MIN, values) || maps_get(&m, INT64_MAX, values));
    for (int64_t k = -1; k <= KEYS; k++) {
        bool inside = k >= 0 && k < KEYS;
        assert_int_equal(maps_get(&m, key_of(k), values), inside && expected->used[k] != 0);
        for (int j = 0; inside && expected->used[k] != 0 && j < WIDTH; j++)
            assert_true(values[j] == element(expected, false, k, 0, j));
        assert_false(maps_get(&m, key_of(k) + 1, values));
    }
    maps_close(&m);
    BEL_ASSERT_FAILS(bel_ckpt_row_map_open(reader, "deep", WIDTH + 1, &m.own), BEL_DATA_LOSS,
                     "expected width 3, got 2");
    BEL_ASSERT_FAILS(bel_ckpt_row_map_open(reader, "none", 1, &m.own), BEL_NOT_FOUND, "no table");
}

static void check_rows(const bel_ckpt_reader *reader, const rows_at *expected)
{
    check_maps(reader, expected);
    int64_t count[2] = {0}, rows;
    for (int64_t k = 0; k < KEYS; k++) {
        count[0] += expected->used[k] != 0;
        count[1] += expected->used[k] != 0 && k % 2 == 0;
    }
    assert_int_equal(bel_ckpt_table_count(reader), 2);
    (void)bel_ckpt_table_at(reader, 0, &rows);
    assert_int_equal(rows, count[0]);
    for (int some = 0; some < 2; some++) {
        for (int age = 0; age < 2; age++) {
            taken t = {.expected = expected,
                       .is_age = age == 1,
                       .all = some == 0,
                       .file_count = bel_ckpt_file_count(reader)};
            const bel_ckpt_row_sink sink = {.wants = wants, .take = take, .context = &t};
            BEL_ASSERT_OK(bel_ckpt_read_table(reader, age == 1 ? &ages : &deep, &sink));
            assert_int_equal(t.count, count[some]);
        }
    }
}

static bool same(bel_hash128 a, bel_hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

static rows_at base, next;

static void test_merge(void **state)
{
    (void)state;
    make_base(&base);
    make_next(&base, STEP, &next);
    for (int shards = 1; shards <= 3; shards++) {
        char *dir = bel_test_folder(), *full = bel_test_folder();
        bel_hash128 digest, expected, got;
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, shards, NULL, &digest));
        BEL_ASSERT_OK(save(full, &next, NULL, (bel_hash128){0}, 2, NULL, &expected));
        BEL_ASSERT_OK(save(dir, &next, &base, digest, shards, NULL, &got));
        assert_true(same(got, expected));
        BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
        assert_int_equal(bel_ckpt_reader_info(reader)->base.step, BASE);
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        check_rows(reader, &next);
        bel_ckpt_close(reader);
        next.step++; // nothing changed, but the ages
        BEL_ASSERT_OK(save(dir, &next, &base, digest, shards, NULL, &got));
        BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        check_rows(reader, &next);
        bel_ckpt_close(reader);
        next.step--;
        bel_test_remove_folder(dir);
        bel_test_remove_folder(full);
    }
}

static void save_pair(const char *dir, int shards, bel_hash128 *out_base)
{
    bel_hash128 digest;
    make_base(&base);
    make_next(&base, STEP, &next);
    BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, shards, NULL, out_base));
    BEL_ASSERT_OK(save(dir, &next, &base, *out_base, shards, NULL, &digest));
}

// A table of the model may be named as if it had the ages of another one.
static void test_named_as_ages(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    for (int i = 0; i < 2; i++) {
        expires = i == 0;
        save_pair(dir, 2, &digest);
        BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
        assert_true(bel_ckpt_is_age_table(reader, "deep/age") == expires);
        assert_true(bel_ckpt_is_model_table(reader, "deep/age") == !expires);
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        check_rows(reader, &next);
        bel_ckpt_close(reader);
    }
    expires = true;
}

// Everything is gone, or came after an empty base.
static void test_ends(void **state)
{
    (void)state;
    static rows_at nothing;
    make_base(&base);
    nothing.step = STEP;
    for (int empties = 0; empties < 2; empties++) {
        const char *dir = bel_test_own_folder();
        bel_hash128 digest, got;
        bel_ckpt_reader *reader;
        nothing.step = empties == 0 ? STEP : BASE - 5;
        const rows_at *from = empties == 0 ? &base : &nothing,
                      *to = empties == 0 ? &nothing : &base;
        BEL_ASSERT_OK(save(dir, from, NULL, (bel_hash128){0}, 2, NULL, &digest));
        BEL_ASSERT_OK(save(dir, to, from, digest, 2, NULL, &got));
        char *folder = bel_strf("%s/ckpt-%08d", dir, (int)to->step);
        BEL_ASSERT_OK(bel_ckpt_open(folder, &reader));
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        check_rows(reader, to);
        bel_ckpt_close(reader);
        bel_free(folder);
    }
}

// --- Faults --------------------------------------------------------------------------------------

static void remove_absent(part *p)
{
    p->removed[0] = key_of(p->shard) - 7 * p->shards; // before the first key
}

static void remove_present(part *p)
{
    p->removed[0] = key_of(p->numbers[0]);
}

static void test_wrong_removals(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    void (*const spoils[])(part * p) = {remove_absent, remove_present};
    for (int i = 0; i < 2; i++) {
        bel_hash128 digest, got;
        bel_ckpt_reader *reader;
        make_base(&base);
        make_next(&base, STEP, &next);
        BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, 1, NULL, &digest));
        BEL_ASSERT_OK(save(dir, &next, &base, digest, 1, spoils[i], &got));
        BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
        maps m;
        BEL_ASSERT_FAILS(bel_ckpt_verify(reader), BEL_DATA_LOSS, "is removed, and its base has no");
        BEL_ASSERT_FAILS(maps_open(reader, &m), BEL_DATA_LOSS, "is removed, and its base has no");
        maps_close(&m);
        bel_ckpt_close(reader);
    }
}

static void test_missing_base(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    save_pair(dir, 2, &digest);
    char *from = bel_path_join(dir, "ckpt-00000010"), *to = bel_path_join(dir, "elsewhere");
    char *delta = bel_path_join(dir, "ckpt-00000025");
    BEL_ASSERT_OK(bel_file_rename(from, to));
    BEL_ASSERT_FAILS(bel_ckpt_open(delta, &reader), BEL_NOT_FOUND,
                     "ckpt-00000025 is a delta on the checkpoint of step 10, which is not whole");
    BEL_ASSERT_FAILS(bel_ckpt_open_any(delta, &reader), BEL_DATA_LOSS, "hint: keep, copy and move");
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(dir, &reader), BEL_DATA_LOSS, "ckpt-00000010");
    const bel_ckpt_best best = {.step = STEP, .metric = "loss", .evaluation = "eval"};
    BEL_ASSERT_OK(bel_ckpt_best_write(dir, &best));
    BEL_ASSERT_FAILS(bel_ckpt_open_best(dir, &reader), BEL_DATA_LOSS, "hint: keep, copy and move");
    BEL_ASSERT_OK(bel_file_rename(to, from));
    char *file = bel_path_join(from, "shard-00001-of-00002.safetensors");
    assert_int_equal(remove(file), 0);
    BEL_ASSERT_FAILS(bel_ckpt_open_any(delta, &reader), BEL_DATA_LOSS, file);
    bel_free(file);
    bel_free(from);
    bel_free(to);
    bel_free(delta);
}

// The base was saved again, by a run that differs, or with another number of shards.
static void test_replaced_base(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, other;
    bel_ckpt_reader *reader;
    save_pair(dir, 2, &digest);
    BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, 3, NULL, &other));
    char *delta = bel_path_join(dir, "ckpt-00000025");
    BEL_ASSERT_FAILS(bel_ckpt_open(delta, &reader), BEL_DATA_LOSS,
                     "expected as the delta 2 files, got 3");
    base.used[1]++;
    BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, 2, NULL, &other));
    BEL_ASSERT_FAILS(bel_ckpt_open(delta, &reader), BEL_DATA_LOSS, "it was replaced");
    bel_free(delta);
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader)); // a warning names the reason
    assert_int_equal(bel_ckpt_reader_info(reader)->step, BASE);
    bel_ckpt_close(reader);
}

// A save looks at its base before: another run's, a delta, and one without a file are no base.
static void test_check_full(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_ckpt_base full = {.step = BASE};
    save_pair(dir, 2, &full.digest);
    BEL_ASSERT_OK(bel_ckpt_check_full(dir, &full));
    bel_ckpt_base other = {.step = BASE, .digest = {.low = 1}};
    BEL_ASSERT_FAILS(bel_ckpt_check_full(dir, &other), BEL_DATA_LOSS, "it was replaced");
    char *file = bel_path_join(dir, "ckpt-00000010/shard-00001-of-00002.safetensors");
    BEL_ASSERT_OK(bel_file_write_atomic(file, "short", 5));
    BEL_ASSERT_FAILS(bel_ckpt_check_full(dir, &full), BEL_DATA_LOSS, "bytes, got 5");
    assert_int_equal(remove(file), 0);
    BEL_ASSERT_FAILS(bel_ckpt_check_full(dir, &full), BEL_NOT_FOUND, file);
    bel_free(file);
}

// A delta is no base.
static void test_chain(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, middle, last;
    bel_ckpt_reader *reader;
    save_pair(dir, 1, &digest);
    make_next(&base, STEP, &next);
    BEL_ASSERT_OK(save(dir, &next, &base, digest, 1, NULL, &middle));
    static rows_at third;
    third = next;
    third.step = STEP + 5;
    BEL_ASSERT_OK(save(dir, &third, &next, middle, 1, NULL, &last));
    char *folder = bel_path_join(dir, "ckpt-00000030");
    BEL_ASSERT_FAILS(bel_ckpt_open(folder, &reader), BEL_DATA_LOSS,
                     "expected a full checkpoint, got a delta");
    bel_free(folder);
}

// A shard that wrote all rows is refused, and nothing is visible.
static void test_mixed_shards(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    static part p;
    bel_ckpt_shard *written;
    bel_hash128 digest;
    char *folder;
    make_base(&base);
    bel_ckpt_rows rows = rows_of(&p, &base, NULL, 0, 1, false);
    bel_ckpt_info about = fixture_info(BASE);
    about.base = (bel_ckpt_base){.step = BASE - 1};
    BEL_ASSERT_OK(bel_ckpt_begin(dir, BASE, 2, 1, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, 0, 1, NULL, 0, &rows, 1, &written));
    BEL_ASSERT_FAILS(bel_ckpt_commit(dir, folder, &about, &written, 1, &digest), BEL_INTERNAL,
                     "shard 0 has written all rows, expected a delta");
    bel_ckpt_shard_destroy(written);
    bel_free(folder);
}

// --- Keeping, sharing, fetching ------------------------------------------------------------------

static void expect_steps(const char *dir, const char *expected)
{
    int64_t *steps;
    size_t count;
    bel_str text = {0};
    BEL_ASSERT_OK(bel_ckpt_list(dir, &steps, &count));
    for (size_t i = 0; i < count; i++)
        bel_str_printf(&text, "%s%lld", i > 0 ? " " : "", (long long)steps[i]);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
    bel_free(steps);
}

static void test_retention(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, other;
    save_pair(dir, 1, &digest);
    for (next.step = 30; next.step <= 40; next.step += 5) {
        BEL_ASSERT_OK(save(dir, &next, &base, digest, 1, NULL, &other));
        bel_ckpt_retain(dir, 2, 0, -1);
    }
    expect_steps(dir, "10 35 40"); // the base does not count
    BEL_ASSERT_OK(save(dir, &next, NULL, (bel_hash128){0}, 1, NULL, &other));
    bel_ckpt_retain(dir, 2, 0, -1);
    expect_steps(dir, "10 40 45");
    bel_ckpt_retain(dir, 1, 0, 40); // an evaluator holds a delta
    expect_steps(dir, "10 40 45");
    const bel_ckpt_best best = {.step = 40, .metric = "loss", .evaluation = "eval"};
    BEL_ASSERT_OK(bel_ckpt_best_write(dir, &best));
    bel_ckpt_retain(dir, 1, 0, -1);
    expect_steps(dir, "10 40 45");
    BEL_ASSERT_OK(bel_ckpt_best_forget(dir));
    bel_ckpt_retain(dir, 1, 0, -1);
    expect_steps(dir, "45");
}

// Writes a manifest over that of a step; returns the old one, of *size bytes.
static char *replace_manifest(const char *dir, int step, const char *text, size_t *size)
{
    char *path = bel_strf("%s/ckpt-%08d/manifest.json", dir, step), *before;
    BEL_ASSERT_OK(bel_file_read(path, &before, size));
    BEL_ASSERT_OK(bel_file_write_atomic(path, text, strlen(text)));
    bel_free(path);
    return before;
}

// A manifest that cannot be read keeps older full checkpoints, and stops no removal: only while
// there are deltas.
static void test_unreadable(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, other;
    size_t size;
    save_pair(dir, 1, &digest);
    for (next.step = 30; next.step <= 40; next.step += 5)
        BEL_ASSERT_OK(save(dir, &next, &base, digest, 1, NULL, &other));
    bel_free(replace_manifest(dir, 35, "torn", &size));
    bel_ckpt_retain(dir, 2, 0, 30);
    expect_steps(dir, "10 30 35 40");
    for (next.step = 45; next.step <= 55; next.step += 5)
        BEL_ASSERT_OK(save(dir, &next, NULL, (bel_hash128){0}, 1, NULL, &other));
    bel_ckpt_retain(dir, 4, 0, 35);
    expect_steps(dir, "10 35 40 45 50 55");
    bel_ckpt_retain(dir, 2, 0, 35); // 40, the last delta, is known to go
    expect_steps(dir, "10 35 50 55");
    bel_ckpt_retain(dir, 2, 0, 35);
    expect_steps(dir, "35 50 55");
}

// All that stay depend on one base: the full one before it stays, until there is a second one.
static void test_spare(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, other;
    bel_ckpt_bases bases = {0};
    size_t size;
    save_pair(dir, 1, &digest); // 10, and 25 on it
    static rows_at full;
    full = next;
    full.step = 30;
    BEL_ASSERT_OK(save(dir, &full, NULL, (bel_hash128){0}, 1, NULL, &digest));
    for (next.step = 35; next.step <= 45; next.step += 5) {
        BEL_ASSERT_OK(save(dir, &next, &full, digest, 1, NULL, &other));
        bel_ckpt_retain_but(dir, 2, 0, NULL, 0, &bases);
    }
    expect_steps(dir, "10 30 40 45");
    bel_free(replace_manifest(dir, 45, "torn", &size)); // it was read before
    bel_ckpt_retain_but(dir, 1, 0, NULL, 0, &bases);
    expect_steps(dir, "10 30 45");
    BEL_ASSERT_OK(save(dir, &next, NULL, (bel_hash128){0}, 1, NULL, &other));
    bel_ckpt_bases_note(&bases, 50, 0);
    bel_ckpt_retain_but(dir, 2, 0, NULL, 0, &bases);
    expect_steps(dir, "30 45 50");
    bel_ckpt_bases_deinit(&bases);
}

static void test_share(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    save_pair(dir, 2, &digest);
    char *from = bel_path_join(dir, "ckpt-00000025"), *to = bel_path_join(dir, "export");
    char *again = bel_path_join(dir, "again"), *old = bel_path_join(dir, "ckpt-00000010");
    BEL_ASSERT_OK(bel_ckpt_share_folder(from, to));
    BEL_ASSERT_OK(bel_dir_remove(old));
    BEL_ASSERT_OK(bel_ckpt_share_folder(to, again));
    BEL_ASSERT_OK(bel_dir_remove(to));
    BEL_ASSERT_OK(bel_ckpt_open(again, &reader));
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    check_rows(reader, &next);
    bel_ckpt_close(reader);
    bel_free(from);
    bel_free(to);
    bel_free(again);
    bel_free(old);
}

static void test_relative_paths(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{"ckpt-00000025", "./ckpt-00000010"},
                                           {"a/ckpt-00000025/", "a/ckpt-00000010"},
                                           {"/ckpt-00000025", "/ckpt-00000010"},
                                           {"a/..", "a/../../ckpt-00000010"},
                                           {".", "./../ckpt-00000010"}};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char *path = bel_ckpt_base_path(paths[i][0], BASE);
        assert_string_equal(path, paths[i][1]);
        bel_free(path);
    }
}

// A host's folder keeps the base that the kept checkpoint before the loaded one needs.
static void test_remove_others(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest, other;
    save_pair(dir, 2, &digest);
    next.step = STEP + 5;
    BEL_ASSERT_OK(save(dir, &next, &base, digest, 2, NULL, &other));
    bel_ckpt_remove_others(dir, STEP + 5, BASE);
    expect_steps(dir, "10 25 30");
    BEL_ASSERT_OK(save(dir, &next, NULL, (bel_hash128){0}, 2, NULL, &other)); // now it is full
    bel_ckpt_remove_others(dir, STEP + 5, 0);
    expect_steps(dir, "10 25 30");
    next.step = STEP + 10;
    BEL_ASSERT_OK(save(dir, &next, NULL, (bel_hash128){0}, 2, NULL, &other));
    bel_ckpt_remove_others(dir, STEP + 10, 0);
    expect_steps(dir, "30 35");
}

static void list_needed(const char *dir, char *out_text, size_t size)
{
    bel_ckpt_file *files;
    int count;
    int64_t base_step;
    BEL_ASSERT_OK(
        bel_ckpt_files_needed(dir, STEP, &(const int){1}, 1, 2, &files, &count, &base_step));
    assert_int_equal(base_step, BASE);
    out_text[0] = '\0';
    for (int i = 0; i < count; i++) {
        size_t length = strlen(out_text);
        snprintf(out_text + length, size - length, "%lld:%.8s%s ", (long long)files[i].step,
                 files[i].name, files[i].whole ? "+" : "");
    }
    bel_ckpt_files_free(files, count);
}

static void test_files_needed(void **state)
{
    (void)state;
    const char *dir = bel_test_own_folder();
    bel_hash128 digest;
    char text[200];
    save_pair(dir, 2, &digest);
    list_needed(dir, text, sizeof text);
    assert_string_equal(text, "10:shard-00+ 25:shard-00+ ");
    char *file = bel_path_join(dir, "ckpt-00000010/shard-00001-of-00002.safetensors");
    assert_int_equal(remove(file), 0);
    list_needed(dir, text, sizeof text);
    assert_string_equal(text, "10:shard-00 25:shard-00+ ");
    bel_free(file);
    base.used[1]++; // another run's
    BEL_ASSERT_OK(save(dir, &base, NULL, (bel_hash128){0}, 2, NULL, &digest));
    list_needed(dir, text, sizeof text);
    assert_string_equal(text, "10:manifest ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),           BEL_TEST_IN_FOLDER(test_named_as_ages),
        BEL_TEST_IN_FOLDER(test_ends),          BEL_TEST_IN_FOLDER(test_wrong_removals),
        BEL_TEST_IN_FOLDER(test_missing_base),  BEL_TEST_IN_FOLDER(test_replaced_base),
        BEL_TEST_IN_FOLDER(test_check_full),    BEL_TEST_IN_FOLDER(test_chain),
        BEL_TEST_IN_FOLDER(test_mixed_shards),  BEL_TEST_IN_FOLDER(test_retention),
        BEL_TEST_IN_FOLDER(test_unreadable),    BEL_TEST_IN_FOLDER(test_spare),
        BEL_TEST_IN_FOLDER(test_share),         cmocka_unit_test(test_relative_paths),
        BEL_TEST_IN_FOLDER(test_remove_others), BEL_TEST_IN_FOLDER(test_files_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
