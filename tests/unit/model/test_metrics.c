// Metrics over an evaluation in several batches and towers, against plain loops over all examples.
// Helpers never change a bit, whatever they do.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "belfry/belfry.h"
#include "evaluate/blocks.h"
#include "evaluate/goal.h"
#include "model/metrics.h"
#include "support/bel_test.h"

enum { EXAMPLES = 2003, CLASSES = 5, BATCH = 64 };

static float scores[EXAMPLES][CLASSES], probabilities[EXAMPLES], weights[EXAMPLES];
static int64_t labels[EXAMPLES];

// Scattered numbers between 0 and 1.
static double spread(int64_t i)
{
    uint64_t bits = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    return (double)(bits >> 11) / 9007199254740992.0;
}

static void fill(void)
{
    for (int i = 0; i < EXAMPLES; i++) {
        labels[i] = i * 7919 % CLASSES;
        weights[i] = (float)(i % 4) / 2.0f;
        for (int c = 0; c < CLASSES; c++)
            scores[i][c] = (float)((int)(8 * spread(i * CLASSES + c)) + (c == labels[i])); // ties
        // Rare and hard to predict, but not random.
        probabilities[i] = (float)(exp(4 * spread(i) - 9) * (labels[i] > 2 ? 2 : 1));
    }
}

static bel_value *weights_of(bel_model_context *context)
{
    bool weighted = bel_context_param_number(context, "weighted", 0) != 0;
    return weighted ? bel_context_feature(context, "weight") : NULL;
}

static bel_status *measure(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *label = bel_context_labels(context), *weight = weights_of(context);
    bel_value *score = bel_context_feature(context, "score");
    bel_value *probability = bel_context_feature(context, "probability");
    bel_value *yes =
        bel_greater(g, bel_cast(g, label, BEL_DTYPE_F32), bel_scalar(g, BEL_DTYPE_F32, 2));
    bel_value *said = bel_greater(g, probability, bel_scalar(g, BEL_DTYPE_F32, 0.004));
    bel_loss_set(spec, bel_mean(g, probability));
    bel_metric_top_k(context, spec, "first", label, score, 1, weight);
    bel_metric_top_k(context, spec, "third", label, score, 3, weight);
    bel_metric_precision(context, spec, "precision", yes, said, weight);
    bel_metric_recall(context, spec, "recall", yes, said, weight);
    bel_metric_f1(context, spec, "f1", yes, said, weight);
    bel_value *wanted = bel_cast(g, yes, BEL_DTYPE_F32);
    bel_metric_root_mean_squared_error(context, spec, "rmse", wanted, probability, weight);
    bel_metric_accuracy(context, spec, "accuracy", label, bel_arg_max(g, score, 1), weight);
    bel_metric_auc(context, spec, "auc", yes, probability, weight);
    return NULL;
}

static double weight_of(int i, bool weighted)
{
    return weighted ? (double)weights[i] : 1.0;
}

static double expected_top(int k, bool weighted)
{
    double hits = 0, all = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        int ahead = 0;
        for (int c = 0; c < CLASSES; c++)
            ahead += scores[i][c] > scores[i][labels[i]];
        hits += ahead < k ? weight_of(i, weighted) : 0;
        all += weight_of(i, weighted);
    }
    return hits / all;
}

// The first of equal scores is the prediction.
static double expected_accuracy(bool weighted)
{
    double right = 0, all = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (scores[i][c] > scores[i][best]) best = c;
        right += best == labels[i] ? weight_of(i, weighted) : 0;
        all += weight_of(i, weighted);
    }
    return right / all;
}

// All pairs, without binning.
static double expected_auc(bool weighted)
{
    double right = 0, all = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        for (int k = 0; k < EXAMPLES; k++) {
            if (labels[i] <= 2 || labels[k] > 2) continue;
            double pair = weight_of(i, weighted) * weight_of(k, weighted);
            right += probabilities[i] > probabilities[k]    ? pair
                     : probabilities[i] == probabilities[k] ? pair / 2
                                                            : 0;
            all += pair;
        }
    }
    return right / all;
}

static void check(const bel_result *result, bool weighted)
{
    double both = 0, said = 0, there = 0, squares = 0, all = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        double weight = weight_of(i, weighted), yes = labels[i] > 2;
        bool positive = probabilities[i] > 0.004f;
        both += positive ? yes * weight : 0;
        said += positive ? weight : 0;
        there += yes * weight;
        squares += weight * pow(yes - (double)probabilities[i], 2);
        all += weight;
    }
    const double expected[] = {expected_top(1, weighted),
                               expected_top(3, weighted),
                               both / said,
                               both / there,
                               2 * both / (said + there),
                               sqrt(squares / all),
                               expected_accuracy(weighted)};
    enum { COUNT = sizeof expected / sizeof expected[0] };
    for (int m = 0; m < COUNT; m++) {
        if (fabs(result->metrics[m].value - expected[m]) < 1e-6) continue;
        fail_msg("%s is %.8f, expected %.8f", result->metrics[m].name, result->metrics[m].value,
                 expected[m]);
    }
    assert_true(fabs(result->metrics[COUNT].value - expected_auc(weighted)) < 1e-9);
    assert_true(expected_auc(weighted) > 0.6 && expected_auc(weighted) < 0.9); // neither 0 nor 1
}

static bel_input *open_epochs(int64_t batch_size, int64_t epochs)
{
    const bel_memory_field fields[] = {
        {"label", {BEL_DTYPE_I64, BEL_SHAPE(EXAMPLES), labels}},
        {"score", {BEL_DTYPE_F32, BEL_SHAPE(EXAMPLES, CLASSES), scores}},
        {"probability", {BEL_DTYPE_F32, BEL_SHAPE(EXAMPLES), probabilities}},
        {"weight", {BEL_DTYPE_F32, BEL_SHAPE(EXAMPLES), weights}},
    };
    bel_dataset *dataset = bel_dataset_from_memory(fields, 4);
    bel_dataset_repeat(dataset, epochs);
    bel_dataset_batch(dataset, batch_size);
    bel_input *input;
    BEL_ASSERT_OK(bel_input_open(dataset, NULL, &input));
    bel_dataset_destroy(dataset);
    return input;
}

static bel_input *open_batches(int64_t batch_size)
{
    return open_epochs(batch_size, 1);
}

static bel_input *open_input(void)
{
    return open_batches(BATCH);
}

static bel_status *build(bel_model_fn *model_fn, const bel_param *params, int param_count,
                         bel_mode mode, const bel_input *input, bel_built **out_built)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = "unused";
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model_fn, &config, params, param_count, &estimator));
    bel_status *status = bel_model_build(estimator, mode, NULL, input, 1, out_built);
    bel_estimator_destroy(estimator);
    return status;
}

static bel_forward_config forward_of(const bel_built *built)
{
    return (bel_forward_config){
        .graph = built->graph, .fields = built->fields, .program = {.threads = 1}};
}

static void run(const bel_input *input, const char *weighted, int towers, bel_result *out_result)
{
    const bel_param param = {"weighted", weighted};
    bel_built *built;
    BEL_ASSERT_OK(build(measure, &param, 1, BEL_MODE_EVAL, input, &built));
    const bel_evaluation_config config = {
        .built = built, .forward = forward_of(built), .input = input, .tower_count = towers};
    BEL_ASSERT_OK(bel_evaluation_run(&config, out_result));
    bel_built_destroy(built);
}

// A weighted mean; the batches have different weights.
static bel_status *weigh(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *graph = bel_context_graph(context);
    bel_value *share = bel_context_feature(context, "weight");
    bel_loss_set(spec,
                 bel_weighted_mean(graph, bel_context_feature(context, "probability"), share));
    bel_loss_weight_set(spec, bel_reduce_sum(graph, share, NULL, 0, false));
    return NULL;
}

static void test_weighted_losses(void **state)
{
    (void)state;
    double sum = 0, all = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        sum += weight_of(i, true) * (double)probabilities[i];
        all += weight_of(i, true);
    }
    for (int64_t batch = 1; batch <= EXAMPLES; batch = 3 * batch + 1) {
        bel_input *input = open_batches(batch);
        bel_built *built;
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(build(weigh, NULL, 0, BEL_MODE_EVAL, input, &built));
        const bel_evaluation_config config = {
            .built = built, .forward = forward_of(built), .input = input, .tower_count = 1};
        BEL_ASSERT_OK(bel_evaluation_run(&config, &result));
        assert_true(fabs(result.loss - sum / all) < 1e-6);
        bel_built_destroy(built);
        bel_input_destroy(input);
    }
}

static void test_values(void **state)
{
    (void)state;
    bel_input *input = open_input();
    for (int at = 0; at < 4; at++) {
        bel_result result = {.size = sizeof result};
        run(input, at % 2 == 0 ? "0" : "1", at / 2 + 1, &result);
        assert_int_equal(result.metric_count, 8);
        check(&result, at % 2 == 1);
    }
    bel_input_destroy(input);
}

// Examples without weight may contain anything.
static void test_examples_without_weight(void **state)
{
    (void)state;
    bel_result expected = {.size = sizeof expected}, result = {.size = sizeof result};
    bel_input *input = open_input();
    run(input, "1", 1, &expected);
    bel_input_destroy(input);
    for (int i = 0; i < EXAMPLES; i++) {
        if (weights[i] != 0) continue;
        labels[i] = i % 8 == 0 ? -1 : CLASSES;
        probabilities[i] = scores[i][0] = NAN;
    }
    input = open_input();
    run(input, "1", 2, &result);
    for (int m = 0; m < expected.metric_count; m++)
        assert_true(result.metrics[m].value == expected.metrics[m].value);
    bel_input_destroy(input);
    fill();
}

// --- Helpers -------------------------------------------------------------------------------------

typedef enum helper_habit {
    BACKWARDS, // answers in the opposite order
    SILENT,    // accepts everything and never answers
    TWICE,     // answers everything twice, unrequested batches too
    WRONG,     // sends invalid answers before each valid one
    MOODY,     // sometimes has no work
    HABITS
} helper_habit;

typedef struct fake_answer {
    bel_batch_sums sums;
    int64_t *elements;
    float *values;
} fake_answer;

typedef struct fake_helper {
    helper_habit habit;
    bel_blocks *blocks;
    int64_t given; // number of batches answered
    fake_answer answers[256];
    int count, asked;
    fake_answer last;
} fake_helper;

static bool never(void *context)
{
    (void)context;
    return false;
}

static void free_answer(fake_answer *a)
{
    bel_free(a->elements);
    bel_free(a->values);
    *a = (fake_answer){.elements = NULL};
}

static void put(fake_helper *h, const bel_batch_sums *sums)
{
    size_t outputs = (size_t)sums->output_count, values = 0;
    for (size_t i = 0; i < outputs; i++)
        values += (size_t)sums->elements[i];
    fake_answer *a = &h->answers[h->count++];
    *a = (fake_answer){.sums = *sums,
                       .elements = bel_xcalloc(outputs + 1, sizeof *a->elements),
                       .values = bel_xcalloc(values + 1, sizeof *a->values)};
    memcpy(a->elements, sums->elements, outputs * sizeof *a->elements);
    memcpy(a->values, sums->values, values * sizeof *a->values);
    a->sums.elements = a->elements;
    a->sums.values = a->values;
}

// Sends invalid answers: an output missing, one element too many or too few, an unknown batch, a
// negative count.
static void put_wrong(fake_helper *h, const bel_batch_sums *sums)
{
    for (int i = 0; i < 5; i++) {
        put(h, sums);
        fake_answer *a = &h->answers[h->count - 1];
        if (i == 0) a->sums.output_count--;
        if (i == 1) a->elements[sums->output_count - 2]++;
        if (i == 2) a->elements[sums->output_count - 1]--;
        if (i == 3) a->sums.block = 1000000;
        if (i == 4) a->sums.examples = -1;
    }
}

static void give_answer(void *context, const bel_batch_sums *sums)
{
    fake_helper *h = context;
    h->given++;
    if (h->habit == SILENT) return;
    if (h->habit == WRONG) put_wrong(h, sums);
    put(h, sums);
    if (h->habit == TWICE) put(h, sums);
}

static bool give(void *context, int64_t first, int64_t count)
{
    fake_helper *h = context;
    if (h->count > 0 || (h->habit == MOODY && h->asked++ % 3 != 0)) return false;
    if (h->habit == SILENT && h->given > 0) return false;
    BEL_ASSERT_OK(bel_evaluation_run_blocks(h->blocks, 1, first, count, never, give_answer, h));
    if (h->habit == TWICE && first > 0)
        BEL_ASSERT_OK(bel_evaluation_run_blocks(h->blocks, 1, first - 1, 2, never, give_answer, h));
    return true;
}

static bool take(void *context, bel_batch_sums *out_sums)
{
    fake_helper *h = context;
    free_answer(&h->last);
    if (h->count == 0) return false;
    int at = h->habit == BACKWARDS ? h->count - 1 : 0;
    h->last = h->answers[at];
    memmove(&h->answers[at], &h->answers[at + 1], (size_t)(--h->count - at) * sizeof h->last);
    *out_sums = h->last.sums;
    return true;
}

static void check_helped(const bel_built *built, int64_t batch, int towers, helper_habit habit,
                         const bel_result *expected)
{
    bel_input *input = open_batches(batch);
    fake_helper h = {.habit = habit};
    const bel_evaluation_helpers helpers = {&h, give, take};
    bel_evaluation_config config = {
        .built = built, .forward = forward_of(built), .input = input, .tower_count = 1};
    const bel_evaluation_config own = config;
    BEL_ASSERT_OK(bel_blocks_create(&own, &h.blocks));
    bel_result result = {.size = sizeof result};
    config.helpers = &helpers;
    config.tower_count = towers;
    BEL_ASSERT_OK(bel_evaluation_run(&config, &result));
    assert_true(h.given > 0);
    assert_int_equal(result.examples, expected->examples);
    assert_memory_equal(&result.loss, &expected->loss, sizeof result.loss);
    for (int m = 0; m < expected->metric_count; m++)
        assert_memory_equal(&result.metrics[m].value, &expected->metrics[m].value, sizeof(double));
    while (h.count > 0)
        free_answer(&h.answers[--h.count]);
    free_answer(&h.last);
    bel_blocks_destroy(h.blocks);
    bel_input_destroy(input);
}

// More batches than are kept at once, and fewer batches than towers.
static void test_helpers(void **state)
{
    (void)state;
    static const int64_t batches[] = {1, 7, 400};
    const bel_param param = {"weighted", "1"};
    for (int b = 0; b < 3; b++) {
        bel_input *input = open_batches(batches[b]);
        bel_built *built;
        bel_result expected = {.size = sizeof expected};
        run(input, "1", 1, &expected);
        BEL_ASSERT_OK(build(measure, &param, 1, BEL_MODE_EVAL, input, &built));
        for (int at = 0; at < HABITS; at++)
            for (int towers = 1; towers <= 4; towers += 3)
                check_helped(built, batches[b], towers, (helper_habit)at, &expected);
        bel_built_destroy(built);
        bel_input_destroy(input);
    }
}

// --- Scores: close, many, or none ----------------------------------------------------------------

// Computes the area of `count` scores. A score at place x is a yes with probability x, so the area
// is 2 / 3 + 1 / 6, however far apart the scores are.
static const bel_metric auc = {.name = "auc", .kind = BEL_METRIC_AUC};

static double area_of(int64_t count, double spread_of_scores)
{
    float *rows = bel_xcalloc((size_t)(3 * count), sizeof *rows);
    for (int64_t i = 0; i < count; i++) {
        double x = spread(i);
        bool yes = spread(i + count) < x;
        rows[i] = (float)(0.5 + spread_of_scores * (x - 0.5));
        rows[count + i] = yes ? 0 : 1;
        rows[2 * count + i] = yes ? 1 : 0;
    }
    bel_metric_sums sums;
    bel_metric_sums_init(&sums, &auc);
    for (int64_t first = 0; first < count; first += count / 4) { // in batches
        int64_t n = count / 4;
        float *batch = bel_xcalloc((size_t)(3 * n), sizeof *batch);
        for (int row = 0; row < 3; row++)
            memcpy(batch + row * n, rows + row * count + first, (size_t)n * sizeof *batch);
        bel_metric_sums_add(&sums, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(3, n), batch}, NULL, n);
        bel_free(batch);
    }
    double area = bel_metric_sums_value(&sums);
    bel_metric_sums_deinit(&sums);
    bel_free(rows);
    return area;
}

static void test_close_scores(void **state)
{
    (void)state;
    double wide = area_of(4000, 1), close = area_of(4000, 2e-3);
    assert_true(fabs(wide - 5.0 / 6) < 0.02);
    assert_true(fabs(close - wide) < 2e-3);                  // some floats are equal
    assert_true(fabs(area_of(1 << 20, 1) - 5.0 / 6) < 1e-3); // more than are kept
}

// Computed by hand. From the top: yes, no, a yes and a no with equal scores, no.
static void test_curve(void **state)
{
    (void)state;
    float rows[] = {0.9F, 0.8F, 0.5F, 0.5F, 0.1F, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0};
    const double no[] = {0, 0, 1.0 / 3, 2.0 / 3, 1}, yes[] = {0, 0.5, 0.5, 1, 1};
    bel_metric_sums sums;
    bel_roc roc;
    bel_metric_sums_init(&sums, &auc);
    bel_metric_sums_add(&sums, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(3, 5), rows}, NULL, 5);
    bel_metric_sums_roc(&sums, &roc);
    assert_int_equal(roc.count, 5);
    assert_string_equal(roc.name, "auc");
    for (int i = 0; i < 5; i++)
        assert_true(fabs(roc.no[i] - no[i]) < 1e-12 && fabs(roc.yes[i] - yes[i]) < 1e-12);
    bel_metric_sums_deinit(&sums);
    bel_metric_sums_init(&sums, &auc);
    enum { MANY = 1000 };
    float *many = bel_xcalloc((size_t)3 * MANY, sizeof *many);
    for (int i = 0; i < MANY; i++) {
        many[i] = (float)i;
        many[MANY + i] = (float)(i % 3 == 0);
        many[2 * MANY + i] = (float)(i % 3 != 0);
    }
    bel_metric_sums_add(&sums, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(3, MANY), many}, NULL, MANY);
    bel_metric_sums_roc(&sums, &roc);
    assert_true(roc.count > BEL_ROC_POINTS / 2 && roc.count <= BEL_ROC_POINTS);
    assert_true(roc.no[roc.count - 1] == 1 && roc.yes[roc.count - 1] == 1);
    assert_true(roc.precision[0] == 1);
    assert_true(fabs(roc.precision[roc.count - 1] - 666.0 / MANY) < 1e-12); // all predicted yes
    bel_metric_sums_deinit(&sums);
    bel_metric_sums_init(&sums, &auc);
    for (int i = 0; i < MANY; i++) // weights of a wide range: sums differ by their order
        many[2 * MANY + i] = powf(10, (float)(i * 7 % 10) - 6);
    bel_metric_sums_add(&sums, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(3, MANY), many}, NULL, MANY);
    bel_metric_sums_roc(&sums, &roc);
    for (int i = 0; i < roc.count; i++)
        assert_true(roc.no[i] <= 1 && roc.yes[i] <= 1 && roc.precision[i] <= 1);
    bel_metric_sums_deinit(&sums);
    bel_free(many);
}

static void test_undefined_score(void **state)
{
    (void)state;
    float rows[] = {0.5f, NAN, 0, 1, 1, 0};
    bel_metric_sums sums;
    bel_metric_sums_init(&sums, &auc);
    bel_metric_sums_add(&sums, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(3, 2), rows}, NULL, 2);
    assert_true(isnan(bel_metric_sums_value(&sums)));
    bel_metric_sums_deinit(&sums);
}

// The mean over no examples is neither the best nor the worst value: it is NaN, for either goal.
static void test_means_over_nothing(void **state)
{
    (void)state;
    static const bel_metric metrics[] = {{.name = "mean", .kind = BEL_METRIC_MEAN},
                                         {.name = "root", .kind = BEL_METRIC_ROOT_MEAN}};
    float zero = 0;
    const bel_tensor nothing = {.dtype = BEL_DTYPE_F32, .data = &zero};
    for (int i = 0; i < 2; i++) {
        bel_metric_sums sums;
        bel_metric_sums_init(&sums, &metrics[i]);
        bel_metric_sums_add(&sums, &nothing, &nothing, 4);
        double value = bel_metric_sums_value(&sums);
        bel_metric_sums_deinit(&sums);
        assert_true(isnan(value));
        assert_false(bel_goal_is_better(BEL_GOAL_MIN, value, 3));
        assert_false(bel_goal_is_better(BEL_GOAL_MAX, value, NAN));
        assert_true(bel_goal_is_better(BEL_GOAL_MIN, 3, value));
    }
}

// --- Shapes of a model function's results --------------------------------------------------------

enum wrong {
    RIGHT,
    SCALAR,
    TURNED,
    ONE_ROW,
    FEW_CLASSES,
    ADDED_INPUT,
    NO_NAME,
    SUMMARY // this and later values: a summary of `misfits`
};

enum { SUM, SCORE, LABEL, PICTURE, TWO_CHANNELS }; // values for summaries

static const struct {
    const char *name; // its letter: scalar, histogram or image
    int value, most;
    const char *text;
} misfits[] = {
    {"s", SCORE, 0, "summary \"s\" must be a scalar f32, got f32 [?, 5]"},
    {"h", LABEL, 0, "summary \"h\" must be f32, got i64 [?]"},
    {"i", SCORE, 1, "with 1 to 64 images, got 1 of f32 [?, 5]"},
    {"i", TWO_CHANNELS, 1, "with 1 to 64 images, got 1 of f32 [?, 2, "},
    {"i", PICTURE, 0, "with 1 to 64 images, got 0 of"},
    {"i", PICTURE, 65, "with 1 to 64 images, got 65 of"},
};
enum { MISFITS = sizeof misfits / sizeof misfits[0] };

static bel_value *summary_value(bel_graph *g, bel_value *label, bel_value *score, int which)
{
    const bel_shape one = BEL_SHAPE(BEL_DIM_BATCH, 1, 1, CLASSES);
    bel_value *picture = bel_reshape(g, score, &one), *both[] = {picture, picture};
    if (which == SUM) return bel_reduce_sum(g, score, NULL, 0, false);
    if (which == SCORE) return score;
    if (which == LABEL) return label;
    if (which == PICTURE) return picture;
    return which == TWO_CHANNELS ? bel_concat(g, both, 2, 1) : NULL;
}

static bel_status *answer(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *label = bel_context_labels(context), *score = bel_context_feature(context, "score");
    int wrong = (int)bel_context_param_number(context, "wrong", 0);
    bel_value *all = bel_reduce_sum(g, score, NULL, 0, false);
    const int64_t turn[] = {1, 0}, zero = 0;
    bel_loss_set(spec, all);
    bel_predictions_set(spec, score);
    if (wrong == SCALAR) bel_predictions_set(spec, all);
    if (wrong == TURNED) bel_predictions_set(spec, bel_transpose(g, score, turn));
    if (wrong == ONE_ROW) bel_predictions_set(spec, bel_reduce_sum(g, score, &zero, 1, true));
    if (wrong == FEW_CLASSES)
        bel_metric_top_k(context, spec, "top", label, score, CLASSES + 1, NULL);
    for (int i = 0; i < MISFITS; i++) {
        if (wrong != SUMMARY + i) continue;
        const char *name = misfits[i].name;
        bel_value *value = summary_value(g, label, score, misfits[i].value);
        if (name[0] == 's') bel_summary_scalar(context, spec, name, value);
        if (name[0] == 'h') bel_summary_histogram(context, spec, name, value);
        if (name[0] == 'i') bel_summary_image(context, spec, name, value, misfits[i].most);
    }
    if (wrong == ADDED_INPUT) bel_input_value(g, "noise", BEL_DTYPE_F32, &BEL_SHAPE(BEL_DIM_BATCH));
    if (wrong == NO_NAME) bel_metric_mean(context, spec, "", score, NULL);
    if (wrong == NO_NAME) bel_summary_scalar(context, spec, "", all);
    return NULL;
}

static void expect_refused(const bel_input *input, bel_mode mode, int wrong, const char *text)
{
    char number[8];
    snprintf(number, sizeof number, "%d", wrong);
    const bel_param param = {"wrong", number};
    bel_built *built;
    bel_status *status = build(answer, &param, 1, mode, input, &built);
    BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, text);
}

static void test_wrong_shapes(void **state)
{
    (void)state;
    bel_input *input = open_input();
    expect_refused(input, BEL_MODE_PREDICT, SCALAR, "predictions must be [batch, …], a row for");
    expect_refused(input, BEL_MODE_PREDICT, TURNED, "got [5, ?]");
    expect_refused(input, BEL_MODE_PREDICT, ONE_ROW, "got [1, 5]");
    expect_refused(input, BEL_MODE_EVAL, FEW_CLASSES, "scores must be [batch, classes], 6 classes");
    expect_refused(input, BEL_MODE_EVAL, NO_NAME, "metric \"\": the name is empty");
    expect_refused(input, BEL_MODE_EVAL, ADDED_INPUT, "nothing feeds the input \"noise\"");
    for (int i = 0; i < MISFITS; i++)
        expect_refused(input, BEL_MODE_TRAIN, SUMMARY + i, misfits[i].text);
    bel_input_destroy(input);
}

static bel_status *mix_shapes(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const int64_t column = 1;
    int which = (int)bel_context_param_number(context, "which", 0);
    bel_value *flat = bel_context_feature(context, "weight");
    bel_value *tall = bel_unsqueeze(g, flat, &column, 1), *label = bel_context_labels(context);
    bel_value *score = bel_context_feature(context, "score");
    bel_loss_set(spec, bel_mean(g, flat));
    if (which == 0) bel_metric_mean(context, spec, "m", flat, tall);
    if (which == 1) bel_metric_accuracy(context, spec, "m", flat, flat, tall);
    if (which == 2) bel_metric_top_k(context, spec, "m", label, score, 1, tall);
    if (which == 3) bel_metric_precision(context, spec, "m", flat, flat, tall);
    if (which == 4) bel_metric_recall(context, spec, "m", flat, flat, tall);
    if (which == 5) bel_metric_f1(context, spec, "m", flat, flat, tall);
    if (which == 6) bel_metric_root_mean_squared_error(context, spec, "m", flat, flat, tall);
    if (which == 7) bel_metric_auc(context, spec, "m", flat, flat, tall);
    if (which == 8) bel_metric_accuracy(context, spec, "m", flat, tall, NULL);
    if (which == 9) bel_metric_f1(context, spec, "m", flat, tall, NULL);
    if (which == 10) bel_metric_root_mean_squared_error(context, spec, "m", flat, tall, NULL);
    if (which == 11) bel_metric_auc(context, spec, "m", flat, tall, NULL);
    return NULL;
}

// Metrics do not broadcast.
static void test_shapes_of_metrics(void **state)
{
    (void)state;
    bel_input *input = open_input();
    for (int which = 0; which < 12; which++) {
        char number[16];
        snprintf(number, sizeof number, "%d", which);
        const bel_param param = {"which", number};
        bel_built *built;
        bel_status *status = build(mix_shapes, &param, 1, BEL_MODE_EVAL, input, &built);
        BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, "must have one shape, got [?");
        status = build(mix_shapes, &param, 1, BEL_MODE_EVAL, input, &built);
        BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, "metric \"m\": ");
    }
    bel_input_destroy(input);
}

static bel_status *count_row(void *user, int64_t example, const bel_row *rows, int count)
{
    (void)example, (void)rows, (void)count;
    ++*(int *)user;
    return NULL;
}

// The shapes that the program returns are checked, too.
static void test_rows_that_are_not_there(void **state)
{
    (void)state;
    const bel_param param = {"wrong", "0"};
    bel_input *input = open_input();
    bel_built *built;
    BEL_ASSERT_OK(build(answer, &param, 1, BEL_MODE_PREDICT, input, &built));
    const bel_evaluation_config config = {
        .built = built, .forward = forward_of(built), .input = input, .tower_count = 2};
    int rows = 0;
    BEL_ASSERT_OK(bel_prediction_run(&config, count_row, &rows));
    assert_int_equal(rows, EXAMPLES);
    rows = 0;
    built->spec.predictions = bel_constant(
        built->graph, &(bel_tensor){BEL_DTYPE_F32, BEL_SHAPE(BATCH - 1, CLASSES), scores});
    BEL_ASSERT_FAILS(bel_prediction_run(&config, count_row, &rows), BEL_INVALID_ARGUMENT,
                     "a row for each of 64 examples, got [63, 5]");
    assert_int_equal(rows, 0);
    bel_built_destroy(built);
    bel_input_destroy(input);
}

// Refused before a batch is read, as in training. A number of steps makes it finite.
static void test_endless_input(void **state)
{
    (void)state;
    const bel_param param = {"wrong", "0"};
    bel_input *input = open_epochs(BATCH, BEL_REPEAT_FOREVER);
    int rows = 0;
    for (int mode = BEL_MODE_EVAL; mode <= BEL_MODE_PREDICT; mode++) {
        bel_built *built;
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_OK(build(answer, &param, 1, (bel_mode)mode, input, &built));
        bel_evaluation_config config = {
            .built = built, .forward = forward_of(built), .input = input, .tower_count = 1};
        bel_status *status = mode == BEL_MODE_EVAL ? bel_evaluation_run(&config, &result)
                                                   : bel_prediction_run(&config, count_row, &rows);
        BEL_ASSERT_FAILS(status, BEL_INVALID_ARGUMENT, "would never end");
        config.steps = 2;
        if (mode == BEL_MODE_EVAL) BEL_ASSERT_OK(bel_evaluation_run(&config, &result));
        if (mode == BEL_MODE_EVAL) assert_int_equal(result.examples, 2 * BATCH);
        bel_built_destroy(built);
    }
    assert_int_equal(rows, 0);
    bel_input_destroy(input);
}

int main(void)
{
    fill();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_helpers),
                                       cmocka_unit_test(test_weighted_losses),
                                       cmocka_unit_test(test_examples_without_weight),
                                       cmocka_unit_test(test_shapes_of_metrics),
                                       cmocka_unit_test(test_close_scores),
                                       cmocka_unit_test(test_curve),
                                       cmocka_unit_test(test_undefined_score),
                                       cmocka_unit_test(test_means_over_nothing),
                                       cmocka_unit_test(test_wrong_shapes),
                                       cmocka_unit_test(test_rows_that_are_not_there),
                                       cmocka_unit_test(test_endless_input)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
