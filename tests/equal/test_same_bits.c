// Tests of the same bits: the digest of the last checkpoint is a function of data, seed and flags.
// 200 steps of a dnn 512,512 with dropout, Adam and a global clip, on the digits: run to run; for
// every assignment of four replicas to workers and towers; for 1, 2 and 3 shards; for 1 and 2
// threads; with lanes that delay, repeat and reorder; stopped and resumed. Each comparison must
// fail under its fault. label: long
#include "support/bel_test.h"
#include "support/digits.h"

#include "base/fault.h"

#ifdef BEL_SANITIZE
enum { STEPS = 60, BATCH = 16 }; // each takes ten times as long
#else
enum { STEPS = 200, BATCH = 16 };
#endif

typedef struct topology {
    int workers;
    int towers[4];
    int shards;
    int threads;
} topology;

static const topology base = {1, {4}, 1, 1};

static void run_to(const topology *t, const char *folder, int64_t steps, char digest[33])
{
    const bel_param params[] = {{"hidden_units", "512,512"}, {"dropout", "0.2"},
                                {"class_count", "10"},       {"optimizer", "adam"},
                                {"learning_rate", "0.001"},  {"clip_global_norm", "0.5"}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.num_workers = t->workers;
    config.towers_of = t->towers;
    config.parameter_server_count = t->shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.num_threads = t->threads;
    config.report = false;
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_test_digits_train(config, folder, BATCH, steps, params,
                                        sizeof params / sizeof params[0], false, &result));
    memcpy(digest, result.digest, 33);
}

static void run(const topology *t, char digest[33])
{
    char *folder = bel_test_folder();
    run_to(t, folder, STEPS, digest);
    bel_test_remove_folder(folder);
}

static void assert_same(const topology *t)
{
    static char expected[33];
    char got[33];
    if (expected[0] == '\0') run(&base, expected);
    run(t, got);
    assert_string_equal(expected, got);
}

// With the fault, at least one of the topologies must give other bits than the base.
static void assert_breaks(const char *fault, const topology *topologies, size_t count)
{
    char expected[33], got[33];
    bool differs = false;
    bel_fault_set(fault);
    run(&base, expected);
    for (size_t i = 0; i < count && !differs; i++) {
        run(&topologies[i], got);
        differs = strcmp(expected, got) != 0;
    }
    bel_fault_set(NULL);
    assert_true(differs);
}

static const topology assignments[] = {{1, {4}, 1, 1},
                                       {2, {2, 2}, 1, 1},
                                       {4, {1, 1, 1, 1}, 1, 1},
                                       {2, {3, 1}, 1, 1},
                                       {2, {1, 3}, 1, 1}};
static const topology shards[] = {{1, {4}, 2, 1}, {1, {4}, 3, 1}, {2, {3, 1}, 3, 1}};
static const topology threads[] = {{1, {4}, 1, 2}, {2, {2, 2}, 2, 2}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_run_to_run(void **state)
{
    (void)state;
    assert_same(&base);
}

static void test_assignments(void **state)
{
    (void)state;
    for (size_t i = 1; i < COUNT(assignments); i++)
        assert_same(&assignments[i]);
}

static void test_shards(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shards); i++)
        assert_same(&shards[i]);
}

static void test_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_same(&threads[i]);
}

static void test_disturbed_lanes(void **state)
{
    (void)state;
    char expected[33], got[33];
    run(&base, expected);
    bel_fault_set("lane:delay+repeat+reorder");
    run(&(topology){2, {3, 1}, 3, 1}, got);
    bel_fault_set(NULL);
    assert_string_equal(expected, got);
}

static void test_resumed(void **state)
{
    (void)state;
    char expected[33], got[33];
    char *folder = bel_test_folder();
    run(&base, expected);
    run_to(&base, folder, STEPS * 2 / 5, got);
    assert_string_not_equal(expected, got);
    run_to(&(topology){4, {1, 1, 1, 1}, 3, 1}, folder, STEPS, got); // resumes with other shards
    bel_test_remove_folder(folder);
    assert_string_equal(expected, got);
}

static void test_sum_sequential_breaks_it(void **state)
{
    (void)state;
    assert_breaks("sum_sequential", assignments, COUNT(assignments));
}

static void test_divide_breaks_it(void **state)
{
    (void)state;
    assert_breaks("divide", assignments, COUNT(assignments));
}

static void test_threads2_breaks_it(void **state)
{
    (void)state;
    assert_breaks("threads2", threads, COUNT(threads));
}

static void test_chunk_order_breaks_it(void **state)
{
    (void)state;
    assert_breaks("chunk_order", shards, COUNT(shards));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_to_run),
        cmocka_unit_test(test_assignments),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_disturbed_lanes),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_sum_sequential_breaks_it),
        cmocka_unit_test(test_divide_breaks_it),
        cmocka_unit_test(test_threads2_breaks_it),
        cmocka_unit_test(test_chunk_order_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
