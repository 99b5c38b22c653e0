// The master's evaluations of its snapshots. Their inputs and graphs are made once for the whole
// job, before training, so that faults show early. A graph's variables point into the backend's
// snapshot, which does not move.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/folder.h"
#include "evaluate/evaluation.h"
#include "master/job/job.h"
#include "model/input_fn.h"
#include "report/history.h"

// Finds the training table of that name and width, -1: absent.
static int find_table(const bel_layout *layout, const bel_graph_table *wanted)
{
    for (int t = 0; t < layout->table_count; t++) {
        const bel_layout_table *table = &layout->tables[t];
        if (strcmp(table->name, wanted->name) == 0 && table->width == wanted->width) return t;
    }
    return -1;
}

// Reads rows of other processes, or on a disk: their shards have written them into a checkpoint, or
// do so now. Only the checkpoint of that step will do: an older one does not match the values.
static bel_status *read_saved_rows(bel_job *job, bel_job_eval *eval, int64_t step)
{
    if (job->steps.saved != step) BEL_TRY(bel_job_save(job, step));
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    bel_ckpt_reader *reader = NULL;
    bel_status *status = bel_ckpt_open(folder, &reader);
    const bool again = eval->layers.base != NULL;
    bel_row_layers_deinit(&eval->layers);
    eval->layers.quiet = again;
    if (status == NULL)
        status = bel_row_layers_load(&eval->layers, eval->built->graph, reader, NULL, 0);
    bel_ckpt_close(reader);
    bel_free(folder);
    BEL_TRY_CTX(status, "rows of tables at step %lld", (long long)step);
    return NULL;
}

// Whether rows come from a checkpoint: they are in other processes, or memory may not hold all.
static bool reads_checkpoint(const bel_job *job)
{
    const char *disk = job->estimator->config.table_disk;
    return job->backend->ops->read_rows == NULL || (disk != NULL && disk[0] != '\0');
}

bel_status *bel_job_read_rows(bel_job *job, bel_job_eval *eval, int64_t step)
{
    const bel_graph *graph = eval->built->graph;
    if (graph->table_count == 0) return NULL;
    if (reads_checkpoint(job)) return read_saved_rows(job, eval, step);
    for (size_t t = 0; t < graph->table_count; t++) {
        int table = find_table(job->trainable.layout, &graph->tables[t]);
        BEL_TRY(job->backend->ops->read_rows(job->backend, table, eval->rows.tables[t]));
    }
    return NULL;
}

// Points each variable of an evaluation graph into the snapshot, whose values may be at another
// address than those of the one before.
static bel_status *find_values(const bel_job *job, bel_job_eval *eval)
{
    const bel_graph *graph = eval->built->graph;
    if (eval->values == NULL)
        eval->values = bel_xcalloc(graph->variable_count, sizeof *eval->values);
    const bel_backend *backend = job->backend;
    const float *snapshot = backend->averages != NULL ? backend->averages : backend->values;
    for (size_t v = 0; v < graph->variable_count; v++) {
        const bel_graph_variable *variable = &graph->variables[v];
        int index = bel_layout_find(job->trainable.layout, variable->name);
        if (index < 0 || !bel_shape_equal(&job->trainable.layout->variables[index].shape,
                                          &variable->value->spec.shape)) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "model function: variable \"%s\" of EVAL is not there, or has another "
                           "shape, in TRAIN",
                           variable->name);
        }
        eval->values[v] = snapshot + job->trainable.layout->variables[index].offset;
    }
    for (size_t t = 0; t < graph->table_count; t++)
        if (find_table(job->trainable.layout, &graph->tables[t]) < 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "model function: table \"%s\" of EVAL is not there, or has another "
                           "width, in TRAIN",
                           graph->tables[t].name);
        }
    return NULL;
}

char *bel_job_eval_folder(const bel_eval_spec *spec)
{
    return spec->name == NULL ? bel_xstrdup("eval") : bel_strf("eval_%s", spec->name);
}

// Builds an evaluation. Its input has the columns of training's, so that features mean the same.
static bel_status *build_eval(bel_job *job, bel_job_eval *eval)
{
    const bel_estimator *estimator = job->estimator;
    eval->last_step = eval->done_step = -1;
    eval->built_ns = bel_clock_ns();
    eval->folder = bel_job_eval_folder(eval->spec);
    if (eval->spec->every_steps < 0 || eval->spec->steps < 0 || !(eval->spec->throttle_secs >= 0) ||
        !(eval->spec->start_delay_secs >= 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: steps, every_steps, throttle_secs and start_delay_secs must be at "
                       "least 0",
                       eval->folder);
    }
    BEL_TRY(bel_input_fn_open(eval->spec->input_fn, eval->spec->input_user, estimator,
                              BEL_MODE_EVAL, bel_input_names(job->trainable.input), &eval->input));
    BEL_TRY(bel_model_build(estimator, BEL_MODE_EVAL, NULL, eval->input, estimator->replica_count,
                            &eval->built));
    BEL_TRY(bel_rows_init(&eval->rows, eval->built->graph, estimator->config.seed));
    return find_values(job, eval);
}

bel_status *bel_job_build_evals(bel_job *job, const bel_eval_spec *specs, int count)
{
    job->evals.items = bel_xcalloc((size_t)count, sizeof *job->evals.items);
    for (int i = 0; i < count; i++) {
        job->evals.items[i].spec = &specs[i];
        job->evals.count++;
        BEL_TRY(build_eval(job, &job->evals.items[i]));
        for (int k = 0; k < i; k++) {
            if (strcmp(job->evals.items[k].folder, job->evals.items[i].folder) != 0) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT, "two evaluations are named \"%s\"",
                           job->evals.items[i].folder);
        }
    }
    return NULL;
}

void bel_job_free_evals(bel_job *job)
{
    for (int i = 0; i < job->evals.count; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        bel_built_destroy(eval->built);
        if (eval->input != NULL) bel_input_destroy(eval->input);
        bel_rows_deinit(&eval->rows);
        bel_row_layers_deinit(&eval->layers);
        bel_free(eval->values);
        bel_free(eval->folder);
    }
    bel_free(job->evals.items);
}

void bel_job_log_evaluation(const char *folder, const bel_result *result)
{
    bel_str line = {0};
    bel_str_printf(&line, "%s at step %lld: loss = %.5g", folder, (long long)result->global_step,
                   result->loss);
    for (int m = 0; m < result->metric_count; m++)
        bel_str_printf(&line, ", %s = %.5g", result->metrics[m].name, result->metrics[m].value);
    bel_log_write(BEL_LOG_INFO, "%s (%lld examples)", line.text, (long long)result->examples);
    bel_str_deinit(&line);
}

typedef struct attending {
    bel_job *job;
    const bel_eval_spec *spec;
} attending;

// Called between batches: a long evaluation hears members and the program, and shows progress.
static bel_status *evals_attend(void *context)
{
    attending *a = context;
    bel_job *job = a->job;
    if (a->spec->between != NULL) BEL_TRY(a->spec->between(a->spec->between_user));
    bel_reporter_update(job->reporter, job->backend, job->steps.last, false);
    return job->backend->ops->attend(job->backend, 0);
}

// Workers read the values from the checkpoint, so they help only if there is one. The distribution
// of batches is random, so they do not help if that would change the bits.
static const bel_evaluation_helpers *begin_help(const bel_job *job, const bel_job_eval *eval,
                                                int64_t step)
{
    const bel_backend_ops *ops = job->backend->ops;
    if (!job->estimator->config.evaluate_on_workers || ops->begin_help == NULL ||
        job->steps.saved != step || !bel_estimator_shares_evaluations(job->estimator))
        return NULL;
    char *folder = bel_ckpt_find_folder(job->estimator->config.model_dir, step);
    const bel_evaluation_helpers *helpers =
        ops->begin_help(job->backend, (int)(eval - job->evals.items), folder, step,
                        bel_input_fingerprint(eval->input));
    bel_free(folder);
    return helpers;
}

// Runs an evaluation; the snapshot stays current throughout.
static bel_status *run_evaluation(bel_job *job, bel_job_eval *eval, int64_t step,
                                  bel_result *result, bel_details *details)
{
    const bel_estimator *estimator = job->estimator;
    BEL_TRY(find_values(job, eval));
    const bool saved = reads_checkpoint(job);
    attending attended = {job, eval->spec};
    bel_evaluation_config config = {
        .built = eval->built,
        .forward = {.graph = eval->built->graph,
                    .fields = eval->built->fields,
                    .values = eval->values,
                    .pull_rows = saved ? bel_row_layers_pull : bel_rows_pull,
                    .rows = saved ? (const void *)&eval->layers : &eval->rows,
                    .seed = estimator->config.seed,
                    .step = step,
                    .program = bel_estimator_evaluation_options(estimator)},
        .input = eval->input,
        .steps = eval->spec->steps,
        .tower_count = bel_estimator_evaluation_towers(estimator),
        .cards = bel_estimator_cards(estimator, -1),
        .details = details,
        .between = evals_attend,
        .context = &attended};
    eval->last_ns = bel_clock_ns();
    int64_t begun = bel_trace_begin();
    BEL_TRY(job->backend->ops->read_values(job->backend));
    BEL_TRY(bel_job_read_rows(job, eval, step));
    config.helpers = begin_help(job, eval, step);
    bel_status *status = bel_evaluation_run(&config, result);
    if (config.helpers != NULL) job->backend->ops->end_help(job->backend);
    // The next master makes it up.
    if (job->task != NULL && bel_task_recovers(job->task))
        bel_estimator_leave_if_lost(status, false);
    BEL_TRY_CTX(status, "%s", eval->folder);
    bel_trace_end(
        (bel_trace_event){.role = BEL_TRACE_MASTER, .span = BEL_TRACE_EVALUATE, .step = step},
        begun);
    return NULL;
}

// Saves a version that is the best so far, even between checkpoints.
static bel_status *keep_if_best(bel_job *job, const char *folder, const bel_result *result)
{
    bool best;
    BEL_TRY(bel_job_is_best(job, folder, result, &best));
    if (!best) return NULL;
    if (job->steps.saved != result->global_step) BEL_TRY(bel_job_save(job, result->global_step));
    return bel_job_take_best(job, result);
}

// Evaluates. The first evaluation's result is the job's.
static bel_status *measure(bel_job *job, bel_job_eval *eval, int64_t step, bel_details *details)
{
    bel_result result = {.size = sizeof result, .global_step = step, .evaluation_step = step};
    BEL_TRY(run_evaluation(job, eval, step, &result, details));
    eval->last_step = step;
    bel_job_log_evaluation(eval->folder, &result);
    bel_sized_give(eval->spec->out_result, &result, sizeof result);
    if (eval == &job->evals.items[0]) {
        memcpy(result.digest, job->result.digest, sizeof result.digest);
        job->result = result;
    }
    eval->last_result = result;
    bel_run_log_evaluation(job->log, eval->folder, &result, details);
    bel_job_count_evaluation(job, eval->folder, &result);
    return NULL;
}

// A loss may interrupt what follows from the result. It is made when the snapshot is current again.
static bel_status *evals_evaluate(bel_job *job, bel_job_eval *eval, int64_t step,
                                  bel_details *details)
{
    if (eval->last_step != step) BEL_TRY(measure(job, eval, step, details));
    const bel_result result = eval->last_result;
    BEL_TRY(keep_if_best(job, eval->folder, &result));
    BEL_TRY(bel_job_export(job, eval, &result, false));
    bool stop = false;
    bel_hook_context context = {
        .estimator = job->estimator, .stop = &stop, .log = job->log, .step = step};
    BEL_TRY(bel_hooks_after_evaluation(&job->trainable.hooks, &context, eval->folder, &result));
    if (stop) bel_job_stop_behind_evaluation(job, step);
    BEL_TRY(bel_job_rewrite_hooks(job, step));
    eval->done_step = step;
    return NULL;
}

bel_status *bel_job_evaluate(bel_job *job, bel_job_eval *eval, int64_t step)
{
    bel_details details = {0};
    bel_status *status = evals_evaluate(job, eval, step, &details);
    bel_details_deinit(&details);
    return status;
}

// --- Making up evaluations ----------------------------------------------------------------------

// Whether an undisturbed run evaluates the version of this step. If time decides, no version is
// missing.
static bool belongs_to_series(const bel_job *job, const bel_job_eval *eval, int64_t step)
{
    int64_t every = eval->spec->every_steps, saves = job->estimator->config.save_checkpoints_steps;
    if (step == 0) return false;
    if (every > 0) return step % every == 0;
    return saves > 0 && step % saves == 0 && eval->spec->throttle_secs == 0 &&
           eval->spec->start_delay_secs == 0;
}

static bool has_result(const bel_history *history, const char *folder, int64_t step)
{
    const bel_report_series *losses = bel_history_find(history, folder, "loss");
    for (size_t i = 0; losses != NULL && i < losses->point_count; i++)
        if (losses->steps[i] == step) return true;
    return false;
}

// NULL: unreadable, with a warning.
static bel_history *read_history(const bel_job *job)
{
    bel_history *history = NULL;
    bel_status *status = bel_history_read(job->estimator->config.model_dir, &history);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "earlier evaluations cannot be read, and may be repeated: %s",
                      bel_status_message(status));
    }
    bel_status_destroy(status);
    return history;
}

bool bel_job_has_evaluated(const bel_job *job, const char *folder, int64_t step)
{
    bel_history *history;
    bel_status *status = bel_history_read(job->estimator->config.model_dir, &history);
    bool has = status == NULL && has_result(history, folder, step);
    if (status == NULL) bel_history_destroy(history);
    bel_status_ignore(status); // then it is repeated
    return has;
}

// The value of a curve at a step, with the digits that were written; NaN: absent.
static double value_at(const bel_report_series *series, int64_t step)
{
    char text[BEL_F32_TEXT];
    double value = NAN;
    for (size_t i = 0; i < series->point_count; i++) {
        if (series->steps[i] != step || !isfinite(series->values[i])) continue;
        size_t length = bel_shortest_f32((float)series->values[i], text);
        if (!bel_parse_f64(text, length, &value)) value = NAN;
    }
    return value;
}

static void take_evaluation(const bel_history *history, const char *folder, int64_t step,
                            bel_result *result)
{
    const bel_report_series *losses = bel_history_find(history, folder, "loss");
    for (size_t i = 0; losses != NULL && i < losses->point_count; i++)
        if (losses->steps[i] <= step) result->evaluation_step = losses->steps[i];
    if (result->evaluation_step < 0) return;
    result->loss = value_at(losses, result->evaluation_step);
    const bel_report_series *series;
    for (size_t i = 0; (series = bel_history_at(history, folder, i)) != NULL; i++) {
        if (series == losses || result->metric_count == BEL_MAX_METRICS) continue;
        int m = result->metric_count++;
        bel_snprintf(result->metrics[m].name, sizeof result->metrics[m].name, "%s", series->name);
        result->metrics[m].value = value_at(series, result->evaluation_step);
    }
}

void bel_job_recall_evaluation(const bel_job *job, int64_t step, bel_result *out_result)
{
    bool own = job->evals.count > 0;
    char *folder = bel_job_eval_folder(own ? job->evals.items[0].spec : &job->evaluator.specs[0]);
    bel_history *history = NULL;
    *out_result = (bel_result){
        .size = sizeof *out_result, .loss = NAN, .batch_mean_loss = NAN, .evaluation_step = -1};
    bel_status *status =
        bel_history_read_folder(job->estimator->config.model_dir, folder, &history);
    if (status == NULL) take_evaluation(history, folder, step, out_result);
    bel_history_destroy(history);
    bel_status_ignore(status); // an unreadable file counts as absent
    bel_free(folder);
}

// A stop or a kill may come between a checkpoint and the end of its evaluation. In a cluster the
// loaded values are used.
bel_status *bel_job_make_up_evals(bel_job *job)
{
    int64_t step = job->steps.first;
    bool in_hand = job->task != NULL, looked = false;
    bel_history *history = NULL;
    bel_status *status = NULL;
    for (int i = 0; i < job->evals.count && status == NULL; i++) {
        bel_job_eval *eval = &job->evals.items[i];
        const bool halfway = eval->last_step == step; // the work that follows its result is left
        if (eval->done_step == step || (!halfway && !belongs_to_series(job, eval, step))) continue;
        if (!looked) history = read_history(job);
        looked = true;
        if (!halfway && history != NULL && has_result(history, eval->folder, step)) continue;
        if (!in_hand) status = job->backend->ops->snapshot_now(job->backend);
        in_hand = true;
        if (status == NULL) status = bel_job_evaluate(job, eval, step);
    }
    bel_history_destroy(history);
    bel_job_settle_stop(job);
    return status;
}
