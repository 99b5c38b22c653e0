// Shared helpers of the tests of src/input.
#ifndef BELFRY_TESTS_UNIT_INPUT_TEST_FIXTURE_H
#define BELFRY_TESTS_UNIT_INPUT_TEST_FIXTURE_H

#include "base/alloc.h"
#include "input/batch/input.h"
#include "support/bel_test.h"

// Opens a dataset and destroys it.
static inline bel_status *open_and_destroy(bel_dataset *dataset, bel_input **out_input)
{
    bel_status *status = bel_input_open(dataset, NULL, out_input);
    bel_dataset_destroy(dataset);
    return status;
}

// Opens a dataset that must fail to open, and destroys it.
static inline bel_status *open_failing(bel_dataset *dataset)
{
    bel_input *input = NULL;
    bel_status *status = open_and_destroy(dataset, &input);
    bel_input_destroy(input);
    return status;
}

// Returns the field of a batch by name.
static inline const bel_tensor *batch_field(const bel_input *input, const bel_batch *batch,
                                            const char *name)
{
    for (int i = 0; i < bel_input_field_count(input); i++) {
        if (strcmp(bel_input_field_name(input, i), name) == 0) return &batch->fields[i];
    }
    fail_msg("no field %s", name);
    return NULL;
}

// Returns a dataset of `count` records. The only field "id" (I64) is the record's number. `ids`
// needs room for them and must outlive the dataset.
static inline bel_dataset *numbered(int64_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = i;
    bel_memory_field field = {"id", {BEL_DTYPE_I64, BEL_SHAPE(count), ids}};
    return bel_dataset_from_memory(&field, 1);
}

// Reads one block of a dataset made by `numbered`; returns the number of records.
static inline int64_t read_ids(const bel_input *input, bel_batch *batch, int64_t block,
                               int64_t *out_ids)
{
    BEL_ASSERT_OK(bel_input_read(input, block, batch));
    assert_int_equal(batch->block, block);
    const bel_tensor *ids = batch_field(input, batch, "id");
    assert_int_equal(ids->shape.dims[0], batch->example_count);
    memcpy(out_ids, ids->data, (size_t)batch->example_count * sizeof *out_ids);
    return batch->example_count;
}

// Like `numbered`, with the numbers first, first + 1 …
static inline bel_dataset *numbered_from(int64_t *ids, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = first + i;
    bel_memory_field field = {"id", {BEL_DTYPE_I64, BEL_SHAPE(count), ids}};
    return bel_dataset_from_memory(&field, 1);
}

// Opens a dataset and reads "id" of all blocks in order. Then reads each block separately, last one
// first, into another batch: the ids must be the same. Returns their number.
static inline int64_t read_all_ids(bel_dataset *dataset, int64_t *out_ids, int64_t room)
{
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *forwards = bel_batch_create(input), *backwards = bel_batch_create(input);
    int64_t blocks = bel_input_block_count(input, true), count = 0;
    int64_t *again = bel_xcalloc((size_t)room, sizeof *again);
    for (int64_t block = 0; block < blocks; block++)
        count += read_ids(input, forwards, block, out_ids + count);
    assert_true(count <= room);
    int64_t behind = count;
    for (int64_t block = blocks; block-- > 0;) {
        int64_t got = read_ids(input, backwards, block, again);
        behind -= got;
        assert_memory_equal(out_ids + behind, again, (size_t)got * sizeof *again);
    }
    bel_free(again);
    bel_batch_destroy(forwards);
    bel_batch_destroy(backwards);
    bel_input_destroy(input);
    return count;
}

#define ASSERT_IDS(dataset, ...)                                                                   \
    do {                                                                                           \
        const int64_t expected_[] = {__VA_ARGS__};                                                 \
        int64_t got_[256];                                                                         \
        assert_int_equal(read_all_ids((dataset), got_, 256),                                       \
                         sizeof expected_ / sizeof *expected_);                                    \
        assert_memory_equal(got_, expected_, sizeof expected_);                                    \
    } while (0)

#endif
