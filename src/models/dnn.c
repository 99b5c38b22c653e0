// Model "dnn": a multi-layer perceptron for classification.
//
//   x [n, in] ── dense "dense_0", relu, dropout ── … ── dense "logits" ──> [n, classes] ── softmax
//
// Loss: mean softmax cross-entropy (+ l2 · half the sum of all kernels' squares). Metric: accuracy.
// Parameters: hidden_units ("512,512"; empty for none), dropout (0: the share of a hidden layer's
// outputs left out in TRAIN), class_count (10), l2 (0), and those of the optimizer
// (models/parts.h).
#include "models/parts.h"

#include <stdio.h>

enum { MAX_LAYERS = 64, MAX_UNITS = 1 << 20 };

// The sizes of the hidden layers; a bad one is a sticky error.
static int hidden_layers(bel_model_context *context, int64_t units[MAX_LAYERS + 1])
{
    bel_graph *g = bel_context_graph(context);
    int count = bel_context_param_list(context, "hidden_units", "512,512", units, MAX_LAYERS + 1);
    if (count > MAX_LAYERS) {
        bel_graph_fail(g, BEL_INVALID_ARGUMENT, "parameter hidden_units: at most %d layers",
                       MAX_LAYERS);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (units[i] >= 1 && units[i] <= MAX_UNITS) continue;
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter hidden_units: layer %d must have 1 to %d units, got %lld", i,
                       MAX_UNITS, (long long)units[i]);
        return 0;
    }
    return count;
}

static double dropout_ratio(bel_model_context *context)
{
    double ratio = bel_context_param_number(context, "dropout", 0);
    if (ratio >= 0 && ratio < 1) return ratio;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter dropout must be at least 0 and below 1, got %g", ratio);
    return 0;
}

bel_status *bel_dnn_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    bool training = bel_context_mode(context) == BEL_MODE_TRAIN;
    int64_t units[MAX_LAYERS + 1];
    int layer_count = hidden_layers(context, units);
    double dropout = dropout_ratio(context);
    bel_value *h = bel_part_flat_feature(context), *penalty = NULL;
    for (int i = 0; i < layer_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "dense_%d", i);
        h = bel_relu(g, bel_part_dense(context, h, units[i], name, &penalty));
        if (training && dropout > 0) h = bel_dropout(g, h, dropout);
    }
    int64_t classes = bel_part_whole(context, "class_count", 10, 2, BEL_PART_MAX_CLASSES);
    bel_value *logits = bel_part_dense(context, h, classes, "logits", &penalty);
    bel_part_classify(context, spec, logits, penalty);
    return NULL;
}
