// label: threads
// Cache: it returns the records that the dataset made, from memory and from a file, to any number
// of readers. Limits, stale and damaged files.
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/linux_lock.h"
#include "base/str.h"
#include "base/thread.h"
#include "input/files/cache_file.h"
#include "unit/input/test_fixture.h"

enum { COUNT = 40, BATCH = 7 };

// Squares its id, counts calls, leaves out every fifth record, and adds fields of every kind.
static bel_status *expensive(void *user, bel_record *record, bool *out_skip)
{
    atomic_fetch_add((atomic_int *)user, 1);
    int64_t *id = bel_record_get(record, "id")->data;
    *out_skip = *id % 5 == 4;
    float *more = bel_record_add(record, "more", BEL_DTYPE_F32, &BEL_SHAPE(2, 3));
    for (int i = 0; i < 6; i++)
        more[i] = (float)(*id * 10 + i);
    bel_record_add(record, "none", BEL_DTYPE_U8, &BEL_SHAPE(0, 4));
    *id *= *id;
    return NULL;
}

static bel_dataset *cached(int64_t *memory, atomic_int *calls, const char *path, int64_t most_bytes)
{
    bel_dataset *dataset = numbered(memory, COUNT);
    bel_dataset_map(dataset, expensive, calls, NULL);
    bel_dataset_cache(dataset, path, most_bytes);
    bel_dataset_shuffle(dataset, 0, 4);
    bel_dataset_repeat(dataset, 3);
    bel_dataset_batch(dataset, BATCH);
    return dataset;
}

static void assert_same_stream(const bel_input *a, const bel_input *b)
{
    bel_batch *of_a = bel_batch_create(a), *of_b = bel_batch_create(b);
    int64_t blocks = bel_input_block_count(a, true);
    assert_int_equal(bel_input_block_count(b, true), blocks);
    for (int64_t block = 0; block < blocks; block++) {
        BEL_ASSERT_OK(bel_input_read(a, block, of_a));
        BEL_ASSERT_OK(bel_input_read(b, block, of_b));
        assert_int_equal(of_a->example_count, of_b->example_count);
        for (int i = 0; i < of_a->field_count; i++) {
            const bel_tensor *other = batch_field(b, of_b, bel_input_field_name(a, i));
            assert_true(bel_shape_equal(&of_a->fields[i].shape, &other->shape));
            assert_memory_equal(of_a->fields[i].data, other->data, bel_tensor_bytes(other));
        }
    }
    bel_batch_destroy(of_a);
    bel_batch_destroy(of_b);
}

// Opens the same dataset without a cache.
static bel_input *open_plain(int64_t *memory, atomic_int *calls)
{
    bel_dataset *dataset = numbered(memory, COUNT);
    bel_dataset_shuffle(dataset, 0, 4);
    bel_dataset_repeat(dataset, 3);
    bel_dataset_map(dataset, expensive, calls, NULL);
    bel_dataset_batch(dataset, BATCH);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    return input;
}

static void test_memory(void **state)
{
    (void)state;
    int64_t memory[COUNT];
    atomic_int plain_calls = 0;
    bel_input *plain = open_plain(memory, &plain_calls);
    static const int64_t limits[] = {0, 1, 1000, 1 << 20};
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        atomic_int calls = 0;
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(cached(memory, &calls, NULL, limits[l]), &input));
        assert_same_stream(plain, input);
        if (limits[l] == 0 || limits[l] == 1 << 20) {
            assert_in_range(calls, COUNT, COUNT + 2); // and the two read at opening
        } else {
            assert_true(calls > 2 * COUNT); // records without room are made again
        }
        bel_input_destroy(input);
    }
    bel_input_destroy(plain);
}

typedef struct reading {
    pthread_t thread;
    const bel_input *input;
    int64_t sum;
} reading;

static void *read_all(void *argument)
{
    reading *mine = argument;
    bel_batch *batch = bel_batch_create(mine->input);
    for (int64_t block = 0; block < bel_input_block_count(mine->input, true); block++) {
        bel_status *status = bel_input_read(mine->input, block, batch);
        if (status != NULL) mine->sum = INT64_MIN;
        bel_status_destroy(status);
        const int64_t *ids = batch->fields[0].data;
        for (int64_t i = 0; i < batch->example_count; i++)
            mine->sum += ids[i];
    }
    bel_batch_destroy(batch);
    return NULL;
}

static void test_threads_share_it(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    int64_t memory[COUNT], expected = 0;
    atomic_int calls = 0;
    for (int64_t id = 0; id < COUNT; id++)
        expected += id % 5 == 4 ? 0 : 3 * id * id;
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(cached(memory, &calls, NULL, 0), &input));
    reading readers[THREADS] = {0};
    for (int t = 0; t < THREADS; t++) {
        readers[t].input = input;
        BEL_ASSERT_OK(bel_thread_start(&readers[t].thread, read_all, &readers[t]));
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(readers[t].thread, NULL);
        assert_int_equal(readers[t].sum, expected);
    }
    bel_input_destroy(input);
}

static void test_file(void **state)
{
    (void)state;
    int64_t memory[COUNT];
    atomic_int plain_calls = 0, calls = 0;
    bel_input *plain = open_plain(memory, &plain_calls), *input;
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    for (int round = 0; round < 2; round++) { // made, then reused
        BEL_ASSERT_OK(open_and_destroy(cached(memory, &calls, path, 0), &input));
        assert_int_equal(calls, COUNT + 1); // the first record once more, to learn the fields
        if (round == 0) calls = COUNT;      // opening the stages below learns them again
        assert_same_stream(plain, input);
        bel_input_destroy(input);
    }
    bel_input_destroy(plain);
    bel_free(path);
}

// Changed data remakes the file. The fingerprint does not depend on where records are kept.
static void test_stale_file(void **state)
{
    (void)state;
    int64_t memory[COUNT];
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    uint64_t fingerprints[2];
    for (int round = 0; round < 2; round++) {
        bel_dataset *dataset = numbered_from(memory, 100 * round, 10);
        bel_dataset_cache(dataset, path, 0);
        bel_dataset_batch(dataset, 10);
        int64_t ids[10];
        bel_input *input;
        BEL_ASSERT_OK(open_and_destroy(dataset, &input));
        fingerprints[round] = bel_input_fingerprint(input);
        bel_batch *batch = bel_batch_create(input);
        assert_int_equal(read_ids(input, batch, 0, ids), 10);
        assert_memory_equal(ids, memory, sizeof ids);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    assert_int_not_equal(fingerprints[0], fingerprints[1]);
    bel_free(path);
}

static bel_dataset *small(int64_t *memory, const char *path)
{
    bel_dataset *dataset = numbered(memory, 3);
    bel_dataset_cache(dataset, path, 0);
    bel_dataset_batch(dataset, 3);
    return dataset;
}

static void test_damaged_files(void **state)
{
    (void)state;
    int64_t memory[3];
    char *path = bel_test_file(bel_test_own_folder(), "mine", "my own text", 11);
    BEL_ASSERT_FAILS(open_failing(small(memory, path)), BEL_ALREADY_EXISTS,
                     "mine is no cache of a dataset and is not overwritten");
    bel_free(path);

    path = bel_path_join(bel_test_own_folder(), "records.cache");
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(small(memory, path), &input));
    bel_input_destroy(input);
    char *whole;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &whole, &size));
    // A changed byte of a record is found when it is read. A changed offset remakes the file.
    for (size_t at = 0; at < size - 8; at++) {
        whole[at] ^= 1;
        bel_free(bel_test_file(bel_test_own_folder(), "records.cache", whole, size));
        whole[at] ^= 1;
        bel_status *status = open_and_destroy(small(memory, path), &input);
        if (status != NULL) { // record 0, read to learn the fields
            BEL_ASSERT_FAILS(status, BEL_DATA_LOSS, "records.cache: record 0 does not fit");
            continue;
        }
        bel_batch *batch = bel_batch_create(input);
        status = bel_input_read(input, 0, batch);
        if (status == NULL) {
            assert_memory_equal(batch->fields[0].data, memory, sizeof memory);
        } else {
            BEL_ASSERT_FAILS(status, BEL_DATA_LOSS, "does not fit its checksum");
        }
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    bel_free(whole);
    bel_free(path);
}

// A process killed while it writes leaves a part under a separate name, which the next process
// removes. Other files stay.
static void test_leftovers(void **state)
{
    (void)state;
    int64_t memory[3];
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    char *left = bel_test_file(bel_test_own_folder(), "records.cache.tmp-77-0", "half", 4);
    char *other = bel_test_file(bel_test_own_folder(), "records.cache.tmp-mine", "mine", 4);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(small(memory, path), &input));
    bel_input_destroy(input);
    assert_false(bel_file_exists(left));
    assert_true(bel_file_exists(other));
    bel_free(other);
    bel_free(left);
    bel_free(path);
}

// The file is mapped, so a reader does not need its name.
static void test_removed_while_it_is_read(void **state)
{
    (void)state;
    int64_t memory[3], ids[3];
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(small(memory, path), &input));
    assert_int_equal(unlink(path), 0);
    bel_batch *batch = bel_batch_create(input);
    assert_int_equal(read_ids(input, batch, 0, ids), 3);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

static bel_status *fail_on_seven(void *user, bel_record *record, bool *out_skip)
{
    (void)user;
    *out_skip = false;
    if (*(const int64_t *)bel_record_get(record, "id")->data != 7) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "seven is broken");
}

static bel_status *open_with_seven(const char *path, int64_t most_bad, bel_input **out_input)
{
    static int64_t memory[10];
    bel_dataset *dataset = numbered(memory, 10);
    bel_dataset_map(dataset, fail_on_seven, NULL, NULL);
    bel_dataset_cache(dataset, path, 0);
    bel_dataset_batch(dataset, 10);
    bel_dataset_skip_bad_records(dataset, most_bad);
    return open_and_destroy(dataset, out_input);
}

// A record that was bad when the file was made is bad for every reader. A reader that allows no bad
// records must not train without it.
static void test_bad_records_stay_bad(void **state)
{
    (void)state;
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    int64_t ids[10];
    bel_input *input;
    for (int round = 0; round < 2; round++) { // made, then reused
        BEL_ASSERT_OK(open_with_seven(path, 1, &input));
        bel_batch *batch = bel_batch_create(input);
        assert_int_equal(read_ids(input, batch, 0, ids), 9);
        assert_int_equal(ids[7], 8);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    BEL_ASSERT_OK(open_with_seven(path, 0, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS, "seven is broken");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(path);
}

// Returns the content of the lock's file as the bytes of a record.
static bel_status *tell_lock(void *lock_path, int64_t number, bel_str *out)
{
    (void)number;
    char *text;
    size_t size;
    BEL_TRY(bel_file_read(lock_path, &text, &size));
    bel_str_append(out, text, size);
    bel_free(text);
    return NULL;
}

static void test_two_at_a_time(void **state)
{
    (void)state;
    char *path = bel_path_join(bel_test_own_folder(), "records.cache");
    char *lock_path = bel_path_join(bel_test_own_folder(), "records.cache.lock");
    int lock;
    BEL_ASSERT_OK(bel_linux_lock(lock_path, 0, &lock));
    bel_cache_file file = {.patience = {.turn_secs = 0.01, .turns = 3}};
    bel_status *status = bel_cache_file_open(&file, path, 1, 2, tell_lock, lock_path);
    BEL_ASSERT_FAILS(status, BEL_FAILED_PRECONDITION, "while no record was added");
    bel_cache_file_close(&file);
    bel_linux_unlock(lock);

    BEL_ASSERT_OK(bel_cache_file_open(&file, path, 1, 2, tell_lock, lock_path));
    const char *data;
    size_t size;
    BEL_ASSERT_OK(bel_cache_file_get(&file, 0, &data, &size));
    static const char expected[] = "0 of 2 records by process ";
    assert_in_range(size, sizeof expected, 100);
    assert_memory_equal(data, expected, sizeof expected - 1);
    bel_cache_file_close(&file);
    bel_free(lock_path);
    bel_free(path);
}

static void test_where_it_cannot_stand(void **state)
{
    (void)state;
    int64_t memory[3];
    bel_dataset *dataset = numbered(memory, 3);
    bel_dataset_shuffle(dataset, 0, 1);
    bel_dataset_cache(dataset, NULL, 0);
    bel_dataset_batch(dataset, 3);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "expected cache before shuffle");
    dataset = numbered(memory, 3);
    bel_dataset_cache(dataset, NULL, -1);
    bel_dataset_batch(dataset, 3);
    BEL_ASSERT_FAILS(open_failing(dataset), BEL_INVALID_ARGUMENT, "got NULL and -1");
    BEL_ASSERT_FAILS(open_failing(small(memory, "/nowhere/at/all")), BEL_NOT_FOUND,
                     "/nowhere/at/all");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_memory),
        BEL_TEST_IN_FOLDER(test_threads_share_it),
        BEL_TEST_IN_FOLDER(test_file),
        BEL_TEST_IN_FOLDER(test_stale_file),
        BEL_TEST_IN_FOLDER(test_damaged_files),
        BEL_TEST_IN_FOLDER(test_leftovers),
        BEL_TEST_IN_FOLDER(test_removed_while_it_is_read),
        BEL_TEST_IN_FOLDER(test_bad_records_stay_bad),
        BEL_TEST_IN_FOLDER(test_two_at_a_time),
        BEL_TEST_IN_FOLDER(test_where_it_cannot_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
