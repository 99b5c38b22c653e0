// Training that stops before its last step: evaluations that do not improve, a time limit, a hook's
// request.
//
// Decisions from evaluations are the same in every run. An evaluation reads a snapshot, and the
// next snapshot cannot be made before its release. A stop that is sent before the release therefore
// reaches shard 0 in time to end at the version of the next snapshot, wherever the workers are by
// then. If snapshots come by time there is no such version, and training ends at one of the next.
//
// Earlier evaluations are read back from the event files, as this run would have written them, in
// f32. So a run that was resumed, or went back, decides like an uninterrupted one, even after the
// deciding evaluation and before the end that it set. A request of a hook in `after_evaluation` is
// kept when training goes back, as the hook is not called again.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "evaluate/goal.h"
#include "master/job/job.h"
#include "report/history.h"

static const char *metric_of(const bel_early_stopping *rule)
{
    return rule->metric != NULL ? rule->metric : "loss";
}

// Whether it is the folder of the rule's evaluation.
static bool is_watched(const bel_early_stopping *rule, const char *folder)
{
    return bel_job_is_named(folder, rule->eval);
}

bel_status *bel_job_check_stopping(bel_job *job)
{
    const bel_early_stopping *rule = &job->spec->early_stopping;
    if (!(job->spec->max_seconds >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "max_seconds must be at least 0, got %g",
                       job->spec->max_seconds);
    }
    if (rule->patience == 0) return NULL;
    if (rule->patience < 0 || !(rule->min_delta >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "early stopping: patience and min_delta must be at least 0");
    }
    if (job->evaluator.count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "early_stopping needs evaluations by the master, and this job has an "
                       "evaluator");
    }
    BEL_TRY(bel_job_check_metric(job, "early stopping", rule->eval, metric_of(rule)));
    return bel_goal_resolve(rule->goal, metric_of(rule), "early stopping", &job->stopping.goal);
}

// Adds one evaluation. NaN is never better.
static void early_stopping_count(bel_stopping *s, const bel_early_stopping *rule, int64_t step,
                                 float value)
{
    double gain = (double)value - (double)s->best;
    if (s->goal == BEL_GOAL_MIN) gain = -gain;
    bool better = isnan(s->best) ? !isnan(value) : gain > rule->min_delta;
    s->worse = better ? 0 : s->worse + 1;
    if (!better) return;
    s->best = value;
    s->best_step = step;
}

// The first step after `step` that is a multiple of one of them; 0: all are unset.
static int64_t next_snapshot(const bel_job *job, int64_t step)
{
    int64_t next = 0, periods[1 + BEL_MAX_EVALS];
    periods[0] = job->estimator->config.save_checkpoints_steps;
    for (int i = 0; i < job->evals.count; i++)
        periods[1 + i] = job->evals.items[i].spec->every_steps;
    for (int i = 0; i <= job->evals.count; i++) {
        if (periods[i] <= 0) continue;
        int64_t at = (step / periods[i] + 1) * periods[i];
        if (next == 0 || at < next) next = at;
    }
    return next;
}

// Whether the evaluations end training. No later one counts: that of the end is an additional one.
static bool early_stopping_ends(const bel_stopping *s, const bel_early_stopping *rule)
{
    return s->worse >= rule->patience;
}

// Restores the evaluations up to the step from which training continues.
bel_status *bel_job_recall_stopping(bel_job *job)
{
    const bel_early_stopping *rule = &job->spec->early_stopping;
    bel_stopping *s = &job->stopping;
    *s = (bel_stopping){.goal = s->goal,
                        .best = NAN,
                        .rule_at = -1,
                        .hook_at = s->hook_at,
                        .stop_at = -1,
                        .soon = s->soon};
    if (rule->patience == 0) {
        bel_job_settle_stop(job);
        return NULL;
    }
    bel_history *history;
    BEL_TRY(bel_history_read(job->estimator->config.model_dir, &history));
    for (int i = 0; i < job->evals.count; i++) {
        if (!is_watched(rule, job->evals.items[i].folder)) continue;
        const bel_report_series *series =
            bel_history_find(history, job->evals.items[i].folder, metric_of(rule));
        for (size_t p = 0; series != NULL && p < series->point_count && s->rule_at < 0; p++) {
            if (series->steps[p] > job->steps.first) continue;
            early_stopping_count(s, rule, series->steps[p], (float)series->values[p]);
            if (early_stopping_ends(s, rule)) s->rule_at = next_snapshot(job, series->steps[p]);
        }
    }
    bel_history_destroy(history);
    bel_job_settle_stop(job);
    return NULL;
}

void bel_job_count_evaluation(bel_job *job, const char *folder, const bel_result *result)
{
    const bel_early_stopping *rule = &job->spec->early_stopping;
    bel_stopping *s = &job->stopping;
    if (rule->patience == 0 || !is_watched(rule, folder) || s->rule_at >= 0) return;
    early_stopping_count(s, rule, result->global_step,
                         (float)bel_goal_value(result, metric_of(rule)));
    if (!early_stopping_ends(s, rule)) return;
    bel_log_write(BEL_LOG_INFO,
                  "early stopping: %s of %s has not been better than %.5g of step %lld for %d "
                  "evaluations",
                  metric_of(rule), folder, (double)s->best, (long long)s->best_step, s->worse);
    s->rule_at = next_snapshot(job, result->global_step);
}

void bel_job_stop_behind_evaluation(bel_job *job, int64_t step)
{
    bel_stopping *s = &job->stopping;
    if (s->hook_at < 0) s->hook_at = next_snapshot(job, step);
}

// The earliest requested end; 0: soon, -1: none.
static int64_t wanted(const bel_stopping *s)
{
    if (s->soon) return 0;
    if (s->rule_at < 0 || s->hook_at < 0) return s->rule_at < 0 ? s->hook_at : s->rule_at;
    return s->rule_at < s->hook_at ? s->rule_at : s->hook_at;
}

void bel_job_settle_stop(bel_job *job)
{
    int64_t at = wanted(&job->stopping);
    if (at >= 0) job->stopping.stop_at = at > job->steps.first ? at : job->steps.first;
}

// Called before the release of the current snapshot, if any.
void bel_job_stop_if_wanted(bel_job *job)
{
    int64_t at = wanted(&job->stopping), before = job->stopping.stop_at;
    if (at < 0 || (before >= 0 && before <= at)) return;
    job->stopping.stop_at = at;
    job->backend->ops->stop_at(job->backend, at);
    if (at > 0 && at < job->steps.last) job->steps.last = at;
}

// Checks the time limit of a training, which began with this call.
void bel_job_look_at_clock(bel_job *job, double seconds)
{
    double most = job->spec->max_seconds;
    if (most == 0 || seconds < most || job->stopping.soon) return;
    bel_log_write(BEL_LOG_INFO, "training has taken %.0f s (max_seconds): it ends", seconds);
    job->stopping.soon = true;
}
