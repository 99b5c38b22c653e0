// The evaluator of a cluster: evaluates the checkpoint that the master asks for, and sends all
// results in one message. The master chooses the checkpoint, keeps it meanwhile, and writes the
// curves. So this process needs neither the model folder nor a file system that it shares with the
// master: without one it asks the master for the checkpoint's files (member_files.c). It evaluates
// on the member's main thread, which answers no messages meanwhile; the endpoint's thread sends
// pings.
//
// A master that asks again gets the kept results, unless a new generation has begun: then the
// checkpoint of that step may be another one. bel_member_follow evaluates without a master: it
// polls the model folder every 200 ms.
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/folder.h"
#include "evaluate/goal.h"
#include "evaluate/pace.h"
#include "evaluate/predict.h"
#include "export/exporters.h"
#include "launch/folder/stored.h"
#include "member/member_inner.h"
#include "model/input_fn.h"
#include "model/model.h"
#include "report/run_log.h"

static void member_evaluator_describe(const char *name, const bel_result *result, bel_str *out)
{
    bel_str_printf(out, "%s%s at step %lld: loss = %.5g", out->length > 0 ? "; " : "", name,
                   (long long)result->global_step, result->loss);
    for (int i = 0; i < result->metric_count; i++)
        bel_str_printf(out, ", %s = %.5g", result->metrics[i].name, result->metrics[i].value);
    bel_str_printf(out, " (%lld examples)", (long long)result->examples);
}

// Runs all evaluations of the checkpoint in `folder` (NULL: the newest one), in their order, and
// logs their results. out->step is -1 until all are there.
static bel_status *evaluate_all(const bel_member_program *program, const char *folder,
                                bel_evaluator_results *out)
{
    bel_str words = {0};
    bel_status *status = NULL;
    out->step = -1;
    for (int i = 0; i < program->eval_count && status == NULL; i++) {
        const bel_eval_spec *eval = &program->evals[i];
        const char *name = eval->name != NULL ? eval->name : "eval";
        int64_t begun = bel_trace_begin();
        bel_details_deinit(&out->details[i]);
        status = bel_evaluate_along(program->estimator, eval, folder, &out->data[i],
                                    &out->details[i], &out->results[i]);
        if (status != NULL) {
            status = bel_status_wrap(status, __FILE__, __LINE__, "%s", name);
            break;
        }
        member_evaluator_describe(name, &out->results[i], &words);
        bel_trace_end((bel_trace_event){.role = BEL_TRACE_EVALUATOR,
                                        .span = BEL_TRACE_EVALUATE,
                                        .step = out->results[i].global_step},
                      begun);
    }
    if (words.length > 0) bel_log_write(BEL_LOG_INFO, "%s", words.text);
    bel_str_deinit(&words);
    if (status == NULL && program->eval_count > 0) out->step = out->results[0].global_step;
    return status;
}

static void results_init(bel_evaluator_results *results, int count)
{
    *results =
        (bel_evaluator_results){.step = -1,
                                .count = count,
                                .results = bel_xcalloc((size_t)count + 1, sizeof *results->results),
                                .details = bel_xcalloc((size_t)count + 1, sizeof *results->details),
                                .data = bel_xcalloc((size_t)count + 1, sizeof *results->data)};
}

static void results_deinit(bel_evaluator_results *results)
{
    for (int i = 0; i < results->count; i++)
        bel_details_deinit(&results->details[i]);
    bel_free(results->results);
    bel_free(results->details);
    bel_free(results->data);
}

// --- An evaluator of a cluster -------------------------------------------------------------------

// True for the evaluation whose metric decides about the best checkpoint.
static bool is_watched(const bel_keep_best *rule, const bel_eval_spec *eval)
{
    if (rule->metric == NULL) return false;
    bool both = eval->name != NULL && rule->eval != NULL;
    return both ? strcmp(eval->name, rule->eval) == 0 : eval->name == rule->eval;
}

// Checks that the requested metrics of an evaluation exist, which the master cannot do without the
// data. An error in building the model shows at the evaluation, with the checkpoint's columns.
static bel_status *check_metrics(const bel_member_program *program, const bel_eval_spec *eval,
                                 bel_input *input)
{
    const bel_keep_best *rule = &program->train->keep_best;
    const bel_estimator *estimator = program->estimator;
    const char *name = eval->name != NULL ? eval->name : "eval";
    bel_built *built = NULL;
    bel_status *building =
        bel_model_build(estimator, BEL_MODE_EVAL, NULL, input, estimator->replica_count, &built);
    const bel_estimator_spec *spec = building == NULL ? &built->spec : NULL;
    bel_exporters exporters = {.count = 0}; // the master's are used
    bel_status *status = NULL;
    if (spec != NULL && is_watched(rule, eval))
        status = bel_goal_check_metric(spec, rule->metric, "keep_best", name);
    if (status == NULL) status = bel_exporters_init(&exporters, estimator, eval, name, spec);
    if (building == NULL) bel_built_destroy(built);
    bel_status_ignore(building); // as above
    return status;
}

bel_status *bel_member_check_evals(member *m)
{
    const bel_member_program *program = m->program;
    results_init(&m->evaluator.newest, program->eval_count);
    for (int i = 0; i < program->eval_count; i++) {
        const bel_eval_spec *eval = &program->evals[i];
        bel_input *input;
        BEL_TRY(bel_input_fn_open(eval->input_fn, eval->input_user, program->estimator,
                                  BEL_MODE_EVAL, NULL, &input));
        bel_status *status = check_metrics(program, eval, input);
        bel_input_destroy(input);
        if (status != NULL) return status;
    }
    return NULL;
}

void bel_member_evaluator_deinit(member_evaluator *evaluator)
{
    results_deinit(&evaluator->newest);
}

// An evaluation as a message, with the parts to which it points.
typedef struct evaluation_message {
    Bel__Evaluation evaluation;
    Bel__Metric metrics[BEL_MAX_METRICS], *metric_list[BEL_MAX_METRICS];
    Bel__Roc rocs[BEL_MOST_ROCS], *roc_list[BEL_MOST_ROCS];
} evaluation_message;

static void describe_details(bel_details *details, evaluation_message *out)
{
    Bel__Evaluation *to = &out->evaluation;
    to->classes = details->classes;
    to->confusion = details->confusion;
    to->n_confusion = (size_t)details->classes * (size_t)details->classes;
    to->rocs = out->roc_list;
    for (int i = 0; i < details->roc_count; i++) {
        bel_roc *from = &details->rocs[i];
        Bel__Roc *roc = out->roc_list[to->n_rocs++] = &out->rocs[i];
        bel__roc__init(roc);
        roc->name = from->name;
        roc->no = from->no;
        roc->yes = from->yes;
        roc->precision = from->precision;
        roc->n_no = roc->n_yes = roc->n_precision = (size_t)from->count;
    }
}

static void describe_evaluation(bel_result *result, bel_details *details, evaluation_message *out)
{
    Bel__Evaluation *to = &out->evaluation;
    bel__evaluation__init(to);
    to->loss = result->loss;
    to->batch_mean_loss = result->batch_mean_loss;
    to->examples = result->examples;
    to->metrics = out->metric_list;
    for (int i = 0; i < result->metric_count; i++) {
        Bel__Metric *metric = out->metric_list[to->n_metrics++] = &out->metrics[i];
        bel__metric__init(metric);
        metric->name = result->metrics[i].name;
        metric->value = result->metrics[i].value;
    }
    describe_details(details, out);
}

static void send_results(member *m)
{
    bel_evaluator_results *newest = &m->evaluator.newest;
    size_t count = (size_t)newest->count;
    evaluation_message *messages = bel_xcalloc(count + 1, sizeof *messages);
    Bel__Evaluated evaluated;
    bel__evaluated__init(&evaluated);
    evaluated.step = newest->step;
    evaluated.evaluations = bel_xcalloc(count + 1, sizeof *evaluated.evaluations);
    for (size_t i = 0; i < count; i++) {
        describe_evaluation(&newest->results[i], &newest->details[i], &messages[i]);
        evaluated.evaluations[evaluated.n_evaluations++] = &messages[i].evaluation;
    }
    bel_member_send(m, &evaluated.base);
    bel_free(evaluated.evaluations);
    bel_free(messages);
}

// True for an error that another checkpoint, or another time, may not have: a damaged checkpoint or
// data, a store that does not answer, a full disk, a folder that cannot be written. Others are of
// the model or the settings.
static bool may_pass(bel_code code)
{
    return code == BEL_NOT_FOUND || code == BEL_DATA_LOSS || code == BEL_UNAVAILABLE ||
           code == BEL_RESOURCE_EXHAUSTED || code == BEL_PERMISSION_DENIED;
}

bel_status *bel_member_evaluated(member *m, int64_t step, bel_status *status)
{
    bel_code code = bel_status_code(status);
    bel_member_leave_if_lost(m, status); // the next evaluator repeats it
    m->evaluator.asked = -1;
    if (status == NULL) {
        send_results(m);
        return NULL;
    }
    if (!may_pass(code)) return status; // else the master decides, as training may continue
    char *why = bel_xstrdup(bel_status_message(status));
    Bel__Evaluated evaluated;
    bel__evaluated__init(&evaluated);
    evaluated.step = step;
    evaluated.code = (int32_t)code;
    evaluated.why = why;
    bel_member_send(m, &evaluated.base);
    bel_free(why);
    bel_status_destroy(status);
    return NULL;
}

bel_status *bel_member_evaluate(member *m, const Bel__Evaluate *request)
{
    bel_status *status = NULL;
    if (request->step < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed evaluate: step %lld",
                       (long long)request->step);
    }
    if (m->evaluator.newest.step != request->step) {
        m->evaluator.asked = request->step;
        bel_member_send_status(m, true);
        char *folder = m->fetches
                           ? bel_member_files_path(m, request->step)
                           : bel_ckpt_find_folder(m->estimator->config.model_dir, request->step);
        status = evaluate_all(m->program, folder, &m->evaluator.newest);
        bel_free(folder);
    }
    return bel_member_evaluated(m, request->step, status);
}

void bel_member_forget_evaluated(member *m, uint32_t generation)
{
    m->evaluator.asked = -1;
    if (m->generation != generation) m->evaluator.newest.step = -1;
}

// --- An evaluator without a master ---------------------------------------------------------------

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

// Presence of a job in the folder, according to its token, or to the owner of a folder in a store:
// a killed master leaves its token on its host. A job that has been absent for long enough is over,
// wherever it finished: a restarted master returns sooner.
typedef struct presence {
    const char *model_dir;
    char *token;
    bool is_stored, trains; // a job owns the folder of a store
    double patience_secs;
    int64_t seen_ns; // awake time; 0: never
    bool reported;   // the last look failed, and a line says so
    int failures;    // looks in succession that failed although the store answers
} presence;

static bool is_over(presence *p)
{
    int64_t now = bel_clock_awake_ns();
    if (p->is_stored ? p->trains : bel_file_exists(p->token)) p->seen_ns = now;
    return p->seen_ns > 0 && (double)(now - p->seen_ns) * 1e-9 > p->patience_secs;
}

enum { LOOK_SECS = 5 };

// Looks into the store. One line reports an outage, which may pass at any time. An error that the
// store or a disk gives for longer than the patience is returned.
static bel_status *look(presence *p)
{
    if (!p->is_stored) return NULL;
    bel_status *status = bel_stored_follow(p->model_dir, &p->trains);
    bool fails = status != NULL;
    if (fails && !p->reported)
        bel_log_write(BEL_LOG_WARN, "%s; the checkpoints are looked for again",
                      bel_status_message(status));
    p->reported = fails;
    bool passes = !fails || bel_status_code(status) == BEL_UNAVAILABLE;
    p->failures = passes ? 0 : p->failures + 1;
    if ((p->failures - 1) * (double)LOOK_SECS > p->patience_secs)
        return bel_status_wrap(status, __FILE__, __LINE__,
                               "no checkpoint could be fetched for %g s (limits: join_timeout)",
                               p->patience_secs);
    bel_status_ignore(status); // logged; the next look may succeed
    return NULL;
}

// Sends the last curves.
static void send_curves(const presence *p)
{
    bel_status *status = bel_stored_add(p->model_dir, BEL_STORED_EVALUATOR);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "%s; the store lacks curves of this evaluator, which are in %s",
                      bel_status_message(status), p->model_dir);
    }
    bel_status_ignore(status); // logged: the results are good
}

// Evaluates the newest checkpoint, and writes its curves.
static bel_status *evaluate_newest(const bel_member_program *program, bel_run_log *log,
                                   bel_evaluator_results *results)
{
    BEL_TRY(evaluate_all(program, NULL, results));
    for (int i = 0; i < program->eval_count; i++)
        bel_run_log_follow(log, program->evals[i].name, &results->results[i], &results->details[i]);
    return NULL;
}

// Evaluates each new newest checkpoint, until the last one that will come.
static bel_status *member_evaluator_follow(const bel_member_program *program, presence *job,
                                           bel_run_log *log, bel_evaluator_results *results)
{
    enum { NAP_MS = 200, LOOK_NAPS = LOOK_SECS * 1000 / NAP_MS };
    int64_t naps = 0;
    const char *model_dir = program->estimator->config.model_dir;
    int64_t last_step = program->train->max_steps, step = -1, evaluated = -1, looked = -1;
    bel_eval_pace pace = {.begun_ns = bel_clock_ns()};
    while (!bel_stop_requested() && (last_step == 0 || evaluated < last_step)) {
        if (naps++ % LOOK_NAPS == 0) BEL_TRY(look(job));
        bool over = is_over(job); // before it looks for the job's last checkpoint
        BEL_TRY(newest_step(model_dir, &step));
        bool last = over || (last_step > 0 && step >= last_step);
        bool fresh = step > 0 && step != evaluated && step != looked;
        if (over && !fresh) {
            bel_log_write(BEL_LOG_INFO, "the job has been gone for %g s (limits: join_timeout)",
                          job->patience_secs);
            return NULL;
        }
        bool now = bel_eval_pace_is_time(&pace, program->evals, program->eval_count);
        if (!fresh || (!last && !now)) {
            poll(NULL, 0, NAP_MS);
            continue;
        }
        looked = step;
        pace.last_ns = bel_clock_ns();
        BEL_TRY(evaluate_newest(program, log, results));
        evaluated = program->eval_count > 0 ? results->step : step;
    }
    return NULL;
}

bel_status *bel_member_follow(const bel_member_program *program, double patience_secs,
                              bel_result *out_result)
{
    const char *model_dir = program->estimator->config.model_dir;
    presence job = {.model_dir = model_dir,
                    .token = bel_path_join(model_dir, BEL_TOKEN_FILE),
                    .is_stored = bel_stored_is(model_dir),
                    .patience_secs = patience_secs};
    bel_evaluator_results results;
    results_init(&results, program->eval_count);
    results.results[0].global_step = results.results[0].evaluation_step = -1;
    bel_run_log *log = bel_run_log_create_follower(model_dir);
    bel_status *status = member_evaluator_follow(program, &job, log, &results);
    bel_run_log_close(log);
    send_curves(&job);
    bel_free(job.token);
    results.results[0].interrupted = bel_stop_requested();
    if (status == NULL && out_result != NULL) *out_result = results.results[0];
    results_deinit(&results);
    return status;
}
