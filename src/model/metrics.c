// Metrics: a batch's share of each is computed in the graph. Batches are added here, in double, in
// their order. Every metric except the area is a quotient of two sums, or its root, so batches of
// any size can be merged exactly; an empty denominator gives NaN.
//
// The area under the curve needs all scores. A graph gives them as rows (score, weight of no,
// weight of yes), which are sorted and merged when there are twice BEL_METRIC_SCORES, so memory is
// bounded. It is exact up to that number of distinct scores.
#include "model/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/real.h"

// --- Building ------------------------------------------------------------------------------------

// Metrics and summaries share their names with the result's numbers, and with those of event files.
bool bel_spec_name_is_free(const bel_estimator_spec *spec, const char *name)
{
    static const char *const own[] = {"loss", "global_step", "learning_rate", "examples_per_second",
                                      "global_step/sec"};
    bool taken = name == NULL || name[0] == '\0';
    for (size_t i = 0; i < sizeof own / sizeof own[0] && !taken; i++)
        taken = strcmp(own[i], name) == 0;
    for (int i = 0; i < spec->summary_count && !taken; i++)
        taken = strcmp(spec->summaries[i].name, name) == 0;
    for (int i = 0; i < spec->metric_count && !taken; i++)
        taken = strcmp(spec->metrics[i].name, name) == 0;
    return !taken;
}

void bel_metric_add(bel_model_context *context, bel_estimator_spec *spec, bel_metric metric)
{
    if (bel_spec_name_is_free(spec, metric.name) && spec->metric_count < BEL_MAX_METRICS) {
        spec->metrics[spec->metric_count++] = metric;
        return;
    }
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "metric \"%s\": the name is empty, taken or reserved, or there are more than %d",
                   metric.name != NULL ? metric.name : "", BEL_MAX_METRICS);
}

static bel_value *metrics_total(bel_graph *g, bel_value *values)
{
    return bel_reduce_sum(g, values, NULL, 0, false);
}

// Refuses other shapes, which would be broadcast and change the metric.
static void check_shapes(bel_graph *g, const char *name, const char *what, const bel_value *a,
                         const bel_value *b)
{
    bel_shape left = bel_value_shape(a), right = bel_value_shape(b);
    if (a == NULL || b == NULL || bel_shape_equal(&left, &right)) return;
    char left_text[BEL_SHAPE_TEXT], right_text[BEL_SHAPE_TEXT];
    bel_graph_fail(g, BEL_INVALID_ARGUMENT, "metric \"%s\": %s must have one shape, got %s and %s",
                   name, what, bel_shape_text(&left, left_text),
                   bel_shape_text(&right, right_text));
}

// Values times weights (NULL: ones): 0 where the weight is, for any value, as 0 times NaN would be
// NaN.
static bel_value *metrics_weigh(bel_graph *g, const char *name, bel_value *values,
                                bel_value *weights)
{
    if (weights == NULL) return values;
    check_shapes(g, name, "weights and what they weigh", weights, values);
    bel_value *zero = bel_scalar(g, BEL_DTYPE_F32, 0);
    values = bel_where(g, bel_equal(g, weights, zero), zero, values);
    return bel_mul(g, values, weights);
}

// The sum of values · weights divided by the sum of weights.
static bel_metric mean(bel_graph *g, const char *name, bel_value *values, bel_value *weights)
{
    bel_value *sum = metrics_total(g, metrics_weigh(g, name, values, weights));
    if (weights == NULL) { // weight 1 for each value: x == x
        weights = bel_cast(g, bel_equal(g, values, values), BEL_DTYPE_F32);
    }
    return (bel_metric){.name = name, .sum = sum, .weight = metrics_total(g, weights)};
}

// Converts to 1 for yes and 0 for no.
static bel_value *truth(bel_graph *g, bel_value *x)
{
    return bel_cast(g, bel_cast(g, x, BEL_DTYPE_BOOL), BEL_DTYPE_F32);
}

void bel_metric_mean(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                     bel_value *values, bel_value *weights)
{
    bel_metric_add(context, spec, mean(bel_context_graph(context), name, values, weights));
}

void bel_metric_accuracy(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                         bel_value *labels, bel_value *predicted, bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    check_shapes(g, name, "labels and predicted", labels, predicted);
    bel_value *right = bel_cast(g, bel_equal(g, labels, predicted), BEL_DTYPE_F32);
    bel_metric_mean(context, spec, name, right, weights);
}

// Counts a hit if the label's score is at least that of classes − k + 1 classes, including the
// label's, so at most k − 1 are higher.
void bel_metric_top_k(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                      bel_value *labels, bel_value *scores, int64_t k, bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    const int64_t column = 1;
    if (weights != NULL) { // a label with weight 0 may be out of range: 0 replaces it
        check_shapes(g, name, "weights and labels", weights, labels);
        bel_value *counts = bel_cast(g, bel_cast(g, weights, BEL_DTYPE_BOOL), BEL_DTYPE_I64);
        labels = bel_mul(g, labels, counts);
    }
    bel_value *own = bel_gather_elements(g, scores, bel_unsqueeze(g, labels, &column, 1), 1);
    bel_value *behind = bel_cast(g, bel_greater_or_equal(g, own, scores), BEL_DTYPE_F32);
    bel_shape shape = bel_value_shape(scores);
    if (scores != NULL && (shape.rank != 2 || shape.dims[1] < k)) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(
            g, BEL_INVALID_ARGUMENT,
            "metric \"%s\": scores must be [batch, classes], %lld classes or more, got %s", name,
            (long long)k, bel_shape_text(&shape, text));
        return;
    }
    bel_value *ahead = bel_scalar(g, BEL_DTYPE_F32, (double)(shape.dims[1] - k));
    bel_value *hit = bel_greater(g, bel_reduce_sum(g, behind, &column, 1, false), ahead);
    bel_metric_mean(context, spec, name, bel_cast(g, hit, BEL_DTYPE_F32), weights);
}

// Share of true positives among predicted positives.
void bel_metric_precision(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                          bel_value *labels, bel_value *predicted, bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    check_shapes(g, name, "labels and predicted", labels, predicted);
    bel_value *said = metrics_weigh(g, name, truth(g, predicted), weights);
    bel_metric_add(context, spec, mean(g, name, truth(g, labels), said));
}

// Precision with both sides swapped: share of true positives among actual positives.
void bel_metric_recall(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                       bel_value *labels, bel_value *predicted, bel_value *weights)
{
    bel_metric_precision(context, spec, name, predicted, labels, weights);
}

// 2 · precision · recall / (precision + recall) = 2 · both / (predicted + actual).
void bel_metric_f1(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                   bel_value *labels, bel_value *predicted, bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    check_shapes(g, name, "labels and predicted", labels, predicted);
    bel_value *there = truth(g, labels), *said = truth(g, predicted);
    bel_value *both = bel_mul(g, there, said), *either = bel_add(g, there, said);
    both = metrics_weigh(g, name, bel_add(g, both, both), weights);
    either = metrics_weigh(g, name, either, weights);
    bel_metric metric = {.name = name, .sum = metrics_total(g, both)};
    metric.weight = metrics_total(g, either);
    bel_metric_add(context, spec, metric);
}

void bel_metric_root_mean_squared_error(bel_model_context *context, bel_estimator_spec *spec,
                                        const char *name, bel_value *labels, bel_value *predicted,
                                        bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    check_shapes(g, name, "labels and predicted", labels, predicted);
    bel_metric metric = mean(g, name, bel_squared_error(g, predicted, labels), weights);
    metric.kind = BEL_METRIC_ROOT_MEAN;
    bel_metric_add(context, spec, metric);
}

void bel_metric_perplexity(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                           bel_value *losses, bel_value *weights)
{
    bel_metric metric = mean(bel_context_graph(context), name, losses, weights);
    metric.kind = BEL_METRIC_EXP_MEAN;
    bel_metric_add(context, spec, metric);
}

// Scores with both weights 0 are dropped when batches are added.
void bel_metric_auc(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                    bel_value *labels, bel_value *probabilities, bel_value *weights)
{
    bel_graph *g = bel_context_graph(context);
    check_shapes(g, name, "labels and probabilities", labels, probabilities);
    bel_value *yes = truth(g, labels);
    bel_value *no = bel_sub(g, bel_scalar(g, BEL_DTYPE_F32, 1), yes);
    const bel_shape row = BEL_SHAPE(1, -1);
    bel_value *rows[] = {probabilities, NULL, NULL};
    rows[1] = metrics_weigh(g, name, no, weights);
    rows[2] = metrics_weigh(g, name, yes, weights);
    for (int i = 0; i < 3; i++)
        rows[i] = bel_reshape(g, rows[i], &row);
    bel_value *pairs = bel_concat(g, rows, 3, 0);
    bel_metric_add(context, spec, (bel_metric){.name = name, .kind = BEL_METRIC_AUC, .sum = pairs});
}

void bel_metric_own(bel_model_context *context, bel_estimator_spec *spec, const char *name,
                    bel_value *sums, bel_metric_fn *result, void *user)
{
    bel_metric_add(
        context, spec,
        (bel_metric){
            .name = name, .kind = BEL_METRIC_OWN, .sum = sums, .result = result, .user = user});
}

// --- Scores --------------------------------------------------------------------------------------

static int compare_scores(const void *a, const void *b)
{
    float left = ((const bel_metric_score *)a)->score, right = ((const bel_metric_score *)b)->score;
    return (left > right) - (left < right);
}

// Sorts the scores and merges equal ones; while more than `most` are left, merges neighbors too.
static void merge_scores(bel_metric_sums *sums, size_t most)
{
    bel_metric_score *list = sums->scores;
    if (sums->count > 1) qsort(list, sums->count, sizeof *list, compare_scores);
    size_t kept = 0;
    for (size_t i = 0; i < sums->count; i++) {
        bool equal = kept > 0 && list[kept - 1].score == list[i].score;
        if (!equal) {
            list[kept++] = list[i];
            continue;
        }
        list[kept - 1].no += list[i].no;
        list[kept - 1].yes += list[i].yes;
    }
    while (kept > most) {
        size_t half = 0;
        for (size_t i = 0; i < kept; i += 2, half++) {
            list[half] = list[i];
            if (i + 1 == kept) continue;
            list[half].no += list[i + 1].no;
            list[half].yes += list[i + 1].yes;
        }
        kept = half;
    }
    sums->count = kept;
}

// Adds rows [3, examples] of a batch: scores, weights of no, weights of yes.
static void add_scores(bel_metric_sums *sums, const float *rows, int64_t examples)
{
    for (int64_t i = 0; i < examples; i++) {
        if (rows[examples + i] == 0 && rows[2 * examples + i] == 0) continue;
        sums->undefined = sums->undefined || isnan(rows[i]);
        if (sums->count == (size_t)2 * BEL_METRIC_SCORES) merge_scores(sums, BEL_METRIC_SCORES);
        sums->scores =
            bel_xgrow(sums->scores, &sums->capacity, sums->count + 1, sizeof *sums->scores);
        sums->scores[sums->count++] =
            (bel_metric_score){rows[i], (double)rows[examples + i], (double)rows[2 * examples + i]};
    }
}

// Share of pairs of a no and a yes in which the yes has the higher score; equal scores count half.
static double area(bel_metric_sums *sums)
{
    double below = 0, all = 0, pairs = 0;
    if (sums->undefined) return NAN;
    merge_scores(sums, BEL_METRIC_SCORES);
    for (size_t i = 0; i < sums->count; i++) {
        const bel_metric_score *s = &sums->scores[i];
        pairs += s->yes * (below + s->no / 2);
        below += s->no;
        all += s->yes;
    }
    return below * all > 0 ? pairs / (below * all) : NAN;
}

// A sum in another order may be above that of all by a rounding, and negative weights go beyond it.
static double share(double part, double all)
{
    return fmin(fmax(part / all, 0), 1);
}

// Goes down from the highest score; examples above a point are predicted positive. It thins
// out points evenly to fit. The first is (0, 0), the last (1, 1). All are shares from 0 to 1.
void bel_metric_sums_roc(bel_metric_sums *sums, bel_roc *out)
{
    double no = 0, yes = 0, all_no = 0, all_yes = 0;
    *out = (bel_roc){.count = 0};
    if (sums->undefined) return;
    merge_scores(sums, BEL_METRIC_SCORES);
    for (size_t i = 0; i < sums->count; i++) {
        all_no += sums->scores[i].no;
        all_yes += sums->scores[i].yes;
    }
    if (all_no <= 0 || all_yes <= 0) return;
    bel_snprintf(out->name, sizeof out->name, "%s", sums->metric->name);
    size_t room = BEL_ROC_POINTS - 2, every = sums->count / room + 1;
    out->count = 1; // (0, 0)
    out->precision[0] = 1;
    for (size_t i = sums->count; i-- > 0;) {
        no += sums->scores[i].no;
        yes += sums->scores[i].yes;
        if (i % every != 0) continue;
        out->no[out->count] = share(no, all_no);
        out->precision[out->count] = no + yes > 0 ? share(yes, no + yes) : 1;
        out->yes[out->count++] = share(yes, all_yes);
    }
}

// --- Sums ----------------------------------------------------------------------------------------

void bel_metric_sums_init(bel_metric_sums *sums, const bel_metric *metric)
{
    *sums = (bel_metric_sums){.metric = metric};
    if (metric->kind != BEL_METRIC_OWN) return;
    bel_shape shape = bel_value_shape(metric->sum);
    sums->state_count = bel_shape_elements(&shape);
    sums->state = bel_xcalloc((size_t)sums->state_count, sizeof *sums->state);
}

void bel_metric_sums_deinit(bel_metric_sums *sums)
{
    bel_free(sums->scores);
    bel_free(sums->state);
}

void bel_metric_sums_add(bel_metric_sums *sums, const bel_tensor *sum, const bel_tensor *weight,
                         int64_t examples)
{
    const float *values = sum->data;
    if (sums->metric->kind == BEL_METRIC_AUC) {
        add_scores(sums, values, sum->shape.dims[1]);
        return;
    }
    for (int64_t i = 0; i < sums->state_count; i++)
        sums->state[i] += (double)values[i];
    if (sums->metric->kind == BEL_METRIC_OWN) return;
    sums->sum += (double)values[0] * (weight == NULL ? (double)examples : 1);
    sums->weight += weight == NULL ? (double)examples : (double)*(const float *)weight->data;
}

double bel_metric_of_mean(bel_metric_kind kind, double mean)
{
    if (kind == BEL_METRIC_EXP_MEAN) return bel_real_exp(mean);
    return kind == BEL_METRIC_ROOT_MEAN ? sqrt(mean) : mean;
}

double bel_metric_sums_value(bel_metric_sums *sums)
{
    const bel_metric *metric = sums->metric;
    if (metric->kind == BEL_METRIC_AUC) return area(sums);
    if (metric->kind == BEL_METRIC_OWN) {
        return metric->result(metric->user, sums->state, sums->state_count);
    }
    double ratio = sums->weight != 0 ? sums->sum / sums->weight : NAN;
    return bel_metric_of_mean(metric->kind, ratio);
}
