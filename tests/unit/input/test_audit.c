// Audit: it finds each block that the workers noted exactly once, even after steps that were
// repeated or never completed. It names whatever is missing, read twice or changed.
#include <unistd.h>

#include "base/file.h"
#include "input/batch/audit.h"
#include "unit/input/test_fixture.h"

enum { RECORDS = 10, BATCH = 2, EPOCHS = 2, BLOCKS = RECORDS * EPOCHS / BATCH, REPLICAS = 2 };

static const bel_input_segment segment = {.replica_count = REPLICAS};

typedef struct run {
    int64_t ids[RECORDS];
    bel_input *input;
    bel_batch *batch;
    char *folder;
} run;

static void run_init(run *it)
{
    bel_dataset *dataset = numbered(it->ids, RECORDS);
    bel_dataset_shuffle(dataset, 0, 3);
    bel_dataset_repeat(dataset, EPOCHS);
    bel_dataset_batch(dataset, BATCH);
    BEL_ASSERT_OK(open_and_destroy(dataset, &it->input));
    it->batch = bel_batch_create(it->input);
    it->folder = bel_path_join(bel_test_own_folder(), BEL_AUDIT_FOLDER);
}

static void run_deinit(run *it)
{
    bel_batch_destroy(it->batch);
    bel_input_destroy(it->input);
    bel_free(it->folder);
}

// Notes that a worker reads block `block` for a replica of a step.
static void note(run *it, bel_audit *audit, int64_t step, int64_t replica, int64_t block)
{
    BEL_ASSERT_OK(bel_input_read(it->input, block, it->batch));
    BEL_ASSERT_OK(bel_audit_note(audit, step, replica, it->batch));
}

static bel_audit *begin(run *it, int worker)
{
    bel_audit *audit;
    BEL_ASSERT_OK(bel_audit_open(it->folder, worker, it->input,
                                 bel_input_block_count(it->input, true), &audit));
    return audit;
}

// Notes a worker's steps first … end - 1 for one replica.
static void work(run *it, int replica, int64_t first, int64_t end)
{
    bel_audit *audit = begin(it, replica);
    for (int64_t step = first; step < end; step++)
        note(it, audit, step, replica, bel_input_segment_block(&segment, step, replica));
    bel_audit_close(audit);
}

static bel_status *check_at(const run *it, int64_t step, bel_audit_result *out_result)
{
    const bel_audit_scope scope = {.step = step,
                                   .segments = &segment,
                                   .segment_count = 1,
                                   .fingerprint = bel_input_fingerprint(it->input)};
    return bel_audit_check(it->folder, &scope, out_result);
}

static void assert_whole(const run *it, int64_t not_counted)
{
    bel_audit_result result;
    BEL_ASSERT_OK(check_at(it, BLOCKS / REPLICAS, &result));
    assert_int_equal(result.epoch_count, EPOCHS);
    assert_int_equal(result.blocks, BLOCKS);
    assert_int_equal(result.not_counted, not_counted);
    assert_int_equal(result.epoch_records, RECORDS);
    for (int i = 0; i < EPOCHS; i++) {
        assert_int_equal(result.epochs[i].epoch, i);
        assert_int_equal(result.epochs[i].records, RECORDS);
        assert_true(result.epochs[i].whole);
    }
    bel_audit_result_deinit(&result);
}

static void assert_fails(const run *it, const char *part)
{
    bel_audit_result result;
    BEL_ASSERT_FAILS(check_at(it, BLOCKS / REPLICAS, &result), BEL_DATA_LOSS, part);
}

static void test_each_once(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    work(&it, 0, 0, 5);
    work(&it, 1, 0, 5);
    assert_whole(&it, 0);
    // At a checkpoint in the middle the second epoch has begun.
    bel_audit_result result;
    BEL_ASSERT_OK(check_at(&it, 3, &result));
    assert_int_equal(result.epoch_count, 2);
    assert_true(result.epochs[0].whole);
    assert_false(result.epochs[1].whole);
    assert_int_equal(result.epochs[1].records, 2);
    assert_int_equal(result.blocks, 6);
    assert_int_equal(result.not_counted, 4);
    bel_audit_result_deinit(&result);
    BEL_ASSERT_OK(check_at(&it, 0, &result)); // nothing was trained
    assert_int_equal(result.epoch_count, 0);
    bel_audit_result_deinit(&result);
    run_deinit(&it);
}

// A restart after a kill, a return to a checkpoint, and uncounted steps with another number of
// replicas.
static void test_steps_that_were_repeated(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    work(&it, 0, 0, 3);
    work(&it, 0, 2, 5); // step 2 was lost
    work(&it, 1, 0, 5);
    work(&it, 1, 1, 4); // after a return to a checkpoint
    bel_audit *audit = begin(&it, 2);
    note(&it, audit, 1, 2, 5); // as with three replicas
    note(&it, audit, 1, 0, 3);
    note(&it, audit, 9, 0, 0); // after the end
    bel_audit_close(audit);
    assert_whole(&it, 1 + 3 + 3);
    run_deinit(&it);
}

// From step 2 on only one replica reads.
static void test_segments(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    const bel_input_segment segments[] = {
        segment, {.first_step = 2, .first_block = 2 * REPLICAS, .replica_count = 1}};
    work(&it, 0, 0, 4); // two steps too many, before it learned of the change
    work(&it, 1, 0, 2);
    bel_audit *audit = begin(&it, 0);
    for (int64_t step = 2; step < 8; step++)
        note(&it, audit, step, 0, bel_input_segment_block(&segments[1], step, 0));
    bel_audit_close(audit);
    const bel_audit_scope scope = {.step = 8,
                                   .segments = segments,
                                   .segment_count = 2,
                                   .fingerprint = bel_input_fingerprint(it.input)};
    bel_audit_result result;
    BEL_ASSERT_OK(bel_audit_check(it.folder, &scope, &result));
    assert_int_equal(result.blocks, BLOCKS);
    assert_true(result.epochs[1].whole);
    bel_audit_result_deinit(&result);
    run_deinit(&it);
}

static void test_what_was_not_read(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    work(&it, 0, 0, 5);
    work(&it, 1, 0, 3);
    work(&it, 1, 4, 5);
    assert_fails(&it, "step 3, replica 1: no worker noted that block 7 was read");
    work(&it, 1, 3, 4);
    assert_whole(&it, 0);
    run_deinit(&it);
}

// Blocks that claim another number than the one that was read.
static void test_what_was_read_twice(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        run it;
        run_init(&it);
        work(&it, 0, 0, 5);
        work(&it, 1, 0, way == 0 ? 4 : 5);
        bel_audit *audit = begin(&it, 1);
        BEL_ASSERT_OK(bel_input_read(it.input, 0, it.batch));
        it.batch->block = 9; // claims to be block 9
        BEL_ASSERT_OK(bel_audit_note(audit, 4, 1, it.batch));
        bel_audit_close(audit);
        assert_fails(&it, way == 0
                              ? "was read twice, in blocks"
                              : "step 4, replica 1: block 9 was read before, with other records");
        bel_free(bel_test_file(it.folder, "worker-1.1", "", 0));
        run_deinit(&it);
        char *again = bel_path_join(bel_test_own_folder(), BEL_AUDIT_FOLDER);
        BEL_ASSERT_OK(bel_dir_remove(again));
        bel_free(again);
    }
}

// A note that was cut off or damaged does not count, and neither does the rest of its file.
static void test_damaged_notes(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    work(&it, 0, 0, 5);
    work(&it, 1, 0, 5);
    char *path = bel_path_join(it.folder, "worker-1.0"), *data;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    for (size_t cut = 1; cut < size; cut += 37) {
        assert_int_equal(truncate(path, (off_t)(size - cut)), 0);
        assert_fails(&it, "replica 1: no worker noted");
    }
    for (size_t at = size - 60; at < size; at++) { // in the last note
        data[at] ^= 1;
        bel_free(bel_test_file(it.folder, "worker-1.0", data, size));
        data[at] ^= 1;
        assert_fails(&it, "step 4, replica 1: no worker noted");
    }
    work(&it, 1, 0, 5); // the restarted worker
    assert_whole(&it, 4);
    bel_free(data);
    bel_free(path);
    run_deinit(&it);
}

static void test_notes_of_other_data(void **state)
{
    (void)state;
    run it;
    run_init(&it);
    bel_audit_result result;
    BEL_ASSERT_FAILS(check_at(&it, 5, &result), BEL_NOT_FOUND, "--audit_input");
    work(&it, 0, 0, 5);
    work(&it, 1, 0, 5);
    bel_audit_scope scope = {.step = 5, .segments = &segment, .segment_count = 1, .fingerprint = 1};
    BEL_ASSERT_FAILS(bel_audit_check(it.folder, &scope, &result), BEL_DATA_LOSS,
                     "there are notes of other data");
    bel_free(bel_test_file(it.folder, "something", "else", 4));
    assert_whole(&it, 0);
    run_deinit(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_each_once),
        BEL_TEST_IN_FOLDER(test_steps_that_were_repeated),
        BEL_TEST_IN_FOLDER(test_segments),
        BEL_TEST_IN_FOLDER(test_what_was_not_read),
        BEL_TEST_IN_FOLDER(test_what_was_read_twice),
        BEL_TEST_IN_FOLDER(test_damaged_notes),
        BEL_TEST_IN_FOLDER(test_notes_of_other_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
