// bel_evaluate, bel_predict and predictors: a checkpoint, an input, a graph; no training. They load
// the values (or their moving averages) completely and no optimizer state, so that they run beside
// a training job without slowing it down.
#include "evaluate/predict.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "estimator/estimator_inner.h"
#include "evaluate/blocks.h"
#include "evaluate/evaluation.h"
#include "evaluate/saved.h"
#include "predictor/predictor.h"
#include "report/run_log.h"

// GPU choice. Values read in stages run on the CPU. Missing requested GPUs are an error, except in
// a job's evaluator: each of several predicting processes makes a part of the answer.
static bel_card_choice cards_of(const bel_saved *u)
{
    bel_card_choice cards = bel_estimator_cards(u->estimator, -1);
    if (u->stage_memory > 0) cards.wanted = false;
    if (u->estimator->role == BEL_ROLE_EVALUATOR) return cards;
    cards.optional = false;
    cards.needed = bel_estimator_needs_cards(&u->estimator->config);
    return cards;
}

static bel_evaluation_config config_of(bel_saved *u, int64_t steps)
{
    return (bel_evaluation_config){
        .built = u->built,
        .forward = bel_saved_forward(u),
        .input = u->input,
        .steps = steps,
        .tower_count = bel_estimator_evaluation_towers(u->estimator),
        .cards = cards_of(u),
    };
}

// Writes event files. The numbers are the answer, so a read-only folder only loses their events.
// Evaluations by hand have a folder that no training reads: they may use any checkpoint and data,
// and only the job's evaluations decide about early stopping and repeated evaluations.
static void write_events(const bel_saved *u, const bel_eval_spec *eval, const bel_result *result,
                         const bel_details *details)
{
    char *folder =
        eval->name != NULL ? bel_strf("evaluate_%s", eval->name) : bel_xstrdup("evaluate");
    bel_status *status = bel_run_log_add(u->estimator->config.model_dir, folder, result, details);
    if (status != NULL) {
        bel_log_write(BEL_LOG_WARN, "the evaluation is in no event file: %s",
                      bel_status_message(status));
    }
    bel_status_destroy(status);
    bel_free(folder);
}

// Warns of other data: their results are not comparable, and one may be kept as the best.
static void look_at_data(const bel_eval_spec *eval, const bel_input *input, uint64_t *data)
{
    uint64_t before = *data, now = bel_input_fingerprint(input);
    *data = now;
    if (before == 0 || before == now) return;
    bel_log_write(BEL_LOG_WARN,
                  "%s: the data differ from those of the previous evaluation: do not compare "
                  "earlier results with later ones",
                  eval->name != NULL ? eval->name : "eval");
}

// Sets results only on success. `by_hand`: writes event files.
static bel_status *predict_evaluate(bel_estimator *estimator, const bel_eval_spec *eval,
                                    const char *checkpoint, bool by_hand, uint64_t *data,
                                    bel_details *details, bel_result *out_result)
{
    bel_saved u = {.estimator = estimator,
                   .averages = estimator->config.averages,
                   .stage_memory = (size_t)estimator->config.stage_memory};
    bel_result result = {.size = sizeof result};
    bel_status *status =
        bel_saved_open(&u, BEL_MODE_EVAL, eval->input_fn, eval->input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, eval->steps);
        config.details = details;
        config.between = eval->between;
        config.context = eval->between_user;
        if (data != NULL) look_at_data(eval, u.input, data);
        result.global_step = result.evaluation_step = bel_ckpt_reader_info(u.reader)->step;
        bel_hash128_text(bel_ckpt_reader_digest(u.reader), result.digest);
        status = bel_evaluation_run(&config, &result);
    }
    if (status == NULL && by_hand) write_events(&u, eval, &result, details);
    bel_saved_close(&u);
    if (status != NULL) return status;
    *out_result = result;
    bel_sized_give(eval->out_result, &result, sizeof result);
    return NULL;
}

bel_status *bel_evaluate(bel_estimator *estimator, const bel_eval_spec *given,
                         const char *checkpoint, bel_result *out_result)
{
    bel_eval_spec eval;
    bel_result result = {.size = sizeof result};
    BEL_TRY(bel_eval_spec_take(given, &eval));
    BEL_TRY(bel_sized_check(out_result, "bel_result"));
    bel_details details = {0};
    bel_status *status =
        predict_evaluate(estimator, &eval, checkpoint, true, NULL, &details, &result);
    bel_details_deinit(&details);
    BEL_TRY(status);
    bel_sized_give(out_result, &result, sizeof result);
    return NULL;
}

bel_status *bel_evaluate_along(bel_estimator *estimator, const bel_eval_spec *eval,
                               const char *checkpoint, uint64_t *data, bel_details *out_details,
                               bel_result *out_result)
{
    return predict_evaluate(estimator, eval, checkpoint, false, data, out_details, out_result);
}

struct bel_evaluating {
    bel_saved saved;
    bel_evaluation_config config;
    bel_details details; // requested, so that outputs are the master's
    bel_blocks *blocks;
};

static bel_status *open_evaluating(bel_evaluating *e, const bel_eval_spec *eval,
                                   const char *checkpoint)
{
    BEL_TRY(bel_saved_open(&e->saved, BEL_MODE_EVAL, eval->input_fn, eval->input_user, checkpoint));
    e->config = config_of(&e->saved, eval->steps);
    e->config.details = &e->details;
    return bel_blocks_create(&e->config, &e->blocks);
}

bel_status *bel_evaluating_open(bel_estimator *estimator, const bel_eval_spec *eval,
                                const char *checkpoint, bel_evaluating **out_evaluating)
{
    bel_evaluating *e = bel_xcalloc(1, sizeof *e);
    e->saved.estimator = estimator;
    e->saved.averages = true;
    bel_status *status = open_evaluating(e, eval, checkpoint);
    if (status != NULL) {
        bel_evaluating_close(e);
        return status;
    }
    *out_evaluating = e;
    return NULL;
}

void bel_evaluating_close(bel_evaluating *e)
{
    if (e == NULL) return;
    bel_blocks_destroy(e->blocks);
    bel_saved_close(&e->saved);
    bel_free(e);
}

uint64_t bel_evaluating_fingerprint(const bel_evaluating *e)
{
    return bel_input_fingerprint(e->saved.input);
}

bel_status *bel_evaluating_run(bel_evaluating *e, int64_t first, int64_t count,
                               bool (*stop)(void *context), bel_batch_sums_fn *take, void *context)
{
    int64_t all = bel_blocks_count(e->blocks);
    if (first < 0 || count < 0 || first > all || count > all - first) {
        return BEL_ERR(BEL_OUT_OF_RANGE, "batches %lld to %lld of an evaluation that has %lld here",
                       (long long)first, (long long)first + (long long)count - 1, (long long)all);
    }
    return bel_evaluation_run_blocks(e->blocks, e->config.tower_count, first, count, stop, take,
                                     context);
}

bel_status *bel_predict(bel_estimator *estimator, bel_input_fn *input_fn, void *input_user,
                        const char *checkpoint, bel_predict_fn *each, void *user)
{
    bel_saved u = {.estimator = estimator,
                   .averages = estimator->config.averages,
                   .stage_memory = (size_t)estimator->config.stage_memory};
    bel_status *status = bel_saved_open(&u, BEL_MODE_PREDICT, input_fn, input_user, checkpoint);
    if (status == NULL) {
        bel_evaluation_config config = config_of(&u, 0);
        config.part = estimator->config.predict_part;
        config.parts = estimator->config.predict_parts;
        status = bel_prediction_run(&config, each, user);
    }
    bel_saved_close(&u);
    return status;
}

// --- Predictors ----------------------------------------------------------------------------------

// Objects that a predictor's parts point to.
typedef struct kept {
    bel_saved saved;
    bel_port *inputs;
    bel_port outputs[BEL_MAX_OUTPUTS + 1];
    bel_value *values[BEL_MAX_OUTPUTS + 1];
} kept;

static void predict_release(void *owner)
{
    kept *k = owner;
    bel_saved_close(&k->saved);
    bel_free(k->inputs);
    bel_free(k);
}

static bel_status *open_kept(kept *k, const bel_feature *features, int feature_count,
                             const char *checkpoint)
{
    BEL_TRY(bel_saved_open_features(&k->saved, features, feature_count, checkpoint));
    k->inputs = bel_xcalloc((size_t)feature_count + 1, sizeof *k->inputs);
    for (int i = 0; i < feature_count; i++) {
        bel_port *port = &k->inputs[i];
        port->name = bel_input_field_name(k->saved.input, i);
        bel_input_field_spec(k->saved.input, i, &port->dtype, &port->shape);
    }
    return NULL;
}

// Every output has a row for each example, whatever the graph's shapes are.
static bel_predictor_parts parts_of(kept *k, int feature_count)
{
    bel_output outputs[BEL_MAX_OUTPUTS + 1];
    int count = bel_spec_outputs(&k->saved.built->spec, outputs);
    for (int i = 0; i < count; i++) {
        const bel_value *value = outputs[i].value;
        k->values[i] = outputs[i].value;
        k->outputs[i] = (bel_port){outputs[i].name, value->spec.dtype, value->spec.shape};
        if (value->spec.shape.rank > 0) k->outputs[i].shape.dims[0] = BEL_DIM_BATCH;
    }
    return (bel_predictor_parts){.forward = bel_saved_forward(&k->saved),
                                 .inputs = k->inputs,
                                 .outputs = k->outputs,
                                 .values = k->values,
                                 .input_count = feature_count,
                                 .output_count = count,
                                 .owner = k,
                                 .release = predict_release};
}

bel_status *bel_estimator_predictor(bel_estimator *estimator, const bel_feature *features,
                                    int feature_count, const char *checkpoint,
                                    bel_predictor **out_predictor)
{
    kept *k = bel_xcalloc(1, sizeof *k);
    k->saved.estimator = estimator;
    k->saved.averages = estimator->config.averages;
    k->saved.stage_memory = (size_t)estimator->config.stage_memory;
    bel_status *status = open_kept(k, features, feature_count, checkpoint);
    if (status == NULL) {
        const bel_predictor_parts parts = parts_of(k, feature_count);
        status = bel_predictor_make(&parts, out_predictor);
    }
    if (status != NULL) predict_release(k);
    return status;
}
