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

enum { MOST_SHOWN = 50 }; // classes in a confusion matrix

void bel_part_classify(bel_model_context *context, bel_estimator_spec *spec, bel_value *logits,
                       bel_value *penalty)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *labels = bel_context_labels(context);
    spec->predictions = bel_softmax(g, logits);
    spec->optimizer = bel_context_optimizer(context);
    if (bel_context_mode(context) == BEL_MODE_PREDICT) return;
    if (labels == NULL) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "a classifier needs labels to train and evaluate; hint: --label_column");
        return;
    }
    bel_value *losses = bel_softmax_cross_entropy(g, logits, labels); // [n]
    spec->loss = bel_mean(g, losses);
    if (penalty != NULL) spec->loss = bel_add(g, spec->loss, penalty);
    bel_value *predicted = bel_arg_max(g, logits, 1);
    bel_metric_accuracy(context, spec, "accuracy", labels, predicted, NULL);
    bel_shape shape = bel_value_shape(logits);
    if (shape.rank == 2 && shape.dims[1] <= MOST_SHOWN) {
        bel_summary_confusion(context, spec, labels, predicted, shape.dims[1]);
    }
    if (shape.rank != 2 || shape.dims[1] != 2) return;
    const int64_t axis = 1, first = 1, end = 2; // the column of class 1
    bel_value *yes = bel_slice(g, spec->predictions, &axis, &first, &end, NULL, 1);
    bel_metric_auc(context, spec, "auc", labels, bel_squeeze(g, yes, &axis, 1), NULL);
    bel_metric_precision(context, spec, "precision", labels, predicted, NULL);
    bel_metric_recall(context, spec, "recall", labels, predicted, NULL);
}
