// Model "dnn": a multi-layer perceptron for classification.
//
//   x [n, in] ── dense "dense_0", relu, dropout ── … ── dense "logits" ──> [n, classes] ── softmax
//
// Loss: mean softmax cross-entropy (+ l2 · half the sum of all kernels' squares). Metric: accuracy.
// Parameters: hidden_units ("512,512"; empty for none), dropout (0: the share of a hidden layer's
// outputs dropped in TRAIN), class_count (10), l2 (0), and those of the optimizer
// (bel_context_optimizer).
#include "models/parts.h"

bel_status *bel_dnn_model(bel_model_context *context, bel_estimator_spec *spec)
{
    int64_t units[BEL_PART_MAX_LAYERS];
    int layer_count = bel_part_layers(context, "hidden_units", "512,512", 1 << 20, units);
    bel_value *x = bel_part_numbers(context), *penalty = NULL;
    bel_value *h = bel_part_dense_layers(context, x, units, layer_count, &penalty);
    int64_t outputs = bel_part_outputs(context);
    bel_value *logits = bel_part_dense(context, h, outputs, "logits", &penalty);
    bel_part_finish(context, spec, logits, penalty);
    return NULL;
}
