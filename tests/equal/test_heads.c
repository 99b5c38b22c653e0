// Tests of models with several heads, from data to predictions, in several deals: labels of several
// names and types, losses that add up, a metric of the program's, named outputs, and noise and the
// step as values. label: threads
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { RECORDS = 96, BATCH = 8, KINDS = 3, STEPS = 40, MAX_REPLICAS = 4 };

// --- Data: two numbers, and a kind and a price that follow from them -----------------------------

static float xs[RECORDS][2], prices[RECORDS];
static int64_t kinds[RECORDS];

static int make_data(void **state)
{
    (void)state;
    for (int i = 0; i < RECORDS; i++) {
        xs[i][0] = (float)((i * 37 + 11) % 101) / 101.0F;
        xs[i][1] = (float)((i * 53 + 7) % 97) / 97.0F;
        kinds[i] = (xs[i][0] > 0.5F) + (xs[i][1] > 0.5F);
        prices[i] = 2 * xs[i][0] - xs[i][1];
    }
    return 0;
}

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)user, (void)estimator;
    static const char *const labels[] = {"kind", "price"};
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS, 2), xs}},
        {"price", {BEL_DTYPE_F32, BEL_SHAPE(RECORDS), prices}},
        {"kind", {BEL_DTYPE_I64, BEL_SHAPE(RECORDS), kinds}},
    };
    *out_dataset = bel_dataset_from_memory(fields, 3);
    bel_dataset_labels(*out_dataset, labels, 2);
    if (mode == BEL_MODE_TRAIN) bel_dataset_repeat(*out_dataset, BEL_REPEAT_FOREVER);
    bel_dataset_batch(*out_dataset, BATCH);
    return NULL;
}

// --- The model -----------------------------------------------------------------------------------

// The share on the diagonal of counts [kind][prediction].
static double diagonal(void *user, const double *counts, int64_t count)
{
    double right = 0, all = 0;
    *(int64_t *)user = count;
    for (int64_t i = 0; i < count; i++)
        all += counts[i];
    for (int64_t k = 0; k < KINDS; k++)
        right += counts[k * KINDS + k];
    return all > 0 ? right / all : 0;
}

static int64_t states;      // calls of diagonal received it
static const char *ask_for; // an additional label
static bool noisy;

static bel_value *confusion(bel_graph *g, bel_value *kind, bel_value *said)
{
    bel_value *have = bel_one_hot(g, kind, KINDS), *got = bel_one_hot(g, said, KINDS);
    const int64_t turn[] = {1, 0};
    return bel_matmul(g, bel_transpose(g, have, turn), got);
}

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context); // it does not count labels
    bel_value *hidden = bel_tanh(g, bel_dense(g, x, 16, "hidden"));
    if (noisy) { // fades with the step
        bel_value *step = bel_cast(g, bel_global_step(g), BEL_DTYPE_F32);
        bel_value *one = bel_scalar(g, BEL_DTYPE_F32, 1);
        bel_value *noise = bel_random_normal(g, hidden, 0, 0.1);
        hidden = bel_add(g, hidden, bel_div(g, noise, bel_add(g, step, one)));
    }
    bel_value *logits = bel_dense(g, hidden, KINDS, "kind"), *said = bel_arg_max(g, logits, 1);
    bel_value *price = bel_dense(g, hidden, 1, "price");
    const int64_t column = 1;
    price = bel_squeeze(g, price, &column, 1);
    bel_output_add(context, spec, "kind", said);
    bel_output_add(context, spec, "price", price);
    bel_output_add(context, spec, "shares", bel_softmax(g, logits));
    if (ask_for != NULL) bel_context_label(context, ask_for);
    bel_value *kind = bel_context_label(context, "kind");
    if (bel_context_mode(context) == BEL_MODE_PREDICT) return NULL;
    bel_value *error = bel_squared_error(g, price, bel_context_label(context, "price"));
    bel_loss_add(context, spec, "kind_loss",
                 bel_mean(g, bel_softmax_cross_entropy(g, logits, kind)), 1);
    bel_loss_add(context, spec, "price_loss", bel_mean(g, error), 0.5);
    bel_summary_confusion(context, spec, kind, said, KINDS);
    bel_metric_own(context, spec, "right", confusion(g, kind, said), diagonal, &states);
    bel_metric_accuracy(context, spec, "accuracy", kind, said, NULL);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.02});
    return NULL;
}

static bel_estimator *create_of(bel_model_fn *function, const char *name, int workers, int towers)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), name);
    config.model_dir = folder;
    config.num_workers = workers;
    config.num_gpus = towers;
    config.report = strcmp(name, "one") == 0;
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(function, &config, NULL, 0, &estimator));
    bel_free(folder);
    return estimator;
}

static bel_estimator *create(const char *name, int workers, int towers)
{
    return create_of(model, name, workers, towers);
}

static double metric(const bel_result *result, const char *name)
{
    for (int i = 0; i < result->metric_count; i++)
        if (strcmp(result->metrics[i].name, name) == 0) return result->metrics[i].value;
    fail_msg("no metric \"%s\"", name);
    return NAN;
}

// --- Heads ---------------------------------------------------------------------------------------

static bel_status *check_rows(void *user, int64_t example, const bel_row *rows, int count)
{
    double *right = user;
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].name, "kind");
    assert_string_equal(rows[1].name, "price");
    assert_string_equal(rows[2].name, "shares");
    assert_int_equal(rows[0].value.shape.rank, 0);
    assert_int_equal(rows[2].value.shape.dims[0], KINDS);
    int64_t said = *(const int64_t *)rows[0].value.data;
    const float *shares = rows[2].value.data;
    for (int k = 0; k < KINDS; k++)
        assert_true(shares[said] >= shares[k]);
    right[0] += said == kinds[example];
    double error = (double)*(const float *)rows[1].value.data - (double)prices[example];
    right[1] += error * error;
    return NULL;
}

static void test_heads(void **state)
{
    (void)state;
    char digests[3][BEL_RESULT_TEXT];
    for (int deal = 0; deal < 3; deal++) { // 2 replicas each time, evaluated by 1 and 2 towers
        const char *name = deal == 0 ? "one" : deal == 1 ? "two" : "noisy";
        noisy = deal == 2;
        bel_estimator *estimator = create(name, deal == 0 ? 1 : 2, deal == 0 ? 2 : 1);
        const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = STEPS};
        const bel_eval_spec eval = {.size = sizeof eval, .input_fn = input};
        bel_result result = {.size = sizeof result}, again = {.size = sizeof again};
        BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &train, &eval, 1, &result));
        double kind = metric(&result, "kind_loss"), price = metric(&result, "price_loss");
        assert_true(fabs(result.loss - (kind + price / 2)) < 1e-6);
        assert_int_equal(states, KINDS * KINDS);
        assert_true(metric(&result, "right") == metric(&result, "accuracy"));
        assert_true(metric(&result, "accuracy") > 0.6 && price < 0.1);
        BEL_ASSERT_OK(bel_evaluate(estimator, &eval, NULL, &again));
        assert_true(again.loss == result.loss);
        double right[2] = {0};
        if (!noisy) {
            BEL_ASSERT_OK(bel_predict(estimator, input, NULL, NULL, check_rows, right));
            assert_true(right[0] / RECORDS == metric(&result, "accuracy"));
            assert_true(fabs(right[1] / RECORDS - price) < 1e-6);
        }
        memcpy(digests[deal], result.digest, sizeof digests[deal]);
        bel_estimator_destroy(estimator);
    }
    noisy = false;
    assert_string_equal(digests[0], digests[1]);
    assert_string_not_equal(digests[1], digests[2]);
    char *path = bel_path_join(bel_test_own_folder(), "one/report.html"), *page;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &page, &size));
    assert_non_null(strstr(page, "Confusion matrix, eval"));
    bel_free(page);
    bel_free(path);
}

static void test_noise_in_every_deal(void **state)
{
    (void)state;
    char digests[2][BEL_RESULT_TEXT];
    double losses[2];
    noisy = true;
    for (int deal = 0; deal < 2; deal++) {
        bel_estimator *estimator =
            create(deal == 0 ? "noise1" : "noise2", deal == 0 ? MAX_REPLICAS : 1,
                   deal == 0 ? 1 : MAX_REPLICAS);
        const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = STEPS};
        const bel_eval_spec eval = {.size = sizeof eval, .input_fn = input};
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &train, &eval, 1, &result));
        memcpy(digests[deal], result.digest, sizeof digests[deal]);
        losses[deal] = result.loss;
        bel_estimator_destroy(estimator);
    }
    noisy = false;
    assert_string_equal(digests[0], digests[1]);
    assert_true(losses[0] == losses[1]);
}

static void test_wrong_label(void **state)
{
    (void)state;
    bel_estimator *estimator = create("wrong", 1, 1);
    const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = 1};
    ask_for = "x";
    BEL_ASSERT_FAILS(bel_train(estimator, &train, NULL), BEL_INVALID_ARGUMENT,
                     "there is no label \"x\"; labels of the input: \"price\", \"kind\"");
    ask_for = NULL;
    bel_estimator_destroy(estimator);
}

// --- Confusion matrices --------------------------------------------------------------------------

static bool labels_are_wrong;

// Counts two classes of data with three: as labels, or as predictions.
static bel_status *confused(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_only_feature(context), 2, "kind");
    bel_value *kind = bel_context_label(context, "kind"), *said = bel_arg_max(g, logits, 1);
    bel_loss_set(spec, bel_mean(g, bel_mul(g, logits, logits)));
    bel_summary_confusion(context, spec, labels_are_wrong ? kind : said,
                          labels_are_wrong ? said : kind, 2);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer), .learning_rate = 0.02});
    return NULL;
}

static void test_classes_out_of_range(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        labels_are_wrong = wrong == 1;
        bel_estimator *estimator = create_of(confused, wrong == 1 ? "labels" : "said", 1, 1);
        const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = 1};
        const bel_eval_spec eval = {.size = sizeof eval, .input_fn = input};
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(bel_train(estimator, &train, NULL));
        BEL_ASSERT_FAILS(bel_evaluate(estimator, &eval, NULL, &result), BEL_OUT_OF_RANGE,
                         "confusion_matrix/Gather");
        bel_estimator_destroy(estimator);
    }
}

// --- Predictors ----------------------------------------------------------------------------------

typedef struct known {
    int64_t kinds[RECORDS];
    float prices[RECORDS];
} known;

static bel_status *keep_row(void *user, int64_t example, const bel_row *rows, int count)
{
    known *k = user;
    assert_int_equal(count, 3);
    k->kinds[example] = *(const int64_t *)rows[0].value.data;
    k->prices[example] = *(const float *)rows[1].value.data;
    return NULL;
}

// Predicts examples one by one, in batches of several sizes and repeatedly, with bel_predict's
// bits.
static void test_predictor(void **state)
{
    (void)state;
    known *k = bel_xcalloc(1, sizeof *k);
    const bel_feature feature = {"x", BEL_DTYPE_F32, BEL_SHAPE(2)};
    const bel_train_spec train = {.size = sizeof train, .input_fn = input, .max_steps = STEPS};
    bel_predictor *predictor;
    bel_estimator *estimator = create("ready", 1, 1);
    BEL_ASSERT_FAILS(bel_estimator_predictor(estimator, &feature, 1, NULL, &predictor),
                     BEL_NOT_FOUND, "there is no checkpoint");
    BEL_ASSERT_OK(bel_train(estimator, &train, NULL));
    BEL_ASSERT_OK(bel_predict(estimator, input, NULL, NULL, keep_row, k));
    BEL_ASSERT_OK(bel_estimator_predictor(estimator, &feature, 1, NULL, &predictor));
    assert_int_equal(bel_predictor_step(predictor), STEPS);
    static const int64_t sizes[] = {1, 3, 1, BATCH, RECORDS, 3};
    assert_int_equal(bel_predictor_output_count(predictor), 3);
    assert_int_equal(bel_predictor_find_output(predictor, "shares"), 2);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int64_t i = 0; i + sizes[s] <= RECORDS; i += sizes[s]) {
            const bel_tensor x = {BEL_DTYPE_F32, BEL_SHAPE(sizes[s], 2), xs[i]};
            BEL_ASSERT_OK(bel_predictor_bind(predictor, 0, &x));
            BEL_ASSERT_OK(bel_predictor_run(predictor));
            const bel_tensor kind = bel_predictor_output(predictor, 0);
            const bel_tensor costs = bel_predictor_output(predictor, 1);
            const bel_tensor shares = bel_predictor_output(predictor, 2);
            assert_int_equal(shares.shape.rank, 2);
            assert_int_equal(shares.shape.dims[0], sizes[s]);
            assert_memory_equal(kind.data, k->kinds + i, (size_t)sizes[s] * 8);
            for (int64_t e = 0; e < sizes[s]; e++) {
                float price = ((const float *)costs.data)[e];
                assert_true(fabs((double)(price - k->prices[i + e])) < 1e-6);
            }
        }
    }
    const bel_tensor wide = {BEL_DTYPE_F32, BEL_SHAPE(1, 3), xs};
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 0, &wide), BEL_INVALID_ARGUMENT,
                     "input \"x\": expected f32 [?, 2] with");
    const bel_tensor none = {BEL_DTYPE_F32, BEL_SHAPE(0, 2), xs};
    BEL_ASSERT_FAILS(bel_predictor_bind(predictor, 0, &none), BEL_INVALID_ARGUMENT,
                     "at least one example, got f32 [0, 2]");
    bel_predictor_destroy(predictor);
    const bel_feature text = {"x", BEL_DTYPE_STRING, BEL_SHAPE(2)};
    BEL_ASSERT_FAILS(bel_estimator_predictor(estimator, &text, 1, NULL, &predictor),
                     BEL_INVALID_ARGUMENT, "x");
    bel_estimator_destroy(estimator);
    bel_free(k);
}

// --- Steps from here -----------------------------------------------------------------------------

static void test_steps(void **state)
{
    (void)state;
    bel_estimator *estimator = create("steps", 1, 1);
    bel_result result = {.size = sizeof result};
    const bel_train_spec ten = {.size = sizeof ten, .input_fn = input, .steps = 10};
    BEL_ASSERT_OK(bel_train(estimator, &ten, &result));
    assert_int_equal(result.global_step, 10);
    BEL_ASSERT_OK(bel_train(estimator, &ten, &result));
    assert_int_equal(result.global_step, 20);
    const bel_train_spec both = {
        .size = sizeof both, .input_fn = input, .steps = 10, .max_steps = 30};
    BEL_ASSERT_FAILS(bel_train(estimator, &both, &result), BEL_INVALID_ARGUMENT,
                     "max_steps, 30, and steps, 10, exclude each other");
    const bel_train_spec less = {.size = sizeof less, .input_fn = input, .steps = -1};
    BEL_ASSERT_FAILS(bel_train(estimator, &less, &result), BEL_INVALID_ARGUMENT, "at least 0");
    bel_estimator_destroy(estimator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_heads),       BEL_TEST_IN_FOLDER(test_noise_in_every_deal),
        BEL_TEST_IN_FOLDER(test_wrong_label), BEL_TEST_IN_FOLDER(test_predictor),
        BEL_TEST_IN_FOLDER(test_steps),       BEL_TEST_IN_FOLDER(test_classes_out_of_range)};
    return cmocka_run_group_tests(tests, make_data, NULL);
}
