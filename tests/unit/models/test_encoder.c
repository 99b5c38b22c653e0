// Model "encoder" beside PyTorch (encoder_oracle.py): classes of texts with padding, their loss,
// gradients and probabilities; the loss of hidden tokens, and the mean states. And the shares of
// tokens that are hidden.
#include <math.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "models/masks.h"
#include "support/bel_test.h"
#include "support/model_oracle.h"

enum { V = 11, C = 8, N = 4, T = 20, CLASSES = 3, MOST_PARAMS = 16 };

static const bel_param classic[] = {
    {"layers", "2"},        {"heads", "2"},       {"token_width", "8"},
    {"context", "20"},      {"vocabulary", "11"}, {"optimizer", "sgd"},
    {"learning_rate", "1"}, {"class_count", "3"}, {NULL, NULL}};
static const bel_param new[] = {
    {"layers", "2"},      {"heads", "2"},       {"token_width", "8"},     {"context", "20"},
    {"vocabulary", "11"}, {"optimizer", "sgd"}, {"learning_rate", "1"},   {"class_count", "3"},
    {"norm", "rms"},      {"bias", "false"},    {"activation", "swiglu"}, {"positions", "rotary"},
    {NULL, NULL}};

static int64_t texts[N][T], lengths[N], classes[N];

static bel_status *open_texts(void *labeled, const bel_estimator *estimator, bel_mode mode,
                              bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    bel_memory_field fields[] = {{BEL_TOKENS_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(N, T), texts}},
                                 {BEL_LENGTH_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(N), lengths}},
                                 {BEL_LABEL_FIELD, {BEL_DTYPE_I64, BEL_SHAPE(N), classes}}};
    *out_dataset = bel_dataset_from_memory(fields, labeled != NULL ? 3 : 1);
    bel_dataset_batch(*out_dataset, N);
    return NULL;
}

static char yes; // its address: with lengths and labels

static void read_texts(const bel_warm_file *file)
{
    bel_oracle_integers(file, "tokens", *texts, (size_t)N * T);
    bel_oracle_integers(file, "lengths", lengths, N);
    bel_oracle_integers(file, "classes", classes, N);
}

// Begins with the oracle's values, and takes a step.
static bel_estimator *begin(const char *path, const bel_param *params, void *labeled,
                            const char *folder)
{
    static const char *const body[] = {"*.*"};
    bel_estimator *estimator = bel_oracle_estimator("encoder", params, folder);
    bel_train_spec train = {.size = sizeof train,
                            .input_fn = open_texts,
                            .input_user = labeled,
                            .max_steps = 1,
                            .warm_start = {.checkpoint = path}};
    if (labeled == NULL) {
        train.warm_start.variables = body;
        train.warm_start.variable_count = 1;
    }
    BEL_ASSERT_OK(bel_train(estimator, &train, NULL));
    return estimator;
}

static bel_status *copy_row(void *out, int64_t example, const bel_row *rows, int count)
{
    float **to = out;
    (void)example;
    assert_int_equal(count, 1);
    size_t elements = (size_t)bel_shape_elements(&rows[0].value.shape);
    memcpy(*to, rows[0].value.data, elements * sizeof **to);
    *to += elements;
    return NULL;
}

static void check_predictions(const bel_warm_file *file, bel_estimator *estimator, void *labeled,
                              const char *name, int64_t width, const char *checkpoint)
{
    float got[N * C], *to = got;
    float *expected = bel_oracle_floats(file, name, BEL_SHAPE(N, width));
    BEL_ASSERT_OK(bel_predict(estimator, open_texts, labeled, checkpoint, copy_row, &to));
    for (int64_t i = 0; i < N * width; i++)
        assert_true(fabsf(got[i] - expected[i]) < 2e-5f);
    bel_free(expected);
}

static double scalar_of(const bel_warm_file *file, const char *name)
{
    float *value = bel_oracle_floats(file, name, BEL_SHAPE(1));
    double number = (double)*value;
    bel_free(value);
    return number;
}

static double metric(const bel_result *result, const char *name)
{
    for (int i = 0; i < result->metric_count; i++)
        if (strcmp(result->metrics[i].name, name) == 0) return result->metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static void check_against(const char *path, const bel_param *params)
{
    bel_warm_file file;
    bel_result result = {.size = sizeof result};
    BEL_ASSERT_OK(bel_warm_file_open(path, &file));
    read_texts(&file);
    for (int labeled = 1; labeled >= 0; labeled--) {
        const char *folder = bel_test_own_folder();
        char *one = bel_strf("%s/%d", folder, labeled), *first = bel_strf("%s/ckpt-00000000", one);
        void *user = labeled ? &yes : NULL;
        bel_estimator *estimator = begin(path, params, user, one);
        const bel_eval_spec eval = {
            .size = sizeof eval, .input_fn = open_texts, .input_user = user};
        BEL_ASSERT_OK(bel_evaluate(estimator, &eval, first, &result));
        double loss = scalar_of(&file, labeled ? "loss" : "hidden_loss");
        assert_true(fabs(result.loss - loss) < 1e-5);
        if (labeled) {
            bel_oracle_check_gradients(&file, one, 0);
            check_predictions(&file, estimator, user, "probabilities", CLASSES, first);
        } else {
            assert_true(fabs(metric(&result, "perplexity") - exp(loss)) < 1e-3);
            assert_true(fabs(metric(&result, "accuracy") - scalar_of(&file, "hidden_right")) <
                        1e-6);
            check_predictions(&file, estimator, user, "means", C, first);
        }
        bel_estimator_destroy(estimator);
        bel_free(first);
        bel_free(one);
    }
    bel_warm_file_close(&file);
}

static void classic_is_as_in_pytorch(void **state)
{
    (void)state;
    check_against("tests/unit/models/encoder-classic.safetensors", classic);
}

static void new_is_as_in_pytorch(void **state)
{
    (void)state;
    check_against("tests/unit/models/encoder-new.safetensors", new);
}

// --- Hidden tokens ------------------------------------------------------------------------------

enum { CONTEXTS = 60, LONG = 200, WORDS = 1000, MASK = WORDS - 1, CHOSEN = 30 };

static int64_t contexts[CONTEXTS][LONG];

static bel_status *open_contexts(void *user, const bel_estimator *estimator, bel_mode mode,
                                 bel_dataset **out_dataset)
{
    (void)user, (void)estimator, (void)mode;
    bel_memory_field field = {BEL_TOKENS_FIELD,
                              {BEL_DTYPE_I64, BEL_SHAPE(CONTEXTS, LONG), contexts}};
    *out_dataset = bel_dataset_from_memory(&field, 1);
    bel_dataset_batch(*out_dataset, CONTEXTS);
    return NULL;
}

// Predicts the tokens as hidden at random, and as hidden in evaluations.
static bel_status *hiding_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_shape one = BEL_SHAPE(1);
    bel_value *tokens = bel_context_feature(context, BEL_TOKENS_FIELD);
    bel_value *w =
        bel_variable(g, "w", &one, (bel_initializer){BEL_INIT_ONES, 0}, BEL_VARIABLE_TRAINABLE);
    const bel_optimizer sgd = {.size = sizeof sgd, .kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    for (int random = 0; random < 2; random++) {
        bel_masks masks;
        bel_masks_make(g, tokens, MASK, WORDS, random, &masks);
        assert_int_equal(masks.count, CHOSEN);
        bel_output_add(context, spec, random ? "random" : "fixed", masks.tokens);
        bel_output_add(context, spec, random ? "random_at" : "fixed_at", masks.at);
        bel_output_add(context, spec, random ? "random_were" : "fixed_were", masks.labels);
    }
    bel_loss_set(spec, bel_mean(g, w));
    bel_optimizer_use(spec, NULL, &sgd);
    return NULL;
}

typedef struct shares {
    int masked, changed, stayed, places[2][LONG];
} shares;

static bel_status *count_hidden(void *user, int64_t example, const bel_row *rows, int count)
{
    shares *s = user;
    assert_int_equal(count, 6);
    for (int r = 0; r < 2; r++) { // the outputs are in the order of their names' calls
        const int64_t *now = rows[3 * r].value.data, *were = rows[3 * r + 2].value.data;
        const float *at = rows[3 * r + 1].value.data;
        bool chosen[LONG] = {false};
        for (int c = 0; c < CHOSEN; c++) {
            int place = -1;
            for (int t = 0; t < LONG; t++)
                if (at[c * LONG + t] == 1) place = t;
            assert_true(place >= 0 && !chosen[place]);
            chosen[place] = true;
            s->places[r][place]++;
            assert_int_equal(were[c], contexts[example][place]);
            if (r == 0) continue;
            s->masked += now[place] == MASK;
            s->stayed += now[place] == were[c];
            s->changed += now[place] != MASK && now[place] != were[c];
            assert_true(now[place] >= 0 && now[place] < WORDS);
        }
        for (int t = 0; t < LONG; t++)
            if (!chosen[t]) assert_int_equal(now[t], contexts[example][t]);
    }
    return NULL;
}

// 1,800 tokens are chosen: a share has a deviation of about 0.01.
static void tokens_are_hidden_in_their_shares(void **state)
{
    (void)state;
    for (int n = 0; n < CONTEXTS; n++)
        for (int t = 0; t < LONG; t++)
            contexts[n][t] = (n * 7919 + t * 104729) % MASK;
    shares s = {.masked = 0};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.report = false;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(hiding_model, &config, NULL, 0, &estimator));
    const bel_train_spec train = {.size = sizeof train, .input_fn = open_contexts, .max_steps = 1};
    BEL_ASSERT_OK(bel_train(estimator, &train, NULL));
    BEL_ASSERT_OK(bel_predict(estimator, open_contexts, NULL, NULL, count_hidden, &s));
    const double all = (double)CONTEXTS * CHOSEN;
    assert_true(fabs(s.masked / all - 0.8) < 0.04);
    assert_true(fabs(s.changed / all - 0.1) < 0.03);
    assert_true(fabs(s.stayed / all - 0.1) < 0.03);
    for (int t = 0; t < LONG; t++) {
        assert_true(s.places[0][t] == 0 || s.places[0][t] == CONTEXTS); // fixed
        assert_true(s.places[1][t] < CONTEXTS / 2);
    }
    bel_estimator_destroy(estimator);
}

static void wrong_parameters_are_named(void **state)
{
    (void)state;
    bel_param params[MOST_PARAMS];
    memcpy(params, classic, sizeof classic);
    params[sizeof classic / sizeof *classic - 1] = (bel_param){"mask_token", "11"};
    params[sizeof classic / sizeof *classic] = (bel_param){NULL, NULL};
    bel_estimator *estimator = bel_oracle_estimator("encoder", params, bel_test_own_folder());
    const bel_train_spec train = {.size = sizeof train, .input_fn = open_texts, .max_steps = 1};
    BEL_ASSERT_FAILS(bel_train(estimator, &train, NULL), BEL_INVALID_ARGUMENT,
                     "parameter mask_token: expected a token below 11, got 11");
    bel_estimator_destroy(estimator);
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
        BEL_TEST_IN_FOLDER(tokens_are_hidden_in_their_shares),
        BEL_TEST_IN_FOLDER(wrong_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
