// Main program of the master, in one process or over a cluster.
//
// The calling thread is the master. It builds the model, loads or makes the first checkpoint, and
// starts its backend of shards and workers. Then it waits: for snapshots, which it saves and
// evaluates while training continues, for time to show progress, and for the end, which it saves,
// evaluates and reports.
#include "master/job/job.h"

#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "base/long_wait.h"
#include "base/number.h"
#include "base/requests.h"
#include "base/str.h"
#include "launch/folder/folder_lock.h"
#include "launch/task/job_trace.h"

// --- While it runs -------------------------------------------------------------------------------

// Writes a point. With several step functions each has a separate rate and step count: none is
// written.
static void write_point(bel_job *job, const bel_control_point *point, const bel_step_value *values)
{
    const bel_trainable *t = &job->trainable;
    bool one = t->built->function_count == 1;
    const bel_run_point said = {
        .step = point->step,
        .loss = point->loss,
        .learning_rate =
            one ? bel_optimizer_rate(&t->built->optimizers->main, point->step - 1) : NAN,
        .examples_per_second = point->examples_per_second,
        .steps_per_second = point->steps_per_second};
    bel_run_log_step(job->log, &said);
    for (int k = 0; k < t->series_count; k++)
        if (t->built->function_count == 1 || !isnan(values[k].value))
            bel_run_log_scalar(job->log, point->step, values[k].name, values[k].value);
}

static bel_status *take_point(bel_job *job, const bel_control_point *point)
{
    const bel_trainable *t = &job->trainable;
    bel_step_value values[BEL_MAX_SERIES];
    bel_trainable_series_values(t, point->series, values);
    if (!point->for_hooks_alone) write_point(job, point, values);
    if (t->hooks.count == 0) return NULL;
    const bel_step_report report = {.step = point->step,
                                    .loss = point->loss,
                                    .examples_per_second = point->examples_per_second,
                                    .went_back = job->hooks.went_back,
                                    .values = values,
                                    .value_count = t->series_count};
    bel_hook_context context = {.estimator = job->estimator,
                                .stop = &job->stopping.soon,
                                .log = job->log,
                                .step = point->step};
    job->hooks.went_back = false;
    return bel_hooks_after_step(&t->hooks, &context, &report);
}

// Takes points. Those up to told_step were taken by an earlier run or master, or came over an
// earlier connection. Points after the snapshot's wait until it was used: so hooks are called in
// the order of the versions, and their memory is that of the snapshot when it is saved. After an
// error of a hook the rest is taken without calling hooks.
static bel_status *take_points(bel_job *job)
{
    bel_control_point points[64];
    int count;
    bel_status *status = NULL;
    while (job->points.awaited < 0 &&
           (count = job->backend->ops->take_points(job->backend, points, 64)) > 0) {
        for (int i = 0; i < count; i++) {
            if (points[i].snapshot && points[i].step > job->points.used_snapshot)
                job->points.awaited = points[i].step;
            if (points[i].step <= job->points.told_step) continue;
            job->points.told_step = points[i].step;
            if (status == NULL) status = take_point(job, &points[i]);
        }
    }
    return status;
}

// Takes all points up to the current snapshot; an earlier one was used by an earlier master.
static bel_status *take_points_before(bel_job *job, int64_t snapshot)
{
    bel_status *status = take_points(job);
    while (status == NULL && job->points.awaited >= 0 && job->points.awaited < snapshot) {
        job->points.awaited = -1;
        status = take_points(job);
    }
    return status;
}

typedef struct progress {
    int64_t shown_step, shown_examples, shown_ns;
    double rate; // examples per second, smoothed
} progress;

// Shows progress: on a terminal ten times a second, else at the settings' steps, at most once a
// second.
static void show_progress(const bel_job *job, const bel_control_state *state, progress *p,
                          bool final)
{
    int64_t now = bel_clock_ns(), step = state->step;
    int64_t interval = job->estimator->config.log_step_count_steps;
    bool interactive = bel_log_is_interactive();
    bool due = interactive ? now - p->shown_ns > 100000000
                           : interval > 0 && step / interval > p->shown_step / interval &&
                                 now - p->shown_ns > 1000000000;
    if ((!due && !final) || (interval == 0 && !interactive) || step == job->steps.first) return;
    double seconds = (double)(now - p->shown_ns) * 1e-9;
    double rate = (double)(state->examples - p->shown_examples) / seconds;
    p->rate = p->rate == 0 ? rate : 0.7 * p->rate + 0.3 * rate;
    if (final) p->rate = (double)state->examples / ((double)(now - job->totals.started_ns) * 1e-9);
    int64_t blocks = bel_job_newest_segment(&job->segments)->replica_count;
    double per_step = (double)(bel_input_batch_size(job->trainable.input) * blocks);
    double left = (double)(job->steps.last - step) * per_step / p->rate;
    char eta[32];
    bel_str text = {0}, json = {0};
    bool knows_end = job->steps.last < INT64_MAX; // unknown with the program's loop
    bel_str_printf(&text, "step %lld", (long long)step);
    if (knows_end) bel_str_printf(&text, "/%lld", (long long)job->steps.last);
    bel_str_printf(&text, "  loss = %.5g  %.0f examples/s", state->loss, p->rate);
    int workers = job->backend->worker_count;
    if (workers > 1) bel_str_printf(&text, "  %d workers", workers);
    if (knows_end && isfinite(left)) // not while no example was counted since the last line
        bel_str_printf(&text, "  ETA %s", bel_seconds_text(left, eta));
    bel_str_printf(&json,
                   "{\"time\":%.3f,\"level\":\"info\",\"event\":\"progress\",\"step\":%lld,"
                   "\"last_step\":%lld,\"workers\":%d,\"loss\":",
                   bel_clock_wall(), (long long)step, knows_end ? (long long)job->steps.last : -1,
                   job->backend->worker_count);
    bel_json_write_number(&json, state->loss);
    bel_str_printf(&json, ",\"examples_per_second\":%.1f", p->rate);
    if (knows_end && isfinite(left)) bel_str_printf(&json, ",\"eta_seconds\":%.1f", left);
    bel_str_puts(&json, "}");
    bel_log_progress(text.text, json.text, final);
    bel_str_deinit(&text);
    bel_str_deinit(&json);
    p->shown_step = step;
    p->shown_examples = state->examples;
    p->shown_ns = now;
}

// Checks about once a second, and before a checkpoint, whether the folder is still this run's.
static bel_status *look_at_folder(bel_job *job, bool now)
{
    enum { PERIOD_NS = 1000000000 };
    if (!now && bel_clock_ns() - job->folder.looked_ns < PERIOD_NS) return NULL;
    job->folder.looked_ns = bel_clock_ns();
    return bel_folder_lock_check(job->estimator->config.model_dir, job->folder.lock,
                                 &job->folder.told);
}

static bel_status *use_snapshot(bel_job *job, const bel_control_state *state)
{
    BEL_TRY(look_at_folder(job, true));
    BEL_TRY(take_points_before(job, state->snapshot));
    BEL_TRY(bel_job_use_snapshot(job, state));
    job->points.used_snapshot = state->snapshot;
    job->points.awaited = -1;
    bel_run_log_flush(job->log);
    return NULL;
}

// Writes the report at the first snapshot, then every ten seconds, or more rarely to stay below a
// fiftieth of the time.
static void report_so_far(bel_job *job, bool has_news)
{
    const int64_t least_ns = 10000000000;
    int64_t pause = 50 * job->report.cost_ns > least_ns ? 50 * job->report.cost_ns : least_ns;
    bool first = job->report.cost_ns == 0 && has_news;
    if (first || bel_clock_ns() - job->report.written_ns > pause) bel_job_report(job, false);
}

// The master's wait, to the end of training or a loss. After an error here it cancels and keeps
// taking news until the workers have finished.
static bel_status *train_watch(bel_job *job)
{
    bel_backend *backend = job->backend;
    progress p = {.shown_step = job->steps.first, .shown_ns = bel_clock_ns()};
    bel_control_state *state = &job->state;
    int64_t begun = bel_clock_ns();
    job->report.written_ns = begun;
    state->running = true;
    job->points.awaited = job->points.used_snapshot = -1;
    bel_status *status = NULL;
    while (state->running) {
        backend->ops->wait(backend, 0.1, state);
        if (backend->damage != NULL) bel_job_note_damage(job); // before anything more is saved
        bel_reporter_update(job->reporter, backend, job->steps.last, false);
        bool goes_well = status == NULL;
        if (goes_well) status = look_at_folder(job, false);
        if (status == NULL) status = take_points(job);
        if (status == NULL) status = bel_job_look_at_loop(job);
        if (status == NULL) status = bel_job_tend_evaluator(job);
        bool waits =
            state->has_snapshot && status == NULL &&
            !bel_job_knows_loop(&job->loop, state->snapshot); // the loop has not reached it yet
        if (waits) (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        if (state->has_snapshot && status == NULL && !waits) status = use_snapshot(job, state);
        bool lost = status != NULL && backend->lost; // the snapshot may continue
        if (status != NULL && !lost) backend->spoiled = true;
        bel_job_look_at_clock(job, job->totals.seconds + (double)(bel_clock_ns() - begun) * 1e-9);
        if (status == NULL && state->running) bel_job_stop_if_wanted(job);
        if (goes_well && status != NULL && !backend->lost) backend->ops->cancel(backend);
        if (state->has_snapshot && !waits && !lost) backend->ops->release_snapshot(backend);
        bool ended = !state->running && !backend->lost && !backend->interrupted && !backend->paused;
        bool sooner = bel_counting_has_ledger(&job->trainable.counting) ||
                      job->stopping.stop_at >= 0 || job->loop.replicator != NULL;
        if (ended && sooner) job->steps.last = state->step;
        if (status == NULL) report_so_far(job, state->has_snapshot && !waits);
        show_progress(job, state, &p, !state->running && !backend->lost);
    }
    if (status == NULL) status = take_points_before(job, INT64_MAX); // the last ones
    bel_status *error = backend->ops->join(backend);
    if (status == NULL) return error;
    bel_status_ignore(error); // the master's error ended the job, or both are the same loss
    return status;
}

static bool nothing_left(const bel_job *job)
{
    if (job->steps.first < job->steps.last) return false;
    bel_log_write(BEL_LOG_INFO, "nothing to train: step %lld of %lld is already saved",
                  (long long)job->steps.first, (long long)job->steps.last);
    return true;
}

// With a ledger the shards know when the input is exhausted.
static int64_t stop_step(const bel_job *job)
{
    if (!bel_counting_has_ledger(&job->trainable.counting)) return job->steps.last;
    int64_t last = job->steps.max > 0 ? job->steps.max : INT64_MAX;
    int64_t stop = job->stopping.stop_at;
    return stop >= 0 && stop < last ? stop : last;
}

// Waits for members. A snapshot that shards cannot continue is dealt with while they stand still;
// that may take long, so members are looked at once more.
static bel_status *gather(bel_job *job)
{
    BEL_TRY(job->backend->ops->gather(job->backend));
    if (job->backend->missed == 0) return NULL;
    BEL_TRY(bel_job_miss_snapshot(job));
    return job->backend->ops->gather(job->backend);
}

// Gathers members. *out_over: nothing is left, and the members that would know better do not come:
// an earlier master told them that the job is over.
static bel_status *train_gather(bel_job *job, bool *out_over)
{
    bel_status *status = gather(job);
    *out_over = false;
    if (bel_status_code(status) != BEL_DEADLINE_EXCEEDED) return status;
    bel_status *error = bel_job_try_loop(job);
    if (error == NULL) error = bel_job_find_last_step(job);
    *out_over = error == NULL && nothing_left(job);
    bel_status_ignore(error); // the missing members are reported
    if (!*out_over) return status;
    bel_status_ignore(status); // no member is needed
    return NULL;
}

// Announces the begin. From here on there may be something to save, or an operation that must not
// be interrupted.
static void tell_begins(const bel_job *job)
{
    bel_long_wait_note_training(true);
    if (job->task != NULL) // for the supervisor
        bel_log_event(BEL_LOG_DEBUG, "begins", (long long)getpid(), "training begins");
}

// Trains with one assignment: from present members to finished workers.
static bel_status *train_run(bel_job *job)
{
    const bel_run_config *config = &job->estimator->config;
    int64_t eval_steps = 0;
    bool over;
    BEL_TRY(train_gather(job, &over));
    if (over) return NULL;
    // Members that continue come with the snapshot that was not evaluated; shards that continue
    // have no other.
    bool anew = !job->backend->runs && !job->backend->held;
    if (job->task != NULL && anew) BEL_TRY(bel_job_make_up_evals(job));
    bel_job_rescale(job);
    BEL_TRY(bel_job_find_last_step(job)); // replicas may have changed, or blocks were omitted
    // Members that continue may be past the checkpoint, from which nothing would be left.
    if (!job->backend->runs && nothing_left(job)) return NULL;
    for (int i = 0; i < job->evals.count; i++)
        eval_steps = bel_common_divisor(eval_steps, job->evals.items[i].spec->every_steps);
    bel_control_config control = {.shard_count = job->backend->shard_count,
                                  .first_step = job->steps.first,
                                  .last_step = stop_step(job),
                                  .save_steps = config->save_checkpoints_steps,
                                  .save_secs = config->save_checkpoints_secs,
                                  .eval_steps = eval_steps,
                                  .series_steps = config->save_summary_steps,
                                  .hook_steps = bel_hooks_period(&job->trainable.hooks),
                                  .stats = job->trainable.stats,
                                  .worker_count = job->backend->worker_count,
                                  .save_at = job->steps.owed ? job->steps.first + 1 : 0,
                                  .asks = job->loop.replicator != NULL,
                                  .made = bel_replicator_made,
                                  .made_context = job->loop.replicator};
    bel_job_describe(job);
    int64_t begun = job->totals.started_ns = bel_clock_ns();
    job->deltas = (bel_job_deltas){.count = 0}; // the first checkpoint is full
    bel_job_reset_evaluator(job);
    BEL_TRY(job->backend->ops->start(job->backend, &control, bel_job_newest_segment(&job->segments),
                                     bel_job_block_end(job)));
    tell_begins(job);
    if (job->backend->runs) job->stopping.stop_at = -1; // members that continue may not know of it
    BEL_TRY(bel_job_start_loop(job));
    bel_status *status = train_watch(job);
    if (job->loop.replicator != NULL) bel_replicator_pause(job->loop.replicator);
    job->totals.seconds += (double)(bel_clock_ns() - begun) * 1e-9;
    job->totals.examples += job->state.examples;
    return status;
}

// --- After ---------------------------------------------------------------------------------------

static void say_staleness(const bel_job *job)
{
    const bel_shard_staleness *staleness = &job->backend->staleness;
    int64_t reports = 0, versions = 0, most = 0;
    for (int64_t i = 0; i < BEL_STALENESS_BINS; i++) {
        reports += staleness->counted[i];
        versions += i * staleness->counted[i];
        if (staleness->counted[i] > 0) most = i;
    }
    if (!bel_counting_has_ledger(&job->trainable.counting) || reports == 0) return;
    bel_log_write(BEL_LOG_INFO,
                  "%lld reports counted, on average %.2f versions late, at most %s%lld; %lld came "
                  "too late and were dropped",
                  (long long)reports, (double)versions / (double)reports,
                  most == BEL_STALENESS_BINS - 1 ? "over " : "",
                  (long long)(most == BEL_STALENESS_BINS - 1 ? most - 1 : most),
                  (long long)staleness->dropped);
}

// Finds the last evaluation, of the last version unless training was interrupted: of this call, or
// of an earlier one in the event files.
static void find_evaluation(const bel_job *job, bel_result *out_result)
{
    if (job->evaluator.evaluated >= 0) {
        *out_result = job->evaluator.last_result[0];
    } else if (job->evals.count > 0 && job->evals.items[0].last_step >= 0) {
        *out_result = job->evals.items[0].last_result;
    } else {
        bel_job_recall_evaluation(job, job->state.step, out_result);
    }
}

static void fill_result(bel_job *job)
{
    const bel_control_state *state = &job->state;
    bel_result result = {
        .size = sizeof result, .loss = state->loss, .batch_mean_loss = NAN, .evaluation_step = -1};
    if (job->evals.count > 0 || job->evaluator.count > 0) find_evaluation(job, &result);
    memcpy(result.digest, job->result.digest, sizeof result.digest);
    result.global_step = state->step;
    result.interrupted = job->backend->interrupted;
    result.train_seconds = job->totals.seconds;
    if (job->totals.seconds > 0)
        result.examples_per_second = (double)job->totals.examples / job->totals.seconds;
    job->result = result;
}

// Runs the exports of the end, and the hooks' end. A stopped run continues another time.
static bel_status *end_hooks(bel_job *job)
{
    if (job->backend->interrupted) return NULL;
    BEL_TRY(bel_job_end_exports(job, job->state.step));
    bel_hook_context context = {.estimator = job->estimator};
    return bel_hooks_end(&job->trainable.hooks, &context, &job->result);
}

// Ends a job: the last version is saved, evaluated and reported.
static bel_status *train_finish(bel_job *job)
{
    bel_backend *backend = job->backend;
    BEL_TRY(backend->ops->snapshot_now(backend));
    say_staleness(job);
    BEL_TRY(look_at_folder(job, true));
    const bel_control_state state = job->state;
    if (job->steps.saved != state.step || job->deltas.ends)
        BEL_TRY(bel_job_save_last(job, state.step));
    bel_job_say_rows(job);
    bel_reporter_end(job->reporter, backend, job->steps.last); // shards have sent theirs with it
    bel_fault_point("master_finishes");
    bool interrupted = backend->interrupted;
    for (int i = 0; i < job->evals.count && !interrupted; i++) {
        if (job->evals.items[i].done_step != state.step) {
            BEL_TRY(bel_job_evaluate(job, &job->evals.items[i], state.step));
        }
    }
    BEL_TRY(bel_job_end_evaluator(job, state.step));
    if (job->evaluator.count > 0) bel_job_retain(job); // its last checkpoint was kept
    fill_result(job);
    BEL_TRY(end_hooks(job));
    bel_job_report(job, true);
    return NULL;
}

// Saves the version at which training pauses, for another assignment, or other processes. If this
// process was told to leave, the next master continues, and finds the members in place.
static bel_status *save_pause(bel_job *job)
{
    BEL_TRY(job->backend->ops->snapshot_now(job->backend));
    if (job->steps.saved != job->state.step) BEL_TRY(bel_job_save(job, job->state.step));
    if (!job->backend->leaves) return NULL;
    bel_status *leaves =
        BEL_ERR(BEL_CANCELLED, "the master has left the job at step %lld, as it was told to",
                (long long)job->state.step);
    return bel_job_end_loop(job, leaves);
}

// Saves after an error of one worker ended training, with shards paused at a complete version.
static bel_status *save_rescued(bel_job *job, bel_status *failure)
{
    bel_backend *backend = job->backend;
    if (!backend->rescued || backend->lost || job->steps.saved == job->state.step) return failure;
    bel_status *status = backend->ops->snapshot_now(backend);
    if (status == NULL) status = bel_job_save(job, job->state.step);
    if (status != NULL) bel_log_write(BEL_LOG_WARN, "%s", bel_status_message(status));
    bel_status_ignore(status); // reported; the failure is returned
    return failure;
}

// Whether the checkpoint proves without members that training is over, so that no member is
// awaited: those that were told so may have exited. With a ledger they may know better than the
// expected end of the input.
static bool is_over(const bel_job *job)
{
    bool enough = job->steps.max > 0 && job->steps.first >= job->steps.max;
    bool stopped = job->stopping.stop_at >= 0 && job->steps.first >= job->stopping.stop_at;
    bool known = enough || stopped || !bel_counting_has_ledger(&job->trainable.counting);
    return known && nothing_left(job);
}

// Restores the state of evaluations, and of the end, after the starting point has changed.
static bel_status *recall(bel_job *job)
{
    BEL_TRY(bel_job_recall_stopping(job));
    BEL_TRY(bel_job_recall_best(job));
    return bel_job_find_last_step(job);
}

static bel_status *begin_hooks(bel_job *job)
{
    bel_hook_context context = {.estimator = job->estimator, .stop = &job->stopping.soon};
    job->stopping.hook_at = -1;
    BEL_TRY(bel_hooks_begin(&job->trainable.hooks, &context, job->steps.first));
    job->hooks.begun = true;
    return recall(job);
}

// Whether all shards still have one version after a loss: training continues there, and everything
// before it was made.
static bool holds(bel_job *job)
{
    bel_backend *backend = job->backend;
    int64_t step = backend->lost && backend->ops->hold != NULL ? backend->ops->hold(backend) : -1;
    if (step >= 0) job->steps.first = step;
    return step >= 0;
}

// Rounds of training: after a loss from the version that shards have, or from the newest
// checkpoint; after a pause from the one just made.
static bel_status *train(bel_job *job, const bel_eval_spec *evals, int eval_count)
{
    BEL_TRY(bel_job_prepare(job, evals, eval_count));
    BEL_TRY(begin_hooks(job));
    for (;;) {
        bel_status *status = job->task == NULL ? bel_job_make_up_evals(job) : NULL;
        if (status == NULL) status = bel_job_find_last_step(job); // they may end it
        bool over = status == NULL && is_over(job);
        if (over) tell_begins(job); // evaluates, exports and reports what is left
        if (status == NULL && !over) status = train_run(job);
        bool paused = job->backend->paused;
        if (!paused || job->backend->lost) status = bel_job_end_loop(job, status);
        if (status != NULL && !job->backend->lost) bel_job_note_damage(job);
        if (status != NULL) status = save_rescued(job, status);
        if (status == NULL) status = paused ? save_pause(job) : train_finish(job);
        if (!job->backend->lost && (status != NULL || !paused)) return status;
        bel_status_ignore(status); // the loss was reported, and is repaired
        if (holds(job)) {
            BEL_TRY(take_points_before(job, INT64_MAX));
            continue;
        }
        if (!paused) job->loop.end = -1;
        BEL_TRY(bel_job_go_back(job));
        BEL_TRY(recall(job));
        job->hooks.went_back = true;
    }
}

// Runs a job. In any case members are sent the end, and everything that prepare may have made is
// undone.
static bel_status *run_job(bel_job *job, const bel_eval_spec *evals, int eval_count)
{
    bel_status *status = train(job, evals, eval_count);
    // Told to leave before the end: members wait for the next master.
    job->cluster.leaves = bel_leave_requested() && bel_status_code(status) == BEL_CANCELLED;
    bel_watchdog_stop(job->cluster.watchdog);
    if (status != NULL) bel_job_note_damage(job);
    bel_run_log_close(job->log);
    if (job->cluster.leaves) {
        bel_log_event(BEL_LOG_DEBUG, "leaves", (long long)getpid(), "the master leaves");
    } else if (job->backend != NULL) {
        job->backend->ops->dismiss(job->backend, status);
    } else if (job->cluster.members != NULL) {
        bel_members_dismiss(job->cluster.members, bel_status_code(status),
                            bel_status_message(status), 1);
    }
    if (job->backend != NULL) job->backend->ops->destroy(job->backend);
    if (job->cluster.members != NULL && !job->cluster.leaves) {
        bel_remote_unlisten(&job->estimator->config, job->task, job->cluster.members);
    }
    bel_members_destroy(job->cluster.members);
    bel_reporter_destroy(job->reporter);
    bel_job_free_evals(job);
    bel_job_free_evaluator(job);
    bel_job_forget_hooks(&job->hooks);
    // A look at the file that hangs still uses the input.
    bool hangs = job->loop.follow != NULL && bel_replicator_still_runs(job->loop.replicator);
    bel_replicator_destroy(job->loop.replicator);
    if (!hangs) {
        bel_follow_destroy(job->loop.follow);
        bel_trainable_deinit(&job->trainable);
    }
    bel_free(job->segments.items);
    bel_ckpt_bases_deinit(&job->bases);
    bel_free(job->optimizers);
    bel_status *unlocked = bel_folder_unlock(job->estimator->config.model_dir, job->folder.lock);
    if (status == NULL) return unlocked;
    bel_status_ignore(unlocked); // the job's error comes first
    return status;
}

bel_status *bel_master_run(const bel_master_config *config, bel_result *out_result)
{
    bel_job job = {
        .estimator = config->estimator,
        .spec = config->train,
        .task = config->task,
        .evaluator = {.specs = config->evaluator_evals, .count = config->evaluator_count},
        .steps = {.saved = -1},
        .loop = {.end = -1},
        .folder = {.lock = -1},
        .state = {.loss = NAN}};
    const bel_run_config *settings = &config->estimator->config;
    BEL_TRY(bel_job_trace_start(settings->trace, settings->model_dir, config->task));
    bel_status *status = run_job(&job, config->evals, config->eval_count);
    if (!job.cluster.leaves) bel_job_trace_finish(settings->trace, settings->model_dir);
    if (status == NULL && out_result != NULL) *out_result = job.result;
    return status;
}
