// Runs on the bundled digits. Tests run in the source folder.
#include "support/digits.h"

#include "base/log.h"

bel_status *bel_test_digits_input(void *user, const bel_estimator *estimator, bel_mode mode,
                                  bel_dataset **out_dataset)
{
    (void)estimator;
    const char *path =
        mode == BEL_MODE_TRAIN ? "examples/data/digits-train.csv" : "examples/data/digits-eval.csv";
    bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){.size = sizeof(bel_csv_options),
                                                                .paths = &path,
                                                                .path_count = 1,
                                                                .label_column = "digit",
                                                                .class_count = 10,
                                                                .scale = 1.0 / 16});
    if (mode == BEL_MODE_TRAIN) {
        bel_dataset_shuffle(data, 0, 7);
        bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    }
    bel_dataset_batch(data, *(const int64_t *)user);
    *out_dataset = data;
    return NULL;
}

bel_status *bel_test_digits_train(bel_run_config config, const char *model_dir, int64_t batch_size,
                                  int64_t max_steps, const bel_param *params, int param_count,
                                  bool evaluate, bel_result *out_result)
{
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    config.model_dir = model_dir;
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, param_count,
                                 &estimator));
    int64_t eval_batch = 360;
    bel_train_spec train = {.size = sizeof train,
                            .input_fn = bel_test_digits_input,
                            .input_user = &batch_size,
                            .max_steps = max_steps};
    bel_eval_spec eval = {
        .size = sizeof eval, .input_fn = bel_test_digits_input, .input_user = &eval_batch};
    bel_status *status =
        bel_train_and_evaluate(estimator, &train, &eval, evaluate ? 1 : 0, out_result);
    bel_estimator_destroy(estimator);
    return status;
}
