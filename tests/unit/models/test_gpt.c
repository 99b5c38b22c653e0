// Model "gpt" beside PyTorch: loss, gradients and logits of two small models, from the same weights
// (gpt_oracle.py). The logits are those of the step that adds one token to the kept ones, so this
// also compares generation with a computation that keeps nothing. Then the graph for any number of
// tokens after kept ones, as it is exported. And what weight decay applies to, and wrong sizes.
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

// --- One token after kept ones -------------------------------------------------------------------

enum { KEPT = LAYERS * HEADS * T * (C / HEADS) };

typedef struct step {
    bel_predictor *predictor;
    int64_t kv_heads, token, place;
    float keys[KEPT], values[KEPT];
} step;

// Nothing reads what is not kept yet.
static void forget(step *s)
{
    for (int i = 0; i < KEPT; i++)
        s->keys[i] = s->values[i] = NAN;
    s->place = 0;
}

static const float *add_token(step *s, int64_t token)
{
    const int64_t d = C / HEADS;
    s->token = token;
    BEL_ASSERT_OK(bel_predictor_run(s->predictor));
    const float *k = bel_predictor_output(s->predictor, 1).data;
    const float *v = bel_predictor_output(s->predictor, 2).data;
    for (int64_t r = 0; r < LAYERS * s->kv_heads; r++) {
        memcpy(s->keys + (r * T + s->place) * d, k + r * d, (size_t)d * sizeof *k);
        memcpy(s->values + (r * T + s->place) * d, v + r * d, (size_t)d * sizeof *v);
    }
    s->place++;
    return bel_predictor_output(s->predictor, 0).data;
}

// Feeds one token after another.
static void check_logits(const bel_warm_file *file, bel_estimator *estimator, const char *folder,
                         int64_t kv_heads)
{
    static step s;
    const int64_t d = C / HEADS;
    s.kv_heads = kv_heads;
    const bel_shape one = BEL_SHAPE(1), kept = BEL_SHAPE(kv_heads, T, d);
    const bel_feature features[] = {
        {BEL_TOKENS_FIELD, BEL_DTYPE_I64, one}, {BEL_GPT_POSITION, BEL_DTYPE_I64, one},
        {"keys.0", BEL_DTYPE_F32, kept},        {"values.0", BEL_DTYPE_F32, kept},
        {"keys.1", BEL_DTYPE_F32, kept},        {"values.1", BEL_DTYPE_F32, kept}};
    const bel_shape row = BEL_SHAPE(1, 1), all = BEL_SHAPE(1, kv_heads, T, d);
    const int64_t layer = kv_heads * T * d;
    const bel_tensor fields[] = {
        {BEL_DTYPE_I64, row, &s.token},       {BEL_DTYPE_I64, row, &s.place},
        {BEL_DTYPE_F32, all, s.keys},         {BEL_DTYPE_F32, all, s.values},
        {BEL_DTYPE_F32, all, s.keys + layer}, {BEL_DTYPE_F32, all, s.values + layer}};
    char *first = bel_strf("%s/ckpt-00000000", folder);
    BEL_ASSERT_OK(bel_estimator_predictor(estimator, features, 6, first, &s.predictor));
    float *expected = bel_oracle_floats(file, "logits", BEL_SHAPE(N, T, V));
    for (int i = 0; i < 6; i++)
        BEL_ASSERT_OK(bel_predictor_bind(s.predictor, i, &fields[i]));
    for (int n = 0; n < N; n++) {
        forget(&s);
        for (int t = 0; t < T; t++) {
            const float *logits = add_token(&s, contexts[n][t]);
            for (int v = 0; v < V; v++)
                assert_true(fabsf(logits[v] - expected[(n * T + t) * V + v]) < 1e-5f);
        }
    }
    bel_free(expected);
    bel_predictor_destroy(s.predictor);
    bel_free(first);
}

// --- Any number of tokens after kept ones --------------------------------------------------------

enum { PAST_INPUTS = 3 + 2 * LAYERS };

static const char *const past_names[2 * LAYERS] = {
    "past_key_values.0.key", "past_key_values.0.value", "past_key_values.1.key",
    "past_key_values.1.value"};

static void make_past_features(bel_feature features[PAST_INPUTS], int64_t kv_heads)
{
    features[0] = (bel_feature){BEL_GPT_INPUT_IDS, BEL_DTYPE_I64, BEL_SHAPE(-2)};
    features[1] = (bel_feature){BEL_GPT_MASK, BEL_DTYPE_I64, BEL_SHAPE(-3)};
    features[2] = (bel_feature){BEL_GPT_PLACES, BEL_DTYPE_I64, BEL_SHAPE(-2)};
    for (int i = 0; i < 2 * LAYERS; i++)
        features[3 + i] =
            (bel_feature){past_names[i], BEL_DTYPE_F32, BEL_SHAPE(kv_heads, -4, C / HEADS)};
}

typedef struct pasts {
    bel_predictor *predictor;
    int64_t kv_heads, kept;
    float all[2 * LAYERS][N * HEADS * (T + 1) * (C / HEADS)];
} pasts;

// Adds `count` tokens of each context from `first` on. Before them `hidden` kept tokens are masked.
static const float *add_tokens(pasts *p, int first, int count, int hidden)
{
    static int64_t ids[N * T], places[N * T], mask[N * (T + 1)];
    int64_t total = p->kept + count;
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < count; i++) {
            ids[n * count + i] = contexts[n][first + i];
            places[n * count + i] = first + i;
        }
        for (int64_t i = 0; i < total; i++)
            mask[n * total + i] = i >= hidden;
    }
    const bel_shape some = BEL_SHAPE(N, count), every = BEL_SHAPE(N, total);
    const bel_shape kept = BEL_SHAPE(N, p->kv_heads, p->kept, C / HEADS);
    const bel_tensor head[] = {
        {BEL_DTYPE_I64, some, ids}, {BEL_DTYPE_I64, every, mask}, {BEL_DTYPE_I64, some, places}};
    for (int i = 0; i < PAST_INPUTS; i++) {
        const bel_tensor its = {BEL_DTYPE_F32, kept, p->all[i < 3 ? 0 : i - 3]};
        BEL_ASSERT_OK(bel_predictor_bind(p->predictor, i, i < 3 ? &head[i] : &its));
    }
    BEL_ASSERT_OK(bel_predictor_run(p->predictor));
    p->kept = total;
    for (int i = 0; i < 2 * LAYERS; i++) {
        bel_tensor present = bel_predictor_output(p->predictor, 1 + i);
        assert_int_equal(present.shape.dims[2], total);
        memcpy(p->all[i], present.data, bel_tensor_bytes(&present));
    }
    return bel_predictor_output(p->predictor, 0).data;
}

static void check_rows(const float *logits, const float *expected, int first, int count)
{
    for (int n = 0; n < N; n++)
        for (int i = 0; i < count * V; i++)
            assert_true(fabsf(logits[n * count * V + i] - expected[(n * T + first) * V + i]) <
                        1e-5f);
}

// Four tokens at once, then single ones; and the same after a token that the mask hides.
static void check_past(pasts *p, const float *expected)
{
    for (int hidden = 0; hidden < 2; hidden++) {
        p->kept = 0;
        if (hidden > 0) add_tokens(p, 3, 1, 0);
        check_rows(add_tokens(p, 0, 4, hidden), expected, 0, 4);
        for (int t = 4; t < T; t++)
            check_rows(add_tokens(p, t, 1, hidden), expected, t, 1);
    }
}

// The mask has one token too many: what is joined is no longer as long as the mask.
static void check_wrong_mask(pasts *p)
{
    int64_t mask[N * 9] = {0};
    const bel_tensor wrong = {BEL_DTYPE_I64, BEL_SHAPE(N, p->kept + 1), mask};
    BEL_ASSERT_OK(bel_predictor_bind(p->predictor, 1, &wrong));
    BEL_ASSERT_FAILS(bel_predictor_run(p->predictor), BEL_INVALID_ARGUMENT, "");
}

// In the program, and as the file that is exported.
static void check_export(const bel_warm_file *file, bel_estimator *estimator, const char *folder,
                         int64_t kv_heads)
{
    static pasts p;
    char *first = bel_strf("%s/ckpt-00000000", folder), *export = bel_strf("%s/past", folder);
    char *model = bel_strf("%s/model.onnx", export);
    float *expected = bel_oracle_floats(file, "logits", BEL_SHAPE(N, T, V));
    p.kv_heads = kv_heads;
    bel_feature features[PAST_INPUTS];
    make_past_features(features, kv_heads);
    BEL_ASSERT_OK(bel_estimator_predictor(estimator, features, PAST_INPUTS, first, &p.predictor));
    check_past(&p, expected);
    check_wrong_mask(&p);
    bel_predictor_destroy(p.predictor);
    const bel_export_options how = {
        .size = sizeof how, .features = features, .feature_count = PAST_INPUTS};
    BEL_ASSERT_OK(bel_export(estimator, first, &how, export));
    BEL_ASSERT_OK(bel_predictor_load(model, NULL, &p.predictor));
    check_past(&p, expected);
    check_wrong_mask(&p);
    bel_predictor_destroy(p.predictor);
    bel_free(expected);
    bel_free(model);
    bel_free(export);
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
    check_export(&file, estimator, folder, kv_heads);
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
