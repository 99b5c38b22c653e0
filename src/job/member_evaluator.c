// The evaluator of a cluster: follows the checkpoints in the model folder. Only the newest one
// counts; those that came and went during an evaluation are passed over.
#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "base/trace.h"
#include "job/member_inner.h"

static bel_status *newest_step(const char *model_dir, int64_t *out_step)
{
    int64_t *steps;
    size_t count;
    BEL_TRY(bel_ckpt_list(model_dir, &steps, &count));
    *out_step = count > 0 ? steps[count - 1] : -1;
    bel_free(steps);
    return NULL;
}

static void describe(const char *name, const bel_result *result, bel_str *out)
{
    bel_str_printf(out, "%s%s at step %lld: loss = %.5g", out->length > 0 ? "; " : "", name,
                   (long long)result->global_step, result->loss);
    for (int i = 0; i < result->metric_count; i++)
        bel_str_printf(out, ", %s = %.5g", result->metrics[i].name, result->metrics[i].value);
    bel_str_printf(out, " (%lld examples)", (long long)result->examples);
}

static bel_status *evaluate_all(member *m, bel_str *out)
{
    const bel_member_program *program = m->program;
    for (int i = 0; i < program->eval_count; i++) {
        const char *name = program->evals[i].name;
        bel_result result;
        int64_t begun = bel_trace_begin();
        BEL_TRY_CTX(bel_evaluate(program->estimator, &program->evals[i], NULL, &result), "%s",
                    name != NULL ? name : "eval");
        describe(name != NULL ? name : "eval", &result, out);
        m->evaluated_step = result.global_step;
        bel_trace_end((bel_trace_event){.role = BEL_TRACE_EVALUATOR,
                                        .span = BEL_TRACE_EVALUATE,
                                        .step = result.global_step},
                      begun);
    }
    if (out->length > 0) bel_log_write(BEL_LOG_INFO, "%s", out->text);
    return NULL;
}

bel_status *bel_member_evaluate(member *m, bool last)
{
    int64_t step;
    BEL_TRY(newest_step(m->estimator->config.model_dir, &step));
    bel_str words = {0};
    bel_status *status = NULL;
    // The initial values are not worth an evaluation; the end is, whatever came before.
    if ((step > 0 || last) && step != m->evaluated_step) status = evaluate_all(m, &words);
    if (status == NULL && last) {
        bel_member_send(m, (bel_message){.kind = BEL_MESSAGE_ENDED,
                                         .step = m->evaluated_step,
                                         .text = words.text});
    }
    bel_str_deinit(&words);
    return status;
}
