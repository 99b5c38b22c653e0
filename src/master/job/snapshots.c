// The master's use of snapshots while training continues: it saves and evaluates them. If a server
// is lost meanwhile and training continues with the servers' state, the snapshot becomes current
// again. Evaluations of it that are done are not made twice.
//
// A server that gets its state from a mirror has lost its part of the snapshot. If the others had
// saved it by then, its evaluations read the checkpoint. Otherwise checkpoint and evaluations are
// left out, with a line of the log, and a later version is saved at once. But if an evaluation
// decides on the training or its result, the job goes back: it must end as an undisturbed one.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "master/job/job.h"

// Whether an evaluation is due: by steps, or with checkpoints, from start_delay_secs on and at most
// every throttle_secs.
static bool eval_is_due(const bel_job_eval *eval, const bel_control_state *state)
{
    int64_t every = eval->spec->every_steps;
    if (every > 0) return state->snapshot % every == 0;
    int64_t now = bel_clock_ns();
    double since = (double)(now - eval->last_ns) * 1e-9;
    double passed = (double)(now - eval->built_ns) * 1e-9;
    return state->save && passed >= eval->spec->start_delay_secs &&
           (eval->last_step < 0 || since >= eval->spec->throttle_secs);
}

// Saves the current snapshot after an evaluation failed, perhaps by its data.
static bel_status *save_after(bel_job *job, int64_t step, bel_status *failure)
{
    if (job->backend->lost || job->steps.saved == step) return failure;
    bel_status *status = bel_job_save(job, step);
    bel_status_ignore(status); // the evaluation's failure is reported
    return failure;
}

// Whether an earlier master evaluated it: that may have been killed between an evaluation and the
// release of its snapshot. The curves of a later version may be another run's, which went further.
static bool made_by_others(const bel_job *job, const bel_job_eval *eval, int64_t step)
{
    return step == job->steps.found && bel_job_has_evaluated(job, eval->folder, step);
}

// A result whose consequences a loss has interrupted is left at any pace.
static bool is_left(const bel_job *job, const bel_job_eval *eval, const bel_control_state *state)
{
    if (eval->last_step == state->snapshot) return eval->done_step != state->snapshot;
    return eval_is_due(eval, state) && !made_by_others(job, eval, state->snapshot);
}

bel_status *bel_job_use_snapshot(bel_job *job, const bel_control_state *state)
{
    if (state->save && state->snapshot != job->steps.saved) {
        bool last = state->snapshot == job->steps.last;
        BEL_TRY((last ? bel_job_save_last : bel_job_save)(job, state->snapshot));
    }
    for (int i = 0; i < job->evals.count; i++) {
        if (!is_left(job, &job->evals.items[i], state)) continue;
        bel_status *status = bel_job_evaluate(job, &job->evals.items[i], state->snapshot);
        if (status != NULL) return save_after(job, state->snapshot, status);
    }
    return NULL;
}

// --- A snapshot that was lost in part -----------------------------------------------------------

static bel_status *read_checkpoint(const bel_job *job, int64_t step)
{
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    bel_ckpt_reader *reader = NULL;
    bel_status *status = bel_ckpt_open(folder, &reader);
    if (status == NULL) status = job->backend->ops->read_saved(job->backend, reader);
    bel_ckpt_close(reader);
    bel_free(folder);
    return status;
}

// Makes the evaluations that are left from the checkpoint.
static bel_status *evaluate_saved(bel_job *job, const bel_control_state *state)
{
    bool read = false;
    for (int i = 0; i < job->evals.count; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        if (!is_left(job, eval, state)) continue;
        if (!read) BEL_TRY(read_checkpoint(job, state->snapshot));
        read = true;
        BEL_TRY(bel_job_evaluate(job, eval, state->snapshot));
    }
    return NULL;
}

// Whether training, or the files that it leaves, depend on evaluations of snapshots. Those by an
// evaluator's process do not count: it skips checkpoints in any case.
static bool evaluations_decide(const bel_job *job)
{
    bool decide = job->spec->early_stopping.patience > 0 || job->spec->keep_best.metric != NULL ||
                  job->trainable.hooks.count > 0;
    for (int i = 0; i < job->evals.count; i++)
        decide = decide || job->evals.items[i].exporters.count > 0;
    return decide;
}

static void say_left_out(const bel_job *job, int64_t step, bool saves, bool evaluates)
{
    bel_str instead = {0};
    if (saves)
        bel_str_printf(&instead, ", and the version of step %lld is saved instead",
                       (long long)job->steps.first + 1);
    bel_log_write(BEL_LOG_WARN,
                  "shard %d has lost its part of the snapshot of step %lld with its process: its "
                  "%s left out%s",
                  job->backend->missed_shard, (long long)step,
                  !saves      ? "evaluation is"
                  : evaluates ? "checkpoint and evaluation are"
                              : "checkpoint is",
                  saves ? instead.text : "");
    bel_str_deinit(&instead);
}

bel_status *bel_job_miss_snapshot(bel_job *job)
{
    bel_backend *backend = job->backend;
    const bel_control_state state = {.snapshot = backend->missed, .save = backend->missed_save};
    bool evaluates = false;
    if (state.snapshot == job->steps.saved) return evaluate_saved(job, &state);
    for (int i = 0; i < job->evals.count; i++)
        evaluates = evaluates || is_left(job, &job->evals.items[i], &state);
    if (evaluates && evaluations_decide(job)) {
        backend->lost = true;
        return BEL_ERR(BEL_UNAVAILABLE,
                       "shard %d has lost its part of the snapshot of step %lld, whose evaluation "
                       "decides on the training",
                       backend->missed_shard, (long long)state.snapshot);
    }
    job->steps.owed = job->steps.owed || state.save;
    if (state.save || evaluates) say_left_out(job, state.snapshot, state.save, evaluates);
    return NULL;
}
