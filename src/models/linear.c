// Model "linear": softmax regression, the smallest classifier.
//
//   x [n, in] ── dense "logits" ──> [n, classes] ── softmax ──> predictions
//
// Loss: mean softmax cross-entropy (+ l2 · half the sum of the kernel's squares). Metric: accuracy.
// Parameters: class_count (10), l2 (0), and those of the optimizer (bel_context_optimizer).
#include "models/parts.h"

bel_status *bel_linear_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_value *x = bel_part_numbers(context);
    bel_value *penalty = NULL;
    int64_t outputs = bel_part_outputs(context);
    bel_value *logits = bel_part_dense(context, x, outputs, "logits", &penalty);
    bel_part_finish(context, spec, logits, penalty);
    return NULL;
}
