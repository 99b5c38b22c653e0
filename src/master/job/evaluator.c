// Evaluations by an evaluator's process, on any host. The master asks for those of the newest
// checkpoint, at the pace of the specs, and keeps that checkpoint until the answer is recorded. It
// records results as those of its evaluations: the curves, the best checkpoint, the exporters. So
// the evaluator writes no file of the job. Older checkpoints that came meanwhile are skipped.
//
// A new generation, or another master, asks anew: an answer that was under way is dropped. Only the
// backend knows the request, so none is awaited that it has forgotten.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sized.h"
#include "master/job/job.h"

bel_status *bel_job_begin_evaluator(bel_job *job)
{
    bel_job_evaluator *e = &job->evaluator;
    e->exporters = bel_xcalloc((size_t)e->count + 1, sizeof *e->exporters);
    e->last_result = bel_xcalloc((size_t)e->count + 1, sizeof *e->last_result);
    e->pace = (bel_eval_pace){.begun_ns = bel_clock_ns()};
    e->looked = e->evaluated = -1;
    for (int i = 0; i < e->count; i++) {
        char *folder = bel_job_eval_folder(&e->specs[i]);
        bel_status *status = // the evaluator checks the metrics
            bel_exporters_init(&e->exporters[i], job->estimator, &e->specs[i], folder, NULL);
        bel_free(folder);
        BEL_TRY(status);
    }
    return NULL;
}

void bel_job_free_evaluator(bel_job *job)
{
    bel_free(job->evaluator.exporters);
    bel_free(job->evaluator.last_result);
}

void bel_job_reset_evaluator(bel_job *job)
{
    bel_job_evaluator *e = &job->evaluator;
    if (e->looked > job->steps.first) e->looked = -1;
    if (e->evaluated > job->steps.first) e->evaluated = -1;
}

// A curve has each step once: an earlier master may have written that of the loaded checkpoint.
static void write_curves(bel_job *job, const char *folder, const bel_result *result,
                         const bel_details *details)
{
    int64_t step = result->global_step;
    if (step == job->steps.found && bel_job_has_evaluated(job, folder, step)) return;
    bel_run_log_evaluation(job->log, folder, result, details);
}

static bel_status *record(bel_job *job, int index, const bel_result *result,
                          const bel_details *details)
{
    bel_job_evaluator *e = &job->evaluator;
    char *folder = bel_job_eval_folder(&e->specs[index]);
    bool best = false;
    bel_job_log_evaluation(folder, result);
    bel_sized_give(e->specs[index].out_result, result, sizeof *result);
    e->last_result[index] = *result;
    write_curves(job, folder, result, details);
    bel_status *status = bel_job_is_best(job, folder, result, &best);
    if (status == NULL && best) status = bel_job_take_best(job, result);
    if (status == NULL) bel_job_export_saved(job, &e->exporters[index], result, false);
    bel_free(folder);
    return status;
}

// An unreadable checkpoint, or data that are gone, end no training: the next checkpoint may do. At
// the end they are an error, as there is no other.
static bel_status *take(bel_job *job, bel_evaluated *answer, bool last)
{
    bel_job_evaluator *e = &job->evaluator;
    e->looked = answer->step;
    if (answer->failure != NULL) {
        bel_status *failure = answer->failure;
        answer->failure = NULL;
        if (last)
            return bel_status_wrap(failure, __FILE__, __LINE__,
                                   "the last checkpoint, of step %lld, was not evaluated",
                                   (long long)answer->step);
        bel_log_write(BEL_LOG_WARN, "the checkpoint of step %lld was not evaluated: %s",
                      (long long)answer->step, bel_status_message(failure));
        bel_status_destroy(failure);
        return NULL;
    }
    for (int i = 0; i < answer->count; i++)
        BEL_TRY(record(job, i, &answer->results[i], &answer->details[i]));
    e->evaluated = answer->step;
    return NULL;
}

static bel_status *take_answer(bel_job *job, int64_t last_step)
{
    bel_evaluated answer = {.count = 0};
    const bel_backend *backend = job->backend;
    if (backend->evaluating < 0 || !backend->ops->take_evaluated(job->backend, &answer))
        return NULL;
    bel_status *status = take(job, &answer, answer.step == last_step);
    bel_evaluated_deinit(&answer);
    job->backend->evaluating = -1; // its checkpoint may go from now on
    return status;
}

static void ask(bel_job *job, int64_t step)
{
    job->evaluator.pace.last_ns = bel_clock_ns();
    job->backend->ops->ask_evaluator(job->backend, step);
}

// The initial values are not worth an evaluation.
bel_status *bel_job_tend_evaluator(bel_job *job)
{
    bel_job_evaluator *e = &job->evaluator;
    int64_t newest = job->steps.saved;
    if (e->count == 0) return NULL;
    BEL_TRY(take_answer(job, -1));
    bool fresh = job->backend->evaluating < 0 && newest > 0 && newest != e->looked;
    if (fresh && bel_eval_pace_is_time(&e->pace, e->specs, e->count)) ask(job, newest);
    return NULL;
}

// An evaluation that is under way ends first.
bel_status *bel_job_end_evaluator(bel_job *job, int64_t step)
{
    bel_job_evaluator *e = &job->evaluator;
    const bel_backend_ops *ops = job->backend->ops;
    if (e->count == 0 || e->evaluated == step || !ops->await_evaluator(job->backend)) return NULL;
    if (e->looked == step) e->looked = -1; // one more try
    while (e->looked != step) {
        if (job->backend->evaluating < 0) ask(job, step);
        BEL_TRY(ops->attend(job->backend, 1));
        BEL_TRY(take_answer(job, step));
    }
    return NULL;
}

bel_status *bel_job_end_exports(bel_job *job, int64_t step)
{
    bel_job_evaluator *e = &job->evaluator;
    for (int i = 0; i < job->evals.count; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        if (eval->last_step == step) BEL_TRY(bel_job_export(job, eval, &eval->last_result, true));
    }
    for (int i = 0; i < e->count && e->evaluated == step; i++)
        bel_job_export_saved(job, &e->exporters[i], &e->last_result[i], true);
    return NULL;
}
