// Losses over classes: scores [n, c, d…] and labels [n, d…], converted to rows [n · d…, c] and
// labels [n · d…]. Shapes must not depend on data, so ignored labels are not removed. They are
// replaced by class 0, which always exists, with weight 0. Their scores become 0, so that no
// infinity or NaN among them spreads. The weighted mean divides by the sum of the weights, as in
// ONNX, and by 1 if that is 0. Log probabilities of SoftmaxCrossEntropyLoss are output 1, in the
// order of the scores.
#include "onnx/make.h"

typedef enum reduction { MEAN, NONE, SUM } reduction;

// Log probabilities as rows [n · d…, c], labels [n · d…] as I64, and the loss's settings.
typedef struct class_loss {
    bel_value *rows, *labels, *weights; // weights [c], or NULL
    bel_value *ignored;                 // [n · d…] BOOL; NULL: no label is ignored
    bel_shape label_shape;
    int reduction;
} class_loss;

// Moves the axis of the classes to the end and joins all dimensions before it.
static bel_value *to_rows(bel_graph *graph, bel_value *x)
{
    bel_shape shape = bel_value_shape(x), rows = BEL_SHAPE(-1, shape.dims[1]);
    bel_value *last = bel_onnx_axis_last(graph, x, 1);
    return shape.rank == 2 ? last : bel_reshape(graph, last, &rows);
}

static bel_status *read_loss(bel_onnx_call *call, class_loss *loss)
{
    static const char *const reductions[] = {[MEAN] = "mean", [NONE] = "none", [SUM] = "sum"};
    BEL_TRY(bel_onnx_choice(call, "reduction", reductions, 3, &loss->reduction));
    bel_shape scores = bel_onnx_in_shape(call, 0), labels = bel_onnx_in_shape(call, 1);
    bool fits = scores.rank >= 2 && labels.rank == scores.rank - 1 && scores.dims[1] >= 1;
    for (int32_t d = 0; fits && d < labels.rank; d++)
        fits = labels.dims[d] == scores.dims[d == 0 ? 0 : d + 1];
    if (!fits) {
        char st[BEL_SHAPE_TEXT], lt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "scores %s and labels %s do not fit",
                       bel_shape_text(&scores, st), bel_shape_text(&labels, lt));
    }
    if (labels.rank > 1) BEL_TRY(bel_onnx_closed(&labels, 0, "examples are numbered"));
    bel_shape flat = BEL_SHAPE(-1);
    loss->label_shape = labels;
    loss->labels = bel_onnx_to(call->graph, bel_onnx_in(call, 1), BEL_DTYPE_I64);
    if (labels.rank > 1) loss->labels = bel_reshape(call->graph, loss->labels, &flat);
    loss->weights = bel_onnx_in(call, 2);
    loss->ignored = NULL;
    if (bel_onnx_find_attr(call, "ignore_index") == NULL) return NULL;
    bel_graph *graph = call->graph;
    bel_value *index = bel_onnx_whole(graph, bel_onnx_int(call, "ignore_index"));
    loss->ignored = bel_equal(graph, loss->labels, index);
    loss->labels = bel_where(graph, loss->ignored, bel_onnx_whole(graph, 0), loss->labels);
    return NULL;
}

// Returns scores [n, c, d…] as rows, with 0 for those of ignored labels.
static bel_value *counted_rows(bel_graph *graph, const class_loss *loss, bel_value *scores)
{
    static const int64_t last[] = {1};
    bel_value *rows = to_rows(graph, scores);
    if (loss->ignored == NULL) return rows;
    bel_value *zero = bel_onnx_scalar(graph, bel_value_dtype(rows), 0);
    return bel_where(graph, bel_unsqueeze(graph, loss->ignored, last, 1), zero, rows);
}

// For each example: -log probability of its label, times the label's weight.
static bel_value *reduced_loss(bel_graph *graph, const class_loss *loss)
{
    static const int64_t last[] = {1};
    bel_value *weight = NULL;
    if (loss->weights != NULL) weight = bel_gather(graph, loss->weights, loss->labels);
    if (loss->ignored != NULL) {
        bel_dtype dtype = bel_value_dtype(loss->rows);
        bel_value *zero = bel_onnx_scalar(graph, dtype, 0);
        if (weight == NULL) weight = bel_onnx_scalar(graph, dtype, 1);
        weight = bel_where(graph, loss->ignored, zero, weight);
    }
    bel_value *index = bel_unsqueeze(graph, loss->labels, last, 1);
    bel_value *picked =
        bel_squeeze(graph, bel_gather_elements(graph, loss->rows, index, 1), last, 1);
    bel_value *losses = bel_neg(graph, picked);
    if (loss->reduction == MEAN && weight != NULL) return bel_weighted_mean(graph, losses, weight);
    if (loss->reduction == MEAN) return bel_mean(graph, losses);
    if (weight != NULL) losses = bel_mul(graph, losses, weight);
    if (loss->reduction == SUM) return bel_reduce_sum(graph, losses, NULL, 0, false);
    return loss->label_shape.rank > 1 ? bel_reshape(graph, losses, &loss->label_shape) : losses;
}

bel_status *bel_onnx_likelihood_loss(bel_onnx_call *call)
{
    class_loss loss;
    BEL_TRY(read_loss(call, &loss));
    loss.rows = counted_rows(call->graph, &loss, bel_onnx_in(call, 0));
    bel_onnx_out(call, 0, reduced_loss(call->graph, &loss));
    return NULL;
}

bel_status *bel_onnx_softmax_loss(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    class_loss loss;
    BEL_TRY(read_loss(call, &loss));
    bel_value *scores = bel_onnx_in(call, 0);
    bel_value *log_softmax = bel_log_softmax(graph, bel_onnx_axis_last(graph, scores, 1));
    log_softmax = bel_onnx_axis_back(graph, log_softmax, 1);
    if (loss.ignored == NULL) {
        loss.rows = to_rows(graph, log_softmax);
    } else { // separate: output 1 has the log probabilities of all scores
        loss.rows = bel_log_softmax(graph, counted_rows(graph, &loss, scores));
    }
    bel_onnx_out(call, 0, reduced_loss(graph, &loss));
    bel_onnx_out(call, 1, log_softmax);
    return NULL;
}
