// A shard's report as bytes: a checkpoint committed from unpacked reports has the same digest.
// Bytes that are not a report are refused.
#include "base/alloc.h"
#include "base/rng.h"
#include "checkpoint/table.h"
#include "support/bel_test.h"

enum { ELEMENTS = BEL_GRAIN * 2 + 5 };

static bel_status *read_rows(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        out_keys[i] = first + i;
        if (column != BEL_CKPT_KEYS) out_floats[i] = (float)(column + i);
    }
    return NULL;
}

static bel_ckpt_shard *sample(const char *folder)
{
    static float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)i;
    const bel_ckpt_piece pieces[] = {
        {"kernel", BEL_DTYPE_F32, BEL_SHAPE(ELEMENTS), 0, ELEMENTS, values},
        {"kernel/adam/m", BEL_DTYPE_F32, BEL_SHAPE(ELEMENTS), 0, ELEMENTS, values},
        {"scalar", BEL_DTYPE_F32, {.rank = 0}, 0, 1, values}};
    bel_ckpt_shard *shard;
    static const char *const columns[] = {"values", "adagrad/accumulator"};
    const bel_ckpt_rows table = {
        .table = {"deep", 1, 2, columns}, .row_count = 5, .read = read_rows};
    BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, 0, 1, pieces, 3, &table, 1, &shard));
    return shard;
}

static void test_round_trip(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    bel_ckpt_shard *shard = sample(folder), *copy;
    size_t count;
    uint8_t *bytes = bel_ckpt_shard_pack(shard, &count);
    BEL_ASSERT_OK(bel_ckpt_shard_unpack(bytes, count, &copy));
    bel_hash128 a = bel_ckpt_digest(&shard, 1), b = bel_ckpt_digest(&copy, 1);
    assert_memory_equal(&a, &b, sizeof a);
    size_t again;
    uint8_t *second = bel_ckpt_shard_pack(copy, &again);
    assert_int_equal(again, count);
    assert_memory_equal(second, bytes, count);
    bel_free(bytes);
    bel_free(second);
    bel_ckpt_shard_destroy(shard);
    bel_ckpt_shard_destroy(copy);
    bel_test_remove_folder(folder);
}

static void test_damaged(void **state)
{
    (void)state;
    enum { FLIPS = 5000 };
    char *folder = bel_test_folder();
    bel_ckpt_shard *shard = sample(folder), *copy;
    size_t count;
    uint8_t *bytes = bel_ckpt_shard_pack(shard, &count);
    for (size_t cut = 0; cut < count; cut++) {
        BEL_ASSERT_FAILS(bel_ckpt_shard_unpack(bytes, cut, &copy), BEL_INVALID_ARGUMENT,
                         "malformed");
    }
    int taken = 0;
    for (uint64_t i = 0; i < FLIPS; i++) {
        uint32_t words[4];
        bel_rng_block((bel_rng_key){{7, 8}}, 0, i, words);
        uint8_t *byte = &bytes[words[0] % count], was = *byte;
        *byte ^= (uint8_t)(1 + words[1] % 255);
        bel_status *status = bel_ckpt_shard_unpack(bytes, count, &copy);
        if (status == NULL) { // accepted bytes pack to the same bytes again
            size_t again;
            uint8_t *second = bel_ckpt_shard_pack(copy, &again);
            assert_int_equal(again, count);
            assert_memory_equal(second, bytes, count);
            bel_free(second);
            bel_ckpt_shard_destroy(copy);
            taken++;
        } else {
            assert_int_equal(bel_status_code(status), BEL_INVALID_ARGUMENT);
        }
        bel_status_destroy(status);
        *byte = was;
    }
    assert_true(taken > FLIPS / 10 && taken < FLIPS); // any names and hashes are accepted
    bel_free(bytes);
    bel_ckpt_shard_destroy(shard);
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
