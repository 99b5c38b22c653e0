// Tests of a slow loop. Workers wait for their turn: with this number of workers, one waits longer
// than the stall timeout although steps are made all the time. If the loop takes too long, the
// error names an existing flag. label: threads
#include <string.h>
#include <time.h>

#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { WORKERS = 8, STEPS = 2 * WORKERS, STALL_SECS = 2, PAUSE_NS = 400000000 };

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    static float examples[4][1] = {{1}, {2}, {3}, {4}};
    const bel_memory_field field = {"x", {BEL_DTYPE_F32, BEL_SHAPE(4, 1), examples}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, 2);
    return NULL;
}

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec, const char *name)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *w = bel_variable(g, name, &BEL_SHAPE(1), (bel_initializer){.kind = BEL_INIT_ZEROS},
                                BEL_VARIABLE_TRAINABLE);
    bel_loss_set(spec, bel_mean(g, bel_mul(g, bel_context_only_feature(context), w)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = 0.5});
    return NULL;
}

static bel_status *first_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    return model(context, spec, "a/w");
}

static bel_status *second_fn(bel_model_context *context, bel_estimator_spec *spec)
{
    return model(context, spec, "b/w");
}

// Waits for each step and then pauses, as long as allowed and much shorter than a stall.
static bel_status *thoughtful(void *user, bel_replicator *replicator)
{
    (void)user;
    const bel_step_result *result;
    while (bel_replicator_step(replicator) < STEPS) {
        int function = (int)(bel_replicator_step(replicator) % 2);
        BEL_TRY(bel_replicator_run(replicator, function, &result));
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return NULL;
}

static bel_status *train(bel_status *(*run)(void *user, bel_replicator *replicator), int workers,
                         double stall_secs, bel_result *out)
{
    static const bel_step_function both[] = {{"first", first_fn, "a/*"},
                                             {"second", second_fn, "b/*"}};
    const bel_loop loop = {.size = sizeof loop, .functions = both, .function_count = 2, .run = run};
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .loop = &loop};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.num_workers = workers;
    config.mode = BEL_AGGREGATE_ASYNC;
    config.stall_timeout = stall_secs;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(first_fn, &config, NULL, 0, &estimator));
    bel_status *status = bel_train(estimator, &spec, out);
    bel_estimator_destroy(estimator);
    return status;
}

static void everybody_gets_a_turn(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(train(thoughtful, WORKERS, STALL_SECS, &result));
    assert_int_equal(result.global_step, STEPS);
}

static bel_status *asleep(void *user, bel_replicator *replicator)
{
    (void)user;
    (void)nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 500000000}, NULL);
    return bel_replicator_run(replicator, 0, NULL);
}

static void hint_names_a_flag(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    bel_status *status = train(asleep, 1, 1, &result);
    assert_non_null(status);
    assert_int_equal(bel_status_code(status), BEL_DEADLINE_EXCEEDED);
    const char *flag = strstr(bel_status_message(status), "hint: --");
    assert_non_null(flag);
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    BEL_ASSERT_OK(bel_run_config_set(&config, flag + strlen("hint: --"), "60"));
    bel_status_destroy(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(everybody_gets_a_turn),
                                       BEL_TEST_IN_FOLDER(hint_names_a_flag)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
