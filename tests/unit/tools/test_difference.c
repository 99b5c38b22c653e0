// Differences of two checkpoints for belfry bisect: one bit of one slot, values that are not
// finite, other types and shapes, rows of tables on other shards, settings.
#include "inspect/difference.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/table.h"
#include "unit/checkpoint/test_fixture.h"

static bel_ckpt_reader *open_newest(const char *folder)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_any(folder, &reader));
    return reader;
}

// Compares the newest checkpoints of two folders; free the result.
static bel_differences differences_of(const char *folder_a, const char *folder_b)
{
    bel_differences all;
    bel_ckpt_reader *a = open_newest(folder_a), *b = open_newest(folder_b);
    BEL_ASSERT_OK(bel_differences_find(a, b, &all));
    bel_ckpt_close(a);
    bel_ckpt_close(b);
    return all;
}

// --- Tensors -------------------------------------------------------------------------------------

static bel_differences differences_of_models(const model *a, const model *b)
{
    bel_hash128 digest;
    char *folder_a = bel_test_folder(), *folder_b = bel_test_folder();
    BEL_ASSERT_OK(model_save(a, folder_a, 5, 1, &digest));
    BEL_ASSERT_OK(model_save(b, folder_b, 5, 3, &digest));
    bel_differences all = differences_of(folder_a, folder_b);
    bel_test_remove_folder(folder_a);
    bel_test_remove_folder(folder_b);
    return all;
}

static void set_f32(model *changed, int tensor, int64_t element, float value)
{
    ((float *)changed->tensor[tensor].data)[element] = value;
}

static void test_one_bit_of_a_slot(void **state)
{
    (void)state;
    model a, b;
    model_init(&a, 1);
    model_init(&b, 1);
    bel_differences all = differences_of_models(&a, &b);
    assert_int_equal(all.count, 0);
    assert_int_equal(all.equal, TENSOR_COUNT);
    bel_differences_free(&all);
    set_f32(&a, 1, 9999, 1);
    set_f32(&b, 1, 9999, nextafterf(1, 2));
    all = differences_of_models(&a, &b);
    assert_int_equal(all.count, 1);
    assert_int_equal(all.equal, TENSOR_COUNT - 1);
    const bel_difference *d = &all.items[0];
    assert_string_equal(d->name, "a/kernel/adam/m");
    assert_null(d->other);
    assert_false(d->is_table);
    assert_int_equal(d->values.count, 15000);
    assert_int_equal(d->values.different, 1);
    assert_int_equal(d->values.first, 9999);
    assert_int_equal(d->values.ulps, 1);
    assert_true(d->values.apart == 0x1p-23);
    assert_int_equal(d->values.not_finite, 0);
    assert_string_equal(d->values.a, "1");
    assert_string_equal(d->values.b, "1.00000012");
    bel_differences_free(&all);
    model_deinit(&a);
    model_deinit(&b);
}

static void test_kinds_of_numbers(void **state)
{
    (void)state;
    model a, b;
    model_init(&a, 1);
    model_init(&b, 1);
    static const float from[] = {0, -1e-45f, NAN, 3, INFINITY}, to[] = {-0.0f, 1e-45f, 2, 3, 1};
    for (int i = 0; i < 5; i++) {
        set_f32(&a, 0, 4094 + i, from[i]);
        set_f32(&b, 0, 4094 + i, to[i]);
    }
    ((double *)a.tensor[2].data)[6] = 1;
    ((double *)b.tensor[2].data)[6] = -1;
    *(int64_t *)a.tensor[3].data = INT64_C(9007199254740993);
    *(int64_t *)b.tensor[3].data = INT64_C(9007199254740992);
    memset(a.tensor[4].data, 0, 4097);
    memset(b.tensor[4].data, 0, 4097);
    ((uint8_t *)b.tensor[4].data)[4096] = 1;
    bel_differences all = differences_of_models(&a, &b);
    assert_int_equal(all.count, 4);
    const bel_value_difference *floats = &all.items[0].values, *doubles = &all.items[1].values;
    assert_int_equal(floats->different, 4); // zeros have other bits
    assert_int_equal(floats->first, 4094);
    assert_string_equal(floats->b, "-0");
    assert_int_equal(floats->ulps, 2); // the least numbers on both sides of zero
    assert_int_equal(floats->not_finite, 2);
    assert_int_equal(doubles->first, 6);
    assert_true(doubles->apart == 2);
    assert_true(doubles->ulps == 2 * UINT64_C(0x3ff0000000000000));
    assert_string_equal(all.items[2].values.a, "9007199254740993"); // more than a double has
    assert_string_equal(all.items[2].values.b, "9007199254740992");
    assert_false(all.items[2].values.floats);
    assert_true(all.items[2].values.ulps == 1); // exact, also where doubles are equal
    assert_int_equal(all.items[3].values.first, 4096);
    assert_string_equal(all.items[3].values.b, "1");
    bel_differences_free(&all);
    model_deinit(&a);
    model_deinit(&b);
}

// Saves a checkpoint from some pieces and a table (NULL: none), on as many shards as given.
static void save(const char *folder, const bel_ckpt_piece *pieces, int count,
                 const bel_ckpt_rows *tables, int shards, const bel_ckpt_info *info)
{
    bel_ckpt_shard *written[MAX_SHARDS] = {NULL};
    bel_hash128 digest;
    char *path = NULL;
    BEL_ASSERT_OK(bel_ckpt_begin(folder, info->step, 2, 1, &path));
    for (int s = 0; s < shards; s++)
        BEL_ASSERT_OK(bel_ckpt_write_shard_tables(path, s, shards, pieces, s == 0 ? count : 0,
                                                  tables != NULL ? &tables[s] : NULL,
                                                  tables != NULL, &written[s]));
    BEL_ASSERT_OK(bel_ckpt_commit(folder, path, info, written, shards, &digest));
    for (int s = 0; s < shards; s++)
        bel_ckpt_shard_destroy(written[s]);
    bel_free(path);
}

static void test_other_tensors(void **state)
{
    (void)state;
    static const float zeros[6] = {0};
    const bel_ckpt_piece first[] = {{"bias", BEL_DTYPE_F32, BEL_SHAPE(3), 0, 3, zeros},
                                    {"kernel", BEL_DTYPE_F32, BEL_SHAPE(2, 3), 0, 6, zeros},
                                    {"old", BEL_DTYPE_F32, BEL_SHAPE(1), 0, 1, zeros}};
    const bel_ckpt_piece second[] = {{"bias", BEL_DTYPE_I32, BEL_SHAPE(3), 0, 3, zeros},
                                     {"kernel", BEL_DTYPE_F32, BEL_SHAPE(3, 2), 0, 6, zeros},
                                     {"new", BEL_DTYPE_F32, BEL_SHAPE(1), 0, 1, zeros}};
    bel_ckpt_info info = fixture_info(5);
    char *a = bel_test_folder(), *b = bel_test_folder();
    save(a, first, 3, NULL, 1, &info);
    save(b, second, 3, NULL, 1, &info);
    bel_differences all = differences_of(a, b);
    assert_int_equal(all.count, 4);
    assert_string_equal(all.items[0].other, "is f32 [3] and i32 [3]");
    assert_string_equal(all.items[1].other, "is f32 [2, 3] and f32 [3, 2]");
    assert_string_equal(all.items[1].kind_b, "f32 [3, 2]");
    assert_string_equal(all.items[2].name, "new"); // in the order of names
    assert_non_null(strstr(all.items[2].other, a));
    assert_string_equal(all.items[2].only_in, "b");
    assert_string_equal(all.items[3].name, "old");
    assert_non_null(strstr(all.items[3].other, "is not in "));
    assert_non_null(strstr(all.items[3].other, b));
    assert_string_equal(all.items[3].only_in, "a");
    bel_differences_free(&all);
    bel_test_remove_folder(a);
    bel_test_remove_folder(b);
}

// Zeros with other signs have no distance, and doubles may be farther apart than any double.
static void test_distances(void **state)
{
    (void)state;
    model a, b;
    model_init(&a, 1);
    model_init(&b, 1);
    set_f32(&a, 0, 7, 0);
    set_f32(&b, 0, 7, -0.0f);
    ((double *)a.tensor[2].data)[0] = 1e308;
    ((double *)b.tensor[2].data)[0] = -1e308;
    bel_differences all = differences_of_models(&a, &b);
    assert_int_equal(all.count, 2);
    assert_true(all.items[0].values.finite);
    assert_true(all.items[0].values.ulps == 0);
    assert_true(isinf(all.items[1].values.apart));
    bel_differences_free(&all);
    set_f32(&b, 0, 7, NAN);
    all = differences_of_models(&a, &b);
    assert_false(all.items[0].values.finite);
    assert_int_equal(all.items[0].values.not_finite, 1);
    bel_differences_free(&all);
    model_deinit(&a);
    model_deinit(&b);
}

// --- Tables --------------------------------------------------------------------------------------

enum { WIDTH = 2, COLUMNS = 2, MAX_ROWS = 8 };

static const char *const columns[COLUMNS] = {"values", "adagrad/accumulator"};

typedef struct part {
    int count;
    int64_t keys[MAX_ROWS];
    int64_t changed; // key of the row with another number
} part;

static bel_status *read_part(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    const part *p = context;
    for (int64_t i = 0; i < n; i++) {
        int64_t key = out_keys[i] = p->keys[first + i];
        for (int j = 0; out_floats != NULL && j < WIDTH; j++)
            out_floats[i * WIDTH + j] = (float)(key + column);
        if (column == 1 && key == p->changed) out_floats[i * WIDTH + 1] += 0.5f;
    }
    return NULL;
}

static bel_ckpt_rows rows_of(part *p, int width)
{
    return (bel_ckpt_rows){.table = {"deep", width, COLUMNS, columns},
                           .row_count = p->count,
                           .read = read_part,
                           .context = p};
}

static void test_tables(void **state)
{
    (void)state;
    part even = {3, {-6, 2, 8}, -1}, odd = {2, {3, 5}, -1}, one = {5, {-6, 2, 4, 5, 9}, 5};
    const bel_ckpt_rows two[] = {rows_of(&even, WIDTH), rows_of(&odd, WIDTH)};
    const bel_ckpt_rows single = rows_of(&one, WIDTH);
    bel_ckpt_info info = fixture_info(5);
    char *a = bel_test_folder(), *b = bel_test_folder();
    save(a, NULL, 0, two, 2, &info);
    save(b, NULL, 0, &single, 1, &info);
    bel_differences all = differences_of(a, b);
    assert_int_equal(all.count, 3);
    assert_non_null(strstr(all.items[0].other, "has 2 rows only in "));
    assert_non_null(strstr(all.items[0].other, "the first with key 3"));
    assert_non_null(strstr(all.items[1].other, "has 2 rows only in "));
    assert_non_null(strstr(all.items[1].other, "the first with key 4"));
    assert_string_equal(all.items[1].only_in, "b");
    assert_int_equal(all.items[1].lone_rows, 2);
    assert_int_equal(all.items[1].first_lone, 4);
    const bel_difference *d = &all.items[2];
    assert_true(d->is_table);
    assert_string_equal(d->name, "deep");
    assert_string_equal(d->column, "adagrad/accumulator");
    assert_int_equal(d->values.count, 3); // keys -6, 2 and 5
    assert_int_equal(d->values.different, 1);
    assert_int_equal(d->values.first, 5);
    assert_int_equal(d->values.first_element, 1);
    assert_string_equal(d->values.a, "6");
    assert_string_equal(d->values.b, "6.5");
    bel_differences_free(&all);
    all = differences_of(a, a);
    assert_int_equal(all.count, 0);
    assert_int_equal(all.equal, 1);
    bel_differences_free(&all);
    bel_test_remove_folder(a);
    bel_test_remove_folder(b);
}

static void test_other_tables(void **state)
{
    (void)state;
    part some = {1, {7}, -1};
    bel_ckpt_rows wide = rows_of(&some, WIDTH), renamed = wide;
    static const char *const others[] = {"values"};
    renamed.table = (bel_ckpt_table){"deep", WIDTH, 1, others};
    bel_ckpt_info info = fixture_info(5);
    char *a = bel_test_folder(), *b = bel_test_folder(), *none = bel_test_folder();
    save(a, NULL, 0, &wide, 1, &info);
    save(b, NULL, 0, &renamed, 1, &info);
    save(none, NULL, 0, NULL, 1, &info);
    bel_differences all = differences_of(a, b);
    assert_int_equal(all.count, 1);
    assert_string_equal(
        all.items[0].other,
        "has rows of 2 with values, adagrad/accumulator, and rows of 2 with values");
    bel_differences_free(&all);
    all = differences_of(none, b);
    assert_int_equal(all.count, 1);
    assert_non_null(strstr(all.items[0].other, "is not in "));
    bel_differences_free(&all);
    bel_test_remove_folder(a);
    bel_test_remove_folder(b);
    bel_test_remove_folder(none);
}

// --- Settings ------------------------------------------------------------------------------------

static void test_settings(void **state)
{
    (void)state;
    static const char *const names[] = {"learning_rate", "num_epochs", "param.learning_rate",
                                        "param.depth",   "only_a",     "param.num_epochs"};
    static const char *const names_b[] = {"learning_rate", "num_epochs", "param.learning_rate",
                                          "param.depth",   "only_b",     "param.num_epochs"};
    static const char *const values[] = {"0.1", "1", "0.1", "2", "x", "1"};
    static const char *const values_b[] = {"0.2", "2", "0.2", "3", "y", "2"};
    static const bel_input_segment segments[] = {{.replica_count = 2, .batch_size = 8},
                                                 {3, 6, 4, 8, 0}}; // the next records
    static const bel_input_segment small[] = {
        {.replica_count = 2, .batch_size = 8}, {2, 8, 2, 4, 0}, {3, 10, 2, 8, 4}}; // omits records
    bel_ckpt_info info = fixture_info(5);
    info.segments = segments;
    info.setting_names = names;
    info.setting_values = values;
    info.setting_count = 6;
    char *folder_a = bel_test_folder(), *folder_b = bel_test_folder();
    save(folder_a, NULL, 0, NULL, 1, &info);
    info.segments = small;
    info.segment_count = 3;
    info.setting_names = names_b;
    info.setting_values = values_b;
    save(folder_b, NULL, 0, NULL, 1, &info);
    bel_ckpt_reader *a = open_newest(folder_a), *b = open_newest(folder_b);
    bel_str list = {0};
    bel_differences_settings(a, b, &list);
    assert_string_equal(list.text,
                        "learning_rate was 0.1 and is 0.2; param.depth was 2 and is 3; "
                        "only_a was x and is not set; param.num_epochs was 1 and is 2; "
                        "only_b was not set and is y; "
                        "replicas × batch was 2 × 8 from step 0, 4 × 8 from step 3 and is "
                        "2 × 8 from step 0, 2 × 4 from step 2, 2 × 8 from step 3 at record 84");
    bel_str_deinit(&list);
    bel_differences_settings(a, a, &list);
    assert_int_equal(list.length, 0);
    bel_ckpt_close(a);
    bel_ckpt_close(b);
    bel_test_remove_folder(folder_a);
    bel_test_remove_folder(folder_b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_bit_of_a_slot), cmocka_unit_test(test_kinds_of_numbers),
        cmocka_unit_test(test_other_tensors),     cmocka_unit_test(test_tables),
        cmocka_unit_test(test_other_tables),      cmocka_unit_test(test_settings),
        cmocka_unit_test(test_distances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
