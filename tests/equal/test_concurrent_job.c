// Test of a complete job with everything at once: several workers, towers, threads and shards, and
// snapshots that are saved and evaluated during training. label: threads
#include "support/bel_test.h"
#include "support/digits.h"

static void train(int workers, int towers, int threads, int shards, char digest[33])
{
    const bel_param params[] = {
        {"hidden_units", "64,64"}, {"class_count", "10"}, {"clip_global_norm", "0.5"}};
    char *folder = bel_test_folder();
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.num_workers = workers;
    config.num_gpus = towers;
    config.num_threads = threads;
    config.parameter_server_count = shards;
    config.min_shard_bytes = 0; // on all shards, although it is small
    config.save_checkpoints_steps = 5;
    config.save_summary_steps = 2;
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_test_digits_train(config, folder, 8, 40, params, 3, true, &result));
    assert_int_equal(result.global_step, 40);
    assert_int_equal(result.examples, 359);
    memcpy(digest, result.digest, 33);
    bel_test_remove_folder(folder);
}

static void test_everything_at_once(void **state)
{
    (void)state;
    char alone[33], together[33];
    train(1, 4, 1, 1, alone);
    train(2, 2, 2, 3, together);
    assert_string_equal(alone, together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
