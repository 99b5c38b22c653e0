// The checkpoint with the best evaluation (bel_keep_best). It is chosen from the evaluations in the
// event files, as for early stopping, in f32, so a run that was killed and resumed decides like an
// uninterrupted one. An evaluation counts if its checkpoint exists: a version between two
// checkpoints is saved when it is the best. After a kill before that save only the record is left,
// and the evaluation is repeated.
//
// A kill at any moment leaves the best checkpoint, by this order: sync the record of the
// evaluation; save its version; write it to best.json, which retention obeys. Only then may the
// previous best go.
//
// A separate evaluator reads checkpoints only: the one that it has in hand is kept for that.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/best.h"
#include "checkpoint/folder.h"
#include "evaluate/goal.h"
#include "master/job/job.h"
#include "report/history.h"

static const char user[] = "keep_best";

static bool is_on(const bel_job *job)
{
    return job->spec->keep_best.metric != NULL;
}

// The folder of the rule's evaluation; free with bel_free.
static char *watched_metric(const bel_keep_best *rule)
{
    return rule->eval == NULL ? bel_xstrdup("eval") : bel_strf("eval_%s", rule->eval);
}

// Checks the metric; an evaluator's process checks those of its evaluations (member_evaluator.c).
static bel_status *check_evaluation(const bel_job *job)
{
    const bel_keep_best *rule = &job->spec->keep_best;
    if (job->evaluator.count == 0) {
        return bel_job_check_metric(job, user, rule->eval, rule->metric);
    }
    for (int i = 0; i < job->evaluator.count; i++) {
        const char *name = job->evaluator.specs[i].name;
        bool both = name != NULL && rule->eval != NULL;
        if (both ? strcmp(name, rule->eval) == 0 : name == rule->eval) return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: there is no evaluation %s", user,
                   rule->eval != NULL ? rule->eval : "without a name");
}

bel_status *bel_job_check_best(bel_job *job)
{
    job->best = (bel_best){.step = -1, .value = NAN};
    if (!is_on(job)) return NULL;
    BEL_TRY(check_evaluation(job));
    const bel_keep_best *rule = &job->spec->keep_best;
    return bel_goal_resolve(rule->goal, rule->metric, user, &job->best.goal);
}

// --- Recording ----------------------------------------------------------------------------------

static bel_status *best_state(bel_job *job)
{
    const bel_keep_best *rule = &job->spec->keep_best;
    bel_best *best = &job->best;
    if (best->stated || best->step < 0) return NULL;
    bel_ckpt_best said = {
        .step = best->step, .value = best->value, .higher = best->goal == BEL_GOAL_MAX};
    char *evaluation = watched_metric(rule);
    bel_snprintf(said.metric, sizeof said.metric, "%s", rule->metric);
    bel_snprintf(said.evaluation, sizeof said.evaluation, "%s", evaluation);
    bel_free(evaluation);
    BEL_TRY(bel_ckpt_best_write(job->estimator->config.model_dir, &said));
    best->stated = true;
    bel_log_write(BEL_LOG_INFO, "the best checkpoint is that of step %lld: %s = %.5g",
                  (long long)best->step, rule->metric, (double)best->value);
    return NULL;
}

static void best_take(bel_best *best, int64_t step, float value)
{
    best->stated = best->stated && best->step == step;
    best->step = step;
    best->value = value;
}

// --- From the event files ------------------------------------------------------------------------

static bool is_there(const bel_job *job, int64_t step)
{
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    bool there = bel_dir_exists(folder);
    bel_free(folder);
    return there;
}

// Finds the best of a series by ascending steps; of equal ones the earliest comes first. The
// previous best is among them, unless it was removed by hand.
static void look_through(bel_job *job, const bel_report_series *series)
{
    bel_best found = {.goal = job->best.goal, .step = -1, .value = NAN};
    for (size_t p = 0; series != NULL && p < series->point_count; p++) {
        float value = (float)series->values[p];
        if (series->steps[p] > job->steps.saved) break;
        bool better = bel_goal_is_better(found.goal, (double)value, (double)found.value);
        if (better && is_there(job, series->steps[p])) best_take(&found, series->steps[p], value);
    }
    best_take(&job->best, found.step, found.value);
}

bel_status *bel_job_recall_best(bel_job *job)
{
    bel_history *history;
    if (!is_on(job)) return NULL;
    char *folder = watched_metric(&job->spec->keep_best);
    bel_status *status =
        bel_history_read_folder(job->estimator->config.model_dir, folder, &history);
    if (status == NULL) {
        const bel_report_series *series =
            bel_history_find(history, folder, job->spec->keep_best.metric);
        look_through(job, series);
        bel_history_destroy(history);
    }
    bel_free(folder);
    return status == NULL ? best_state(job) : status;
}

// --- One more evaluation ------------------------------------------------------------------------

bel_status *bel_job_is_best(bel_job *job, const char *folder, const bel_result *result,
                            bool *out_best)
{
    const bel_keep_best *rule = &job->spec->keep_best;
    *out_best = false;
    if (!is_on(job) || !bel_job_is_named(folder, rule->eval)) return NULL;
    float value = (float)bel_goal_value(result, rule->metric);
    bel_run_log_sync(job->log, folder);
    *out_best = bel_goal_is_better(job->best.goal, (double)value, (double)job->best.value);
    if (*out_best) bel_fault_point("master_counts_best");
    return NULL;
}

bel_status *bel_job_take_best(bel_job *job, const bel_result *result)
{
    float value = (float)bel_goal_value(result, job->spec->keep_best.metric);
    best_take(&job->best, result->global_step, value);
    BEL_TRY(best_state(job));
    bel_fault_point("master_states_best");
    bel_job_retain(job);
    return NULL;
}

void bel_job_retain(bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    int64_t evaluating = job->backend != NULL ? job->backend->evaluating : -1;
    bel_ckpt_retain_but(config->model_dir, config->keep_checkpoint_max,
                        config->keep_checkpoint_every_n_hours, &evaluating, 1, &job->bases);
}
