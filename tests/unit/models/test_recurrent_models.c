// The models gru and lstm learn a task that needs memory: the class of a sequence is its one marked
// item. Garbage follows the end of each sequence.
#include "support/bel_test.h"

#include "base/log.h"
#include "belfry/belfry.h"

enum { RECORDS = 1024, HELD_OUT = 256, STEPS = 14, ITEMS = 4, WIDTH = ITEMS + 1 };

static float x[RECORDS + HELD_OUT][STEPS][WIDTH];
static int64_t lengths[RECORDS + HELD_OUT], labels[RECORDS + HELD_OUT];

static uint32_t next_number(void)
{
    static uint64_t state = 7;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static int make_data(void **state)
{
    (void)state;
    bel_log_configure(BEL_LOG_WARN, BEL_LOG_TEXT);
    for (int i = 0; i < RECORDS + HELD_OUT; i++) {
        lengths[i] = 1 + next_number() % STEPS;
        int64_t marked = next_number() % lengths[i];
        for (int64_t t = 0; t < STEPS; t++) {
            uint32_t item = next_number() % ITEMS;
            if (t == marked) labels[i] = item;
            for (int64_t d = 0; d < WIDTH; d++)
                x[i][t][d] = t >= lengths[i] ? 1e30f : 0.0f;
            if (t >= lengths[i]) continue;
            x[i][t][item] = 1;
            x[i][t][ITEMS] = t == marked;
        }
    }
    return 0;
}

static bel_status *open_data(void *user, const bel_estimator *estimator, bel_mode mode,
                             bel_dataset **out_dataset)
{
    (void)estimator;
    bool flat = *(const bool *)user, training = mode == BEL_MODE_TRAIN;
    int64_t first = training ? 0 : RECORDS, count = training ? RECORDS : HELD_OUT;
    bel_shape shape = flat ? BEL_SHAPE(count, STEPS * WIDTH) : BEL_SHAPE(count, STEPS, WIDTH);
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, shape, x[first]}},
        {BEL_LENGTH_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(count), lengths + first}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(count), labels + first}}};
    bel_dataset *data = bel_dataset_from_memory(fields, 3);
    if (training) bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, 32);
    *out_dataset = data;
    return NULL;
}

static bel_status *train(const char *model, const char *units, const char *width, bool flat,
                         int64_t steps, double *out_accuracy)
{
    const bel_param params[] = {{"class_count", "4"},
                                {"recurrent_units", units},
                                {"sequence_width", width},
                                {"optimizer", "adam"},
                                {"learning_rate", "0.01"}};
    char *folder = bel_test_folder();
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.report = false;
    config.log_step_count_steps = 0;
    bel_estimator *estimator;
    BEL_TRY(bel_estimator_create(bel_model_find(model)->model_fn, &config, params, 5, &estimator));
    bel_train_spec train_spec = {
        .size = sizeof train_spec, .input_fn = open_data, .input_user = &flat, .max_steps = steps};
    bel_eval_spec eval_spec = {
        .size = sizeof eval_spec, .input_fn = open_data, .input_user = &flat};
    bel_result result = {.size = sizeof result, .examples = 0};
    bel_status *status = bel_train_and_evaluate(estimator, &train_spec, &eval_spec, 1, &result);
    bel_estimator_destroy(estimator);
    bel_test_remove_folder(folder);
    if (status == NULL) *out_accuracy = result.metrics[0].value;
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"gru", "16"}, {"lstm", "24"}, {"gru", "12,12"}};
    for (int i = 0; i < 3; i++) {
        double accuracy = 0;
        BEL_ASSERT_OK(train(rows[i][0], rows[i][1], "1", false, 800, &accuracy));
        if (accuracy < 0.99) fail_msg("%s %s: accuracy %.3f", rows[i][0], rows[i][1], accuracy);
    }
}

// Columns are steps side by side: the same numbers give the same run.
static void test_columns(void **state)
{
    (void)state;
    double accuracy = 0, flat = 0;
    BEL_ASSERT_OK(train("gru", "8", "1", false, 60, &accuracy));
    BEL_ASSERT_OK(train("gru", "8", "5", true, 60, &flat));
    assert_true(accuracy == flat);
    BEL_ASSERT_FAILS(train("lstm", "8", "3", true, 1, &flat), BEL_INVALID_ARGUMENT,
                     "multiple of sequence_width 3, got f32");
    BEL_ASSERT_FAILS(train("gru", "", "5", true, 1, &flat), BEL_INVALID_ARGUMENT,
                     "at least one layer");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
