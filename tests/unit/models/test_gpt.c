// Model "gpt" beside PyTorch: loss, gradients and logits of two small models, from the same weights
// (gpt_oracle.py). The logits are those of the step that adds one token to the kept ones, so this
// also compares generation with training. And what weight decay applies to, and wrong sizes.
#include <math.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "models/gpt.h"
#include "support/bel_test.h"
#include "support/model_oracle.h"

enum { V = 11, C = 8, T = 6, N = 3, LAYERS = 2, HEADS = 2, MOST_PARAMS = 16 };

static const bel_param classic[] = {
    {"layers", "2"},      {"heads", "2"},       {"token_width", "8"},   {"context", "6"},
    {"vocabulary", "11"}, {"optimizer", "sgd"}, {"learning_rate", "1"}, {NULL, NULL}};
static const bel_param new[] = {
    {"layers", "2"},          {"heads", "2"},       {"kv_heads", "1"}, {"token_width", "8"},
    {"context", "6"},         {"vocabulary", "11"}, {"norm", "rms"},   {"positions", "rotary"},
    {"activation", "swiglu"}, {"bias", "false"},    {"tied", "false"}, {"optimizer", "sgd"},
    {"learning_rate", "1"},   {NULL, NULL}};

static int64_t contexts[N][T], labels[N][T], all_tokens[N][T + 1];

static bel_status *open_contexts(void *user, const bel_estimator *estimator, bel_mode mode,
                                 bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    bel_memory_field fields[] = {{BEL_TOKENS_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(N, T), contexts}},
                                 {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(N, T), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_batch(*out_dataset, N);
    return NULL;
}

static void read_contexts(const bel_warm_file *file)
{
    bel_oracle_integers(file, "tokens", *all_tokens, sizeof all_tokens / sizeof **all_tokens);
    for (int n = 0; n < N; n++)
        for (int t = 0; t < T; t++)
            contexts[n][t] = all_tokens[n][t], labels[n][t] = all_tokens[n][t + 1];
}

// Feeds one token after another.
static void check_logits(const bel_warm_file *file, bel_estimator *estimator, const char *folder,
                         int64_t kv_heads)
{
    static float keys[LAYERS * HEADS * T * (C / HEADS)], values[sizeof keys / sizeof *keys];
    const int64_t d = C / HEADS;
    int64_t token, place;
    const bel_shape one = BEL_SHAPE(1), kept = BEL_SHAPE(kv_heads, T, d);
    const bel_feature features[] = {
        {BEL_TOKENS_FIELD, BEL_DTYPE_I64, one}, {BEL_GPT_POSITION, BEL_DTYPE_I64, one},
        {"keys.0", BEL_DTYPE_F32, kept},        {"values.0", BEL_DTYPE_F32, kept},
        {"keys.1", BEL_DTYPE_F32, kept},        {"values.1", BEL_DTYPE_F32, kept}};
    const bel_shape row = BEL_SHAPE(1, 1), all = BEL_SHAPE(1, kv_heads, T, d);
    const int64_t layer = kv_heads * T * d;
    const bel_tensor fields[] = {
        {BEL_DTYPE_I64, row, &token},       {BEL_DTYPE_I64, row, &place},
        {BEL_DTYPE_F32, all, keys},         {BEL_DTYPE_F32, all, values},
        {BEL_DTYPE_F32, all, keys + layer}, {BEL_DTYPE_F32, all, values + layer}};
    char *first = bel_strf("%s/ckpt-00000000", folder);
    bel_predictor *predictor;
    BEL_ASSERT_OK(bel_estimator_predictor(estimator, features, 6, first, &predictor));
    float *expected = bel_oracle_floats(file, "logits", BEL_SHAPE(N, T, V));
    for (int i = 0; i < 6; i++)
        BEL_ASSERT_OK(bel_predictor_bind(predictor, i, &fields[i]));
    for (int64_t i = 0; i < LAYERS * layer; i++)
        keys[i] = values[i] = NAN; // nothing reads what is not kept yet
    for (int n = 0; n < N; n++) {
        for (place = 0; place < T; place++) {
            token = contexts[n][place];
            BEL_ASSERT_OK(bel_predictor_run(predictor));
            const float *logits = bel_predictor_output(predictor, 0).data;
            for (int v = 0; v < V; v++)
                assert_true(fabsf(logits[v] - expected[(n * T + place) * V + v]) < 1e-5f);
            for (int64_t r = 0; r < LAYERS * kv_heads; r++) {
                const float *k = bel_predictor_output(predictor, 1).data;
                const float *v = bel_predictor_output(predictor, 2).data;
                memcpy(keys + (r * T + place) * d, k + r * d, (size_t)d * sizeof *keys);
                memcpy(values + (r * T + place) * d, v + r * d, (size_t)d * sizeof *values);
            }
        }
    }
    bel_free(expected);
    bel_predictor_destroy(predictor);
    bel_free(first);
}

static void check_against(const char *path, const bel_param *params, int64_t kv_heads, double decay)
{
    const char *folder = bel_test_own_folder();
    bel_warm_file file;
    BEL_ASSERT_OK(bel_warm_file_open(path, &file));
    read_contexts(&file);
    bel_estimator *estimator = bel_oracle_estimator("gpt", params, folder);
    const bel_train_spec train = {.size = sizeof train,
                                  .input_fn = open_contexts,
                                  .max_steps = 1,
                                  .warm_start = {.checkpoint = path}};
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_train(estimator, &train, &result));
    float *loss = bel_oracle_floats(&file, "loss", BEL_SHAPE(1));
    assert_true(fabs(result.loss - (double)*loss) < 1e-6);
    bel_oracle_check_gradients(&file, folder, decay);
    check_logits(&file, estimator, folder, kv_heads);
    char *first = bel_strf("%s/ckpt-00000000", folder);
    const bel_eval_spec eval = {.size = sizeof eval, .input_fn = open_contexts};
    BEL_ASSERT_OK(bel_evaluate(estimator, &eval, first, &result));
    assert_true(fabs(result.loss - (double)*loss) < 1e-6);
    assert_int_equal(result.metric_count, 1); // no bytes, so no bits per byte
    assert_string_equal(result.metrics[0].name, "perplexity");
    assert_true(fabs(result.metrics[0].value - exp((double)*loss)) < 1e-4);
    bel_free(first);
    bel_free(loss);
    bel_estimator_destroy(estimator);
    bel_warm_file_close(&file);
}

static void classic_is_as_in_pytorch(void **state)
{
    (void)state;
    check_against("tests/unit/models/gpt-classic.safetensors", classic, HEADS, 0);
}

static void new_is_as_in_pytorch(void **state)
{
    (void)state;
    check_against("tests/unit/models/gpt-new.safetensors", new, 1, 0);
}

// Adds parameters before the end of the classic ones.
static void with(bel_param params[MOST_PARAMS], const char *name, const char *value)
{
    size_t last = sizeof classic / sizeof *classic - 1;
    memcpy(params, classic, sizeof classic);
    params[last] = (bel_param){name, value};
    params[last + 1] = (bel_param){NULL, NULL};
    for (size_t i = 0; i < last; i++)
        if (strcmp(params[i].name, name) == 0) params[i].value = value;
}

static void only_matrices_decay(void **state)
{
    (void)state;
    bel_param params[MOST_PARAMS];
    with(params, "weight_decay", "0.5");
    check_against("tests/unit/models/gpt-classic.safetensors", params, HEADS, 0.5);
}

static void assert_refused(const char *name, const char *value, const char *message)
{
    bel_param params[MOST_PARAMS];
    with(params, name, value);
    bel_estimator *estimator = bel_oracle_estimator("gpt", params, bel_test_own_folder());
    const bel_train_spec train = {.size = sizeof train, .input_fn = open_contexts, .max_steps = 1};
    BEL_ASSERT_FAILS(bel_train(estimator, &train, NULL), BEL_INVALID_ARGUMENT, message);
    bel_estimator_destroy(estimator);
}

static void wrong_parameters_are_named(void **state)
{
    (void)state;
    assert_refused("heads", "3", "expected heads that divide token_width");
    assert_refused("kv_heads", "4", "expected heads that divide token_width");
    assert_refused("context", "5", "expected tokens [batch, 1 to 5], got [?, 6]");
    assert_refused("norm", "batch", "parameter norm: expected layer or rms, got \"batch\"");
    assert_refused("preset", "huge", "parameter preset");
    assert_refused("layers", "-1", "parameter layers must be an integer from 0");
}

static int setup(void **state)
{
    (void)state;
    bel_log_configure(BEL_LOG_WARN, BEL_LOG_TEXT);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(classic_is_as_in_pytorch),
        BEL_TEST_IN_FOLDER(new_is_as_in_pytorch),
        BEL_TEST_IN_FOLDER(only_matrices_decay),
        BEL_TEST_IN_FOLDER(wrong_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
