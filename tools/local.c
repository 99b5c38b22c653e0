// Verb local train: a job's processes on this host, in the foreground.
#include "local.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "flags.h"
#include "job/measure.h"
#include "launch/supervisor.h"
#include "results.h"
#include "setup.h"
#include "verbs.h"

// --- The job -------------------------------------------------------------------------------------

static void replace_count(const bel_options *options, const char *flag, const char *config,
                          int *count)
{
    bool given = bel_options_is_given(options, flag) || config == NULL;
    if (given) *count = (int)bel_options_int(options, flag);
}

static bel_status *read_cluster(const bel_options *options, bel_cluster **out_cluster)
{
    const char *config = bel_options_string(options, "config");
    bel_cluster *cluster;
    if (config == NULL) {
        cluster = bel_cluster_create(0, 0, 0);
    } else {
        BEL_TRY(bel_cluster_read(config, &cluster));
    }
    replace_count(options, "worker_count", config, &cluster->roles[BEL_ROLE_WORKER].count);
    replace_count(options, "parameter_server_count", config, &cluster->roles[BEL_ROLE_PS].count);
    replace_count(options, "evaluator_count", config, &cluster->roles[BEL_ROLE_EVALUATOR].count);
    *out_cluster = cluster;
    if (cluster->roles[BEL_ROLE_WORKER].count > 0 || cluster->master_trains) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "there are no workers, and the master does not train: nobody would");
}

static bel_status *check_hosts(const bel_cluster *cluster)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        if (cluster->roles[r].host_count == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: hosts are given for the %s; the local engine runs everything here; "
                       "hint: leave hosts out",
                       cluster->source, bel_role_name((bel_role)r));
    }
    return NULL;
}

// The training flags behind "--", with --job_dir as their --model_dir.
static bel_status *read_training(const bel_options *options, bel_local_job *job)
{
    size_t count;
    const char *const *given = bel_options_arguments(options, &count);
    job->arguments = bel_xcalloc(count + 6, sizeof *job->arguments);
    size_t n = 0;
    job->arguments[n++] = bel_xstrdup("train_and_evaluate");
    for (size_t i = 0; i < count; i++)
        job->arguments[n++] = bel_xstrdup(given[i]);
    job->training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    BEL_TRY_CTX(bel_options_parse(job->training, (int)n - 1, job->arguments + 1),
                "training flags, behind \"--\"");
    size_t stray;
    const char *const *strays = bel_options_arguments(job->training, &stray);
    if (stray > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "unexpected argument \"%s\"; training flags go behind \"--\"", strays[0]);
    }
    const char *job_dir = bel_options_string(options, "job_dir");
    if (job_dir != NULL && !bel_options_is_given(job->training, "model_dir")) {
        job->arguments[n++] = bel_xstrdup("--model_dir");
        job->arguments[n++] = bel_xstrdup(job_dir);
    }
    if (!bel_options_is_given(job->training, "stall_timeout")) {
        job->arguments[n++] = bel_strf("--stall_timeout=%g", job->cluster->stall_timeout_secs);
    }
    bel_options_destroy(job->training);
    job->training = bel_flags_create(BEL_VERB_TRAIN_AND_EVALUATE);
    BEL_TRY(bel_options_parse(job->training, (int)n - 1, job->arguments + 1));
    const char *config_file = bel_options_string(job->training, "config_file");
    if (config_file != NULL) BEL_TRY(bel_options_read_yaml(job->training, config_file));
    job->model_dir = bel_options_string(job->training, "model_dir");
    if (job->model_dir != NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "expected a folder for the model: --job_dir, or --model_dir behind \"--\"");
}

static bel_status *fill_job(const bel_options *options, bel_local_job *job)
{
    BEL_TRY(read_cluster(options, &job->cluster));
    BEL_TRY(check_hosts(job->cluster));
    BEL_TRY(read_training(options, job));
    if (bel_options_is_given(job->training, "towers_of_workers")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--towers_of_workers is for workers of one process; "
                                             "hint: --num_gpus, or devices in the cluster file");
    }
    return bel_plan_create(job->cluster, (int)bel_options_int(job->training, "num_gpus"),
                           (int)bel_options_int(job->training, "num_threads"), &job->plan);
}

bel_status *bel_local_job_create(const bel_options *options, bel_local_job **out_job)
{
    bel_local_job *job = bel_xcalloc(1, sizeof *job);
    bel_status *status = fill_job(options, job);
    if (status != NULL) {
        bel_local_job_destroy(job);
        return status;
    }
    *out_job = job;
    return NULL;
}

void bel_local_job_destroy(bel_local_job *job)
{
    if (job == NULL) return;
    bel_plan_destroy(job->plan);
    bel_cluster_destroy(job->cluster);
    if (job->training != NULL) bel_options_destroy(job->training);
    for (size_t i = 0; job->arguments != NULL && job->arguments[i] != NULL; i++)
        bel_free(job->arguments[i]);
    bel_free(job->arguments);
    bel_free(job);
}

bel_status *bel_local_job_print_plan(bel_local_job *job)
{
    bel_setup *setup;
    BEL_TRY(bel_setup_for_training(job->training, &setup));
    const bel_train_spec train = {.input_fn = bel_flag_input_open, .input_user = &setup->input};
    bel_plan_sizes sizes;
    int64_t *shard_bytes = NULL;
    bel_status *status = bel_job_measure(setup->estimator, &train, job->plan->worker_count,
                                         job->plan->shard_count, &sizes, &shard_bytes);
    if (status == NULL) {
        bel_str text = {0};
        bel_plan_write(job->plan, &sizes, &text);
        status = bel_results_write(text.text);
        bel_str_deinit(&text);
    }
    bel_free(shard_bytes);
    bel_setup_destroy(setup);
    return status;
}

// --- The verb ------------------------------------------------------------------------------------

static bel_status *supervise(const bel_options *options, const bel_local_job *job,
                             int *out_exit_code)
{
    const char *log_dir = bel_options_string(options, "log_dir");
    char *otherwise = bel_path_join(job->model_dir, "logs");
    const bel_supervisor_config config = {.plan = job->plan,
                                          .job = "local",
                                          .program = "/proc/self/exe",
                                          .arguments = job->arguments,
                                          .log_dir = log_dir != NULL ? log_dir : otherwise,
                                          .tcp = bel_options_bool(options, "tcp")};
    bel_supervisor_result result = {0};
    bel_status *status = bel_supervise(&config, &result);
    bel_free(otherwise);
    BEL_TRY(status);
    if (result.output != NULL) status = bel_results_write(result.output);
    *out_exit_code = result.exit_code;
    if (status == NULL && result.message != NULL) {
        status = BEL_ERR(BEL_ABORTED, "%s", result.message);
    }
    bel_free(result.message);
    bel_free(result.output);
    return status;
}

// Without --distributed and without a cluster file everything runs in this process.
static bel_status *train_here(const bel_local_job *job, int *out_exit_code)
{
    return bel_verb_train(job->training, out_exit_code);
}

bel_status *bel_verb_local_train(const bel_options *options, int *out_exit_code)
{
    bel_local_job *job;
    BEL_TRY(bel_local_job_create(options, &job));
    bool distributed =
        bel_options_bool(options, "distributed") || bel_options_string(options, "config") != NULL;
    bel_status *status = bel_options_bool(options, "dry_run") ? bel_local_job_print_plan(job)
                         : distributed ? supervise(options, job, out_exit_code)
                                       : train_here(job, out_exit_code);
    bel_local_job_destroy(job);
    return status;
}
