// The evaluator of a cluster: follows the checkpoints in the model folder. Only the newest one
// counts; older ones that arrived during an evaluation are skipped. It evaluates on the member's
// main thread, which answers no messages meanwhile; the endpoint's thread continues to send pings.
//
// The last checkpoint is evaluated unless that was done before, and every result is sent before the
// evaluator's end. A master that asks again gets the kept results. bel_member_follow does the same
// without a master, by polling every 200 ms.
#include <math.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/best.h"
#include "checkpoint/folder.h"
#include "evaluate/goal.h"
#include "evaluate/predict.h"
#include "launch/folder/stored.h"
#include "member/member_inner.h"
#include "model/input_fn.h"
#include "model/model.h"

// Returns the newest checkpoint's step; -1: no checkpoint.
static bel_status *newest_step(const char *model_dir, int64_t *out_step)
{
    int64_t *steps;
    size_t count;
    BEL_TRY(bel_ckpt_list(model_dir, &steps, &count));
    *out_step = count > 0 ? steps[count - 1] : -1;
    bel_free(steps);
    return NULL;
}

static void member_evaluator_describe(const char *name, const bel_result *result, bel_str *out)
{
    bel_str_printf(out, "%s%s at step %lld: loss = %.5g", out->length > 0 ? "; " : "", name,
                   (long long)result->global_step, result->loss);
    for (int i = 0; i < result->metric_count; i++)
        bel_str_printf(out, ", %s = %.5g", result->metrics[i].name, result->metrics[i].value);
    bel_str_printf(out, " (%lld examples)", (long long)result->examples);
}

// All evaluations run together, at the pace of the first and most frequent one.
static bool is_time(const bel_member_program *program, bel_evaluator_pace *pace)
{
    double delay = INFINITY, throttle = INFINITY;
    int64_t now = bel_clock_ns();
    for (int i = 0; i < program->eval_count; i++) {
        delay = fmin(delay, program->evals[i].start_delay_secs);
        throttle = fmin(throttle, program->evals[i].throttle_secs);
    }
    if (program->eval_count == 0) return true;
    if (!pace->said)
        bel_log_write(BEL_LOG_DEBUG, "evaluations begin after %g s, at least %g s apart", delay,
                      throttle);
    pace->said = true;
    if ((double)(now - pace->begun_ns) * 1e-9 < delay) return false;
    return pace->last_ns == 0 || (double)(now - pace->last_ns) * 1e-9 >= throttle;
}

// True for the evaluation whose metric decides about the best checkpoint.
static bool is_watched(const bel_keep_best *rule, const bel_eval_spec *eval)
{
    if (rule->metric == NULL) return false;
    bool both = eval->name != NULL && rule->eval != NULL;
    return both ? strcmp(eval->name, rule->eval) == 0 : eval->name == rule->eval;
}

// The evaluated checkpoint must not be removed before it is recorded and exported.
static void member_evaluator_hold(const bel_member_program *program, int64_t step)
{
    bel_status *status = bel_ckpt_hold(program->estimator->config.model_dir, step);
    if (status == NULL) return;
    bel_log_write(BEL_LOG_WARN, "%s: a checkpoint may be removed while it is evaluated",
                  bel_status_message(status));
    bel_status_destroy(status);
}

// Holds the newest checkpoint: an older one may already be removed.
static bel_status *hold_newest(const bel_member_program *program, int64_t *step)
{
    int64_t held;
    do {
        held = *step;
        member_evaluator_hold(program, held);
        BEL_TRY(newest_step(program->estimator->config.model_dir, step));
    } while (held != *step);
    return NULL;
}

// Evaluates the held checkpoint, or the newest good one if that cannot be read or no checkpoint is
// held.
static bel_status *member_evaluator_evaluate(const bel_member_program *program,
                                             const bel_eval_spec *eval, int64_t held,
                                             bel_run_log *log, uint64_t *data,
                                             bel_result *out_result)
{
    bel_estimator *estimator = program->estimator;
    if (held < 0) return bel_evaluate_along(estimator, eval, NULL, log, data, out_result);
    char *folder = bel_ckpt_find_folder(estimator->config.model_dir, held);
    bel_status *status = bel_evaluate_along(estimator, eval, folder, log, data, out_result);
    bel_free(folder);
    bool unread =
        bel_status_code(status) == BEL_NOT_FOUND || bel_status_code(status) == BEL_DATA_LOSS;
    if (!unread) return status;
    bel_status_ignore(status); // logged when it is skipped, or repeated later
    return bel_evaluate_along(estimator, eval, NULL, log, data, out_result);
}

// Runs all evaluations of a checkpoint, in their order. `data`: fingerprints, by evaluation.
static bel_status *evaluate_all(const bel_member_program *program, int64_t held, bel_run_log *log,
                                uint64_t *data, bel_result *out_results, bel_str *out)
{
    for (int i = 0; i < program->eval_count; i++) {
        const char *name = program->evals[i].name;
        bel_result result;
        int64_t begun = bel_trace_begin();
        BEL_TRY_CTX(
            member_evaluator_evaluate(program, &program->evals[i], held, log, &data[i], &result),
            "%s", name != NULL ? name : "eval");
        member_evaluator_describe(name != NULL ? name : "eval", &result, out);
        out_results[i] = result;
        bel_trace_end((bel_trace_event){.role = BEL_TRACE_EVALUATOR,
                                        .span = BEL_TRACE_EVALUATE,
                                        .step = result.global_step},
                      begun);
    }
    if (out->length > 0) bel_log_write(BEL_LOG_INFO, "%s", out->text);
    return NULL;
}

// Checks that the requested metrics of an evaluation exist. An error in building the model shows at
// the evaluation, with the checkpoint's columns.
static bel_status *check_metrics(const bel_member_program *program, const bel_eval_spec *eval,
                                 bel_input *input, bel_exporters *exporters)
{
    const bel_keep_best *rule = &program->train->keep_best;
    const bel_estimator *estimator = program->estimator;
    const char *name = eval->name != NULL ? eval->name : "eval";
    bel_built *built = NULL;
    bel_status *building =
        bel_model_build(estimator, BEL_MODE_EVAL, NULL, input, estimator->replica_count, &built);
    const bel_estimator_spec *spec = building == NULL ? &built->spec : NULL;
    bel_status *status = NULL;
    if (spec != NULL && is_watched(rule, eval))
        status = bel_goal_check_metric(spec, rule->metric, "keep_best", name);
    if (status == NULL) status = bel_exporters_init(exporters, estimator, eval, name, spec);
    if (building == NULL) bel_built_destroy(built);
    bel_status_ignore(building); // as above
    return status;
}

bel_status *bel_member_check_evals(member *m)
{
    const bel_member_program *program = m->program;
    BEL_TRY(bel_stored_check_here(m->estimator->config.model_dir));
    m->evaluator.exporters =
        bel_xcalloc((size_t)program->eval_count + 1, sizeof *m->evaluator.exporters);
    m->evaluator.data = bel_xcalloc((size_t)program->eval_count + 1, sizeof *m->evaluator.data);
    m->evaluator.log = bel_run_log_create_follower(m->estimator->config.model_dir, "eval");
    for (int i = 0; i < program->eval_count; i++) {
        const bel_eval_spec *eval = &program->evals[i];
        bel_input *input;
        BEL_TRY(bel_input_fn_open(eval->input_fn, eval->input_user, program->estimator,
                                  BEL_MODE_EVAL, NULL, &input));
        bel_status *status = check_metrics(program, eval, input, &m->evaluator.exporters[i]);
        bel_input_destroy(input);
        if (status != NULL) return status;
    }
    return NULL;
}

void bel_member_evaluator_deinit(member_evaluator *evaluator)
{
    bel_free(evaluator->results);
    bel_free(evaluator->data);
    bel_free(evaluator->exporters);
    bel_run_log_close(evaluator->log);
}

// Sends the last result of evaluation number `index` to the master.
static void send_result(member *m, int index)
{
    bel_result *result = &m->evaluator.results[index];
    Bel__Metric metrics[BEL_MAX_METRICS], *pointers[BEL_MAX_METRICS];
    for (int i = 0; i < result->metric_count; i++) {
        bel__metric__init(pointers[i] = &metrics[i]);
        metrics[i].name = result->metrics[i].name;
        metrics[i].value = result->metrics[i].value;
    }
    Bel__Evaluated evaluated;
    bel__evaluated__init(&evaluated);
    evaluated.evaluation = index;
    evaluated.step = result->global_step;
    evaluated.loss = result->loss;
    evaluated.batch_mean_loss = result->batch_mean_loss;
    evaluated.examples = result->examples;
    evaluated.metrics = pointers;
    evaluated.n_metrics = (size_t)result->metric_count;
    bel_member_send(m, &evaluated.base);
}

// Exports the result of evaluation number `index` if it qualifies; `over`: at the end of the
// training.
static void export_result(member_evaluator *evaluator, int index, bool over)
{
    bel_exporters *exporters = &evaluator->exporters[index];
    const bel_result *result = &evaluator->results[index];
    bel_exporters_keep(exporters, bel_exporters_choose(exporters, result, over), result);
}

static bel_status *evaluate_round(member_evaluator *evaluator, const bel_member_program *program,
                                  int64_t step, bel_str *words)
{
    BEL_TRY(hold_newest(program, &step));
    evaluator->looked_step = step;
    evaluator->pace.last_ns = bel_clock_ns();
    bel_status *status =
        evaluate_all(program, step, evaluator->log, evaluator->data, evaluator->results, words);
    for (int i = 0; status == NULL && i < program->eval_count; i++)
        export_result(evaluator, i, false);
    member_evaluator_hold(program, -1);
    if (program->eval_count > 0) evaluator->step = evaluator->results[0].global_step;
    return status;
}

// looked_step prevents retries of an unreadable newest checkpoint on each round.
bel_status *bel_member_evaluate(member *m, bool last, bool over)
{
    member_evaluator *evaluator = &m->evaluator;
    int64_t step;
    BEL_TRY(newest_step(m->estimator->config.model_dir, &step));
    bel_str words = {0};
    bel_status *status = NULL;
    // The initial values are not worth an evaluation; the end always is. An unreadable newest
    // checkpoint leads to an older one, once.
    bool fresh = step != evaluator->step && step != evaluator->looked_step;
    bool now = is_time(m->program, &evaluator->pace);
    if (last ? fresh : step > 0 && fresh && now) {
        status = evaluate_round(evaluator, m->program, step, &words);
    }
    for (int i = 0; status == NULL && last && i < m->program->eval_count; i++) {
        if (over) export_result(evaluator, i, true);
        send_result(m, i);
    }
    if (status == NULL && last) {
        Bel__Ended ended;
        bel__ended__init(&ended);
        ended.step = evaluator->step;
        ended.text = words.text;
        bel_member_send(m, &ended.base);
    }
    bel_str_deinit(&words);
    bel_member_leave_if_lost(m, status); // the next evaluator repeats it
    return status;
}

// Presence of a job in the folder, according to its token. A job that has been absent for long
// enough is over, wherever it finished: a restarted master returns sooner.
typedef struct presence {
    char *token;
    double patience_secs;
    int64_t seen_ns; // 0: never
} presence;

static bool is_over(presence *p)
{
    int64_t now = bel_clock_ns();
    if (bel_file_exists(p->token)) p->seen_ns = now;
    return p->seen_ns > 0 && (double)(now - p->seen_ns) * 1e-9 > p->patience_secs;
}

// Evaluates each new newest checkpoint, until the last one that will come.
static bel_status *member_evaluator_follow(const bel_member_program *program, presence *job,
                                           bel_run_log *log, uint64_t *data, bel_result *results)
{
    enum { NAP_MS = 200, CHECK_NAPS = 75 };
    int64_t naps = 0;
    const char *model_dir = program->estimator->config.model_dir;
    int64_t last_step = program->train->max_steps, step = -1, evaluated = -1, looked = -1;
    bel_evaluator_pace pace = {.begun_ns = bel_clock_ns()};
    while (!bel_stop_requested() && (last_step == 0 || evaluated < last_step)) {
        bool over = is_over(job); // before it looks for the job's last checkpoint
        BEL_TRY(newest_step(model_dir, &step));
        bool last = over || (last_step > 0 && step >= last_step);
        bool fresh = step > 0 && step != evaluated && step != looked;
        if (over && !fresh) {
            bel_log_write(BEL_LOG_INFO, "the job has been gone for %g s (limits: join_timeout)",
                          job->patience_secs);
            return NULL;
        }
        bool now = is_time(program, &pace);
        if (!fresh || (!last && !now)) {
            // Also after a token was seen: a killed job leaves one.
            if (naps++ % CHECK_NAPS == 0) BEL_TRY(bel_stored_check_here(model_dir));
            poll(NULL, 0, NAP_MS);
            continue;
        }
        looked = step;
        pace.last_ns = bel_clock_ns();
        bel_str words = {0};
        bel_status *status = evaluate_all(program, -1, log, data, results, &words);
        bel_str_deinit(&words);
        BEL_TRY(status);
        evaluated = program->eval_count > 0 ? results[0].global_step : step;
    }
    return NULL;
}

bel_status *bel_member_follow(const bel_member_program *program, double patience_secs,
                              bel_result *out_result)
{
    presence job = {.token = bel_path_join(program->estimator->config.model_dir, BEL_TOKEN_FILE),
                    .patience_secs = patience_secs};
    bel_result *results = bel_xcalloc((size_t)program->eval_count + 1, sizeof *results);
    uint64_t *data = bel_xcalloc((size_t)program->eval_count + 1, sizeof *data);
    results[0].global_step = results[0].evaluation_step = -1;
    bel_run_log *log =
        bel_run_log_create_follower(program->estimator->config.model_dir, "evaluator");
    bel_status *status = member_evaluator_follow(program, &job, log, data, results);
    bel_run_log_close(log);
    bel_free(job.token);
    results[0].interrupted = bel_stop_requested();
    if (status == NULL && out_result != NULL) *out_result = results[0];
    bel_free(results);
    bel_free(data);
    return status;
}
