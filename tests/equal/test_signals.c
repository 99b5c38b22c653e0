// bel_train_with_signals: a signal ends one training, which is saved and can continue, and the
// program keeps its handlers. label: threads
#include <signal.h>

#include "base/alloc.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { FOREVER = 1000000 };

static int64_t batch = 16;

// Asks for an end once; a second signal would end the process.
static bel_status *after_step(void *user, bel_hook_context *context, const bel_step_report *step)
{
    (void)context;
    int *number = user, asked = *number;
    if (step->step % 5 != 0 || asked < 0) return NULL;
    *number = -1;
    if (asked == 0) bel_request_stop();
    return asked == 0 || raise(asked) == 0 ? NULL : BEL_ERR(BEL_INTERNAL, "no signal");
}

// Trains until a hook raises `number` (0: requests a stop; -1: neither), or to `max_steps`.
static int train_until(const char *folder, int number, int64_t max_steps, bel_result *result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("linear")->model_fn, &config, NULL, 0, &estimator));
    const bel_hook hook = {
        .size = sizeof hook, .name = "signals", .user = &number, .after_step = after_step};
    const bel_train_spec train = {.size = sizeof train,
                                  .input_fn = bel_test_digits_input,
                                  .input_user = &batch,
                                  .max_steps = max_steps,
                                  .hooks = (const bel_hook *[]){&hook},
                                  .hook_count = 1};
    int code = -1;
    BEL_ASSERT_OK(bel_train_with_signals(estimator, &train, NULL, 0, result, &code));
    bel_estimator_destroy(estimator);
    return code;
}

static void on_signal(int number)
{
    (void)number;
}

static void test_signals(void **state)
{
    (void)state;
    const int numbers[] = {SIGINT, SIGINT, SIGTERM, 0};
    struct sigaction before, after, own = {.sa_handler = on_signal};
    assert_int_equal(sigaction(SIGINT, &own, NULL), 0);
    assert_int_equal(sigaction(SIGTERM, NULL, &before), 0);
    int64_t step = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bel_result result = {.size = sizeof result};
        int code = train_until(bel_test_own_folder(), numbers[i], FOREVER, &result);
        assert_int_equal(code, numbers[i] == 0 ? 0 : 128 + numbers[i]);
        assert_true(result.interrupted);
        assert_true(result.global_step > step);
        step = result.global_step;
    }
    bel_result result = {.size = sizeof result};
    assert_int_equal(train_until(bel_test_own_folder(), -1, step + 3, &result), 0);
    assert_false(result.interrupted);
    assert_int_equal(result.global_step, step + 3);
    assert_int_equal(sigaction(SIGINT, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, on_signal);
    assert_int_equal(sigaction(SIGTERM, NULL, &after), 0);
    assert_ptr_equal(after.sa_handler, before.sa_handler);
}

static void test_errors_are_returned(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("linear")->model_fn, &config, NULL, 0, &estimator));
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = bel_test_digits_input, .input_user = &batch};
    bel_result result = {.size = sizeof result};
    int code = -1;
    BEL_ASSERT_FAILS(bel_train_with_signals(estimator, &train, NULL, 0, &result, &code),
                     BEL_INVALID_ARGUMENT, "training would never end");
    assert_int_equal(code, -1);
    bel_estimator_destroy(estimator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_signals),
        BEL_TEST_IN_FOLDER(test_errors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
