// Objectives of a model: losses, predictions and metrics by parameter "objective".
//
//   classification (default, and binary for two classes)   softmax; cross-entropy
//   multi_label                                            sigmoids; cross-entropies, their mean
//   regression, huber, quantile                            a number, in the label's units
//   poisson, tweedie                                       a number above 0: e^output
//
// A number's output is standardized with label_mean and label_deviation, so that it begins near the
// labels in any unit: prediction = output · deviation + mean. The losses of regression, huber and
// quantile are those of labels with mean 0 and deviation 1. Labels and predictions are F64, and
// values become F32 only after the mean is subtracted: years and dates keep their digits. Metrics
// are in the label's units.
//
// The feature "weight" is the weight of an example. In training its loss is multiplied by its
// weight over weight_mean, the data's mean weight. A step's gradient is then that of the weighted
// loss over all data, whatever else is in the batch. Evaluations use weighted means. class_weights
// apply only in training: metrics treat examples unweighted by class.
#include <math.h>
#include <string.h>

#include "belfry/columns.h"
#include "models/parts.h"

typedef enum objective {
    CLASSIFICATION,
    BINARY,
    MULTI_LABEL,
    REGRESSION,
    HUBER,
    QUANTILE,
    POISSON,
    TWEEDIE,
    OBJECTIVES,
} objective;

static objective objective_of(bel_model_context *context)
{
    static const char *const names[OBJECTIVES] = {"classification", "binary", "multi_label",
                                                  "regression",     "huber",  "quantile",
                                                  "poisson",        "tweedie"};
    const char *name = bel_context_param(context, "objective", names[0]);
    for (int i = 0; i < OBJECTIVES; i++)
        if (strcmp(name, names[i]) == 0) return (objective)i;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter objective must be classification, binary, multi_label, regression, "
                   "huber, quantile, poisson or tweedie, got \"%s\"",
                   name);
    return CLASSIFICATION;
}

int64_t bel_part_outputs(bel_model_context *context)
{
    objective o = objective_of(context);
    if (o == MULTI_LABEL) return bel_part_whole(context, "label_count", 2, 1, BEL_PART_MAX_CLASSES);
    if (o > BINARY) return 1;
    int64_t classes = bel_part_whole(context, "class_count", 10, 2, BEL_PART_MAX_CLASSES);
    if (o == BINARY && classes != 2) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "objective binary: expected two classes, got %lld", (long long)classes);
    }
    return classes;
}

// --- Parts ---------------------------------------------------------------------------------------

static bel_value *objectives_number(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F32, value);
}

static bel_value *weights_of(bel_model_context *context)
{
    if (!bel_context_has_feature(context, BEL_WEIGHT_FIELD)) return NULL;
    return bel_context_feature(context, BEL_WEIGHT_FIELD);
}

static bel_value *times(bel_graph *g, bel_value *weights, bel_value *more)
{
    return weights == NULL ? more : bel_mul(g, weights, more);
}

// Factors of the losses of a training step; NULL: 1.
static bel_value *training_weights(bel_model_context *context, bel_value *of_classes)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *weights = weights_of(context);
    double mean = bel_context_param_number(context, "weight_mean", 1);
    if (weights != NULL && mean != 1) weights = bel_mul(g, weights, objectives_number(g, 1 / mean));
    return of_classes == NULL ? weights : times(g, weights, of_classes);
}

// Sets the loss from the examples' losses [n]. Training uses their mean, by weights, and adds the
// penalty. Evaluation uses their weighted mean, and sets loss_weight to the sum of weights.
// `of_classes`: weights [n] of the examples' classes, or NULL.
static void set_loss(bel_model_context *context, bel_estimator_spec *spec, bel_value *losses,
                     bel_value *of_classes, bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    bool training = bel_context_mode(context) == BEL_MODE_TRAIN;
    bel_value *weights = training ? training_weights(context, of_classes) : weights_of(context);
    bel_reduction mean = training ? BEL_REDUCTION_MEAN : BEL_REDUCTION_WEIGHTED_MEAN;
    bel_value *loss = bel_reduce_loss(g, losses, weights, mean);
    if (!training && weights != NULL)
        bel_loss_weight_set(spec, bel_reduce_sum(g, weights, NULL, 0, false));
    bel_loss_set(spec, training && penalty != NULL ? bel_add(g, loss, penalty) : loss);
}

static bool lacks_labels(bel_model_context *context, bel_dtype dtype)
{
    bel_value *labels = bel_context_labels(context);
    if (labels == NULL) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "the model needs labels to train and evaluate; hint: --label_column");
    } else if (bel_value_dtype(labels) != dtype &&
               (dtype != BEL_DTYPE_F64 || bel_value_dtype(labels) != BEL_DTYPE_F32)) {
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

enum { MOST_SHOWN = 50, MOST_WEIGHED = 4096 }; // most classes in a confusion matrix; with weights

// Weight of each example's class [n]; NULL: all equal.
static bel_value *class_weights(bel_model_context *context, bel_value *labels, int64_t classes)
{
    const char *text = bel_context_param(context, "class_weights", "");
    if (bel_context_mode(context) != BEL_MODE_TRAIN || text[0] == '\0') return NULL;
    bel_graph *g = bel_context_graph(context);
    double numbers[MOST_WEIGHED];
    float weights[MOST_WEIGHED];
    if (classes > MOST_WEIGHED) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT, "parameter class_weights is for up to %d classes",
                       MOST_WEIGHED);
        return NULL;
    }
    int count = bel_context_param_numbers(context, "class_weights", "", numbers, (int)classes);
    for (int c = 0; c < count; c++)
        weights[c] = (float)numbers[c];
    bool right = count == classes;
    for (int c = 0; c < count; c++)
        right = right && numbers[c] >= 0;
    if (!right) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter class_weights: expected a number of 0 or more for each of %lld "
                       "classes, got \"%s\"",
                       (long long)classes, text);
    }
    if (!right) return NULL;
    const bel_shape shape = BEL_SHAPE(classes);
    bel_value *all = bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, shape, weights});
    return bel_gather(g, all, labels);
}

// Calibration error over all bins, from the sums of weights · (prediction - label) in each bin of
// predictions, followed by the sum of all weights.
static double calibration_error(void *user, const double *sums, int64_t count)
{
    (void)user;
    double off = 0, all = sums[count - 1];
    for (int64_t bin = 0; bin < count - 1; bin++)
        off += fabs(sums[bin]);
    return all > 0 ? off / all : NAN;
}

// Measures the calibration of probabilities, in ten bins.
static void measure_calibration(bel_model_context *context, bel_estimator_spec *spec,
                                bel_value *truth, bel_value *yes, bel_value *weights)
{
    enum { BINS = 10 };
    const int64_t axis = 0, last = 1;
    const bel_shape one = BEL_SHAPE(1);
    bel_graph *g = bel_context_graph(context);
    bel_value *place = bel_floor(g, bel_mul(g, yes, objectives_number(g, BINS)));
    place = bel_cast(g, bel_min(g, place, objectives_number(g, BINS - 1)), BEL_DTYPE_I64);
    bel_value *off = bel_sub(g, yes, truth),
              *all = bel_add(g, bel_mul(g, yes, objectives_number(g, 0)), objectives_number(g, 1));
    if (weights != NULL) {
        off = bel_mul(g, off, weights);
        all = weights;
    }
    bel_value *in_bins = bel_mul(g, bel_one_hot(g, place, BINS), bel_unsqueeze(g, off, &last, 1));
    bel_value *sums[] = {bel_reduce_sum(g, in_bins, &axis, 1, false),
                         bel_reshape(g, bel_reduce_sum(g, all, NULL, 0, false), &one)};
    bel_metric_own(context, spec, "calibration_error", bel_concat(g, sums, 2, 0), calibration_error,
                   NULL);
}

// The class for precision and recall.
static int positive_class(bel_model_context *context)
{
    double number = bel_context_param_number(context, "positive_class", 1);
    if (number != 0 && number != 1) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter positive_class: expected 0 or 1, got %g", number);
    }
    return number == 0 ? 0 : 1;
}

// Measures two classes: `yes` [n] is the probability of the second one.
static void measure_binary(bel_model_context *context, bel_estimator_spec *spec, bel_value *labels,
                           bel_value *predicted, bel_value *yes)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *weights = weights_of(context), *truth = bel_cast(g, labels, BEL_DTYPE_F32);
    bel_metric_auc(context, spec, "auc", labels, yes, weights);
    bel_value *is = labels, *said = predicted;
    if (positive_class(context) == 0) {
        is = bel_sub(g, objectives_number(g, 1), truth);
        said = bel_sub(g, objectives_number(g, 1), bel_cast(g, predicted, BEL_DTYPE_F32));
    }
    bel_metric_precision(context, spec, "precision", is, said, weights);
    bel_metric_recall(context, spec, "recall", is, said, weights);
    bel_metric_mean(context, spec, "label_mean", truth, weights);
    bel_metric_mean(context, spec, "prediction_mean", yes, weights);
    measure_calibration(context, spec, truth, yes, weights);
}

static double threshold_of(bel_model_context *context, int64_t classes)
{
    double threshold = bel_context_param_number(context, "threshold", 0.5);
    if (threshold != 0.5 && classes != 2) {
        bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                       "parameter threshold is for two classes, and here are %lld",
                       (long long)classes);
    }
    return threshold;
}

static void classify(bel_model_context *context, bel_estimator_spec *spec, bel_value *logits,
                     bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    bel_shape shape = bel_value_shape(logits);
    int64_t classes = shape.rank == 2 ? shape.dims[1] : 0;
    double threshold = threshold_of(context, classes);
    bel_value *shares = bel_softmax(g, logits);
    bel_predictions_set(spec, shares);
    if (bel_context_mode(context) == BEL_MODE_PREDICT || lacks_labels(context, BEL_DTYPE_I64))
        return;
    bel_value *labels = bel_context_labels(context), *weights = weights_of(context);
    set_loss(context, spec, bel_softmax_cross_entropy(g, logits, labels),
             class_weights(context, labels, classes), penalty);
    const int64_t axis = 1, first = 1, end = 2; // the column of class 1
    bel_value *predicted = bel_arg_max(g, logits, 1), *yes = NULL;
    if (classes == 2)
        yes = bel_squeeze(g, bel_slice(g, shares, &axis, &first, &end, NULL, 1), &axis, 1);
    if (threshold != 0.5)
        predicted =
            bel_cast(g, bel_greater(g, yes, objectives_number(g, threshold)), BEL_DTYPE_I64);
    bel_metric_accuracy(context, spec, "accuracy", labels, predicted, weights);
    if (classes > 0 && classes <= MOST_SHOWN)
        bel_summary_confusion(context, spec, labels, predicted, classes);
    if (yes != NULL) measure_binary(context, spec, labels, predicted, yes);
}

// --- Several labels ------------------------------------------------------------------------------

// Counts of labels by weight: true positives, predicted positives, and actual positives.
typedef enum hit { HITS, PREDICTED, ACTUAL, HIT_COUNTS } hit;

static double objectives_share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double precision_of_labels(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    return objectives_share(sums[HITS], sums[PREDICTED]);
}

static double recall_of_labels(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    return objectives_share(sums[HITS], sums[ACTUAL]);
}

static double f1_of_labels(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    return objectives_share(2 * sums[HITS], sums[PREDICTED] + sums[ACTUAL]);
}

// Measures over all labels of all examples equally. Only exact_match requires all labels of an
// example to be right. `truth` and `yes` [n, labels] are 0 or 1.
static void measure_labels(bel_model_context *context, bel_estimator_spec *spec, bel_value *truth,
                           bel_value *yes)
{
    bel_graph *g = bel_context_graph(context);
    const int64_t axis = 1;
    const bel_shape one = BEL_SHAPE(1);
    bel_value *right = bel_cast(g, bel_equal(g, yes, truth), BEL_DTYPE_F32);
    bel_value *weights = weights_of(context), *each = NULL;
    if (weights != NULL) { // for each label
        bel_value *ones =
            bel_add(g, bel_mul(g, truth, objectives_number(g, 0)), objectives_number(g, 1));
        each = bel_mul(g, bel_unsqueeze(g, weights, &axis, 1), ones);
    }
    bel_metric_mean(context, spec, "accuracy", right, each);
    bel_metric_mean(context, spec, "exact_match", bel_reduce_min(g, right, &axis, 1, false),
                    weights);
    bel_value *counts[HIT_COUNTS] = {
        [HITS] = bel_mul(g, yes, truth), [PREDICTED] = yes, [ACTUAL] = truth};
    for (int h = 0; h < HIT_COUNTS; h++) {
        if (each != NULL) counts[h] = bel_mul(g, counts[h], each);
        counts[h] = bel_reshape(g, bel_reduce_sum(g, counts[h], NULL, 0, false), &one);
    }
    bel_value *sums = bel_concat(g, counts, HIT_COUNTS, 0);
    bel_metric_own(context, spec, "precision", sums, precision_of_labels, NULL);
    bel_metric_own(context, spec, "recall", sums, recall_of_labels, NULL);
    bel_metric_own(context, spec, "f1", sums, f1_of_labels, NULL);
}

static void label(bel_model_context *context, bel_estimator_spec *spec, bel_value *logits,
                  bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    const int64_t axis = 1;
    bel_value *likely = bel_sigmoid(g, logits);
    bel_predictions_set(spec, likely);
    if (bel_context_mode(context) == BEL_MODE_PREDICT || lacks_labels(context, BEL_DTYPE_I64))
        return;
    bel_value *truth = bel_cast(g, bel_context_labels(context), BEL_DTYPE_F32);
    bel_value *losses = bel_sigmoid_cross_entropy(g, logits, truth);
    set_loss(context, spec, bel_reduce_mean(g, losses, &axis, 1, false), NULL, penalty);
    double threshold = bel_context_param_number(context, "threshold", 0.5);
    bel_value *yes = bel_greater(g, likely, objectives_number(g, threshold));
    measure_labels(context, spec, truth, bel_cast(g, yes, BEL_DTYPE_F32));
}

// --- Numbers -------------------------------------------------------------------------------------

// r = prediction - label, in deviations.
static bel_value *losses_of_rest(bel_model_context *context, objective o, bel_value *r)
{
    bel_graph *g = bel_context_graph(context);
    if (o == REGRESSION) return bel_mul(g, r, r);
    if (o == HUBER) { // quadratic up to delta, then linear
        double delta = bel_context_param_number(context, "huber_delta", 1);
        bel_value *size = bel_abs(g, r), *near = bel_min(g, size, objectives_number(g, delta));
        bel_value *middle = bel_sub(g, size, bel_mul(g, near, objectives_number(g, 0.5)));
        return bel_mul(g, near, middle);
    }
    double share = bel_context_param_number(context, "quantile", 0.5);
    if (!(share > 0 && share < 1)) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter quantile must lie between 0 and 1, got %g", share);
    }
    // share · (label - prediction) below the label, (1 - share) · (prediction - label) above it
    return bel_max(g, bel_mul(g, r, objectives_number(g, 1 - share)),
                   bel_mul(g, r, objectives_number(g, -share)));
}

// Losses of predictions e^z and labels y >= 0; terms that do not depend on z are omitted.
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
    bel_value *low = bel_exp(g, bel_mul(g, z, objectives_number(g, 1 - power)));
    bel_value *high = bel_exp(g, bel_mul(g, z, objectives_number(g, 2 - power)));
    return bel_sub(g, bel_mul(g, high, objectives_number(g, 1 / (2 - power))),
                   bel_mul(g, bel_mul(g, y, low), objectives_number(g, 1 / (1 - power))));
}

// Weighted sums over the examples, with s and r for label and error in deviations: 1, s, s², r²,
// |r| and r. Then label_deviation and label_mean, once for each example; label_mean is in two parts
// that hold all of its digits.
typedef enum sum {
    ONES,
    LABELS,
    LABEL_SQUARES,
    SQUARES,
    SIZES,
    ERRORS,
    DEVIATIONS,
    MEANS,
    MEAN_RESTS,
    SUMS,
} sum;

// Mean value in the label's units, from `off`, the sum of offsets from the mean label in
// deviations.
static double mean_of(const double *sums, double off)
{
    double n = sums[ONES];
    if (!(n > 0)) return NAN;
    return off / n * (sums[DEVIATIONS] / n) + (sums[MEANS] + sums[MEAN_RESTS]) / n;
}

static double mean_label(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    return mean_of(sums, sums[LABELS]);
}

static double mean_prediction(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    return mean_of(sums, sums[LABELS] + sums[ERRORS]);
}

static double r_squared(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    double spread = sums[LABEL_SQUARES] - sums[LABELS] * sums[LABELS] / sums[ONES];
    const double rounding = 4e-7; // rounding of F32 sums, if all labels are equal
    return spread > rounding * sums[LABEL_SQUARES] ? 1 - sums[SQUARES] / spread : NAN;
}

static double root_mean_square(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    if (!(sums[ONES] > 0)) return NAN;
    return sqrt(sums[SQUARES] / sums[ONES]) * (sums[DEVIATIONS] / sums[ONES]);
}

static double mean_size(void *user, const double *sums, int64_t count)
{
    (void)user, (void)count;
    if (!(sums[ONES] > 0)) return NAN;
    return sums[SIZES] / sums[ONES] * (sums[DEVIATIONS] / sums[ONES]);
}

static bel_value *weighted_sum(bel_graph *g, bel_value *values, bel_value *weights)
{
    const bel_shape one = BEL_SHAPE(1);
    bel_value *each = weights == NULL ? values : bel_mul(g, values, weights);
    return bel_reshape(g, bel_reduce_sum(g, each, NULL, 0, false), &one);
}

// Measures from `scaled`, the labels, and `rest`, predictions less labels, both in deviations.
static void objectives_measure(bel_model_context *context, bel_estimator_spec *spec,
                               bel_value *scaled, bel_value *rest)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *weights = weights_of(context);
    double deviation = bel_context_param_number(context, "label_deviation", 1);
    double mean = bel_context_param_number(context, "label_mean", 0), high = (double)(float)mean;
    bel_value *zeros = bel_mul(g, scaled, objectives_number(g, 0));
    bel_value *each[SUMS] = {[ONES] = bel_add(g, zeros, objectives_number(g, 1)),
                             [LABELS] = scaled,
                             [LABEL_SQUARES] = bel_mul(g, scaled, scaled),
                             [SQUARES] = bel_mul(g, rest, rest),
                             [SIZES] = bel_abs(g, rest),
                             [ERRORS] = rest,
                             [MEANS] = bel_add(g, zeros, objectives_number(g, high)),
                             [MEAN_RESTS] = bel_add(g, zeros, objectives_number(g, mean - high)),
                             [DEVIATIONS] = bel_add(g, zeros, objectives_number(g, deviation))};
    bel_value *sums[SUMS];
    for (int s = 0; s < SUMS; s++)
        sums[s] = weighted_sum(g, each[s], weights);
    bel_value *all = bel_concat(g, sums, SUMS, 0);
    bel_metric_own(context, spec, "root_mean_squared_error", all, root_mean_square, NULL);
    bel_metric_own(context, spec, "mean_absolute_error", all, mean_size, NULL);
    bel_metric_own(context, spec, "r2", all, r_squared, NULL);
    bel_metric_own(context, spec, "label_mean", all, mean_label, NULL);
    bel_metric_own(context, spec, "prediction_mean", all, mean_prediction, NULL);
}

static bel_value *number64(bel_graph *g, double value)
{
    return bel_scalar(g, BEL_DTYPE_F64, value);
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
        if (mean > 0) z = bel_add(g, z, bel_log(g, objectives_number(g, mean)));
        predicted = bel_cast(g, bel_exp(g, z), BEL_DTYPE_F64);
    } else {
        predicted = bel_mul(g, bel_cast(g, z, BEL_DTYPE_F64), number64(g, deviation));
        predicted = bel_add(g, predicted, number64(g, mean));
    }
    bel_predictions_set(spec, bel_unsqueeze(g, predicted, &axis, 1));
    if (bel_context_mode(context) == BEL_MODE_PREDICT || lacks_labels(context, BEL_DTYPE_F64))
        return;
    bel_value *labels = bel_cast(g, bel_context_labels(context), BEL_DTYPE_F64), *losses;
    bel_value *scaled = bel_sub(g, labels, number64(g, mean));
    scaled = bel_cast(g, bel_mul(g, scaled, number64(g, 1 / deviation)), BEL_DTYPE_F32);
    bel_value *rest = bel_sub(g, z, scaled);
    if (rate) {
        losses = losses_of_rate(context, o, z, bel_cast(g, labels, BEL_DTYPE_F32));
        rest = bel_mul(g, bel_sub(g, predicted, labels), number64(g, 1 / deviation));
        rest = bel_cast(g, rest, BEL_DTYPE_F32);
    } else {
        losses = losses_of_rest(context, o, rest);
    }
    set_loss(context, spec, losses, NULL, penalty);
    objectives_measure(context, spec, scaled, rest);
}

void bel_part_finish(bel_model_context *context, bel_estimator_spec *spec, bel_value *outputs,
                     bel_value *penalty)
{
    objective o = objective_of(context);
    bel_optimizer optimizer = {.size = sizeof optimizer};
    bel_context_optimizer(context, &optimizer);
    bel_optimizer_use(spec, NULL, &optimizer);
    if (o <= BINARY) {
        classify(context, spec, outputs, penalty);
    } else if (o == MULTI_LABEL) {
        label(context, spec, outputs, penalty);
    } else {
        regress(context, spec, o, outputs, penalty);
    }
}
