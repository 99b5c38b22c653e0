// Stages whose order has no formula: the sliding buffer, and buckets by length. Compared with naive
// readers, over epochs, in any order of blocks. Errors for wrong places in the pipeline.
#include "base/rng.h"
#include "unit/input/test_fixture.h"

enum { ROOM = 256 };

static bel_dataset *batched(bel_dataset *dataset, int64_t size)
{
    bel_dataset_batch(dataset, size);
    return dataset;
}

// --- shuffle_sliding -----------------------------------------------------------------------------

// Checks that each epoch has each record once, none earlier than the buffer allows.
static void assert_slides(const int64_t *ids, int64_t count, int64_t buffer)
{
    bool seen[ROOM] = {false};
    for (int64_t place = 0; place < count; place++) {
        assert_in_range(ids[place], 0, count - 1);
        assert_false(seen[ids[place]]);
        seen[ids[place]] = true;
        assert_true(ids[place] - (buffer - 1) <= place);
    }
}

static void test_slides(void **state)
{
    (void)state;
    static const int64_t buffers[] = {1, 2, 7, 60, 1000};
    int64_t memory[60], ids[ROOM];
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++) {
        bel_dataset *dataset = numbered(memory, 60);
        bel_dataset_shuffle_sliding(dataset, buffers[b], 3);
        bel_dataset_repeat(dataset, 3);
        assert_int_equal(read_all_ids(batched(dataset, 7), ids, ROOM), 180);
        for (int epoch = 0; epoch < 3; epoch++)
            assert_slides(ids + 60 * epoch, 60, buffers[b]);
        if (buffers[b] == 1) {
            assert_memory_equal(ids, memory, sizeof memory);
        } else {
            assert_memory_not_equal(ids, ids + 60, sizeof memory);
            assert_memory_not_equal(ids + 60, ids + 120, sizeof memory);
        }
    }
}

// A buffer that holds all records makes all orders equally likely: each record is first about
// equally often.
static void test_a_large_buffer_is_fair(void **state)
{
    (void)state;
    enum { COUNT = 8, EPOCHS = 4000 };
    int64_t memory[COUNT], *ids = bel_xcalloc(COUNT * EPOCHS, sizeof *ids);
    int first[COUNT] = {0}, last[COUNT] = {0};
    bel_dataset *dataset = numbered(memory, COUNT);
    bel_dataset_shuffle_sliding(dataset, COUNT, 1);
    bel_dataset_repeat(dataset, EPOCHS);
    assert_int_equal(read_all_ids(batched(dataset, 8000), ids, COUNT * EPOCHS), COUNT * EPOCHS);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        first[ids[epoch * COUNT]]++;
        last[ids[epoch * COUNT + COUNT - 1]]++;
    }
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(first[i], 400, 600); // 500 expected, sigma 21
        assert_in_range(last[i], 400, 600);
    }
    bel_free(ids);
}

static void test_two_slides_of_one_seed_differ(void **state)
{
    (void)state;
    int64_t memory[50], once[ROOM], twice[ROOM], applied_twice[50];
    for (int slides = 1; slides <= 2; slides++) {
        bel_dataset *dataset = numbered(memory, 50);
        bel_dataset_shuffle_sliding(dataset, 50, 4);
        if (slides == 2) bel_dataset_shuffle_sliding(dataset, 50, 4);
        read_all_ids(batched(dataset, 50), slides == 1 ? once : twice, ROOM);
    }
    for (int i = 0; i < 50; i++)
        applied_twice[i] = once[once[i]];
    assert_memory_not_equal(applied_twice, twice, sizeof applied_twice);
}

// Stages before and after it keep their meaning.
static void test_slides_among_others(void **state)
{
    (void)state;
    int64_t memory[40], ids[ROOM], whole[ROOM];
    bel_dataset *dataset = numbered(memory, 40);
    bel_dataset_skip(dataset, 10);
    bel_dataset_shuffle_sliding(dataset, 5, 2);
    assert_int_equal(read_all_ids(batched(dataset, 9), whole, ROOM), 30);
    dataset = numbered(memory, 40);
    bel_dataset_skip(dataset, 10);
    bel_dataset_shuffle_sliding(dataset, 5, 2);
    bel_dataset_shard(dataset, 3, 1);
    assert_int_equal(read_all_ids(batched(dataset, 4), ids, ROOM), 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(ids[i], whole[3 * i + 1]);
}

// --- bucket_by_length ----------------------------------------------------------------------------

static int64_t length_of(int64_t id)
{
    return id * 37 % 50;
}

static int64_t ask_length(void *user, const bel_record *record)
{
    if (user != NULL) ++*(int *)user;
    return length_of(*(const int64_t *)bel_record_get(record, "id")->data);
}

static const int64_t boundaries[] = {10, 20, 40};
enum { BUCKETS = 4 };

static int bucket_of(int64_t id)
{
    int bucket = 0;
    while (bucket < BUCKETS - 1 && length_of(id) >= boundaries[bucket])
        bucket++;
    return bucket;
}

// Fills buckets of `size` from `order`, as a naive reader does; returns the blocks of one epoch.
static int64_t fill_naively(const int64_t *order, int64_t count, int64_t size, int64_t *ids,
                            int64_t *counts)
{
    int64_t held[BUCKETS][ROOM], held_count[BUCKETS] = {0}, blocks = 0, out = 0;
    for (int64_t i = 0; i < count + BUCKETS; i++) {
        int b = i < count ? bucket_of(order[i]) : (int)(i - count);
        if (i < count) held[b][held_count[b]++] = order[i];
        if (held_count[b] == 0 || (i < count && held_count[b] < size)) continue;
        memcpy(ids + out, held[b], (size_t)held_count[b] * sizeof *ids);
        out += held_count[b];
        counts[blocks++] = held_count[b];
        held_count[b] = 0;
    }
    return blocks;
}

// Over two epochs, with and without a shuffle before, by rows, through maps and padded.
static void test_buckets(void **state)
{
    (void)state;
    enum { COUNT = 90, SIZE = 8 };
    int64_t memory[COUNT], order[ROOM], ids[2 * ROOM], counts[2 * ROOM];
    for (int shuffled = 0; shuffled <= 1; shuffled++) {
        bel_dataset *plain = numbered(memory, COUNT);
        if (shuffled) bel_dataset_shuffle(plain, 0, 6);
        bel_dataset_repeat(plain, 2);
        assert_int_equal(read_all_ids(batched(plain, 50), order, ROOM), 2 * COUNT);
        int64_t blocks = fill_naively(order, COUNT, SIZE, ids, counts);
        int64_t all =
            blocks + fill_naively(order + COUNT, COUNT, SIZE, ids + COUNT, counts + blocks);

        int asked = 0;
        bel_dataset *dataset = numbered(memory, COUNT);
        if (shuffled) bel_dataset_shuffle(dataset, 0, 6);
        bel_dataset_bucket_by_length(dataset, ask_length, &asked, boundaries, BUCKETS - 1);
        bel_dataset_repeat(dataset, 2);
        if (shuffled) {
            bel_dataset_padded_batch(dataset, SIZE, NULL, 0);
        } else {
            bel_dataset_batch(dataset, SIZE);
        }
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        assert_int_equal(asked, COUNT);
        assert_int_equal(bel_input_block_count(input, true), all);
        assert_int_equal(bel_input_block_count(input, false), all);
        bel_batch *batch = bel_batch_create(input);
        int64_t got[SIZE], place = 0, end = 2 * COUNT;
        for (int64_t block = 0; block < all; block++) {
            assert_int_equal(read_ids(input, batch, block, got), counts[block]);
            assert_memory_equal(got, ids + place, (size_t)counts[block] * sizeof *got);
            for (int64_t i = 1; i < counts[block]; i++)
                assert_int_equal(bucket_of(got[i]), bucket_of(got[0]));
            place += counts[block];
        }
        for (int64_t block = all; block-- > 0;) { // and backwards, over the end of an epoch
            end -= read_ids(input, batch, block, got);
            assert_memory_equal(got, ids + end, (size_t)counts[block] * sizeof *got);
        }
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
}

static uint64_t fingerprint_with(int64_t *memory, const int64_t *limits, int count)
{
    bel_dataset *dataset = numbered(memory, 20);
    bel_dataset_bucket_by_length(dataset, ask_length, NULL, limits, count);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 4), &input));
    uint64_t fingerprint = bel_input_fingerprint(input);
    bel_input_destroy(input);
    return fingerprint;
}

static void test_fingerprints(void **state)
{
    (void)state;
    int64_t memory[20];
    uint64_t first = fingerprint_with(memory, boundaries, 3);
    assert_int_equal(fingerprint_with(memory, boundaries, 3), first);
    assert_int_not_equal(fingerprint_with(memory, boundaries, 2), first);
    assert_int_not_equal(fingerprint_with(memory, (int64_t[]){10, 20, 41}, 3), first);
}

// --- Places --------------------------------------------------------------------------------------

#define FAILS(dataset, part)                                                                       \
    BEL_ASSERT_FAILS(open_failing(batched(dataset, 2)), BEL_INVALID_ARGUMENT, part)

static bel_dataset *bucketed(bel_dataset *dataset)
{
    bel_dataset_bucket_by_length(dataset, ask_length, NULL, boundaries, 3);
    return dataset;
}

static void test_where_they_cannot_stand(void **state)
{
    (void)state;
    int64_t memory[9];
    bel_dataset *dataset = numbered(memory, 9);
    bel_dataset_shuffle_sliding(dataset, 0, 1);
    FAILS(dataset, "shuffle_sliding: expected a count of at least 1, got 0");
    dataset = numbered(memory, 9);
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    bel_dataset_shuffle_sliding(dataset, 3, 1);
    FAILS(dataset, "shuffle_sliding: cannot order a stream that has no end");
    dataset = numbered(memory, 9);
    bel_dataset_repeat(dataset, BEL_REPEAT_FOREVER);
    FAILS(bucketed(dataset), "bucket_by_length: cannot order a stream that has no end");
    dataset = numbered(memory, 9);
    bel_dataset_bucket_by_length(dataset, NULL, NULL, boundaries, 3);
    FAILS(dataset, "expected a function");
    dataset = numbered(memory, 9);
    bel_dataset_bucket_by_length(dataset, ask_length, NULL, boundaries, 0);
    FAILS(dataset, "expected 1..65534 boundaries, got 0");
    dataset = numbered(memory, 9);
    bel_dataset_bucket_by_length(dataset, ask_length, NULL, (int64_t[]){3, 3}, 2);
    FAILS(dataset, "boundaries that rise, got 3 after 3");
    FAILS(bucketed(bucketed(numbered(memory, 9))), "expected one bucket_by_length, got two");
    dataset = bucketed(numbered(memory, 9));
    bel_dataset_take(dataset, 3);
    FAILS(dataset, "expected take before bucket_by_length");
    dataset = numbered(memory, 9);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_take(dataset, 3);
    FAILS(bucketed(dataset), "expected shard, take and skip before shuffle");
    dataset = numbered(memory, 9);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_enumerate(dataset, "place", 0);
    FAILS(bucketed(dataset), "expected no shuffle, sample or repeat in a dataset inside");
    dataset = bucketed(numbered(memory, 9));
    FAILS(bel_dataset_concatenate(&dataset, 1), "dataset 0 has a bucket_by_length");
    dataset = bucketed(numbered(memory, 9));
    bel_dataset_enumerate(dataset, "place", 0);
    FAILS(dataset, "expected it in the dataset that is batched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slides),
        cmocka_unit_test(test_a_large_buffer_is_fair),
        cmocka_unit_test(test_two_slides_of_one_seed_differ),
        cmocka_unit_test(test_slides_among_others),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_fingerprints),
        cmocka_unit_test(test_where_they_cannot_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
