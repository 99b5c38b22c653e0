// Tests of hooks, early stopping and exporters in one process: each function is called at the right
// time with the right arguments, changes no bit, and ends training at the same step in every run.
// label: threads
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "belfry/belfry.h"
#include "checkpoint/checkpoint.h"
#include "support/bel_test.h"
#include "support/digits.h"

enum { STEPS = 60, WORKERS = 2 };

static int64_t batch = 16;

// --- A model with a summary ----------------------------------------------------------------------

static bel_status *model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *logits = bel_dense(g, bel_context_only_feature(context), 10, "logits");
    bel_value *labels = bel_context_labels(context);
    bel_predictions_set(spec, bel_softmax(g, logits));
    if (labels != NULL) {
        bel_value *loss = bel_mean(g, bel_softmax_cross_entropy(g, logits, labels));
        bel_loss_set(spec, loss);
        bel_metric_accuracy(context, spec, "accuracy", labels, bel_arg_max(g, logits, 1), NULL);
        bel_summary_scalar(context, spec, "same_loss", loss);
    }
    double rate = bel_context_param_number(context, "rate", 0.5);
    bel_optimizer_use(spec, NULL,
                      &(bel_optimizer){.size = sizeof(bel_optimizer),
                                       .kind = BEL_OPTIMIZER_SGD,
                                       .learning_rate = rate});
    return NULL;
}

// --- Runs ----------------------------------------------------------------------------------------

typedef struct seen {
    int begun, ended, saves, evaluations, reports, wrong;
    int64_t last, end_at; // last: last reported step; end_at: step at which to ask for an end
    int stop_evaluation;  // ends after this number of evaluations
    const char *fail;     // function that fails
    atomic_int before, after;
    atomic_llong examples;
} seen;

static bel_status *fail_in(const seen *s, const char *function)
{
    if (s->fail == NULL || strcmp(s->fail, function) != 0) return NULL;
    return BEL_ERR(BEL_OUT_OF_RANGE, "enough");
}

static bel_status *begin(void *user, bel_hook_context *context, int64_t step)
{
    seen *s = user;
    s->begun++;
    s->last = step;
    const bel_estimator *estimator = bel_hook_estimator(context);
    bool right = bel_estimator_is_chief(estimator) && bel_estimator_rank(estimator) == 0 &&
                 bel_estimator_size(estimator) == WORKERS &&
                 bel_estimator_local_rank(estimator) == 0 &&
                 bel_estimator_local_size(estimator) == WORKERS &&
                 bel_estimator_replicas(estimator) == WORKERS;
    s->wrong += !right;
    if (s->end_at == 0) bel_hook_request_stop(context);
    return fail_in(s, "begin");
}

// Each version comes once, in order. The summary is the loss, as is the mean over both replicas.
static bel_status *after_step(void *user, bel_hook_context *context, const bel_step_report *step)
{
    seen *s = user;
    s->reports++;
    s->wrong += step->step != s->last + 1 || step->went_back || step->value_count != 2;
    s->wrong += strcmp(step->values[0].name, "same_loss") != 0 ||
                fabs(step->values[0].value - step->loss) > 1e-5;
    s->wrong += strcmp(step->values[1].name, "accuracy") != 0 || !(step->values[1].value >= 0) ||
                !(step->values[1].value <= 1);
    s->last = step->step;
    if (s->end_at == step->step) bel_hook_request_stop(context);
    return fail_in(s, "after_step");
}

static bel_status *after_save(void *user, bel_hook_context *context, int64_t step,
                              const char *folder)
{
    (void)context;
    seen *s = user;
    s->saves++;
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open(folder, &reader));
    s->wrong += bel_ckpt_reader_info(reader)->step != step || s->last != step;
    bel_ckpt_close(reader);
    return fail_in(s, "after_save");
}

static bel_status *after_evaluation(void *user, bel_hook_context *context, const char *name,
                                    const bel_result *result)
{
    seen *s = user;
    s->evaluations++;
    s->wrong += strcmp(name, "eval") != 0 || result->examples == 0;
    s->wrong += s->last != result->global_step || result->size != sizeof *result;
    if (s->evaluations == s->stop_evaluation) bel_hook_request_stop(context);
    return fail_in(s, "after_evaluation");
}

static bel_status *end(void *user, bel_hook_context *context, const bel_result *result)
{
    (void)context;
    seen *s = user;
    s->ended++;
    s->wrong += result->digest[0] == '\0' || result->size != sizeof *result;
    return fail_in(s, "end");
}

static bel_status *before_worker(void *user, bel_hook_context *context, int64_t step)
{
    (void)step;
    seen *s = user;
    bel_hook_request_stop(context); // no effect here
    atomic_fetch_add(&s->before, 1);
    return fail_in(s, "worker_before_step");
}

static bel_status *after_worker(void *user, bel_hook_context *context, const bel_step_report *step)
{
    (void)context;
    seen *s = user;
    atomic_fetch_add(&s->after, 1);
    atomic_fetch_add(&s->examples, step->examples);
    return fail_in(s, "worker_after_step");
}

typedef struct run {
    const char *folder;
    seen *hook; // NULL: none
    bel_early_stopping stopping;
    const bel_exporter *const *exporters;
    int exporter_count;
    const char *rate;
    double max_seconds;
    int64_t steps, save_steps;
} run;

static bel_status *train(const run *r, bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), r->folder);
    config.model_dir = folder;
    config.num_workers = WORKERS;
    config.save_checkpoints_steps = r->save_steps > 0 ? r->save_steps : 20;
    config.report = false;
    config.train_metrics = true;
    const bel_param param = {"rate", r->rate != NULL ? r->rate : "0.5"};
    const bel_hook hook = {.size = sizeof hook,
                           .name = "watching",
                           .user = r->hook,
                           .begin = begin,
                           .after_step = after_step,
                           .after_save = after_save,
                           .after_evaluation = after_evaluation,
                           .end = end,
                           .worker_before_step = before_worker,
                           .worker_after_step = after_worker};
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = r->steps > 0 ? r->steps : STEPS,
                                 .max_seconds = r->max_seconds,
                                 .early_stopping = r->stopping,
                                 .hooks = (const bel_hook *[]){&hook},
                                 .hook_count = r->hook != NULL};
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .every_steps = 10,
                                .exporters = r->exporters,
                                .exporter_count = r->exporter_count};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, &param, 1, &estimator));
    bel_status *status = bel_train_and_evaluate(estimator, &spec, &eval, 1, out_result);
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return status;
}

static void test_calls(void **state)
{
    (void)state;
    seen s = {.end_at = -1};
    bel_result plain = {.size = sizeof plain}, hooked = {.size = sizeof hooked};
    BEL_ASSERT_OK(train(&(run){.folder = "plain"}, &plain));
    BEL_ASSERT_OK(train(&(run){.folder = "hooked", .hook = &s}, &hooked));
    assert_string_equal(hooked.digest, plain.digest);
    assert_int_equal(s.wrong, 0);
    assert_int_equal(s.begun, 1);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.reports, STEPS);
    assert_int_equal(s.saves, 3); // 20, 40, 60
    assert_int_equal(s.evaluations, 6);
    assert_int_equal(atomic_load(&s.before), WORKERS * STEPS);
    assert_int_equal(atomic_load(&s.after), WORKERS * STEPS);
    assert_int_equal(atomic_load(&s.examples), WORKERS * STEPS * batch);
}

static void test_errors(void **state)
{
    (void)state;
    static const char *const functions[] = {
        "begin", "after_step",         "after_save",       "after_evaluation",
        "end",   "worker_before_step", "worker_after_step"};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        char folder[40], expected[64];
        snprintf(folder, sizeof folder, "error-%zu", i);
        snprintf(expected, sizeof expected, "hook watching, %s: enough", functions[i]);
        seen s = {.end_at = -1, .fail = functions[i]};
        bel_result result = {.size = sizeof result};
        BEL_ASSERT_FAILS(train(&(run){.folder = folder, .hook = &s}, &result), BEL_OUT_OF_RANGE,
                         expected);
    }
}

// --- State ---------------------------------------------------------------------------------------

typedef struct tally {
    int64_t steps, sum; // sum: of the steps' numbers
    int64_t evaluations;
} tally;

static bel_status *count_step(void *user, bel_hook_context *context, const bel_step_report *step)
{
    tally *t = user;
    t->steps++;
    t->sum += step->step;
    bel_hook_summary_text(context, "tally", "counted");
    return NULL;
}

static bel_status *count_evaluation(void *user, bel_hook_context *context, const char *name,
                                    const bel_result *result)
{
    (void)context, (void)name, (void)result;
    ((tally *)user)->evaluations++;
    return NULL;
}

static bel_status *count_in(const char *name, int64_t steps, tally *t, const char *hook_name,
                            size_t bytes)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *folder = bel_path_join(bel_test_own_folder(), name);
    config.model_dir = folder;
    config.num_workers = WORKERS;
    config.save_checkpoints_steps = 7;
    config.keep_checkpoint_max = 100;
    config.report = false;
    const bel_hook hook = {.size = sizeof hook,
                           .name = hook_name,
                           .user = t,
                           .after_step = count_step,
                           .after_evaluation = count_evaluation,
                           .state = t,
                           .state_bytes = bytes};
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = bel_test_digits_input,
                                 .input_user = &batch,
                                 .max_steps = steps,
                                 .hooks = (const bel_hook *[]){&hook},
                                 .hook_count = 1};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, NULL, 0, &estimator));
    const bel_eval_spec eval = {.size = sizeof eval,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .every_steps = 7};
    bel_status *status = bel_train_and_evaluate(estimator, &spec, &eval, 1, NULL);
    bel_estimator_destroy(estimator);
    bel_free(folder);
    return status;
}

// The file of version `step` has its counts of steps and evaluations.
static void assert_kept(int64_t step)
{
    char *path =
        bel_strf("%s/whole/ckpt-%08lld/hook-tally", bel_test_own_folder(), (long long)step);
    char *data;
    size_t size;
    tally kept;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    assert_int_equal(size, sizeof kept + 4);
    memcpy(&kept, data, sizeof kept);
    assert_int_equal(kept.steps, step);
    assert_int_equal(kept.evaluations, step / 7);
    bel_free(data);
    bel_free(path);
}

// A hook's counts continue from the checkpoint, also from an older one.
static void test_state(void **state)
{
    (void)state;
    enum { LAST = 30 };
    tally whole = {0}, first = {0}, second = {0}, third = {0};
    BEL_ASSERT_OK(count_in("whole", LAST, &whole, "tally", sizeof whole));
    assert_true(whole.steps == LAST && whole.sum == LAST * (LAST + 1) / 2);
    assert_int_equal(whole.evaluations, LAST / 7 + 1);
    for (int64_t step = 0; step < LAST; step += 7)
        assert_kept(step);
    BEL_ASSERT_OK(count_in("parts", 14, &first, "tally", sizeof first));
    BEL_ASSERT_OK(count_in("parts", LAST, &second, "tally", sizeof second));
    assert_memory_equal(&second, &whole, sizeof whole);
    char *newest = bel_path_join(bel_test_own_folder(), "parts/ckpt-00000030");
    BEL_ASSERT_OK(bel_dir_remove(newest));
    BEL_ASSERT_OK(count_in("parts", LAST, &third, "tally", sizeof third)); // from 28
    assert_memory_equal(&third, &whole, sizeof whole);
    // A checkpoint without the file: the program's initial memory stays.
    char *file = bel_path_join(newest, "hook-tally");
    unlink(file);
    tally begun = {.steps = 1000};
    BEL_ASSERT_OK(count_in("parts", LAST + 1, &begun, "tally", sizeof begun));
    assert_int_equal(begun.steps, 1001);
    char *last = bel_path_join(bel_test_own_folder(), "parts/ckpt-00000031");
    BEL_ASSERT_OK(bel_dir_remove(last));
    bel_free(last);
    BEL_ASSERT_OK(bel_file_write_atomic(file, "twenty-eight bytes of rust..", 28));
    // Errors: another size, damage, a name that cannot be a file name.
    BEL_ASSERT_FAILS(count_in("parts", LAST, &third, "tally", 8), BEL_FAILED_PRECONDITION,
                     "has 24 bytes, here it has 8");
    BEL_ASSERT_FAILS(count_in("parts", LAST, &third, "tally", sizeof third), BEL_DATA_LOSS,
                     "hook tally: its state in");
    BEL_ASSERT_FAILS(count_in("parts", LAST, &third, "my/tally", sizeof third),
                     BEL_INVALID_ARGUMENT, "a name of letters");
    bel_free(file);
    bel_free(newest);
}

// --- Ends ----------------------------------------------------------------------------------------

static void test_requests(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result}, again = {.size = sizeof again};
    seen at_begin = {.end_at = 0};
    BEL_ASSERT_OK(train(&(run){.folder = "none", .hook = &at_begin}, &result));
    assert_int_equal(result.global_step, 0);
    assert_int_equal(at_begin.reports, 0);
    // After the second evaluation, at 20, the next snapshot is the evaluation's at 30.
    for (int i = 0; i < 2; i++) {
        seen s = {.end_at = -1, .stop_evaluation = 2};
        BEL_ASSERT_OK(train(&(run){.folder = i == 0 ? "two-a" : "two-b", .hook = &s},
                            i == 0 ? &result : &again));
    }
    assert_int_equal(result.global_step, 30);
    assert_false(result.interrupted);
    assert_string_equal(result.digest, again.digest);
    seen later = {.end_at = 5};
    BEL_ASSERT_OK(train(&(run){.folder = "step", .hook = &later, .steps = 1000000}, &result));
    assert_true(result.global_step >= 5 && result.global_step < 1000000);
    BEL_ASSERT_OK(
        train(&(run){.folder = "time", .max_seconds = 0.05, .steps = 100000000}, &result));
    assert_true(result.global_step < 100000000);
    BEL_ASSERT_FAILS(train(&(run){.folder = "no", .max_seconds = -1}, &result),
                     BEL_INVALID_ARGUMENT, "max_seconds must be at least 0");
}

// The rate is too low for an improvement: with a patience of 2 the evaluations of 20 and 30 use it
// up, and the run ends at 40. A second run in that folder trains nothing. One with more patience
// continues.
static void test_early_stopping(void **state)
{
    (void)state;
    bel_result result = {.size = sizeof result};
    run r = {.folder = "early", .rate = "1e-30", .stopping = {.patience = 2}};
    BEL_ASSERT_OK(train(&r, &result));
    assert_int_equal(result.global_step, 40);
    seen s = {.end_at = -1};
    r.hook = &s;
    BEL_ASSERT_OK(train(&r, &result));
    assert_int_equal(result.global_step, 40);
    assert_int_equal(s.reports, 0);
    r.hook = NULL;
    r.stopping.patience = 10;
    BEL_ASSERT_OK(train(&r, &result));
    assert_int_equal(result.global_step, STEPS);
    // The evaluation of 30 decided; a run that resumes from its checkpoint ends no sooner.
    bel_result again = {.size = sizeof again};
    run killed = {
        .folder = "killed", .rate = "1e-30", .stopping = {.patience = 2}, .save_steps = 10};
    BEL_ASSERT_OK(train(&killed, &result));
    assert_int_equal(result.global_step, 40);
    char *newest = bel_path_join(bel_test_own_folder(), "killed/ckpt-00000040");
    BEL_ASSERT_OK(bel_dir_remove(newest));
    bel_free(newest);
    BEL_ASSERT_OK(train(&killed, &again));
    assert_int_equal(again.global_step, 40);
    assert_string_equal(again.digest, result.digest);
    run good = {.folder = "good", .stopping = {.patience = 3, .metric = "accuracy"}};
    BEL_ASSERT_OK(train(&good, &result));
    assert_int_equal(result.global_step, STEPS);
    good.stopping.metric = "recall";
    good.folder = "other";
    BEL_ASSERT_FAILS(train(&good, &result), BEL_INVALID_ARGUMENT, "eval has no metric \"recall\"");
    good.stopping = (bel_early_stopping){.patience = 1, .eval = "test"};
    BEL_ASSERT_FAILS(train(&good, &result), BEL_INVALID_ARGUMENT, "there is no evaluation test");
}

// Removes a checkpoint, which voids its evaluation: as if the run was killed before the save.
static void lose(const char *folder, const char *name)
{
    char *path = bel_strf("%s/%s/%s", bel_test_own_folder(), folder, name);
    BEL_ASSERT_OK(bel_dir_remove(path));
    bel_free(path);
}

// Evaluates by hand, only on the first batches, so the loss differs.
static void evaluate(const char *folder, int64_t batches, bel_result *out_result)
{
    bel_run_config config;
    bel_run_config_init(&config, sizeof config);
    char *dir = bel_path_join(bel_test_own_folder(), folder);
    char *checkpoint = bel_path_join(dir, "ckpt-00000020");
    config.model_dir = dir;
    const bel_param rate = {"rate", "1"};
    const bel_eval_spec spec = {.size = sizeof spec,
                                .input_fn = bel_test_digits_input,
                                .input_user = &batch,
                                .steps = batches};
    bel_estimator *estimator;
    BEL_ASSERT_OK(bel_estimator_create(model, &config, &rate, 1, &estimator));
    BEL_ASSERT_OK(bel_evaluate(estimator, &spec, checkpoint, out_result));
    bel_estimator_destroy(estimator);
    bel_free(checkpoint);
    bel_free(dir);
}

// The evaluation of 20 uses up the patience, and the end is 30. So it is if the run is killed after
// the evaluation, or before it, which repeats the evaluation. Evaluations by hand in between change
// neither.
static void test_ends_again(void **state)
{
    (void)state;
    bel_result whole = {.size = sizeof whole}, again = {.size = sizeof again},
               by_hand = {.size = sizeof by_hand, .loss = INFINITY};
    run r = {.folder = "again", .rate = "1e-30", .stopping = {.patience = 1}};
    BEL_ASSERT_OK(train(&r, &whole));
    assert_int_equal(whole.global_step, 30);
    lose("again", "ckpt-00000030");
    for (int64_t batches = 1; batches < 9 && by_hand.loss >= whole.loss; batches++)
        evaluate("again", batches, &by_hand);
    assert_true(by_hand.loss < whole.loss); // seems to be better
    BEL_ASSERT_OK(train(&r, &again));
    assert_int_equal(again.global_step, 30);
    assert_string_equal(again.digest, whole.digest);
    seen first = {.end_at = -1, .stop_evaluation = 2},
         second = {.end_at = -1, .stop_evaluation = 1};
    r = (run){.folder = "made-up", .hook = &first};
    BEL_ASSERT_OK(train(&r, &whole));
    assert_int_equal(whole.global_step, 30);
    lose("made-up", "ckpt-00000030");
    lose("made-up", "eval");
    evaluate("made-up", 1, &by_hand);
    r.hook = &second;
    BEL_ASSERT_OK(train(&r, &again));
    assert_int_equal(again.global_step, 30);
    assert_string_equal(again.digest, whole.digest);
}

// --- Exporters -----------------------------------------------------------------------------------

static size_t count_exports(const char *folder, const char *name, char *out_last, size_t size)
{
    char **names;
    size_t count;
    char *path = bel_strf("%s/%s/export/%s", bel_test_own_folder(), folder, name);
    BEL_ASSERT_OK(bel_dir_list(path, &names, &count));
    if (count > 0) snprintf(out_last, size, "%s/%s", path, names[count - 1]);
    bel_dir_names_free(names, count);
    bel_free(path);
    return count;
}

static bool never(void *user, const bel_result *best, const bel_result *now)
{
    bool sized = best->size == sizeof *best && now->size == sizeof *now;
    *(int *)user += sized ? 1 : 100;
    return false;
}

static void test_exporters(void **state)
{
    (void)state;
    int asked = 0;
    const bel_exporter best = {
        .size = sizeof best, .name = "best", .kind = BEL_EXPORT_BEST, .metric = "accuracy"};
    const bel_exporter latest = {
        .size = sizeof latest, .name = "latest", .kind = BEL_EXPORT_LATEST, .keep = 2};
    const bel_exporter final = {.size = sizeof final, .name = "final", .kind = BEL_EXPORT_FINAL};
    const bel_exporter first = {.size = sizeof first,
                                .name = "first",
                                .kind = BEL_EXPORT_BEST,
                                .is_better = never,
                                .user = &asked};
    const bel_exporter *all[] = {&best, &latest, &final, &first};
    bel_result result = {.size = sizeof result};
    run r = {.folder = "exports", .exporters = all, .exporter_count = 4};
    BEL_ASSERT_OK(train(&r, &result));
    char last[600];
    assert_int_equal(count_exports("exports", "best", last, sizeof last), 1);
    assert_int_equal(count_exports("exports", "first", last, sizeof last), 1);
    assert_non_null(strstr(last, "/export/first/10"));
    assert_int_equal(asked, 5);
    assert_int_equal(count_exports("exports", "latest", last, sizeof last), 2);
    assert_int_equal(count_exports("exports", "final", last, sizeof last), 1);
    assert_non_null(strstr(last, "/export/final/60"));
    bel_ckpt_reader *reader; // complete, at the end
    BEL_ASSERT_OK(bel_ckpt_open(last, &reader));
    assert_int_equal(bel_ckpt_reader_info(reader)->step, STEPS);
    bel_ckpt_close(reader);
    char *evaluation = bel_path_join(last, "evaluation.json");
    assert_true(bel_file_exists(evaluation));
    bel_free(evaluation);
    // It survives a restart: later evaluations are compared, and are no better.
    r.steps = STEPS + 20;
    BEL_ASSERT_OK(train(&r, &result));
    assert_int_equal(count_exports("exports", "first", last, sizeof last), 1);
    assert_non_null(strstr(last, "/export/first/10"));
    assert_int_equal(asked, 7);
    const bel_exporter *twice[] = {&best, &best};
    r = (run){.folder = "twice", .exporters = twice, .exporter_count = 2};
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT, "two exporters are named \"best\"");
    // The exporter of an older program has no is_better: fields after its size are not read.
    bel_exporter older = first;
    older.size = offsetof(bel_exporter, is_better);
    const bel_exporter *short_one[] = {&older};
    asked = 0;
    r = (run){.folder = "older", .exporters = short_one, .exporter_count = 1};
    BEL_ASSERT_OK(train(&r, &result));
    assert_int_equal(asked, 0);
    assert_int_equal(count_exports("older", "first", last, sizeof last), 1);
    const bel_exporter no_size = {.name = "latest"};
    const bel_exporter *nothing[] = {&no_size};
    r = (run){.folder = "nothing", .exporters = nothing, .exporter_count = 1};
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT,
                     "exporter 0: bel_exporter: size must be sizeof");
    const bel_exporter bad = {.size = sizeof bad, .name = "a/b"};
    const bel_exporter *one[] = {&bad};
    r = (run){.folder = "bad", .exporters = one, .exporter_count = 1};
    BEL_ASSERT_FAILS(train(&r, &result), BEL_INVALID_ARGUMENT, "letters, digits, _ and -");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_calls),          BEL_TEST_IN_FOLDER(test_errors),
        BEL_TEST_IN_FOLDER(test_state),          BEL_TEST_IN_FOLDER(test_requests),
        BEL_TEST_IN_FOLDER(test_early_stopping), BEL_TEST_IN_FOLDER(test_ends_again),
        BEL_TEST_IN_FOLDER(test_exporters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
