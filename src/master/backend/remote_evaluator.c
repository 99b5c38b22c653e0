// The evaluator of a cluster: the request for the evaluations of a checkpoint, which is repeated to
// an evaluator that comes back, and its answer, which is kept until the job takes it. An answer
// about another checkpoint belongs to a request of an earlier master, or to one that was replaced.
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/folder.h"
#include "master/backend/remote_inner.h"

void bel_evaluated_deinit(bel_evaluated *evaluated)
{
    for (int i = 0; i < evaluated->count; i++)
        bel_details_deinit(&evaluated->details[i]);
    bel_free(evaluated->details);
    bel_free(evaluated->results);
    bel_status_destroy(evaluated->failure);
    *evaluated = (bel_evaluated){.count = 0};
}

static int find_evaluator(const remote *r)
{
    return bel_members_find(r->config.members, BEL_ROLE_EVALUATOR, 0);
}

void bel_remote_send_evaluate(remote *r)
{
    if (r->backend.evaluating < 0) return;
    Bel__Evaluate evaluate;
    bel__evaluate__init(&evaluate);
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    evaluate.step = r->backend.evaluating;
    evaluate.checkpoint = bel_ckpt_find_folder(model_dir, evaluate.step);
    bel_members_send(r->config.members, find_evaluator(r), r->backend.generation, &evaluate.base);
    bel_free(evaluate.checkpoint);
}

void bel_remote_ask_evaluator(bel_backend *backend, int64_t step)
{
    remote *r = (remote *)backend;
    bel_remote_forget_evaluated(r);
    r->backend.evaluating = step;
    bel_remote_send_evaluate(r);
}

bool bel_remote_take_evaluated(bel_backend *backend, bel_evaluated *out_evaluated)
{
    remote *r = (remote *)backend;
    if (!r->evaluator.answered) return false;
    *out_evaluated = r->evaluator.answer;
    r->evaluator.answer = (bel_evaluated){.count = 0};
    r->evaluator.answered = false;
    return true;
}

void bel_remote_forget_evaluated(remote *r)
{
    bel_evaluated_deinit(&r->evaluator.answer);
    r->evaluator.answered = false;
    r->backend.evaluating = -1;
}

// Its duration depends on the data, so only the silence clock counts meanwhile.
bool bel_remote_await_evaluator(bel_backend *backend)
{
    remote *r = (remote *)backend;
    int evaluator = find_evaluator(r);
    if (evaluator < 0) return false;
    bool met = bel_remote_began(r) && bel_members_get(r->config.members, evaluator)->here;
    if (!r->started && !met) return false;
    r->sent.finish = true;
    for (int i = 0; i < bel_members_count(r->config.members); i++)
        if (i != evaluator) bel_members_set_vacant(r->config.members, i, true);
    return true;
}

// --- Answers -------------------------------------------------------------------------------------

static bool are_shares(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(values[i] >= 0 && values[i] <= 1)) return false;
    return true;
}

static bool read_roc(const Bel__Roc *m, bel_roc *roc)
{
    size_t count = m->n_no;
    bool good = count <= BEL_ROC_POINTS && m->n_yes == count && m->n_precision == count &&
                strlen(m->name) < sizeof roc->name && are_shares(m->no, count) &&
                are_shares(m->yes, count) && are_shares(m->precision, count);
    if (!good) return false;
    *roc = (bel_roc){.count = (int)count};
    bel_snprintf(roc->name, sizeof roc->name, "%s", m->name);
    if (count == 0) return true;
    memcpy(roc->no, m->no, count * sizeof *roc->no);
    memcpy(roc->yes, m->yes, count * sizeof *roc->yes);
    memcpy(roc->precision, m->precision, count * sizeof *roc->precision);
    return true;
}

static bool read_details(const Bel__Evaluation *m, bel_details *details)
{
    int classes = m->classes;
    bool good = classes >= 0 && classes <= BEL_MOST_CONFUSED && m->n_rocs <= BEL_MOST_ROCS &&
                m->n_confusion == (size_t)classes * (size_t)classes;
    if (!good) return false;
    if (classes > 0) {
        details->confusion = bel_xcalloc(m->n_confusion, sizeof *details->confusion);
        memcpy(details->confusion, m->confusion, m->n_confusion * sizeof *details->confusion);
        details->classes = classes;
    }
    for (size_t i = 0; i < m->n_rocs; i++)
        if (!read_roc(m->rocs[i], &details->rocs[details->roc_count++])) return false;
    return true;
}

static void read_result(const Bel__Evaluation *m, int64_t step, bel_result *result)
{
    *result = (bel_result){.size = sizeof *result, .global_step = step, .evaluation_step = step};
    result->loss = m->loss;
    result->batch_mean_loss = m->batch_mean_loss;
    result->examples = m->examples;
    for (size_t i = 0; i < m->n_metrics && i < BEL_MAX_METRICS; i++) {
        size_t size = sizeof result->metrics[i].name;
        bel_snprintf(result->metrics[i].name, size, "%s", m->metrics[i]->name);
        result->metrics[i].value = m->metrics[i]->value;
        result->metric_count++;
    }
}

static bool read_evaluations(const Bel__Evaluated *m, int count, bel_evaluated *out)
{
    if (m->n_evaluations != (size_t)count) return false;
    out->results = bel_xcalloc((size_t)count + 1, sizeof *out->results);
    out->details = bel_xcalloc((size_t)count + 1, sizeof *out->details);
    out->count = count;
    for (int i = 0; i < count; i++) {
        out->details[i].step = m->step;
        if (!read_details(m->evaluations[i], &out->details[i])) return false;
        read_result(m->evaluations[i], m->step, &out->results[i]);
    }
    return true;
}

void bel_remote_hear_evaluated(remote *r, const Bel__Evaluated *m)
{
    bool awaited = m->step >= 0 && m->step == r->backend.evaluating;
    if (!awaited || r->evaluator.answered) return;
    bel_evaluated *answer = &r->evaluator.answer;
    *answer = (bel_evaluated){.step = m->step};
    if (m->code != BEL_OK) {
        answer->failure = BEL_ERR((bel_code)m->code, "evaluator 0: %s", m->why);
    } else if (!read_evaluations(m, r->config.eval_count, answer)) {
        bel_evaluated_deinit(answer);
        bel_remote_fail(r, BEL_ERR(BEL_INVALID_ARGUMENT,
                                   "malformed results of evaluator 0 for step %lld",
                                   (long long)m->step));
        return;
    }
    r->evaluator.answered = true;
}
