// Verb local train: training in this process, or in one process for each role. In one process it is
// the verb train_and_evaluate with the words after "--"; otherwise this process becomes the
// supervisor. While children run, it writes nothing to stdout. The master's output is this
// command's result, and the job's error its error. --dry_run builds the model for its sizes, if
// there are files to train on, and starts nothing.
#include <stdio.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "command/results.h"
#include "command/verbs.h"
#include "launch/engine/engine.h"
#include "launch/supervise/stop_signals.h"
#include "launch/supervise/supervisor.h"
#include "setup/inputs.h"
#include "setup/setup.h"
#include "train/distribute.h"
#include "trainable/measure.h"

static void warn_of_unused(const bel_options *options)
{
    static const char *const names[] = {"worker_count",
                                        "parameter_server_count",
                                        "evaluator_count",
                                        "restarts",
                                        "min_workers",
                                        "parameter_server_copies",
                                        "tcp",
                                        "log_dir"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!bel_options_is_given(options, names[i])) continue;
        bel_log_write(BEL_LOG_WARN, "--%s counts only with --distributed or --config", names[i]);
    }
}

// A program receives the flags of the command's log only through the log's format.
static bel_status *check_log_flags(const bel_options *options, const bel_words *words)
{
    static const char *const flags[] = {"log_level", "quiet"};
    for (size_t i = 0; i < 2 && words->program != NULL; i++) {
        if (!bel_options_is_given(options, flags[i])) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--%s does not reach the program %s, which is the only process; hint: with "
                       "--distributed it holds for what is shown",
                       flags[i], words->items[0]);
    }
    return NULL;
}

static bel_status *run_in_process(const bel_options *options, const bel_words *words,
                                  int *out_exit_code)
{
    if (bel_options_bool(options, "dry_run")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--dry_run shows the plan of processes, but there is only one; give "
                       "--distributed or --config as well");
    }
    BEL_TRY(check_log_flags(options, words));
    warn_of_unused(options);
    return bel_words_run(words, options, out_exit_code);
}

static bel_status *write_plan(const bel_plan *plan, const bel_plan_sizes *sizes)
{
    bel_str text = {0};
    bel_plan_write(plan, sizes, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

// Prints the plan with the sizes of the model, which is built but not trained. Without data the
// sizes are unknown.
static bel_status *print_plan(const bel_distribution *distribution)
{
    const bel_plan *plan = distribution->plan;
    size_t files;
    bel_options_list(distribution->training, "train_files", &files);
    if (files == 0) return write_plan(plan, NULL); // also for a user's program
    bel_setup *setup;
    BEL_TRY(bel_setup_for_training(distribution->training, NULL, &setup));
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = setup->input_fn, .input_user = setup->input_user};
    bel_plan_sizes sizes;
    int64_t *shard_bytes = NULL;
    bel_status *status = bel_estimator_measure(setup->estimator, &train, plan->worker_count,
                                               plan->shard_count, &sizes, &shard_bytes);
    if (status == NULL) {
        sizes.data_bytes = bel_flag_inputs_bytes(distribution->training);
        status = write_plan(plan, &sizes);
    }
    bel_free(shard_bytes);
    bel_setup_destroy(setup);
    return status;
}

// Prints the master's output as this command's result; the job's error is its error.
static bel_status *local_train_report(const bel_supervisor_result *result, int *out_exit_code)
{
    *out_exit_code = result->exit_code;
    bel_status *status = bel_results_write(result->output);
    if (status != NULL || result->message == NULL) return status;
    return BEL_ERR(BEL_ABORTED, "%s", result->message);
}

// Context of a start of the job.
typedef struct local_start {
    const bel_options *options;
    const bel_words *words;
    int *out_exit_code;
} local_start;

static bel_status *supervise(const local_start *own, const bel_distribution *distribution,
                             bel_scale *scaled)
{
    const bel_options *options = own->options;
    const bel_words *words = own->words;
    const char *log_dir = bel_options_string(options, "log_dir");
    const char *job_dir = bel_options_string(options, "job_dir");
    char *default_dir = bel_path_join(job_dir != NULL ? job_dir : distribution->model_dir, "logs");
    char *program = words->program != NULL ? bel_xstrdup(words->program) : bel_linux_program();
    bel_supervisor_config config = {.plan = distribution->plan,
                                    .job = "local",
                                    .program = program,
                                    .arguments = words->items,
                                    .log_dir = log_dir != NULL ? log_dir : default_dir,
                                    .model_dir = distribution->model_dir,
                                    .scaled = *scaled,
                                    .tcp = bel_options_bool(options, "tcp")};
    bel_supervisor_result result = {0};
    fflush(stdout);           // this process prints nothing after its children
    bel_stop_signals_block(); // the outcome is written in any case
    bel_status *status = bel_supervise(&config, &result);
    *scaled = result.scaled;
    if (status == NULL && scaled->servers == 0)
        status = local_train_report(&result, own->out_exit_code);
    bel_free(result.message);
    bel_free(result.output);
    bel_free(program);
    bel_free(default_dir);
    return status;
}

static bel_status *local_train_start(void *context, const bel_distribution *distribution,
                                     bel_scale *scaled)
{
    const local_start *own = context;
    if (distribution->asks) return bel_words_run(own->words, own->options, own->out_exit_code);
    if (bel_options_bool(own->options, "dry_run")) return print_plan(distribution);
    return supervise(own, distribution, scaled);
}

static bel_status *run_with_cluster(const bel_options *options, bel_cluster *cluster,
                                    const bel_words *words, int *out_exit_code)
{
    local_start own = {options, words, out_exit_code};
    return bel_distribution_run(words, bel_options_string(options, "job_dir"), cluster,
                                local_train_start, &own);
}

static bel_status *run_distributed(const bel_options *options, int *out_exit_code)
{
    bel_cluster *cluster;
    BEL_TRY(bel_cluster_from_flags(options, &cluster));
    bel_words words = {0};
    bel_status *status = bel_words_from_flags(&words, options, 0);
    if (status == NULL) status = bel_engine_find("local")->check(cluster);
    if (status == NULL) status = run_with_cluster(options, cluster, &words, out_exit_code);
    bel_words_deinit(&words);
    bel_cluster_destroy(cluster);
    return status;
}

bel_status *bel_verb_local_train(const bel_options *options, int *out_exit_code)
{
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    if (bel_options_own_argument_count(options) > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "unexpected argument \"%s\"; training flags come after --", arguments[0]);
    }
    bool distributed =
        bel_options_bool(options, "distributed") || bel_options_string(options, "config") != NULL;
    if (distributed) return run_distributed(options, out_exit_code);
    bel_words words = {0};
    bel_status *status = bel_words_from_flags(&words, options, 0);
    if (status == NULL) status = run_in_process(options, &words, out_exit_code);
    bel_words_deinit(&words);
    return status;
}
