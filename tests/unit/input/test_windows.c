// window and flat_map against naive readers: every size, shift and stride, in any order of blocks,
// before and after other stages.
#include "unit/input/test_fixture.h"

enum { ROOM = 256 };

static bel_dataset *batched(bel_dataset *dataset, int64_t size)
{
    bel_dataset_batch(dataset, size);
    return dataset;
}

// --- window --------------------------------------------------------------------------------------

// Windows of `count` records as a naive reader makes them; -1 where a window has no record.
static int64_t cut_naively(int64_t count, int64_t size, int64_t shift, int64_t stride, bool drop,
                           int64_t *out)
{
    int64_t windows = 0;
    for (int64_t start = 0; start < count; start += shift) {
        if (drop && start + (size - 1) * stride >= count) continue;
        for (int64_t i = 0; i < size; i++) {
            int64_t id = start + i * stride;
            out[windows * size + i] = id < count ? id : -1;
        }
        windows++;
    }
    return windows;
}

static void assert_windows(int64_t count, int64_t size, int64_t shift, int64_t stride, bool drop)
{
    int64_t memory[20], expected[20 * 8];
    int64_t windows = cut_naively(count, size, shift, stride, drop, expected);
    bel_dataset *dataset = numbered_from(memory, 0, count);
    bel_dataset_window(dataset, size, shift == size ? 0 : shift, stride, drop);
    if (drop) {
        bel_dataset_batch(dataset, 3);
    } else {
        bel_dataset_padded_batch(dataset, 3, &(bel_padded_shape){"id", {.rank = 1, .dims = {size}}},
                                 1);
    }
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    assert_int_equal(bel_input_epoch_records(input), windows);
    bel_batch *batch = bel_batch_create(input);
    for (int64_t block = bel_input_block_count(input, true); block-- > 0;) {
        BEL_ASSERT_OK(bel_input_read(input, block, batch));
        const int64_t *ids = batch->fields[0].data;
        for (int64_t i = 0; i < batch->example_count * size; i++) {
            int64_t id = expected[block * 3 * size + i];
            assert_int_equal(ids[i], id < 0 ? 0 : id); // padded with zeros
        }
    }
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_every_window(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 5, 20};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int64_t size = 1; size <= 6; size++)
            for (int64_t shift = 1; shift <= 7; shift += 2)
                for (int64_t stride = 1; stride <= 3; stride++)
                    for (int drop = 0; drop <= 1; drop++)
                        assert_windows(counts[c], size, shift, stride, drop);
}

// Windows over a shuffled and repeated stream, and shuffled windows.
static void test_windows_among_others(void **state)
{
    (void)state;
    int64_t memory[7], stream[ROOM], ids[ROOM];
    for (int behind = 0; behind <= 1; behind++) {
        bel_dataset *plain = numbered(memory, 7);
        bel_dataset_shuffle(plain, 0, 5);
        bel_dataset_repeat(plain, 3);
        assert_int_equal(read_all_ids(batched(plain, 5), stream, ROOM), 21);
        bel_dataset *dataset = numbered(memory, 7);
        bel_dataset_shuffle(dataset, 0, 5);
        if (behind) bel_dataset_repeat(dataset, 3); // windows across epochs
        bel_dataset_window(dataset, 3, 0, 1, true);
        if (!behind) bel_dataset_repeat(dataset, 3); // 2 windows of 7 records
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(batched(dataset, 8), &input));
        bel_batch *batch = bel_batch_create(input);
        BEL_ASSERT_OK(bel_input_read(input, 0, batch));
        assert_int_equal(batch->example_count, behind ? 7 : 6);
        memcpy(ids, batch->fields[0].data, bel_tensor_bytes(&batch->fields[0]));
        for (int i = 0; i < batch->example_count * 3; i++)
            assert_int_equal(ids[i], behind ? stream[i] : stream[i / 6 * 7 + i % 6]);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
}

static bel_status *skip_five(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    *out_skip = *(const int64_t *)bel_record_get(record, "id")->data == 5;
    return NULL;
}

// Replaces "id" by a field with id + 1 elements.
static bel_status *grow(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t id = *(const int64_t *)bel_record_get(record, "id")->data;
    bel_record_add(record, "id", BEL_DTYPE_I64, &BEL_SHAPE(id + 1));
    return NULL;
}

static bel_status *add_text(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    bel_record_add(record, "name", BEL_DTYPE_STRING, &BEL_SHAPE(3));
    return NULL;
}

#define FAILS(dataset, code, part) BEL_ASSERT_FAILS(open_failing(batched(dataset, 2)), code, part)

static void test_windows_with_maps_inside(void **state)
{
    (void)state;
    int64_t memory[8];
    bel_dataset *dataset = numbered(memory, 8);
    bel_dataset_map(dataset, skip_five, NULL, NULL);
    bel_dataset_window(dataset, 2, 0, 1, true);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 4), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_int_equal(batch->example_count, 3); // 4 and 5 are left out together
    assert_memory_equal(batch->fields[0].data, ((int64_t[]){0, 1, 2, 3, 6, 7}), 48);
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    dataset = numbered(memory, 8);
    bel_dataset_map(dataset, grow, NULL, NULL);
    bel_dataset_window(dataset, 2, 0, 1, true);
    FAILS(dataset, BEL_DATA_LOSS, "record 1: field \"id\": expected i64 of shape [1], as in its");
    dataset = numbered(memory, 8);
    bel_dataset_map(dataset, add_text, NULL, NULL);
    bel_dataset_window(dataset, 2, 0, 1, true);
    FAILS(dataset, BEL_INVALID_ARGUMENT, "record 0: window: field \"name\" is text");
    dataset = numbered(memory, 8);
    bel_dataset_window(dataset, 0, 1, 1, true);
    FAILS(dataset, BEL_INVALID_ARGUMENT, "window: expected a size, shift and stride in 1..");
    dataset = numbered(memory, 8);
    bel_dataset_window(dataset, 2, 1, 1, false);
    FAILS(dataset, BEL_INVALID_ARGUMENT, "field \"id\" has another length in each record");
}

// --- flat_map ------------------------------------------------------------------------------------

// Record i becomes i mod 3 records 10 · i, 10 · i + 1 …
static int64_t count_parts(void *user, const bel_record *record)
{
    if (user != NULL) ++*(int *)user;
    return *(const int64_t *)bel_record_get(record, "id")->data % 3;
}

static bel_status *make_part(void *user, bel_record *record, int64_t part, bool *out_skip)
{
    (void)user;
    (void)out_skip;
    int64_t *id = bel_record_get(record, "id")->data;
    *id = 10 * *id + part;
    return NULL;
}

static bel_dataset *flat(int64_t *memory, int64_t count, int *asked)
{
    bel_dataset *dataset = numbered_from(memory, 0, count);
    bel_dataset_flat_map(dataset, count_parts, make_part, asked, NULL);
    return dataset;
}

static void test_flat_map(void **state)
{
    (void)state;
    int64_t memory[8];
    int asked = 0;
    ASSERT_IDS(batched(flat(memory, 8, &asked), 3), 10, 20, 21, 40, 50, 51, 70);
    assert_int_equal(asked, 8);
    bel_dataset *dataset = flat(memory, 8, NULL);
    bel_dataset_skip(dataset, 1);
    bel_dataset_take(dataset, 4);
    bel_dataset_repeat(dataset, 2);
    ASSERT_IDS(batched(dataset, 3), 20, 21, 40, 50, 20, 21, 40, 50);
    // Parts are records: flat_map splits them again, and shuffle moves each.
    dataset = flat(memory, 8, NULL);
    bel_dataset_flat_map(dataset, count_parts, make_part, NULL, NULL);
    ASSERT_IDS(batched(dataset, 2), 100, 200, 201, 400, 500, 501, 700); // 21 and 51 have no parts
}

static void test_shuffled_parts(void **state)
{
    (void)state;
    int64_t memory[90], ids[ROOM], together = 0;
    bool seen[1000] = {false};
    bel_dataset *dataset = flat(memory, 90, NULL);
    bel_dataset_shuffle(dataset, 0, 2);
    assert_int_equal(read_all_ids(batched(dataset, 7), ids, ROOM), 90);
    for (int i = 0; i < 90; i++) {
        assert_false(seen[ids[i]]);
        seen[ids[i]] = true;
        together += i > 0 && ids[i] / 10 == ids[i - 1] / 10;
    }
    assert_true(together < 10);
}

static int64_t count_below_zero(void *user, const bel_record *record)
{
    (void)user;
    return 2 - *(const int64_t *)bel_record_get(record, "id")->data;
}

static bel_status *refuse(void *user, bel_record *record, int64_t part, bool *out_skip)
{
    (void)user;
    (void)record;
    (void)out_skip;
    return BEL_ERR(BEL_DATA_LOSS, "no part %lld", (long long)part);
}

static void test_flat_map_errors(void **state)
{
    (void)state;
    int64_t memory[5];
    bel_dataset *dataset = numbered(memory, 5);
    bel_dataset_flat_map(dataset, NULL, make_part, NULL, NULL);
    FAILS(dataset, BEL_INVALID_ARGUMENT, "flat_map: expected two functions");
    dataset = numbered(memory, 5);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_flat_map(dataset, count_parts, make_part, NULL, NULL);
    FAILS(dataset, BEL_INVALID_ARGUMENT, "expected flat_map before shuffle and repeat");
    dataset = numbered(memory, 5);
    bel_dataset_flat_map(dataset, count_below_zero, make_part, NULL, NULL);
    FAILS(dataset, BEL_INVALID_ARGUMENT,
          "record 3: flat_map: expected a count of 0 or more, got -1");
    dataset = numbered(memory, 5);
    bel_dataset_flat_map(dataset, count_parts, refuse, NULL, NULL);
    FAILS(dataset, BEL_DATA_LOSS, "record 1: no part 0");
    dataset = numbered(memory, 5);
    bel_dataset_flat_map(dataset, count_parts, make_part, NULL, (const char *const[]){"x", NULL});
    FAILS(dataset, BEL_INVALID_ARGUMENT, "the drop list names \"x\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_window),
        cmocka_unit_test(test_windows_among_others),
        cmocka_unit_test(test_windows_with_maps_inside),
        cmocka_unit_test(test_flat_map),
        cmocka_unit_test(test_shuffled_parts),
        cmocka_unit_test(test_flat_map_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
