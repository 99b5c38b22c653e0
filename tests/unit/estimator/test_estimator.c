// Estimators: settings out of range, and the features that a model function sees.
#include "belfry/estimator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "support/bel_test.h"

enum { RECORDS = 8, FIELDS = 2 };

// Model with one feature, whose table rows are graph inputs too. bel_context_only_feature still
// returns the feature.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_value *ids = bel_context_only_feature(context);
    bel_value *rows = bel_embedding(g, "table", ids, 1, zeros);
    assert_ptr_equal(bel_context_only_feature(context), ids);
    const bel_shape one = BEL_SHAPE(1);
    bel_value *scale = bel_variable(g, "scale", &one, zeros, BEL_VARIABLE_TRAINABLE);
    bel_loss_set(spec, bel_mean(g, bel_mul(g, rows, scale)));
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer), .learning_rate = 0.1});
    return NULL;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    static int64_t ids[RECORDS][FIELDS], labels[RECORDS];
    const bel_memory_field fields[] = {
        {"ids", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS, FIELDS), ids}},
        {"label", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), labels}},
    };
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_batch(*out_dataset, RECORDS);
    return NULL;
}

static void test_only_feature(void **state)
{
    (void)state;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_train_spec spec = {.size = sizeof spec, .input_fn = input, .max_steps = 1};
    BEL_ASSERT_OK(bel_train(estimator, &spec, NULL));
    bel_estimator_destroy(estimator);
}

// Each text is in memory of the caller, which is overwritten afterwards.
static void test_texts_are_copied(void **state)
{
    (void)state;
    enum { TEXTS = 4 };
    static const char *const names[TEXTS] = {"model_dir", "table_disk", "metrics_address", "trace"};
    static const char *const given[TEXTS] = {"model", "rows", "127.0.0.2", "trace.json"};
    char texts[TEXTS][32];
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.table_memory = 1 << 20;
    for (int i = 0; i < TEXTS; i++) {
        (void)bel_snprintf(texts[i], sizeof texts[i], "%s", given[i]);
        BEL_ASSERT_OK(bel_run_config_set(&config, names[i], texts[i]));
    }
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    memset(texts, 'x', sizeof texts);
    const bel_run_config *kept = bel_estimator_config(estimator);
    assert_string_equal(kept->model_dir, "model");
    assert_string_equal(kept->table_disk, "rows");
    assert_string_equal(kept->metrics_address, "127.0.0.2");
    assert_string_equal(kept->trace, "trace.json");
    bel_estimator_destroy(estimator);
}

static void refused(const bel_run_config *config, const char *text)
{
    bel_estimator *estimator;
    BEL_ASSERT_FAILS(bel_estimator_create(model, config, NULL, 0, &estimator), BEL_INVALID_ARGUMENT,
                     text);
}

static void test_limits(void **state)
{
    (void)state;
    bel_run_config good, config;
    bel_run_config_init(&good, sizeof good);
    good.model_dir = "unused";
    config = good;
    config.mode = (bel_aggregation)3;
    refused(&config, "mode must be from 0 to 2 (sync|async|bounded), got 3");
    config = good;
    config.lane = (bel_lane_choice)3;
    refused(&config, "lane must be from 0 to 2 (auto|shm|grpc), got 3");
    config = good;
    config.table_memory = -1;
    refused(&config, "table_memory must be in [0, 8388608] MiB, got -1 bytes");
    config = good;
    config.table_disk = "rows";
    refused(&config, "table_disk needs table_memory: the memory for a table's rows, beyond which "
                     "they are in rows");
    config = good;
    config.stall_timeout = NAN;
    refused(&config, "stall_timeout must be in [0.001, 1e9] s, got ");
    config = good;
    config.num_workers = 1025;
    refused(&config, "num_workers must be in [1, 1024] workers, got 1025");
    config = good;
    config.max_staleness = 2000000000;
    refused(&config, "max_staleness must be in [0, 1e9] steps, got 2000000000");
    config = good;
    config.keep_checkpoint_max = 1000001;
    refused(&config, "keep_checkpoint_max must be in [0, 1e6] checkpoints");
    config = good;
    config.save_checkpoints_steps = (int64_t)1 << 62;
    refused(&config, "save_checkpoints_steps must be in [0, 1e15] steps");
    config = good;
    config.num_gpus = -1;
    refused(&config, "num_gpus must be in [0, 256] towers, got -1");
    config.num_gpus = 257;
    refused(&config, "num_gpus must be in [0, 256] towers, got 257");
    config = good;
    config.size = 0;
    refused(&config, "bel_run_config: size must be sizeof(bel_run_config), got 0");
}

// Parameters by type; a text that is no value of the type is an error, and nothing is set.
static void test_params(void **state)
{
    (void)state;
    static const bel_param params[] = {
        {"on", "true"}, {"off", "0"}, {"text", "maybe"}, {"n", "-12"}, {"x", "1e-3"}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = "model";
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, params, 5, &estimator));
    bool flag = false;
    int64_t n = 5;
    double x = 5;
    BEL_ASSERT_OK(bel_estimator_param_bool(estimator, "on", false, &flag));
    assert_true(flag);
    BEL_ASSERT_OK(bel_estimator_param_bool(estimator, "off", true, &flag));
    assert_false(flag);
    BEL_ASSERT_OK(bel_estimator_param_bool(estimator, "unset", true, &flag));
    assert_true(flag);
    BEL_ASSERT_FAILS(bel_estimator_param_bool(estimator, "text", false, &flag),
                     BEL_INVALID_ARGUMENT, "true or false");
    assert_true(flag);
    BEL_ASSERT_OK(bel_estimator_param_int(estimator, "n", 0, &n));
    assert_int_equal(n, -12);
    BEL_ASSERT_FAILS(bel_estimator_param_int(estimator, "x", 0, &n), BEL_INVALID_ARGUMENT,
                     "parameter x must be an integer");
    assert_int_equal(n, -12);
    BEL_ASSERT_OK(bel_estimator_param_number(estimator, "x", 0, &x));
    assert_true(x == 1e-3);
    assert_string_equal(bel_estimator_param(estimator, "unset", "else"), "else");
    bel_estimator_destroy(estimator);
}

// Headers and library have one version.
static void test_version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", BEL_VERSION_MAJOR, BEL_VERSION_MINOR,
             BEL_VERSION_PATCH);
    assert_string_equal(text, bel_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_only_feature), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_texts_are_copied), cmocka_unit_test(test_params),
        cmocka_unit_test(test_version)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
