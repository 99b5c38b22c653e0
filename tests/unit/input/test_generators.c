// label: threads
// Records made by functions, by number or in sequence: in any order of blocks, over epochs and
// threads. Errors when they end too early or fail.
#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "unit/input/test_fixture.h"

enum { ROOM = 256 };

static bel_dataset *batched(bel_dataset *dataset, int64_t size)
{
    bel_dataset_batch(dataset, size);
    return dataset;
}

static void set_id(bel_record *record, int64_t value)
{
    bel_shape scalar = bel_shape_scalar();
    *(int64_t *)bel_record_add(record, "id", BEL_DTYPE_I64, &scalar) = value;
}

// --- By number -----------------------------------------------------------------------------------

static bel_status *make_square(void *user, int64_t number, bel_record *record)
{
    if (user != NULL && number == *(const int64_t *)user)
        return BEL_ERR(BEL_DATA_LOSS, "no square");
    set_id(record, number * number);
    return NULL;
}

static void test_by_number(void **state)
{
    (void)state;
    ASSERT_IDS(batched(bel_dataset_from_function(make_square, NULL, 5), 2), 0, 1, 4, 9, 16);
    bel_dataset *dataset = bel_dataset_from_function(make_square, NULL, 4);
    bel_dataset_skip(dataset, 1);
    bel_dataset_repeat(dataset, 2);
    ASSERT_IDS(batched(dataset, 4), 1, 4, 9, 1, 4, 9);
    dataset = bel_dataset_from_function(make_square, NULL, BEL_REPEAT_FOREVER);
    bel_dataset_skip(dataset, 1000000);
    bel_dataset_take(dataset, 2);
    ASSERT_IDS(batched(dataset, 4), INT64_C(1000000000000), INT64_C(1000002000001));
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(
        batched(bel_dataset_from_function(make_square, NULL, BEL_REPEAT_FOREVER), 2), &input));
    assert_true(bel_input_block_count(input, true) == INT64_MAX);
    bel_input_destroy(input);
}

// --- In sequence ---------------------------------------------------------------------------------

// Sums of a counter: each record of an epoch depends on all earlier ones.
typedef struct counter {
    int64_t epoch, place, sum;
} counter;

typedef struct counting {
    int64_t length;         // records of each epoch
    int64_t short_epoch;    // epoch with one record less; -1: none
    int64_t failing_place;  // -1: no failure
    atomic_int begun, open; // generators
    atomic_int made;        // records
} counting;

static bel_status *begin(void *user, int64_t epoch, void **out_state)
{
    counting *c = user;
    if (epoch == 99) return BEL_ERR(BEL_NOT_FOUND, "no such epoch");
    atomic_fetch_add(&c->begun, 1);
    atomic_fetch_add(&c->open, 1);
    counter *state = bel_xcalloc(1, sizeof *state);
    state->epoch = epoch;
    *out_state = state;
    return NULL;
}

static bel_status *next(void *user, void *state, bel_record *record, bool *out_end)
{
    counting *c = user;
    counter *at = state;
    if (at->place == c->failing_place) return BEL_ERR(BEL_UNKNOWN, "it broke");
    if (at->place == c->length - (at->epoch == c->short_epoch ? 1 : 0)) {
        *out_end = true;
        return NULL;
    }
    atomic_fetch_add(&c->made, 1);
    at->sum += ++at->place + at->epoch;
    set_id(record, at->sum);
    return NULL;
}

static void end(void *user, void *state)
{
    atomic_fetch_sub(&((counting *)user)->open, 1);
    bel_free(state);
}

static const bel_generator steps = {.size = sizeof steps, .begin = begin, .next = next, .end = end};

static int64_t expected_at(int64_t epoch, int64_t place)
{
    return (place + 1) * (place + 2) / 2 + (place + 1) * epoch;
}

// Blocks forwards and backwards over two epochs, with the record count given or counted at opening.
static void test_one_behind_the_other(void **state)
{
    (void)state;
    for (int counted = 0; counted <= 1; counted++) {
        counting c = {.length = 11, .short_epoch = -1, .failing_place = -1};
        int64_t ids[ROOM];
        bel_dataset *dataset = bel_dataset_from_generator(&steps, &c, counted ? 0 : 11);
        bel_dataset_repeat(dataset, 2);
        assert_int_equal(read_all_ids(batched(dataset, 4), ids, ROOM), 22);
        for (int64_t i = 0; i < 22; i++)
            assert_int_equal(ids[i], expected_at(i / 11, i % 11));
        assert_int_equal(c.open, 0);
    }
}

// A reader that reads in order passes through an epoch once.
static void test_reading_on_costs_nothing(void **state)
{
    (void)state;
    counting c = {.length = 60, .short_epoch = -1, .failing_place = -1};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(bel_dataset_from_generator(&steps, &c, 60), 6), &input));
    int opened = c.made;
    bel_batch *batch = bel_batch_create(input);
    int64_t ids[6];
    for (int64_t block = 0; block < 10; block++)
        read_ids(input, batch, block, ids);
    assert_in_range(c.made - opened, 60, 62); // records read at opening may be made again
    assert_true(c.begun <= 3);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

static void test_endless(void **state)
{
    (void)state;
    counting c = {.length = INT64_MAX, .short_epoch = -1, .failing_place = -1};
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(
        batched(bel_dataset_from_generator(&steps, &c, BEL_REPEAT_FOREVER), 3), &input));
    bel_batch *batch = bel_batch_create(input);
    int64_t ids[3];
    read_ids(input, batch, 1000, ids);
    assert_int_equal(ids[2], expected_at(0, 3002));
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    assert_int_equal(c.open, 0);
}

// Reading in random order begins many generators and keeps only some.
static void test_shuffled(void **state)
{
    (void)state;
    counting c = {.length = 60, .short_epoch = -1, .failing_place = -1};
    int64_t ids[ROOM];
    bel_dataset *dataset = bel_dataset_from_generator(&steps, &c, 60);
    bel_dataset_shuffle(dataset, 0, 1);
    assert_int_equal(read_all_ids(batched(dataset, 60), ids, ROOM), 60);
    bool seen[60] = {false};
    for (int i = 0; i < 60; i++) {
        int64_t place = 0;
        while (place < 60 && expected_at(0, place) != ids[i])
            place++;
        assert_in_range(place, 0, 59);
        assert_false(seen[place]);
        seen[place] = true;
    }
    assert_int_equal(c.open, 0);
}

typedef struct reading {
    pthread_t thread;
    const bel_input *input;
    int64_t first, sum;
} reading;

enum { THREADS = 4 };

// Reads every fourth block.
static void *read_some(void *argument)
{
    reading *mine = argument;
    bel_batch *batch = bel_batch_create(mine->input);
    for (int64_t block = mine->first; block < bel_input_block_count(mine->input, true);
         block += THREADS) {
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

static void test_threads(void **state)
{
    (void)state;
    counting c = {.length = 50, .short_epoch = -1, .failing_place = -1};
    bel_dataset *dataset = bel_dataset_from_generator(&steps, &c, 0);
    bel_dataset_repeat(dataset, 3);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 4), &input));
    reading readers[THREADS] = {0};
    int64_t sum = 0, expected = 0;
    for (int t = 0; t < THREADS; t++) {
        readers[t] = (reading){.input = input, .first = t};
        BEL_ASSERT_OK(bel_thread_start(&readers[t].thread, read_some, &readers[t]));
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(readers[t].thread, NULL);
        sum += readers[t].sum;
    }
    for (int64_t i = 0; i < 150; i++)
        expected += expected_at(i / 50, i % 50);
    assert_int_equal(sum, expected);
    bel_input_destroy(input);
    assert_int_equal(c.open, 0);
}

// --- Errors --------------------------------------------------------------------------------------

static void test_errors(void **state)
{
    (void)state;
    counting c = {.length = 5, .short_epoch = 1, .failing_place = -1};
    int64_t number = 2, ids[8];
    bel_dataset *dataset = bel_dataset_from_generator(&steps, &c, 5);
    bel_dataset_repeat(dataset, 100);
    bel_input *input;
    BEL_ASSERT_OK(open_and_destroy(batched(dataset, 5), &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS,
                     "generator: epoch 1: expected 5 records, but it ended after 4");
    BEL_ASSERT_FAILS(bel_input_read(input, 99, batch), BEL_NOT_FOUND, "epoch 99: no such epoch");
    assert_int_equal(read_ids(input, batch, 0, ids), 5); // later reads succeed
    c.failing_place = 3;
    BEL_ASSERT_FAILS(bel_input_read(input, 2, batch), BEL_UNKNOWN,
                     "generator: record 3 of epoch 2: it broke");
    c.failing_place = -1;
    assert_int_equal(read_ids(input, batch, 2, ids), 5);
    assert_int_equal(ids[4], expected_at(2, 4));
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    assert_int_equal(c.open, 0);

    BEL_ASSERT_OK(
        open_and_destroy(batched(bel_dataset_from_function(make_square, &number, 5), 5), &input));
    batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS,
                     "generator: record 2: no square");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
#define FAILS(dataset, part)                                                                       \
    BEL_ASSERT_FAILS(open_failing(batched(dataset, 2)), BEL_INVALID_ARGUMENT, part)
    FAILS(bel_dataset_from_function(NULL, NULL, 1), "function: expected a function");
    FAILS(bel_dataset_from_function(make_square, NULL, -2), "function: expected a record_count");
    FAILS(bel_dataset_from_generator(NULL, NULL, 1), "generator: expected begin and next");
    FAILS(bel_dataset_from_generator(&steps, NULL, -2), "generator: expected a record_count");
#undef FAILS
}

// The fingerprint depends only on the number of records and the first one.
static void test_fingerprints(void **state)
{
    (void)state;
    uint64_t seen[3];
    for (int v = 0; v < 3; v++) {
        counting c = {.length = v == 1 ? 5 : 6, .short_epoch = -1, .failing_place = -1};
        bel_input *input;
        BEL_ASSERT_OK(
            open_and_destroy(batched(bel_dataset_from_generator(&steps, &c, 0), 2), &input));
        seen[v] = bel_input_fingerprint(input);
        bel_input_destroy(input);
    }
    assert_int_equal(seen[0], seen[2]);
    assert_int_not_equal(seen[0], seen[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_number),
        cmocka_unit_test(test_one_behind_the_other),
        cmocka_unit_test(test_reading_on_costs_nothing),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
