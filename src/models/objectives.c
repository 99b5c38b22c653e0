// What a model is to learn: losses, predictions and metrics by parameter "objective".
//
//   classification (default, and binary for two classes)   softmax; cross-entropy
//   regression, huber, quantile                            a number, in the label's units
//   poisson, tweedie                                       a number above 0: e^output
//
// A number's output is that of label_mean and label_deviation, so that it begins near the labels
// whatever their units are: prediction = output · deviation + mean, and the losses of regression,
// huber and quantile are those of labels with mean 0 and deviation 1. Metrics are in the label's
// units. The feature "weight" says how much an example counts, in losses and metrics alike.
#include <string.h>

#include "belfry/columns.h"
#include "models/parts.h"

typedef enum objective {
    CLASSIFICATION,
    BINARY,
    REGRESSION,
    HUBER,
    QUANTILE,
    POISSON,
    TWEEDIE,
    OBJECTIVES,
} objective;

static objective objective_of(bel_model_context *context)
{
    static const char *const names[OBJECTIVES] = {
        "classification", "binary", "regression", "huber", "quantile", "poisson", "tweedie"};
    const char *name = bel_context_param(context, "objective", names[0]);
    for (int i = 0; i < OBJECTIVES; i++)
        if (strcmp(name, names[i]) == 0) return (objective)i;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter objective must be classification, binary, regression, huber, "
                   "quantile, poisson or tweedie, got \"%s\"",
                   name);
    return CLASSIFICATION;
}

int64_t bel_part_outputs(bel_model_context *context)
{
    objective o = objective_of(context);
    if (o > BINARY) return 1;
    int64_t classes = bel_part_whole(context, "class_count", 10, 2, BEL_PART_MAX_CLASSES);
    if (o == BINARY && classes != 2) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "objective binary: expected two classes, got %lld", (long long)classes);
    }
    return classes;
}

// --- Parts ---------------------------------------------------------------------------------------

static bel_value *number(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F32, value);
}

static bel_value *weights_of(bel_model_context *context)
{
    if (!bel_context_has_feature(context, BEL_WEIGHT_FIELD)) return NULL;
    return bel_context_feature(context, BEL_WEIGHT_FIELD);
}

// The mean of the examples' losses [n], and what it is the mean over.
static void set_loss(bel_model_context *context, bel_estimator_spec *spec, bel_value *losses,
                     bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *weights = weights_of(context);
    if (weights == NULL) {
        spec->loss = bel_mean(g, losses);
    } else {
        spec->loss = bel_weighted_mean(g, losses, weights);
        spec->loss_weight = bel_reduce_sum(g, weights, NULL, 0, false);
    }
    if (penalty != NULL) spec->loss = bel_add(g, spec->loss, penalty);
}

static bool lacks_labels(bel_model_context *context, bel_dtype dtype)
{
    bel_value *labels = bel_context_labels(context);
    if (labels == NULL) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "the model needs labels to train and evaluate; hint: --label_column");
    } else if (bel_value_dtype(labels) != dtype) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "the objective takes labels %s, and those of the data are %s; hint: "
                       "--objective regression for numbers, classification for classes",
                       bel_dtype_name(dtype), bel_dtype_name(bel_value_dtype(labels)));
    } else {
        return false;
    }
    return true;
}

// --- Classes -------------------------------------------------------------------------------------

enum { MOST_SHOWN = 50 }; // classes in a confusion matrix

static void classify(bel_model_context *context, bel_estimator_spec *spec, bel_value *logits,
                     bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    spec->predictions = bel_softmax(g, logits);
    if (bel_context_mode(context) == BEL_MODE_PREDICT || lacks_labels(context, BEL_DTYPE_I64))
        return;
    bel_value *labels = bel_context_labels(context), *weights = weights_of(context);
    set_loss(context, spec, bel_softmax_cross_entropy(g, logits, labels), penalty);
    bel_value *predicted = bel_arg_max(g, logits, 1);
    bel_metric_accuracy(context, spec, "accuracy", labels, predicted, weights);
    bel_shape shape = bel_value_shape(logits);
    if (shape.rank == 2 && shape.dims[1] <= MOST_SHOWN) {
        bel_summary_confusion(context, spec, labels, predicted, shape.dims[1]);
    }
    if (shape.rank != 2 || shape.dims[1] != 2) return;
    const int64_t axis = 1, first = 1, end = 2; // the column of class 1
    bel_value *yes = bel_slice(g, spec->predictions, &axis, &first, &end, NULL, 1);
    bel_metric_auc(context, spec, "auc", labels, bel_squeeze(g, yes, &axis, 1), weights);
    bel_metric_precision(context, spec, "precision", labels, predicted, weights);
    bel_metric_recall(context, spec, "recall", labels, predicted, weights);
}

// --- Numbers -------------------------------------------------------------------------------------

// r = prediction - label, in deviations.
static bel_value *losses_of_rest(bel_model_context *context, objective o, bel_value *r)
{
    bel_graph *g = bel_context_graph(context);
    if (o == REGRESSION) return bel_mul(g, r, r);
    if (o == HUBER) { // quadratic up to delta, then straight
        double delta = bel_context_param_number(context, "huber_delta", 1);
        bel_value *size = bel_abs(g, r), *near = bel_min(g, size, number(g, delta));
        bel_value *middle = bel_sub(g, size, bel_mul(g, near, number(g, 0.5)));
        return bel_mul(g, near, middle);
    }
    double share = bel_context_param_number(context, "quantile", 0.5);
    if (!(share > 0 && share < 1)) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter quantile must lie between 0 and 1, got %g", share);
    }
    // share · (label - prediction) below the label, (1 - share) · the rest above it
    return bel_max(g, bel_mul(g, r, number(g, 1 - share)), bel_mul(g, r, number(g, -share)));
}

// Of a prediction e^z and a label y >= 0; what does not depend on z is left out.
static bel_value *losses_of_rate(bel_model_context *context, objective o, bel_value *z,
                                 bel_value *y)
{
    bel_graph *g = bel_context_graph(context);
    if (o == POISSON) return bel_sub(g, bel_exp(g, z), bel_mul(g, y, z));
    double power = bel_context_param_number(context, "tweedie_power", 1.5);
    if (!(power > 1 && power < 2)) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter tweedie_power must lie between 1 and 2, got %g", power);
    }
    bel_value *low = bel_exp(g, bel_mul(g, z, number(g, 1 - power)));
    bel_value *high = bel_exp(g, bel_mul(g, z, number(g, 2 - power)));
    return bel_sub(g, bel_mul(g, high, number(g, 1 / (2 - power))),
                   bel_mul(g, bel_mul(g, y, low), number(g, 1 / (1 - power))));
}

// Of sums of weights, labels, squares of labels and squared errors: 1 - error / spread.
static double r_squared(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    double spread = sums[2] - sums[1] * sums[1] / sums[0];
    return spread > 0 ? 1 - sums[3] / spread : 0;
}

static bel_value *weighted_sum(bel_graph *g, bel_value *values, bel_value *weights)
{
    const bel_shape one = BEL_SHAPE(1);
    bel_value *each = weights == NULL ? values : bel_mul(g, values, weights);
    return bel_reshape(g, bel_reduce_sum(g, each, NULL, 0, false), &one);
}

static void measure(bel_model_context *context, bel_estimator_spec *spec, bel_value *predicted,
                    bel_value *labels)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *weights = weights_of(context), *rest = bel_sub(g, predicted, labels);
    bel_metric_root_mean_squared_error(context, spec, "root_mean_squared_error", labels, predicted,
                                       weights);
    bel_metric_mean(context, spec, "mean_absolute_error", bel_abs(g, rest), weights);
    bel_value *ones = bel_add(g, bel_mul(g, labels, number(g, 0)), number(g, 1));
    bel_value *sums[] = {weighted_sum(g, ones, weights), weighted_sum(g, labels, weights),
                         weighted_sum(g, bel_mul(g, labels, labels), weights),
                         weighted_sum(g, bel_mul(g, rest, rest), weights)};
    bel_metric_own(context, spec, "r2", bel_concat(g, sums, 4, 0), r_squared, NULL);
    bel_metric_mean(context, spec, "label_mean", labels, weights);
    bel_metric_mean(context, spec, "prediction_mean", predicted, weights);
}

static void regress(bel_model_context *context, bel_estimator_spec *spec, objective o,
                    bel_value *outputs, bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    const int64_t axis = 1;
    double mean = bel_context_param_number(context, "label_mean", 0);
    double deviation = bel_context_param_number(context, "label_deviation", 1);
    bel_value *z = bel_squeeze(g, outputs, &axis, 1), *predicted;
    bool rate = o == POISSON || o == TWEEDIE;
    if (rate) {
        if (mean > 0) z = bel_add(g, z, bel_log(g, number(g, mean)));
        predicted = bel_exp(g, z);
    } else {
        predicted = bel_add(g, bel_mul(g, z, number(g, deviation)), number(g, mean));
    }
    spec->predictions = bel_unsqueeze(g, predicted, &axis, 1);
    if (bel_context_mode(context) == BEL_MODE_PREDICT || lacks_labels(context, BEL_DTYPE_F32))
        return;
    bel_value *labels = bel_context_labels(context), *losses;
    if (rate) {
        losses = losses_of_rate(context, o, z, labels);
    } else {
        bel_value *scaled =
            bel_mul(g, bel_sub(g, labels, number(g, mean)), number(g, 1 / deviation));
        losses = losses_of_rest(context, o, bel_sub(g, z, scaled));
    }
    set_loss(context, spec, losses, penalty);
    measure(context, spec, predicted, labels);
}

void bel_part_finish(bel_model_context *context, bel_estimator_spec *spec, bel_value *outputs,
                     bel_value *penalty)
{
    objective o = objective_of(context);
    spec->optimizer = bel_context_optimizer(context);
    if (o <= BINARY) {
        classify(context, spec, outputs, penalty);
    } else {
        regress(context, spec, o, outputs, penalty);
    }
}
