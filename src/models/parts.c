// Parts of canned models. Parameters arrive as texts; whatever is wrong with one sticks to the
// graph and is reported by the trainer, so nothing here returns a status. Names are those of
// flags, and defaults stand here, for the command as for a caller. The first name of a list of
// choices is its default. predictions and the optimizer are set in every mode; loss and metrics
// where there are labels.
#include "models/parts.h"

#include <string.h>

int64_t bel_part_whole(bel_model_context *context, const char *name, int64_t otherwise, int64_t low,
                       int64_t high)
{
    double number = bel_context_param_number(context, name, (double)otherwise);
    bool inside = number >= (double)low && number <= (double)high; // false for NaN
    if (inside && (double)(int64_t)number == number) return (int64_t)number;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter %s must be a whole number from %lld to %lld, got %g", name,
                   (long long)low, (long long)high, number);
    return low;
}

bel_value *bel_part_flat_feature(bel_model_context *context)
{
    bel_value *x = bel_context_only_feature(context);
    bel_shape shape = bel_value_shape(x);
    if (x == NULL) return NULL;
    if (shape.rank == 2 && shape.dims[1] > 0 && bel_value_dtype(x) == BEL_DTYPE_F32) return x;
    char text[BEL_SHAPE_TEXT];
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "the model takes a feature f32 [batch, columns], got %s %s",
                   bel_dtype_name(bel_value_dtype(x)), bel_shape_text(&shape, text));
    return NULL;
}

void bel_part_classify(bel_model_context *context, bel_estimator_spec *spec, bel_value *logits,
                       bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *labels = bel_context_labels(context);
    spec->predictions = bel_softmax(g, logits);
    spec->optimizer = bel_part_optimizer(context);
    if (bel_context_mode(context) == BEL_MODE_PREDICT) return;
    if (labels == NULL) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "a classifier needs labels to train and evaluate; hint: --label_column");
        return;
    }
    bel_value *losses = bel_softmax_cross_entropy(g, logits, labels); // [n]
    spec->loss = bel_reduce_mean(g, losses, NULL, 0, false);
    if (penalty != NULL) spec->loss = bel_add(g, spec->loss, penalty);
    bel_value *predicted = bel_arg_max(g, logits, 1);
    bel_metric_accuracy(context, spec, "accuracy", labels, predicted);
    bel_shape shape = bel_value_shape(logits);
    if (shape.rank != 2 || shape.dims[1] != 2) return;
    const int64_t axis = 1, first = 1, end = 2; // the column of class 1
    bel_value *yes = bel_slice(g, spec->predictions, &axis, &first, &end, NULL, 1);
    bel_metric_auc(context, spec, "auc", labels, bel_squeeze(g, yes, &axis, 1), NULL);
    bel_metric_precision(context, spec, "precision", labels, predicted, NULL);
    bel_metric_recall(context, spec, "recall", labels, predicted, NULL);
}

// --- The optimizer -------------------------------------------------------------------------------

// Index of a parameter's text in a NULL-terminated list of choices.
static int choice(bel_model_context *context, const char *name, const char *const *choices)
{
    const char *text = bel_context_param(context, name, choices[0]);
    char all[128] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(text, choices[i]) == 0) return i;
        strncat(all, i > 0 ? ", " : "", sizeof all - strlen(all) - 1);
        strncat(all, choices[i], sizeof all - strlen(all) - 1);
    }
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter %s must be one of %s, got \"%s\"", name, all, text);
    return 0;
}

// Lists of a length that does not fit are found here, where they still have one.
static void take_pieces(bel_model_context *context, bel_schedule *schedule)
{
    int64_t boundaries[BEL_SCHEDULE_MAX_PIECES];
    int cuts =
        bel_context_param_list(context, "boundaries", "", boundaries, BEL_SCHEDULE_MAX_PIECES);
    int rates =
        bel_context_param_numbers(context, "rates", "", schedule->rates, BEL_SCHEDULE_MAX_PIECES);
    if (schedule->kind != BEL_SCHEDULE_PIECEWISE) return;
    if (rates < 1 || cuts != rates - 1) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "schedule piecewise needs 1 to %d rates and a boundary between each two, "
                       "got %d rates and %d boundaries",
                       BEL_SCHEDULE_MAX_PIECES, rates, cuts);
        return;
    }
    memcpy(schedule->boundaries, boundaries, (size_t)cuts * sizeof boundaries[0]);
}

static bel_schedule schedule_from_params(bel_model_context *context)
{
    static const char *const names[] = {"constant", "cosine", "exponential", "piecewise", NULL};
    static const bel_schedule_kind kinds[] = {BEL_SCHEDULE_CONSTANT, BEL_SCHEDULE_COSINE,
                                              BEL_SCHEDULE_EXPONENTIAL, BEL_SCHEDULE_PIECEWISE};
    const int64_t most = INT64_C(1) << 53; // whole numbers that a double holds
    bel_schedule schedule = {.kind = kinds[choice(context, "schedule", names)],
                             .decay_rate = bel_context_param_number(context, "decay_rate", 0.96),
                             .decay_steps = bel_part_whole(context, "decay_steps", 1000, 1, most),
                             .alpha = bel_context_param_number(context, "alpha", 0),
                             .warmup_steps = bel_part_whole(context, "warmup_steps", 0, 0, most)};
    take_pieces(context, &schedule);
    return schedule;
}

static void take_multipliers(bel_model_context *context, const char *name, bel_multiplier *list)
{
    bel_status *status = bel_multipliers_parse(bel_context_param(context, name, ""), list);
    if (status == NULL) return;
    bel_graph_fail(bel_context_graph(context), bel_status_code(status), "parameter %s: %s", name,
                   bel_status_message(status));
    bel_status_destroy(status);
}

bel_optimizer bel_part_optimizer(bel_model_context *context)
{
    static const char *const names[] = {"adam", "adagrad",  "adamw",   "ftrl", "lamb",
                                        "lars", "momentum", "rmsprop", "sgd",  NULL};
    static const bel_optimizer_kind kinds[] = {
        BEL_OPTIMIZER_ADAM,     BEL_OPTIMIZER_ADAGRAD, BEL_OPTIMIZER_ADAMW,
        BEL_OPTIMIZER_FTRL,     BEL_OPTIMIZER_LAMB,    BEL_OPTIMIZER_LARS,
        BEL_OPTIMIZER_MOMENTUM, BEL_OPTIMIZER_RMSPROP, BEL_OPTIMIZER_SGD};
    static const char *const switches[] = {"false", "true", NULL};
    static const char *const means[] = {"replicas", "contributors", NULL};
    bel_optimizer optimizer = {
        .kind = kinds[choice(context, "optimizer", names)],
        .learning_rate = bel_context_param_number(context, "learning_rate", 0.001),
        .momentum = bel_context_param_number(context, "momentum", 0.9),
        .nesterov = choice(context, "nesterov", switches) == 1,
        .epsilon = bel_context_param_number(context, "epsilon", 1e-8),
        .initial_accumulator = bel_context_param_number(context, "initial_accumulator", 0.1),
        .rmsprop_decay = bel_context_param_number(context, "rmsprop_decay", 0.9),
        .rmsprop_momentum = bel_context_param_number(context, "rmsprop_momentum", 0),
        .rmsprop_centered = choice(context, "rmsprop_centered", switches) == 1,
        .learning_rate_power = bel_context_param_number(context, "learning_rate_power", -0.5),
        .ftrl_l1 = bel_context_param_number(context, "ftrl_l1", 0),
        .ftrl_l2 = bel_context_param_number(context, "ftrl_l2", 0),
        .ftrl_l2_shrinkage = bel_context_param_number(context, "ftrl_l2_shrinkage", 0),
        .weight_decay = bel_context_param_number(context, "weight_decay", 0),
        .lars_trust = bel_context_param_number(context, "lars_trust", 0.001),
        .moving_average_decay = bel_context_param_number(context, "moving_average_decay", 0),
        .mean_by_contributors = choice(context, "table_mean", means) == 1,
        .moving_average_ramp = choice(context, "moving_average_ramp", switches) == 1,
        .clip_value = bel_context_param_number(context, "clip_value", 0),
        .clip_norm = bel_context_param_number(context, "clip_norm", 0),
        .clip_global_norm = bel_context_param_number(context, "clip_global_norm", 0),
        .schedule = schedule_from_params(context),
    };
    take_multipliers(context, "lr_mult", optimizer.lr_mults);
    take_multipliers(context, "decay_mult", optimizer.decay_mults);
    return optimizer;
}
