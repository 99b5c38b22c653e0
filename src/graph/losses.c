// Losses, one number for each element or example; the caller computes the mean. They are made of
// public operations, so gradients follow automatically; only CTC is a separate operation. Ignored
// examples get weight 0 and are not removed, because shapes must not depend on data. Their numbers
// and labels are replaced by 0 before any computation: the label need not exist, and 0 times
// infinity or NaN is NaN, forward and backward. A weighted mean divides by 1 if all weights add up
// to 0, so that such a batch gives 0.
#include "belfry/ops.h"
#include "graph/attrs.h"

static bel_value *losses_number(bel_graph *graph, const bel_value *like, double value)
{
    return bel_scalar(graph, bel_value_dtype(like), value);
}

bel_value *bel_weighted_mean(bel_graph *graph, bel_value *values, bel_value *weights)
{
    bel_value *zero = losses_number(graph, weights, 0);
    bel_value *counted = bel_where(graph, bel_equal(graph, weights, zero), zero, values);
    bel_value *sum = bel_reduce_sum(graph, bel_mul(graph, counted, weights), NULL, 0, false);
    bel_value *total = bel_reduce_sum(graph, weights, NULL, 0, false);
    bel_value *none = bel_equal(graph, total, losses_number(graph, total, 0));
    return bel_div(graph, sum, bel_where(graph, none, losses_number(graph, total, 1), total));
}

// A number with weight 0 is ignored, as in a weighted mean.
bel_value *bel_reduce_loss(bel_graph *graph, bel_value *losses, bel_value *weights,
                           bel_reduction reduction)
{
    if (weights == NULL) {
        return reduction == BEL_REDUCTION_SUM ? bel_reduce_sum(graph, losses, NULL, 0, false)
                                              : bel_mean(graph, losses);
    }
    if (reduction == BEL_REDUCTION_WEIGHTED_MEAN) {
        return bel_weighted_mean(graph, losses, weights);
    }
    bel_value *zero = losses_number(graph, weights, 0), *unused = bel_equal(graph, weights, zero);
    bel_value *counted = bel_where(graph, unused, zero, losses);
    counted = bel_mul(graph, counted, weights);
    if (reduction == BEL_REDUCTION_MEAN) return bel_mean(graph, counted);
    bel_value *sum = bel_reduce_sum(graph, counted, NULL, 0, false);
    if (reduction == BEL_REDUCTION_SUM) return sum;
    bel_value *used = bel_where(graph, unused, zero, losses_number(graph, weights, 1));
    bel_value *count = bel_reduce_sum(graph, used, NULL, 0, false);
    return bel_div(graph, sum, bel_max(graph, count, losses_number(graph, count, 1)));
}

bel_value *bel_squared_error(bel_graph *graph, bel_value *predicted, bel_value *labels)
{
    bel_value *error = bel_sub(graph, predicted, labels);
    return bel_mul(graph, error, error);
}

// With e clamped to [-delta, delta] as c: c (e - c / 2) is e^2 / 2 inside and delta |e| - delta^2 /
// 2 outside.
bel_value *bel_huber_loss(bel_graph *graph, bel_value *predicted, bel_value *labels, double delta)
{
    if (!(delta > 0)) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "%sHuber: delta must be above 0, got %g",
                       graph->scope, delta);
        return NULL;
    }
    bel_value *error = bel_sub(graph, predicted, labels);
    bel_value *cut = bel_clip(graph, error, -delta, delta);
    bel_value *half = bel_mul(graph, cut, losses_number(graph, cut, 0.5));
    return bel_mul(graph, cut, bel_sub(graph, error, half));
}

static bel_value *whole_number(bel_graph *graph, int64_t value)
{
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = &value};
    return bel_constant(graph, &tensor);
}

bel_value *bel_weighted_softmax_cross_entropy(bel_graph *graph, bel_value *logits,
                                              bel_value *labels, bel_value *class_weights,
                                              int64_t ignored, bel_value **out_weights)
{
    *out_weights = NULL;
    static const int64_t last[] = {-1};
    bel_value *none = bel_equal(graph, labels, whole_number(graph, ignored));
    bel_value *known = bel_where(graph, none, whole_number(graph, 0), labels);
    bel_value *zero = losses_number(graph, logits, 0);
    bel_value *weights = bel_cast(graph, bel_not(graph, none), bel_value_dtype(logits));
    if (class_weights != NULL) {
        weights = bel_where(graph, none, zero, bel_gather(graph, class_weights, known));
    }
    logits = bel_where(graph, bel_unsqueeze(graph, none, last, 1), zero, logits);
    bel_value *loss = bel_softmax_cross_entropy(graph, logits, known);
    loss = bel_mul(graph, loss, weights);
    if (loss != NULL) *out_weights = weights;
    return loss;
}

bel_value *bel_weighted_sigmoid_cross_entropy(bel_graph *graph, bel_value *logits,
                                              bel_value *labels, double positive_weight)
{
    bel_value *rest = bel_sub(graph, losses_number(graph, labels, 1), labels);
    bel_value *negative = bel_mul(graph, rest, bel_softplus(graph, logits));
    bel_value *positive = bel_mul(graph, labels, bel_softplus(graph, bel_neg(graph, logits)));
    positive = bel_mul(graph, positive, losses_number(graph, labels, positive_weight));
    return bel_add(graph, positive, negative);
}

bel_value *bel_ctc_loss(bel_graph *graph, bel_value *logits, bel_value *labels,
                        bel_value *logit_lengths, bel_value *label_lengths, bool zero_infinity)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "zero_infinity", zero_infinity);
    bel_value *inputs[] = {logits, labels, logit_lengths, label_lengths};
    return bel_graph_add(graph, BEL_OP_CTC_LOSS, &attrs, inputs, 4);
}
