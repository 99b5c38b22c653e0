// Exporters: the newest export stays, whatever its step. A failed export or removal does not end
// the training.
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "support/bel_test.h"
#include "support/digits.h"

static int64_t batch = 32;

static bel_status *train(const char *model_dir, int64_t steps)
{
    static const bel_exporter latest = {
        .size = sizeof latest, .name = "latest", .kind = BEL_EXPORT_LATEST, .keep = 1};
    static const bel_exporter *const exporters[] = {&latest};
    const bel_param params[] = {
        {"hidden_units", "4"}, {"class_count", "10"}, {"learning_rate", "0.1"}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = model_dir;
    config.save_checkpoints_steps = 20;
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 3, &estimator));
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = steps};
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .steps = 1,
                                .exporters = exporters,
                                .exporter_count = 1};
    bel_result result = {.size = sizeof result};
    bel_status *status = bel_train_and_evaluate(estimator, &spec, &eval, 1, &result);
    bel_estimator_destroy(estimator);
    return status;
}

static bool is_there(const char *folder, const char *name)
{
    char *path = bel_path_join(folder, name);
    bool there = bel_file_exists(path);
    bel_free(path);
    return there;
}

// A training that returns to an older checkpoint exports smaller steps later.
static void test_the_last_export_stays(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    BEL_ASSERT_OK(train(folder, 40));
    assert_true(is_there(folder, "export/latest/40/evaluation.json"));
    char *newest = bel_path_join(folder, "ckpt-00000040");
    BEL_ASSERT_OK(bel_dir_remove(newest));
    bel_free(newest);
    BEL_ASSERT_OK(train(folder, 30));
    assert_true(is_there(folder, "export/latest/30/evaluation.json"));
    assert_false(is_there(folder, "export/latest/40"));
    bel_test_remove_folder(folder);
}

static void test_exports_end_no_training(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    bel_free(bel_test_file(folder, "export", "a file", 6)); // has the folder's name
    BEL_ASSERT_OK(train(folder, 20));
    assert_true(is_there(folder, "ckpt-00000020"));
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_export_stays),
        cmocka_unit_test(test_exports_end_no_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
