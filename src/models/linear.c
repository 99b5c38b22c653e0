// Model "linear": softmax regression, the smallest classifier.
//
//   x [n, in] ── dense "logits" ──> [n, classes] ── softmax ──> predictions
//
// Loss: mean softmax cross-entropy (+ l2 · half the sum of the kernel's squares). Metric: accuracy.
// Parameters: class_count (10), l2 (0), and those of the optimizer (bel_context_optimizer).
#include "models/parts.h"

bel_status *bel_linear_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_value *x = bel_part_flat_feature(context);
    bel_value *penalty = NULL;
    int64_t classes = bel_part_whole(context, "class_count", 10, 2, BEL_PART_MAX_CLASSES);
    bel_value *logits = bel_part_dense(context, x, classes, "logits", &penalty);
    bel_part_classify(context, spec, logits, penalty);
    return NULL;
}
