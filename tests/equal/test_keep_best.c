// Tests of the best checkpoint in one process: the one kept beside the newest, over repeated and
// resumed runs, and the last evaluation in an interrupted run's result. label: threads
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "checkpoint/best.h"
#include "report/history.h"
#include "support/bel_test.h"
#include "support/digits.h"

static int64_t batch = 16;

// Its metric "clicks" is the loss under a name without a direction.
static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_only_feature(context), 10, "logits");
    bel_value *labels = bel_context_labels(context);
    bel_predictions_set(spec, bel_softmax(g, logits));
    if (labels != NULL) {
        bel_value *losses = bel_softmax_cross_entropy(g, logits, labels);
        bel_loss_set(spec, bel_mean(g, losses));
        bel_metric_accuracy(context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
        bel_metric_mean(context, spec, "clicks", losses, NULL);
    }
    double rate = bel_context_param_number(context, "rate", 0.5);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = rate});
    return NULL;
}

typedef struct run {
    const char *folder, *rate, *name; // default: rate 0.5 and an unnamed evaluation
    bel_keep_best best;
    int64_t steps, save_steps, eval_steps, stop_at;
    int keep; // 0: 1
    bel_result *evaluation;
} run;

static bel_status *stop(void *user, bel_hook_context *context, const bel_step_report *step)
{
    (void)context;
    if (step->step == *(const int64_t *)user) bel_request_stop();
    return NULL;
}

static bel_status *train(const run *r, bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), r->folder);
    int64_t stop_at = r->stop_at;
    config.model_dir = folder;
    config.save_checkpoints_steps = r->save_steps;
    config.keep_checkpoint_max = r->keep > 0 ? r->keep : 1;
    config.report = false;
    const bel_param param = {"rate", r->rate != NULL ? r->rate : "0.5"};
    const bel_hook hook = {
        .size = sizeof hook, .name = "stopping", .user = &stop_at, .after_step = stop};
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = r->steps,
                                 .keep_best = r->best,
                                 .hooks = (const bel_hook *[]){&hook},
                                 .hook_count = stop_at > 0};
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .name = r->name,
                                .every_steps = r->eval_steps,
                                .out_result = r->evaluation};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, &param, 1, &estimator));
    bel_status *status = bel_train_and_evaluate(estimator, &spec, &eval, 1, out_result);
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return status;
}

// Expects the checkpoints and best.json of a folder, as "10 60, best 10".
static void expect(const char *folder, const char *expected)
{
    int64_t *steps;
    size_t count;
    bel_ckpt_best best;
    bool found;
    char *path = bel_path_join(bel_test_own_folder(), folder);
    bel_str text = {0};
    BEL_ASSERT_OK(bel_ckpt_list(path, &steps, &count));
    for (size_t i = 0; i < count; i++)
        bel_str_printf(&text, "%s%lld", i > 0 ? " " : "", (long long)steps[i]);
    BEL_ASSERT_OK(bel_ckpt_best_read(path, &best, &found));
    if (found) bel_str_printf(&text, ", best %lld", (long long)best.step);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
    bel_free(steps);
    bel_free(path);
}

// Returns the first step with the best value of a curve of evaluations, and that value.
static int64_t best_of(const char *folder, const char *tag, bool higher, double *out_value)
{
    bel_history *history;
    int64_t step = -1;
    char *path = bel_path_join(bel_test_own_folder(), folder);
    BEL_ASSERT_OK(bel_history_read_folder(path, "eval", &history));
    const bel_report_series *series = bel_history_find(history, "eval", tag);
    assert_non_null(series);
    assert_true(series->point_count > 5);
    for (size_t i = 0; i < series->point_count; i++) {
        double value = series->values[i];
        if (step >= 0 && (higher ? value <= *out_value : value >= *out_value)) continue;
        step = series->steps[i];
        *out_value = value;
    }
    bel_history_destroy(history);
    bel_free(path);
    return step;
}

static void lose(const char *folder, const char *name)
{
    char *path = bel_strf("%s/%s/%s", bel_test_own_folder(), folder, name);
    BEL_ASSERT_OK(bel_dir_remove(path));
    bel_free(path);
}

// --- Choice --------------------------------------------------------------------------------------

// The rate is too low for a change. The first of equal evaluations, at 10, is the best, and is
// saved between the checkpoints of 0 and 20.
static void test_ties(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    run r = {.folder = "ties",
             .rate = "1e-30",
             .best = {.metric = "accuracy"},
             .steps = 60,
             .save_steps = 20,
             .eval_steps = 10};
    BEL_ASSERT_OK(train(&r, &result));
    expect("ties", "10 60, best 10");
    r.steps = 80;
    BEL_ASSERT_OK(train(&r, &result));
    expect("ties", "10 80, best 10");
    r.best = (bel_keep_best){0}; // it stays then, too
    r.steps = 100;
    BEL_ASSERT_OK(train(&r, &result));
    expect("ties", "10 100, best 10");
}

static void test_goals(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        bel_goal goal;
        bool higher;
    } cases[] = {{"loss", BEL_GOAL_AUTO, false},
                 {"accuracy", BEL_GOAL_AUTO, true},
                 {"accuracy", BEL_GOAL_MIN, false},
                 {"clicks", BEL_GOAL_MIN, false},
                 {"clicks", BEL_GOAL_MAX, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char folder[16], expected[64];
        double value = NAN;
        bel_result result = {.size = sizeof result};
        bel_ckpt_best best;
        bool found;
        snprintf(folder, sizeof folder, "goal-%zu", i);
        BEL_ASSERT_OK(train(&(run){.folder = folder,
                                   .best = {.metric = cases[i].metric, .goal = cases[i].goal},
                                   .steps = 100,
                                   .save_steps = 30,
                                   .eval_steps = 10},
                            &result));
        int64_t step = best_of(folder, cases[i].metric, cases[i].higher, &value);
        if (step == 100) snprintf(expected, sizeof expected, "100, best 100");
        if (step < 100)
            snprintf(expected, sizeof expected, "%d 100, best %d", (int)step, (int)step);
        expect(folder, expected);
        char *path = bel_path_join(bel_test_own_folder(), folder);
        BEL_ASSERT_OK(bel_ckpt_best_read(path, &best, &found));
        assert_true(best.value == (float)value && best.higher == cases[i].higher);
        bel_free(path);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    run r = {.folder = "no", .best = {.metric = "recall"}, .steps = 10, .save_steps = 10};
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT,
                     "keep_best: eval has no metric \"recall\"; it has loss, accuracy, clicks");
    r.best.metric = "clicks";
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT,
                     "which of two values of \"clicks\" is better");
    r.best = (bel_keep_best){.metric = "loss", .eval = "test"};
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT, "there is no evaluation test");
    r.name = "test";
    BEL_ASSERT_OK(train(&r, &result));
    expect("no", "10, best 10");
}

// --- Over restarts -------------------------------------------------------------------------------

// A run that resumes from an earlier checkpoint chooses the same one. Evaluations without a
// checkpoint do not count, as there is nothing to keep.
static void test_restarts(void **state)
{
    (void)state;
    bel_result whole = {.size = sizeof whole}, again = {.size = sizeof again};
    run r = {.folder = "whole",
             .rate = "1e-30",
             .best = {.metric = "accuracy"},
             .steps = 40,
             .save_steps = 20,
             .eval_steps = 10};
    BEL_ASSERT_OK(train(&r, &whole));
    expect("whole", "10 40, best 10");
    lose("whole", "ckpt-00000040");
    lose("whole", BEL_BEST_FILE); // as if killed before it was written
    BEL_ASSERT_OK(train(&r, &again));
    expect("whole", "10 40, best 10");
    assert_string_equal(again.digest, whole.digest);
    lose("whole", "ckpt-00000010"); // by another program
    r.steps = 60;
    BEL_ASSERT_OK(train(&r, &again));
    expect("whole", "40 60, best 40");
    // No run has kept this metric before: the best of the existing checkpoints counts.
    r = (run){.folder = "late", .rate = "1e-30", .steps = 40, .save_steps = 20, .eval_steps = 10};
    BEL_ASSERT_OK(train(&r, &again));
    expect("late", "40");
    r.best.metric = "loss";
    r.steps = 60;
    BEL_ASSERT_OK(train(&r, &again));
    expect("late", "40 60, best 40");
    // Another training in that folder.
    lose("late", "ckpt-00000040");
    lose("late", "ckpt-00000060");
    lose("late", "eval");
    r.best.metric = NULL;
    BEL_ASSERT_OK(train(&r, &again));
    expect("late", "60");
}

// A run that goes back past a damaged checkpoint ignores its evaluation.
static void test_going_back(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    run r = {.folder = "back",
             .best = {.metric = "loss"},
             .steps = 40,
             .save_steps = 10,
             .eval_steps = 10,
             .keep = 3};
    BEL_ASSERT_OK(train(&r, &result));
    expect("back", "20 30 40, best 40");
    bel_free(bel_test_file(bel_test_own_folder(), "back/ckpt-00000040/manifest.json", "{", 1));
    r.steps = 33;
    BEL_ASSERT_OK(train(&r, &result));
    expect("back", "30 33 40, best 33");
}

// --- Results -------------------------------------------------------------------------------------

static void test_interrupted(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result}, evaluation = {.size = sizeof evaluation},
               last = {.size = sizeof last};
    run r = {.folder = "stop",
             .steps = 1000000,
             .save_steps = 1000000,
             .eval_steps = 10,
             .stop_at = 25,
             .evaluation = &evaluation};
    BEL_ASSERT_OK(train(&r, &result));
    assert_true(result.interrupted);
    assert_true(result.global_step >= 25);
    assert_true(evaluation.global_step >= 20 && evaluation.global_step % 10 == 0);
    assert_int_equal(result.evaluation_step, evaluation.global_step);
    assert_true(result.loss == evaluation.loss && result.examples == evaluation.examples);
    assert_int_equal(result.metric_count, 2);
    assert_true(result.metrics[0].value == evaluation.metrics[0].value);
    // Evaluation of an earlier run, from the event files.
    last = result;
    r.eval_steps = 1000000;
    r.stop_at = result.global_step + 1;
    BEL_ASSERT_OK(train(&r, &result));
    assert_true(result.interrupted && result.global_step > last.global_step);
    assert_int_equal(result.evaluation_step, last.evaluation_step);
    assert_true((float)result.loss == (float)last.loss);
    assert_int_equal(result.metric_count, 2);
    assert_string_equal(result.metrics[0].name, "accuracy");
    assert_true((float)result.metrics[0].value == (float)last.metrics[0].value);
    assert_true(isnan(result.batch_mean_loss) && result.examples == 0);
    // No evaluation; and a run that ends.
    r.folder = "none";
    r.stop_at = 3;
    BEL_ASSERT_OK(train(&r, &result));
    assert_true(result.interrupted && isnan(result.loss));
    assert_int_equal(result.evaluation_step, -1);
    r.stop_at = 0;
    r.steps = result.global_step + 10;
    BEL_ASSERT_OK(train(&r, &result));
    assert_false(result.interrupted);
    assert_int_equal(result.evaluation_step, r.steps);
    assert_int_equal(result.global_step, r.steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_ties),       BEL_TEST_IN_FOLDER(test_goals),
        BEL_TEST_IN_FOLDER(test_refusals),   BEL_TEST_IN_FOLDER(test_restarts),
        BEL_TEST_IN_FOLDER(test_going_back), BEL_TEST_IN_FOLDER(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
