// Canned models through the public interface: they learn, their layers have the promised names, and
// every wrong parameter is named.
#include "support/bel_test.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"

enum { ROWS = 64, COLUMNS = 4, CLASSES = 3 };

static float features[ROWS][COLUMNS];
static int64_t ids[ROWS][2];
static int64_t labels[ROWS];

// In class c column c is set; the last column is noise.
static int make_data(void **state)
{
    (void)state;
    bel_log_configure(BEL_LOG_WARN, BEL_LOG_TEXT);
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % CLASSES;
        features[i][i % CLASSES] = 1.0f;
        features[i][COLUMNS - 1] = (float)(i % 7) / 7.0f;
        ids[i][0] = 1000 * labels[i] + 7;
        ids[i][1] = -1 - i % 5;
    }
    return 0;
}

static bel_status *open_data(void *user, const bel_estimator *estimator, bel_mode mode,
                             bel_dataset **out_dataset)
{
    (void)estimator;
    const bel_shape *shape = user; // shape of the feature, all records
    bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, *shape, features}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(ROWS), labels}},
    };
    bel_dataset *data = bel_dataset_from_memory(fields, 2);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, 16);
    *out_dataset = data;
    return NULL;
}

// Trains `model` with params (a NULL name ends them) and evaluates at the end.
static bel_status *train(const char *model, const bel_param *params, bel_shape shape,
                         const char *folder, int64_t steps, bel_result *out_result)
{
    int count = 0;
    while (params[count].name != NULL)
        count++;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = folder;
    config.report = false;
    config.log_step_count_steps = 0;
    bel_estimator *estimator;
    BEL_TRY(
        bel_estimator_create(bel_model_find(model)->model_fn, &config, params, count, &estimator));
    bel_train_spec train_spec = {
        .size = sizeof train_spec, .input_fn = open_data, .input_user = &shape, .max_steps = steps};
    bel_eval_spec eval_spec = {
        .size = sizeof eval_spec, .input_fn = open_data, .input_user = &shape};
    bel_status *status = bel_train_and_evaluate(estimator, &train_spec, &eval_spec, 1, out_result);
    bel_estimator_destroy(estimator);
    return status;
}

static bel_status *train_flat(const char *model, const bel_param *params, const char *folder,
                              int64_t steps, bel_result *out_result)
{
    return train(model, params, BEL_SHAPE(ROWS, COLUMNS), folder, steps, out_result);
}

static void assert_tensor(const bel_ckpt_reader *reader, const char *name, bel_shape expected)
{
    int index = bel_ckpt_find(reader, name);
    assert_true(index >= 0);
    bel_dtype dtype;
    bel_shape shape;
    bel_ckpt_tensor(reader, index, &name, &dtype, &shape);
    assert_true(bel_shape_equal(&shape, &expected));
}

static void test_table(void **state)
{
    (void)state;
    int count = 0;
    for (; bel_model_at(count) != NULL; count++) {
        const bel_package *model = bel_model_at(count);
        assert_int_equal(model->abi, BEL_PACKAGE_ABI);
        assert_ptr_equal(bel_model_find(model->name), model);
    }
    assert_int_equal(count, 10);
    assert_null(bel_model_find("none"));
    assert_null(bel_model_at(-1));
}

static void test_models_learn(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"sgd",     "momentum", "adam", "adagrad",
                                             "rmsprop", "adamw",    "lamb"};
    for (int m = 0; m < 2; m++) {
        for (int o = 0; o < 7; o++) {
            const char *rate = strcmp(optimizers[o], "lamb") == 0 ? "0.01" : "0.05";
            const bel_param params[] = {{"class_count", "3"},
                                        {"hidden_units", "8,6"},
                                        {"optimizer", optimizers[o]},
                                        {"learning_rate", rate},
                                        {"nesterov", "true"},
                                        {"l2", "0.0001"},
                                        {NULL, NULL}};
            char *folder = bel_test_folder();
            bel_result result = {.size = sizeof result};
            BEL_ASSERT_OK(train_flat(bel_model_at(m)->name, params, folder, 400, &result));
            assert_string_equal(result.metrics[0].name, "accuracy");
            assert_true(result.metrics[0].value > 0.95);
            assert_int_equal(result.examples, ROWS);
            bel_test_remove_folder(folder);
        }
    }
}

// With only ids, or with ids and numbers.
static bel_status *open_ids(void *user, const bel_estimator *estimator, bel_mode mode,
                            bel_dataset **out_dataset)
{
    (void)estimator;
    bool numbers = *(const bool *)user;
    bel_memory_field fields[] = {
        {BEL_ID_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(ROWS, 2), ids}},
        {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(ROWS), labels}},
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(ROWS, COLUMNS), features}},
    };
    bel_dataset *data = bel_dataset_from_memory(fields, numbers ? 3 : 2);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, 16);
    *out_dataset = data;
    return NULL;
}

static void test_wide_deep(void **state)
{
    (void)state;
    for (int numbers = 0; numbers < 2; numbers++) {
        const bel_param params[] = {{"class_count", "3"},
                                    {"hidden_units", "8"},
                                    {"embedding_width", "4"},
                                    {"learning_rate", "0.05"}};
        bool has_numbers = numbers == 1;
        char *folder = bel_test_folder();
        bel_run_config config;
        bel_run_config_init(&config, sizeof config);
        config.model_dir = folder;
        config.report = false;
        bel_estimator *estimator;
        BEL_ASSERT_OK(bel_estimator_create(bel_model_find("wide_deep")->model_fn, &config, params,
                                           4, &estimator));
        bel_train_spec train_spec = {.size = sizeof train_spec,
                                     .input_fn = open_ids,
                                     .input_user = &has_numbers,
                                     .max_steps = 60};
        bel_eval_spec eval_spec = {
            .size = sizeof eval_spec, .input_fn = open_ids, .input_user = &has_numbers};
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &train_spec, &eval_spec, 1, &result));
        assert_true(result.metrics[0].value == 1);
        bel_estimator_destroy(estimator);
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
        assert_tensor(reader, "dense_0/kernel", BEL_SHAPE(2 * 4 + (has_numbers ? COLUMNS : 0), 8));
        assert_tensor(reader, "logits/kernel", BEL_SHAPE(8, CLASSES));
        assert_int_equal(bel_ckpt_table_count(reader), 2);
        bel_ckpt_close(reader);
        bel_test_remove_folder(folder);
    }
}

static void test_layers_have_their_names_and_shapes(void **state)
{
    (void)state;
    const bel_param params[] = {{"class_count", "3"}, {"hidden_units", "8,6"}, {NULL, NULL}};
    char *folder = bel_test_folder();
    bel_result result = {.size = sizeof result};
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(train_flat("dnn", params, folder, 1, &result));
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    assert_tensor(reader, "dense_0/kernel", BEL_SHAPE(COLUMNS, 8));
    assert_tensor(reader, "dense_0/bias", BEL_SHAPE(8));
    assert_tensor(reader, "dense_1/kernel", BEL_SHAPE(8, 6));
    assert_tensor(reader, "logits/kernel", BEL_SHAPE(6, CLASSES));
    assert_tensor(reader, "logits/bias", BEL_SHAPE(CLASSES));
    assert_int_equal(bel_ckpt_find(reader, "dense_2/kernel"), -1);
    bel_ckpt_close(reader);
    bel_test_remove_folder(folder);
}

// The data as images of 2 × 2. Both models train and evaluate, with state in the checkpoint.
static void test_images(void **state)
{
    (void)state;
    const bel_param params[] = {{"class_count", "3"},      {"filters", "20,4"}, {"window", "2"},
                                {"dense_units", "6"},      {"blocks", "1"},     {"width", "5"},
                                {"learning_rate", "0.01"}, {"l2", "0.0001"},    {NULL, NULL}};
    static const char *const models[] = {"cnn", "resnet"};
    for (int m = 0; m < 2; m++) {
        char *folder = bel_test_folder();
        bel_result result = {.size = sizeof result};
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(train_flat(models[m], params, folder, 200, &result));
        assert_true(result.metrics[0].value > 0.95);
        BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
        if (m == 0) {
            assert_tensor(reader, "conv_0/kernel", BEL_SHAPE(20, 1, 2, 2));
            assert_tensor(reader, "conv_1/kernel", BEL_SHAPE(4, 20, 2, 2));
            assert_tensor(reader, "conv_1/bias", BEL_SHAPE(4));
            assert_tensor(reader, "dense_0/kernel", BEL_SHAPE(4, 6));
        } else {
            float variance[5];
            bel_shape shape = BEL_SHAPE(5);
            assert_tensor(reader, "first/kernel", BEL_SHAPE(5, 1, 3, 3));
            assert_tensor(reader, "block_1_0/short/kernel", BEL_SHAPE(10, 5, 1, 1));
            BEL_ASSERT_OK(
                bel_ckpt_read(reader, "first/variance", BEL_DTYPE_F32, &shape, 0, 5, variance));
            for (int i = 0; i < 5; i++)
                assert_true(variance[i] > 0.0f && variance[i] != 1.0f);
        }
        bel_ckpt_close(reader);
        bel_test_remove_folder(folder);
    }
}

// Slots are saved under the rule's names and with the right start values, and a resumed run loads
// them.
static void test_slots_are_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"adagrad", "ftrl"};
    for (int o = 0; o < 2; o++) {
        const bel_param params[] = {{"class_count", "3"},       {"optimizer", names[o]},
                                    {"learning_rate", "1"},     {"initial_accumulator", "100"},
                                    {"ftrl_l2_shrinkage", "0"}, {NULL, NULL}};
        char *folder = bel_test_folder(), *name = bel_strf("logits/bias/%s/accumulator", names[o]);
        float before[CLASSES] = {0}, after[CLASSES];
        bel_shape shape = BEL_SHAPE(CLASSES);
        for (int64_t steps = 200; steps <= 400; steps += 200) {
            bel_result result = {.size = sizeof result};
            bel_ckpt_reader *reader;
            BEL_ASSERT_OK(train_flat("linear", params, folder, steps, &result));
            BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
            BEL_ASSERT_OK(bel_ckpt_read(reader, name, BEL_DTYPE_F32, &shape, 0, CLASSES, after));
            bel_ckpt_close(reader);
            assert_true(steps < 400 || result.metrics[0].value > 0.95);
            for (int i = 0; i < CLASSES; i++) {
                assert_true(after[i] >= 100.0f && after[i] < 200.0f && after[i] >= before[i]);
                before[i] = after[i];
            }
        }
        bel_free(name);
        bel_test_remove_folder(folder);
    }
}

// The penalty is part of the loss: a strong one shrinks the kernels.
static float largest_weight(const char *l2)
{
    const bel_param params[] = {
        {"class_count", "3"}, {"learning_rate", "0.05"}, {"l2", l2}, {NULL, NULL}};
    char *folder = bel_test_folder();
    bel_result result = {.size = sizeof result};
    bel_ckpt_reader *reader;
    float kernel[COLUMNS * CLASSES], largest = 0;
    bel_shape shape = BEL_SHAPE(COLUMNS, CLASSES);
    BEL_ASSERT_OK(train_flat("linear", params, folder, 300, &result));
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    BEL_ASSERT_OK(bel_ckpt_read(reader, "logits/kernel", BEL_DTYPE_F32, &shape, 0,
                                COLUMNS * CLASSES, kernel));
    for (int i = 0; i < COLUMNS * CLASSES; i++)
        if (kernel[i] > largest) largest = kernel[i];
    bel_ckpt_close(reader);
    bel_test_remove_folder(folder);
    return largest;
}

static void test_l2_shrinks_kernels(void **state)
{
    (void)state;
    assert_true(largest_weight("1") < 0.5f * largest_weight("0"));
}

static void test_wrong_parameters_are_named(void **state)
{
    (void)state;
    static const struct {
        bel_param param;
        const char *message;
    } cases[] = {
        {{"class_count", "1"}, "class_count must be an integer from 2"},
        {{"class_count", "2.5"}, "class_count must be an integer"},
        {{"class_count", "nan"}, "class_count must be an integer"},
        {{"hidden_units", "8,0"}, "hidden_units: layer 1 must have 1 to"},
        {{"hidden_units", "8,x"}, "hidden_units must be a list of at most 16384 integers"},
        {{"dropout", "1"}, "dropout must be at least 0 and below 1, got 1"},
        {{"l2", "much"}, "l2 must be a number, got \"much\""},
        {{"optimizer", "adm"},
         "optimizer must be one of sgd, momentum, adam, adagrad, rmsprop, adamw, ftrl, lamb, "
         "lars, adadelta, got \"adm\""},
        {{"nesterov", "1"}, "nesterov must be true or false"},
        {{"schedule", "cosin"}, "schedule must be one of constant, exponential, cosine, piecewise"},
        {{"decay_steps", "0.5"}, "decay_steps must be an integer"},
        {{"schedule", "piecewise"}, "rates[0] of the schedule must be above 0"},
        {{"rates", "1,x"}, "rates must be numbers such as 0.1,0.01"},
        {{"lr_mult", "dense_0/*"}, "lr_mult: expected PATTERN=FACTOR, got \"dense_0/*\""},
        {{"decay_mult", "dense_7/*=1"}, "decay_mult: \"dense_7/*\" matches no trainable variable"},
        {{"warmup_steps", "-1"}, "warmup_steps must be in [0, inf), got -1"},
        {{"learning_rate", "-1"}, "learning_rate must be in (0, 1000000]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bel_param params[] = {cases[i].param, {NULL, NULL}};
        char *folder = bel_test_folder();
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_FAILS(train_flat("dnn", params, folder, 1, &result), BEL_INVALID_ARGUMENT,
                         cases[i].message);
        bel_test_remove_folder(folder);
    }
}

// A list of `count` layers, each of one unit.
static char *list_layers(int count)
{
    bel_str list = {0};
    for (int i = 0; i < count; i++)
        bel_str_puts(&list, i > 0 ? ",1" : "1");
    return list.text;
}

// Layouts, lanes and checkpoints support many layers, up to a bound.
static void test_deep(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *deep = list_layers(500), *too_deep = list_layers(16385);
    const bel_param params[] = {
        {"hidden_units", deep}, {"class_count", "3"}, {"optimizer", "sgd"}, {NULL, NULL}};
    const bel_param more[] = {{"hidden_units", too_deep}, {NULL, NULL}};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(train_flat("dnn", params, folder, 3, &result));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(folder, &reader));
    assert_int_equal(bel_ckpt_tensor_count(reader), 1002);
    assert_tensor(reader, "dense_499/kernel", BEL_SHAPE(1, 1));
    bel_ckpt_close(reader);
    BEL_ASSERT_FAILS(train_flat("dnn", more, folder, 3, &result), BEL_INVALID_ARGUMENT,
                     "hidden_units must be a list of at most 16384 integers");
    bel_test_remove_folder(folder);
    bel_free(deep);
    bel_free(too_deep);
}

static void test_features_must_be_flat(void **state)
{
    (void)state;
    const bel_param params[] = {{NULL, NULL}};
    char *folder = bel_test_folder();
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_FAILS(train("linear", params, BEL_SHAPE(ROWS, 2, 2), folder, 1, &result),
                     BEL_INVALID_ARGUMENT, "takes a feature f32 [batch, columns], got f32 [");
    static const char *const shapes[] = {"2,2", "3,1,1", "-1,-2,2"};
    for (int i = 0; i < 3; i++) {
        const bel_param shape[] = {{"image_shape", shapes[i]}, {NULL, NULL}};
        BEL_ASSERT_FAILS(train_flat("cnn", shape, folder, 1, &result), BEL_INVALID_ARGUMENT,
                         "columns are one square channel unless image_shape gives c,h,w");
    }
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_models_learn),
        cmocka_unit_test(test_wide_deep),
        cmocka_unit_test(test_layers_have_their_names_and_shapes),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_slots_are_kept),
        cmocka_unit_test(test_l2_shrinks_kernels),
        cmocka_unit_test(test_wrong_parameters_are_named),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_features_must_be_flat),
    };
    return cmocka_run_group_tests(tests, make_data, NULL);
}
