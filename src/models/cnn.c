// Model "cnn": convolutions and dense layers for the classification of images (after LeCun et al.
// 1998, "Gradient-based learning applied to document recognition").
//
//   x [n, c, h, w] ── conv "conv_0", pool 2×2, relu ── … ── flatten ── dense "dense_0", relu,
//   dropout ── … ── dense "logits" ──> [n, classes] ── softmax
//
// Each convolution keeps height and width, each pool divides them by 2 (rounded down). A pool is
// omitted where height or width is 1. Relu comes after the pool, for a quarter of the work. Both
// orders give the same numbers, as the largest of relus is the relu of the largest.
//
// Loss: mean softmax cross-entropy (+ l2 · half the sum of all kernels' squares). Metric: accuracy.
// Parameters: image_shape (see bel_part_images), filters ("32,64"), window (5), dense_units ("512";
// empty for none), dropout (0), class_count (10), l2 (0), and those of the optimizer
// (bel_context_optimizer).
#include "models/parts.h"

#include <stdio.h>

static bel_value *conv_layer(bel_model_context *context, bel_value *x, int64_t filters,
                             int64_t window, int index, bel_value **penalty)
{
    bel_graph *g = bel_context_graph(context);
    char name[32];
    snprintf(name, sizeof name, "conv_%d", index);
    bel_value *y = bel_conv_2d(g, x, filters, window, 1, true, name);
    if (y == NULL) return NULL;
    bel_shape kernel_shape = BEL_SHAPE(filters, bel_value_shape(x).dims[1], window, window);
    bel_part_add_penalty(context, bel_part_kernel(context, name, &kernel_shape), penalty);
    static const int64_t two[] = {2, 2};
    bel_shape shape = bel_value_shape(y);
    bel_window_options halving = {.size = sizeof halving, .strides = two};
    if (shape.dims[2] > 1 && shape.dims[3] > 1) y = bel_max_pool(g, y, two, &halving, false);
    return bel_relu(g, y);
}

bel_status *bel_cnn_model(bel_model_context *context, bel_estimator_spec *spec)
{
    bel_graph *g = bel_context_graph(context);
    int64_t filters[BEL_PART_MAX_LAYERS], units[BEL_PART_MAX_LAYERS];
    int conv_count = bel_part_layers(context, "filters", "32,64", 1 << 16, filters);
    int dense_count = bel_part_layers(context, "dense_units", "512", 1 << 20, units);
    int64_t window = bel_part_whole(context, "window", 5, 1, 64);
    bel_value *h = bel_part_images(context), *penalty = NULL;
    for (int i = 0; i < conv_count; i++)
        h = conv_layer(context, h, filters[i], window, i, &penalty);
    h = bel_part_dense_layers(context, bel_flatten(g, h, 1), units, dense_count, &penalty);
    int64_t outputs = bel_part_outputs(context);
    bel_value *logits = bel_part_dense(context, h, outputs, "logits", &penalty);
    bel_part_finish(context, spec, logits, penalty);
    return NULL;
}
