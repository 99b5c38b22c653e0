// Files that runs and evaluations leave in a model folder, and their reuse: event files and
// report.html over a resume, a repeated command and evaluations beside training.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/str.h"
#include "ps/layout/step_stats.h"
#include "ps/server/control.h"
#include "report/history.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { BATCH = 32 };

static int64_t batch = BATCH;

static bel_estimator *estimator_with(const char *rate)
{
    const bel_param params[] = {
        {"hidden_units", "16"}, {"class_count", "10"}, {"learning_rate", rate}};
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    config.model_dir = bel_test_own_folder();
    config.save_checkpoints_steps = 20;
    config.save_summary_steps = 5;
    config.allow_changes = true;
    bel_estimator *estimator;
    BEL_ASSERT_OK(
        bel_estimator_create(bel_model_find("dnn")->model_fn, &config, params, 3, &estimator));
    return estimator;
}

// Trains with two evaluations; the second one reads only one batch.
static void train(const char *rate, int64_t steps, bel_result *out_result, bel_result *out_second)
{
    bel_estimator *estimator = estimator_with(rate);
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = steps};
    const bel_eval_spec evals[] = {{.size = sizeof(bel_eval_spec),
                                    .input_fn = bel_test_digits_input,
                                    .input_user = &batch,
                                    .every_steps = 20},
                                   {.size = sizeof(bel_eval_spec),
                                    .input_fn = bel_test_digits_input,
                                    .input_user = &batch,
                                    .steps = 1,
                                    .name = "one",
                                    .every_steps = 20,
                                    .out_result = out_second}};
    BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &spec, evals, 2, out_result));
    bel_estimator_destroy(estimator);
}

// The error comes before any training.
static void test_too_many_evaluations(void **state)
{
    (void)state;
    bel_estimator *estimator = estimator_with("0.1");
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = 1};
    bel_eval_spec evals[BEL_MAX_EVALS + 1] = {0};
    BEL_ASSERT_FAILS(bel_train_and_evaluate(estimator, &spec, evals, BEL_MAX_EVALS + 1, NULL),
                     BEL_INVALID_ARGUMENT, "from 0 to 16 evaluations, got 17");
    bel_estimator_destroy(estimator);
}

static char *report(void)
{
    char *path = bel_path_join(bel_test_own_folder(), "report.html"), *page;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &page, &size));
    bel_free(path);
    return page;
}

static size_t points(const char *name)
{
    bel_history *history;
    BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
    const bel_report_series *series = bel_history_find(history, name, "loss");
    size_t count = series == NULL ? 0 : series->point_count;
    bel_history_destroy(history);
    return count;
}

static size_t event_files(void)
{
    char **names;
    size_t count, found = 0;
    BEL_ASSERT_OK(bel_dir_list(bel_test_own_folder(), &names, &count));
    for (size_t i = 0; i < count; i++) {
        found += strstr(names[i], "tfevents") != NULL;
        bel_free(names[i]);
    }
    bel_free(names);
    return found;
}

static void test_all_results_come_back(void **state)
{
    (void)state;
    bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
    train("0.001", 20, &first, &second);
    assert_int_equal(first.examples, 359);
    assert_int_equal(second.examples, BATCH);
    assert_int_equal(second.global_step, 20);
    assert_true(second.loss > 0 && second.loss != first.loss);
    assert_string_equal(second.metrics[0].name, "accuracy");
}

// The second part's learning rate is so high that the loss rises: the best evaluation is in the
// first part.
static void test_report_remembers(void **state)
{
    (void)state;
    bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
    train("0.001", 60, &first, &second);
    char *page = report(), *best = bel_strf("%.4g at step 60", first.loss);
    assert_non_null(strstr(page, best));
    bel_free(page);
    assert_int_equal(points(""), 13); // step 1, and every fifth step
    assert_int_equal(points("eval"), 3);
    train("3", 80, &first, &second);
    assert_true(first.loss > 1);
    page = report();
    assert_non_null(strstr(page, best));
    bel_free(page);
    assert_int_equal(points(""), 13 + 5); // step 61 too
    train("3", 80, &first, &second);      // nothing left to train
    page = report();
    assert_non_null(strstr(page, best));
    assert_non_null(strstr(page, ">train<"));
    bel_free(page);
    bel_free(best);
    assert_int_equal(points(""), 13 + 5);
    assert_int_equal(points("eval"), 4);
}

// A run killed before its end leaves a report of its progress.
static void test_report_while_running(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
        bel_fault_set("crash:master_finishes");
        train("0.001", 60, &first, &second);
        _exit(0);
    }
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    char *page = report();
    assert_non_null(strstr(page, "running; digest so far"));
    assert_non_null(strstr(page, "best evaluation"));
    bel_free(page);
}

// Reads both evaluations' losses at steps 20, 40 and 60.
static void read_losses(double out_losses[2][3])
{
    static const char *const names[] = {"eval", "eval_one"};
    bel_history *history;
    BEL_ASSERT_OK(bel_history_read(bel_test_own_folder(), &history));
    for (int e = 0; e < 2; e++) {
        const bel_report_series *losses = bel_history_find(history, names[e], "loss");
        assert_non_null(losses);
        assert_int_equal(losses->point_count, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(losses->steps[i], 20 * (i + 1));
            out_losses[e][i] = losses->values[i];
        }
    }
    bel_history_destroy(history);
}

// A run killed between a checkpoint and its evaluation evaluates it after the restart.
static void test_missed_evaluation(void **state)
{
    (void)state;
    double whole[2][3], broken[2][3];
    bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
    train("0.001", 60, &first, &second);
    read_losses(whole);
    BEL_ASSERT_OK(bel_dir_remove(bel_test_own_folder()));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bel_fault_set("crash:checkpoint_after_rename#3"); // checkpoints of steps 0, 20, 40
        train("0.001", 60, &first, &second);
        _exit(0);
    }
    int end;
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGKILL);
    assert_int_equal(points("eval"), 1);
    train("0.001", 60, &first, &second);
    read_losses(broken);
    assert_memory_equal(broken, whole, sizeof whole);
}

static void evaluate(int64_t step, int64_t batches, bel_result *out_result)
{
    bel_estimator *estimator = estimator_with("0.001");
    const bel_eval_spec spec = {.size = sizeof spec,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .steps = batches};
    char *checkpoint = bel_strf("%s/ckpt-%08lld", bel_test_own_folder(), (long long)step);
    BEL_ASSERT_OK(bel_evaluate(estimator, &spec, checkpoint, out_result));
    bel_free(checkpoint);
    bel_estimator_destroy(estimator);
}

// If the earlier evaluations cannot be read, the run warns and trains.
static void test_unreadable_history(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result}, second = {.size = sizeof second};
    train("0.001", 20, &result, &second);
    char *dir = bel_path_join(bel_test_own_folder(), "eval/events.out.tfevents.1.folder");
    BEL_ASSERT_OK(bel_dir_create(dir));
    bel_free(dir);
    train("0.001", 40, &result, &second);
    assert_int_equal(result.global_step, 40);
    assert_int_equal(result.examples, 359);
}

// bel_evaluate may evaluate any checkpoint on any data, so it does not change the run's curves.
static void test_by_hand(void **state)
{
    (void)state;
    bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
    double before[2][3], after[2][3];
    train("0.001", 60, &first, &second);
    read_losses(before);
    size_t files = event_files();
    evaluate(20, 0, &first);
    evaluate(40, 1, &second);
    assert_int_equal(first.global_step, 20);
    assert_true((float)second.loss != (float)before[0][1]);
    read_losses(after);
    assert_memory_equal(after, before, sizeof before);
    assert_int_equal(event_files(), files);
    assert_int_equal(points(""), 13);
    char **names;
    size_t count;
    char *folder = bel_path_join(bel_test_own_folder(), "evaluate");
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    assert_int_equal(count, 2);
    bel_dir_names_free(names, count);
    bel_free(folder);
}

// Counts down its calls; the last one ends the evaluation.
static bel_status *end_after(void *user)
{
    int *left = user;
    return --*left > 0 ? NULL : BEL_ERR(BEL_CANCELLED, "the program has had enough");
}

// An evaluation that the program ends has no event, by hand and in a training.
static void test_ended_by_the_program(void **state)
{
    (void)state;
    int left = 1;
    bel_result result = {.size = sizeof result}, second = {.size = sizeof second};
    train("0.001", 20, &result, &second);
    bel_estimator *estimator = estimator_with("0.001");
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = 40};
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .every_steps = 20,
                                .between = end_after,
                                .between_user = &left};
    BEL_ASSERT_FAILS(bel_evaluate(estimator, &eval, NULL, &result), BEL_CANCELLED, "had enough");
    assert_int_equal(left, 0);
    assert_int_equal(points("evaluate"), 0);
    left = 1;
    BEL_ASSERT_FAILS(bel_train_and_evaluate(estimator, &spec, &eval, 1, &result), BEL_CANCELLED,
                     "eval: the program has had enough");
    assert_int_equal(points("eval"), 1);
    left = 1000;
    BEL_ASSERT_OK(bel_train_and_evaluate(estimator, &spec, &eval, 1, &result));
    assert_in_range(left, 1, 998); // it was called, for each group of batches
    assert_int_equal(points("eval"), 2);
    bel_estimator_destroy(estimator);
}

// root may write everywhere, so this process becomes another user for the test.
static void test_read_only_folder(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    bel_result first = {.size = sizeof first}, second = {.size = sizeof second};
    bool root = geteuid() == 0;
    train("0.001", 20, &first, &second);
    size_t files = event_files();
    assert_int_equal(chmod(bel_test_own_folder(), 0555), 0);
    if (root) assert_int_equal(seteuid(NOBODY), 0);
    evaluate(20, 0, &second);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(bel_test_own_folder(), 0755), 0);
    assert_true(second.loss == first.loss);
    assert_int_equal(event_files(), files);
}

// No point is lost if steps are faster than the master.
static void test_points_wait_for_the_master(void **state)
{
    (void)state;
    enum { STEPS = 5000 };
    bel_control *control = bel_control_create(
        &(bel_control_config){.shard_count = 1, .last_step = STEPS, .series_steps = 1});
    for (int64_t version = 1; version <= STEPS; version++) {
        double stats[BEL_STATS_COUNT] = {0};
        stats[BEL_STATS_LOSS_SUM] = (double)version;
        stats[BEL_STATS_EXAMPLES] = 1;
        bel_control_decide(control, version, stats, BEL_STEPS_FOLLOW);
    }
    bel_control_point some[64];
    int64_t next = 1;
    for (int count; (count = bel_control_take_points(control, some, 64)) > 0;) {
        for (int i = 0; i < count; i++, next++)
            assert_true(some[i].step == next && some[i].loss == (double)next);
    }
    assert_int_equal(next, STEPS + 1);
    bel_control_give_points_again(control);
    assert_int_equal(bel_control_take_points(control, some, 64), 64);
    assert_true(some[0].step >= 1 && some[0].loss == (double)some[0].step);
    bel_control_destroy(control);
}

static uint32_t decide(bel_control *control, int64_t version)
{
    double stats[BEL_STATS_COUNT] = {0};
    stats[BEL_STATS_EXAMPLES] = 1;
    uint32_t decision = bel_control_decide(control, version, stats, BEL_STEPS_FOLLOW);
    if ((decision & BEL_DECIDE_LATER) != 0) fail_msg("version %lld waits", (long long)version);
    return decision;
}

// The next decision after a release says so, once.
static void test_release_is_told(void **state)
{
    (void)state;
    bel_control *control = bel_control_create(
        &(bel_control_config){.shard_count = 1, .last_step = 10, .save_steps = 3});
    static const uint32_t expected[] = {
        0, 0, BEL_DECIDE_SAVE, 0, BEL_DECIDE_RELEASED, BEL_DECIDE_SAVE};
    for (int64_t version = 0; version <= 5; version++) {
        if (version == 3) bel_control_snapshot_ready(control, 0, version);
        assert_int_equal(decide(control, version), expected[version]);
        if (version == 3) bel_control_release_snapshot(control);
    }
    bel_control_destroy(control);
}

// A master that replaces another one gets every step for the hooks since the last checkpoint but
// one, whose states they may have, however many the first master had read.
static void test_points_stay_for_hooks(void **state)
{
    (void)state;
    enum { SAVE = 3000, STEPS = 8000 };
    bel_control *control = bel_control_create(&(bel_control_config){
        .shard_count = 1, .last_step = STEPS + 1, .save_steps = SAVE, .hook_steps = 1});
    bel_control_point some[64];
    int64_t read = 0;
    for (int64_t version = 0; version <= STEPS; version++) {
        decide(control, version);
        int count = bel_control_take_points(control, some, 64);
        if (count > 0) read = some[count - 1].step;
        if (version == 0 || version % SAVE != 0) continue;
        bel_control_snapshot_ready(control, 0, version);
        bel_control_release_snapshot(control);
    }
    assert_int_equal(read, STEPS);
    bel_control_give_points_again(control);
    assert_int_equal(bel_control_take_points(control, some, 1), 1);
    assert_in_range(some[0].step, 1, SAVE + 1); // earlier ones may be there, too
    int64_t next = some[0].step + 1;
    for (int count; (count = bel_control_take_points(control, some, 64)) > 0;)
        for (int i = 0; i < count; i++)
            assert_int_equal(some[i].step, next++);
    assert_int_equal(next, STEPS + 1);
    bel_control_destroy(control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_all_results_come_back),
        BEL_TEST_IN_FOLDER(test_report_remembers),
        BEL_TEST_IN_FOLDER(test_too_many_evaluations),
        BEL_TEST_IN_FOLDER(test_report_while_running),
        BEL_TEST_IN_FOLDER(test_missed_evaluation),
        BEL_TEST_IN_FOLDER(test_unreadable_history),
        BEL_TEST_IN_FOLDER(test_by_hand),
        BEL_TEST_IN_FOLDER(test_ended_by_the_program),
        BEL_TEST_IN_FOLDER(test_read_only_folder),
        cmocka_unit_test(test_points_wait_for_the_master),
        cmocka_unit_test(test_points_stay_for_hooks),
        cmocka_unit_test(test_release_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
