// Models with several heads: losses that add up, predictions with names. Labels with several names
// are fields of the batch (model.c). There is still one loss to differentiate. A head's values are
// summaries and metrics, so workers and evaluations know nothing of heads. The results of a model
// function with one head are set here, too.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/sized.h"
#include "model/metrics.h"
#include "model/model.h"

void bel_loss_set(bel_estimator_spec *spec, bel_value *loss)
{
    spec->loss = loss;
}

void bel_loss_weight_set(bel_estimator_spec *spec, bel_value *weight)
{
    spec->loss_weight = weight;
}

void bel_predictions_set(bel_estimator_spec *spec, bel_value *predictions)
{
    spec->predictions = predictions;
}

static bel_status *use(bel_estimator_spec *spec, const char *variables, const bel_optimizer *given)
{
    bel_optimizer optimizer;
    if (given == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "bel_optimizer_use: optimizer is NULL");
    BEL_TRY(bel_sized_take(&optimizer, sizeof optimizer, given, "bel_optimizer"));
    if (variables != NULL) return bel_optimizers_add(&spec->optimizers, variables, &optimizer);
    spec->optimizers.main = optimizer;
    spec->has_optimizer = true;
    return NULL;
}

void bel_optimizer_use(bel_estimator_spec *spec, const char *variables,
                       const bel_optimizer *optimizer)
{
    bel_status *status = use(spec, variables, optimizer);
    if (spec->error == NULL) {
        spec->error = status;
        return;
    }
    bel_status_destroy(status); // the first error counts
}

static bool is_scalar(const bel_value *value)
{
    return value != NULL && bel_value_shape(value).rank == 0 &&
           bel_value_dtype(value) == BEL_DTYPE_F32;
}

// A metric without a weight is a mean over the batch's examples, like a summary.
void bel_loss_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                  bel_value *loss, double factor)
{
    bel_graph *g = bel_context_graph(context);
    if (!isfinite(factor) || (loss != NULL && !is_scalar(loss))) {
        bel_shape shape = bel_value_shape(loss);
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "loss \"%s\": expected a scalar f32 and a finite factor, got %s and %g",
                       name, bel_shape_text(&shape, text), factor);
    }
    if (bel_context_mode(context) == BEL_MODE_TRAIN) {
        bel_summary_scalar(context, spec, name, loss);
    } else {
        bel_metric_add(context, spec, (bel_metric){.name = name, .sum = loss});
    }
    bel_value *part = factor == 1 ? loss : bel_mul(g, loss, bel_scalar(g, BEL_DTYPE_F32, factor));
    spec->loss = spec->loss == NULL ? part : bel_add(g, spec->loss, part);
}

void bel_output_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                    bel_value *value)
{
    if (bel_context_mode(context) != BEL_MODE_PREDICT) return;
    bool taken = name[0] == '\0' || strcmp(name, BEL_PREDICTIONS) == 0;
    for (int i = 0; i < spec->output_count; i++)
        taken = taken || strcmp(spec->outputs[i].name, name) == 0;
    if (!taken && spec->output_count < BEL_MAX_OUTPUTS) {
        const char *kept = bel_arena_strdup(bel_context_graph(context)->arena, name);
        spec->outputs[spec->output_count++] = (bel_output){kept, value};
        return;
    }
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "output \"%s\": the name is taken, empty, or that of the predictions, or there "
                   "are more than %d",
                   name, BEL_MAX_OUTPUTS);
}

void bel_return_add(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                    bel_value *value, bel_return_kind kind)
{
    bool taken = name[0] == '\0';
    for (int i = 0; i < spec->return_count; i++)
        taken = taken || strcmp(spec->returns[i].name, name) == 0;
    if (!taken && spec->return_count < BEL_MAX_RETURNS) {
        spec->returns[spec->return_count++] = (bel_return){name, value, kind};
        return;
    }
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "returned value \"%s\": the name is taken or empty, or there are more than %d",
                   name, BEL_MAX_RETURNS);
}

int bel_spec_outputs(const bel_estimator_spec *spec, bel_output out_list[BEL_MAX_OUTPUTS + 1])
{
    int count = 0;
    if (spec->predictions != NULL) {
        out_list[count++] = (bel_output){BEL_PREDICTIONS, spec->predictions};
    }
    for (int i = 0; i < spec->output_count; i++)
        out_list[count++] = spec->outputs[i];
    return count;
}
