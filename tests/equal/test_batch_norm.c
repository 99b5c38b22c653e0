// Tests of batch normalization over replicas. With statistics of all replicas, R replicas train
// like one with the batch of all, also if their batches differ or are empty. Gradients are compared
// with differences of the loss, and moving statistics with plain sums over all examples. The bits
// are the same however replicas are assigned to towers. One formula keeps its digits with a large
// mean.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "support/bel_test.h"

enum { REPLICAS = 4, BATCH = 4, MOST = REPLICAS * BATCH, CHANNELS = 3, SIDE = 2 };
enum { PIXELS = SIDE * SIDE, WIDTH = CHANNELS * PIXELS };

// --- Running -------------------------------------------------------------------------------------

// workers × towers replicas, or `turns` ones, with `batch` examples each.
typedef struct deal {
    int towers, turns, batch;
    int workers; // 0: one
} deal;

static const deal one = {1, 1, MOST, 1}, four = {REPLICAS, 1, BATCH, 1};

// Model and start of a run.
typedef struct job {
    bel_model_fn *model;
    bel_batch_statistics statistics;
    bool sum_formula;
    double start;
    int examples;
} job;

typedef struct run {
    char *folder;
    bel_result result;
} run;

static float images[MOST][WIDTH], labels[MOST][1];

static void fill(double offset)
{
    for (int i = 0; i < MOST; i++) {
        for (int j = 0; j < WIDTH; j++)
            images[i][j] = (float)(offset + sin(7 * i + 3 * j + 1));
        labels[i][0] = (float)cos(5 * i);
    }
}

typedef struct feed {
    int examples, batch, epochs;
} feed;

static bel_status *input(void *user, const bel_estimator *estimator, bel_mode mode,
                         bel_dataset **out_dataset)
{
    (void)estimator, (void)mode;
    const feed *f = user;
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(f->examples, CHANNELS, SIDE, SIDE), images}},
        {"target", {BEL_DTYPE_F32, BEL_SHAPE(f->examples, 1), labels}}};
    *out_dataset = bel_dataset_from_memory(fields, 2);
    bel_dataset_repeat(*out_dataset, f->epochs);
    bel_dataset_batch(*out_dataset, f->batch);
    return NULL;
}

// Each step is an epoch.
static run train(const job *j, deal d, int64_t steps)
{
    static int count;
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    run r = {.folder = bel_strf("%s/%d", bel_test_own_folder(), count++),
             .result = {.size = sizeof r.result}};
    config.model_dir = r.folder;
    config.num_workers = d.workers > 0 ? d.workers : 1;
    config.num_gpus = d.towers;
    config.replicas_to_aggregate = d.turns > 1 ? d.turns : 0;
    config.report = false;
    char start[32], statistics[32];
    (void)bel_snprintf(start, sizeof start, "%.9g", j->start);
    (void)bel_snprintf(statistics, sizeof statistics, "%d", (int)j->statistics);
    const bel_param params[] = {
        {"start", start}, {"statistics", statistics}, {"sum_formula", j->sum_formula ? "1" : "0"}};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(j->model, &config, params, 3, &estimator));
    feed f = {j->examples, d.batch, (int)steps};
    const bel_train_spec spec = {
        .size = sizeof spec, .input_fn = input, .input_user = &f, .max_steps = steps};
    BEL_ASSERT_OK(bel_train(estimator, &spec, &r.result));
    bel_estimator_destroy(estimator);
    return r;
}

static void read(const run *r, const char *name, float *out, size_t count)
{
    bel_checkpoint *checkpoint;
    BEL_ASSERT_OK(bel_checkpoint_open(r->folder, &checkpoint));
    BEL_ASSERT_OK(bel_checkpoint_read(checkpoint, name, out, count * sizeof *out));
    bel_checkpoint_close(checkpoint);
}

// --- Models --------------------------------------------------------------------------------------

static bel_value *norm(bel_model_context *context, bel_value *x, const char *name)
{
    const bel_batch_norm_options options = {
        .size = sizeof options,
        .training = bel_context_mode(context) == BEL_MODE_TRAIN,
        .name = name,
        .statistics = (bel_batch_statistics)bel_context_param_number(context, "statistics", 0),
        .sum_formula = bel_context_param_number(context, "sum_formula", 0) != 0};
    return bel_batch_norm_with(bel_context_graph(context), x, &options);
}

static void finish(bel_estimator_spec *spec, bel_value *loss, double rate)
{
    bel_loss_set(spec, loss);
    bel_predictions_set(spec, loss);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = rate});
}

// Two convolutions with a normalization each. The first one runs beside a third convolution.
static bel_status *net_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_feature(context, "x");
    bel_value *h = norm(context, bel_conv_2d(g, x, 5, 3, 1, false, "a"), "norm_a");
    bel_value *side = norm(context, bel_conv_2d(g, x, 4, 1, 1, false, "side"), "norm_side");
    h = norm(context, bel_conv_2d(g, bel_tanh(g, h), 4, 3, 1, false, "b"), "norm_b");
    h = bel_tanh(g, bel_add(g, h, side));
    h = bel_dense(g, bel_flatten(g, bel_global_average_pool(g, h), 1), 1, "out");
    bel_value *error = bel_squared_error(g, h, bel_context_feature(context, "target"));
    finish(spec, bel_mean(g, error), 0.1);
    return NULL;
}

// One weight for each channel and pixel, all equal, before the norm and a function after it.
static bel_status *slope_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    const bel_initializer start = {.kind = BEL_INIT_CONSTANT,
                                   .value = bel_context_param_number(context, "start", 0)};
    bel_value *x = bel_context_feature(context, "x");
    bel_value *w =
        bel_variable(g, "w", &BEL_SHAPE(CHANNELS, SIDE, SIDE), start, BEL_VARIABLE_TRAINABLE);
    bel_value *h = norm(context, bel_tanh(g, bel_mul(g, x, w)), "norm");
    bel_value *id = bel_cast(g, bel_replica_id(g), BEL_DTYPE_F32);
    h = bel_sin(g, bel_mul(g, h, bel_add(g, id, bel_scalar(g, BEL_DTYPE_F32, 0.5))));
    finish(spec, bel_mean(g, bel_mul(g, h, bel_add(g, h, x))), 1);
    return NULL;
}

// Normalizes the features directly.
static bel_status *moving_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    finish(spec, bel_mean(g, norm(context, bel_context_feature(context, "x"), "norm")), 0.1);
    return NULL;
}

// --- Like one replica ----------------------------------------------------------------------------

static void assert_near(const char *what, double got, double expected, double tolerance)
{
    if (fabs(got - expected) <= tolerance * (fabs(expected) + 1e-3)) return;
    fail_msg("%s: got %.9g, expected %.9g", what, got, expected);
}

static void compare_variables(const run *a, const run *b)
{
    static const struct {
        const char *name;
        size_t count;
    } rows[] = {{"a/kernel", (size_t)5 * CHANNELS * 9},
                {"norm_a/scale", 5},
                {"norm_a/bias", 5},
                {"norm_a/mean", 5},
                {"norm_a/variance", 5},
                {"norm_b/mean", 4},
                {"norm_b/variance", 4},
                {"norm_side/scale", 4},
                {"out/kernel", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float x[5 * CHANNELS * 9], y[5 * CHANNELS * 9];
        read(a, rows[i].name, x, rows[i].count);
        read(b, rows[i].name, y, rows[i].count);
        for (size_t k = 0; k < rows[i].count; k++)
            if (fabs((double)x[k] - (double)y[k]) > 1e-5)
                fail_msg("%s, element %zu: %g and %g", rows[i].name, k, (double)x[k], (double)y[k]);
    }
}

// Counts with 4, 4, 4, 4 examples; 4, 4, 4, 1; and 4, 4, 1, 0.
static void test_like_one(void **state)
{
    (void)state;
    static const int counts[] = {MOST, 13, 9}, steps[] = {1, 2, 5, 10, 15, 20};
    fill(0);
    for (int c = 0; c < 3; c++)
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
            job j = {net_model, .statistics = BEL_STATISTICS_SYNC, .examples = counts[c]};
            run alone = train(&j, one, steps[s]), all = train(&j, four, steps[s]);
            char what[64];
            (void)bel_snprintf(what, sizeof what, "%d examples, loss of step %d", counts[c],
                               steps[s]);
            assert_near(what, all.result.loss, alone.result.loss, 1e-5);
            compare_variables(&alone, &all);
            bel_free(alone.folder);
            bel_free(all.folder);
        }
    // Replicas with local statistics are far from that.
    job j = {net_model, .statistics = BEL_STATISTICS_LOCAL, .examples = MOST};
    run alone = train(&j, one, 20), all = train(&j, four, 20);
    assert_true(fabs(all.result.loss / alone.result.loss - 1) > 1e-3);
    bel_free(alone.folder);
    bel_free(all.folder);
}

// With one replica all statistics are the same, and bel_batch_norm uses the local ones.
static void test_alone(void **state)
{
    (void)state;
    char digest[BEL_RESULT_TEXT] = "";
    fill(0);
    for (int s = BEL_STATISTICS_LOCAL; s <= BEL_STATISTICS_SYNC; s++) {
        job j = {net_model, .statistics = (bel_batch_statistics)s, .examples = 13};
        run r = train(&j, one, 3);
        if (s == BEL_STATISTICS_LOCAL)
            (void)bel_snprintf(digest, sizeof digest, "%s", r.result.digest);
        assert_string_equal(r.result.digest, digest);
        bel_free(r.folder);
    }
}

// --- Deals ---------------------------------------------------------------------------------------

// With 3 replicas, the mean of a statistic that all of them have may be rounded, but equally in all
// deals.
static void check_deals(const deal *deals, int deal_count, const job *j)
{
    char digest[BEL_RESULT_TEXT] = "";
    for (int d = 0; d < deal_count; d++) {
        run r = train(j, deals[d], 5);
        if (d == 0) (void)bel_snprintf(digest, sizeof digest, "%s", r.result.digest);
        assert_string_equal(r.result.digest, digest);
        bel_free(r.folder);
    }
}

static void test_deals(void **state)
{
    (void)state;
    static const deal fours[] = {
        {4, 1, BATCH, 1}, {2, 2, BATCH, 1}, {1, 4, BATCH, 1}, {2, 1, BATCH, 2}, {1, 1, BATCH, 4}};
    static const deal threes[] = {{3, 1, BATCH, 1}, {1, 3, BATCH, 1}, {1, 1, BATCH, 3}};
    fill(0);
    for (int k = 0; k < 3; k++)
        for (int missing = 0; missing <= 3; missing += 3) {
            job j = {net_model, .examples = MOST - missing, .sum_formula = k == 2};
            j.statistics = k == 0 ? BEL_STATISTICS_MERGED : BEL_STATISTICS_SYNC;
            check_deals(fours, 5, &j);
            j.examples = 3 * BATCH - missing;
            check_deals(threes, 3, &j);
        }
}

// Has enough channels that workers exchange moments in pieces.
static bel_status *wide_model(bel_model_context *context, bel_estimator_spec *spec)
{
    enum { WIDE = 5000 };
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_flatten(g, bel_context_feature(context, "x"), 1);
    bel_value *h = norm(context, bel_dense(g, x, WIDE, "wide"), "norm");
    bel_value *error =
        bel_sub(g, bel_dense(g, bel_tanh(g, h), 1, "out"), bel_context_feature(context, "target"));
    finish(spec, bel_mean(g, bel_mul(g, error, error)), 1e-4);
    return NULL;
}

static void test_wide(void **state)
{
    (void)state;
    static const deal deals[] = {{4, 1, BATCH, 1}, {2, 1, BATCH, 2}, {1, 1, BATCH, 4}};
    char digest[BEL_RESULT_TEXT] = "";
    fill(0);
    for (int d = 0; d < 3; d++) {
        const job j = {wide_model, .examples = 13, .statistics = BEL_STATISTICS_SYNC};
        run r = train(&j, deals[d], 3);
        if (d == 0) (void)bel_snprintf(digest, sizeof digest, "%s", r.result.digest);
        assert_string_equal(r.result.digest, digest);
        bel_free(r.folder);
    }
}

// --- Gradients -----------------------------------------------------------------------------------

// Returns the loss of one step from `start`, and the slope by all weights together.
static double loss_at(job j, double start, double *out_slope)
{
    float w[WIDTH];
    j.start = start;
    run r = train(&j, four, 1);
    read(&r, "w", w, WIDTH);
    *out_slope = 0;
    for (int i = 0; i < WIDTH; i++)
        *out_slope += (double)(float)start - (double)w[i];
    bel_free(r.folder);
    return r.result.loss;
}

// Losses are float sums, so differences have about four digits.
static void test_gradients(void **state)
{
    (void)state;
    static const int counts[] = {MOST, 13, 9};
    fill(0.3);
    for (int k = 0; k < 4; k++)
        for (int c = 0; c < 3; c++) {
            const double at = 0.7, h = 0.015625;
            double slope, unused;
            job j = {slope_model, .examples = counts[c], .sum_formula = k == 3};
            j.statistics = k == 3 ? BEL_STATISTICS_SYNC : (bel_batch_statistics)k;
            (void)loss_at(j, at, &slope);
            double above = loss_at(j, at + h, &unused), below = loss_at(j, at - h, &unused);
            double expected = (above - below) / (2 * h);
            if (fabs(slope - expected) <= 2e-3 * (0.1 + fabs(expected))) continue;
            fail_msg("kind %d, %d examples: the slope is %g, differences of the loss give %g", k,
                     counts[c], slope, expected);
        }
}

// --- Moving statistics ---------------------------------------------------------------------------

static void plain_statistics(int examples, double *out_means, double *out_variances)
{
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0, squares = 0, count = examples * PIXELS;
        for (int i = 0; i < examples * PIXELS; i++)
            sum += (double)images[i / PIXELS][c * PIXELS + i % PIXELS];
        for (int i = 0; i < examples * PIXELS; i++)
            squares += pow((double)images[i / PIXELS][c * PIXELS + i % PIXELS] - sum / count, 2);
        out_means[c] = sum / count;
        out_variances[c] = squares / count;
    }
}

// Returns the largest error of a variance after a step from 0 and 1, relative to the variance. The
// largest error of a mean, relative to the variance's root, goes to *out_mean.
static double moving_error(const job *j, deal d, double *out_mean)
{
    float means[CHANNELS], variances[CHANNELS];
    double true_means[CHANNELS], true_variances[CHANNELS], error = 0, mean_error = 0;
    run r = train(j, d, 1);
    read(&r, "norm/mean", means, CHANNELS);
    read(&r, "norm/variance", variances, CHANNELS);
    plain_statistics(j->examples, true_means, true_variances);
    for (int c = 0; c < CHANNELS; c++) {
        double mean = (double)means[c] / (1 - 0.9);
        double variance = ((double)variances[c] - 0.9) / (1 - 0.9);
        mean_error = fmax(mean_error, fabs(mean - true_means[c]) / sqrt(true_variances[c]));
        error = fmax(error, fabs(variance / true_variances[c] - 1));
    }
    bel_free(r.folder);
    *out_mean = mean_error;
    return error;
}

// One of the four counts leaves a replica without examples.
static void test_moving(void **state)
{
    (void)state;
    static const int counts[] = {MOST, 13, 9, 2};
    fill(0.3);
    for (int c = 0; c < 4; c++)
        for (int k = 0; k < 3; k++) {
            job j = {moving_model, .examples = counts[c], .sum_formula = k == 2};
            j.statistics = k == 0 ? BEL_STATISTICS_MERGED : BEL_STATISTICS_SYNC;
            double mean, variance = moving_error(&j, four, &mean);
            if (variance > 5e-6 || mean > 1e-6)
                fail_msg("kind %d, %d examples: the moving mean is off by %g, the variance by %g",
                         k, counts[c], mean, variance);
        }
    // The mean of the replicas' variances is not the variance of their examples.
    job j = {moving_model, .statistics = BEL_STATISTICS_LOCAL, .examples = MOST};
    double mean;
    assert_true(moving_error(&j, four, &mean) > 1e-3);
    assert_true(moving_error(&j, one, &mean) < 5e-6);
}

// With a mean of 10,000 deviations the merge keeps its digits, and sums of squares do not.
static void test_offset(void **state)
{
    (void)state;
    fill(1e4);
    for (int count = 13; count <= MOST; count += 3) {
        job j = {moving_model, .statistics = BEL_STATISTICS_SYNC, .examples = count};
        double mean, merged = moving_error(&j, four, &mean);
        if (merged > 1e-3) fail_msg("%d examples: the merge is off by %g", count, merged);
        j.sum_formula = true;
        double sums = moving_error(&j, four, &mean);
        if (sums < 1e-2) fail_msg("%d examples: sums are off by no more than %g", count, sums);
    }
    fill(0);
}

// --- Refusals ------------------------------------------------------------------------------------

static void test_refused(void **state)
{
    (void)state;
    const struct {
        bel_batch_norm_options options;
        const char *words;
    } rows[] = {
        {{.name = "n", .momentum = -0.1}, "batch norm \"n\": expected momentum above 0 and at mo"},
        {{.name = "n", .momentum = 1.5}, "expected momentum above 0 and at most 1"},
        {{.name = "n", .momentum = NAN}, "expected momentum"},
        {{.name = "n", .epsilon = -1e-5}, "expected epsilon above 0"},
        {{.name = "n", .statistics = (bel_batch_statistics)3}, "expected valid statistics"},
        {{.momentum = 0.5}, "expected a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_graph *g = bel_graph_create();
        bel_batch_norm_options options = rows[i].options;
        options.size = sizeof options;
        bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &BEL_SHAPE(BEL_DIM_BATCH, 2));
        assert_null(bel_batch_norm_with(g, x, &options));
        BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, rows[i].words);
        bel_graph_destroy(g);
    }
}

// Fields after the size that the program passes count as 0.
static void test_size(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_batch_norm_options options = {.size = offsetof(bel_batch_norm_options, momentum),
                                      .name = "n",
                                      .momentum = -1,
                                      .epsilon = -1};
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &BEL_SHAPE(BEL_DIM_BATCH, 2));
    assert_non_null(bel_batch_norm_with(g, x, &options));
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_like_one),  BEL_TEST_IN_FOLDER(test_alone),
        BEL_TEST_IN_FOLDER(test_deals),     BEL_TEST_IN_FOLDER(test_wide),
        BEL_TEST_IN_FOLDER(test_gradients), BEL_TEST_IN_FOLDER(test_moving),
        BEL_TEST_IN_FOLDER(test_offset),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
