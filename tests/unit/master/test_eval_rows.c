// Rows of an evaluation's tables that other processes hold: they come only from the checkpoint of
// its step.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "belfry/belfry.h"
#include "master/job/job.h"
#include "model/input_fn.h"
#include "support/bel_test.h"

enum { RECORDS = 8, STEPS = 2 };

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer uniform = {.kind = BEL_INIT_UNIFORM, .value = 1};
    bel_value *rows = bel_embedding(g, "table", bel_context_feature(context, "ids"), 1, uniform);
    const bel_shape one = BEL_SHAPE(1);
    bel_value *scale = bel_variable(g, "scale", &one, uniform, BEL_VARIABLE_TRAINABLE);
    bel_loss_set(spec, bel_mean(g, bel_mul(g, rows, scale)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer), .learning_rate = 0.1});
    return NULL;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator;
    static int64_t ids[RECORDS][1];
    const bel_memory_field fields[] = {{"ids", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS, 1), ids}}};
    *out_dataset = bel_dataset_from_memory(fields, 1);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, RECORDS);
    return NULL;
}

static void damage(const char *checkpoint)
{
    char *folder = bel_path_join(bel_test_own_folder(), checkpoint), **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    for (size_t i = 0; i < count; i++)
        if (strstr(names[i], ".safetensors") != NULL)
            bel_free(bel_test_file(folder, names[i], "short", 5));
    bel_dir_names_free(names, count);
    bel_free(folder);
}

static void test_step(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.save_checkpoints_steps = 1;
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = STEPS};
    BEL_ASSERT_OK(bel_train(estimator, &train, NULL));

    const bel_backend_ops ops = {.read_rows = NULL};
    bel_backend backend = {.ops = &ops};
    bel_job job = {.estimator = estimator, .backend = &backend, .steps = {.saved = STEPS}};
    bel_job_eval eval = {.last_step = -1};
    BEL_ASSERT_OK(bel_input_fn_open(input, NULL, estimator, BEL_MODE_EVAL, NULL, &eval.input));
    BEL_ASSERT_OK(bel_model_build(estimator, BEL_MODE_EVAL, NULL, eval.input, 1, &eval.built));
    BEL_ASSERT_OK(bel_job_read_rows(&job, &eval, STEPS));

    damage("ckpt-00000002"); // older ones are undamaged
    BEL_ASSERT_FAILS(bel_job_read_rows(&job, &eval, STEPS), BEL_DATA_LOSS, "ckpt-00000002");
    static const char *const all[] = {"ckpt-00000000", "ckpt-00000001", "ckpt-00000002"};
    for (int i = 0; i <= STEPS; i++) {
        char *folder = bel_path_join(bel_test_own_folder(), all[i]);
        BEL_ASSERT_OK(bel_dir_remove(folder));
        bel_free(folder);
    }
    BEL_ASSERT_FAILS(bel_job_read_rows(&job, &eval, STEPS), BEL_NOT_FOUND, "ckpt-00000002");

    bel_row_layers_deinit(&eval.layers);
    bel_built_destroy(eval.built);
    bel_input_destroy(eval.input);
    bel_estimator_destroy(estimator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BEL_TEST_IN_FOLDER(test_step)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
