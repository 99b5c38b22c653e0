// Layers of canned models, and the conversion of a feature to images. The penalty needs a layer's
// kernel, which bel_dense does not return: requesting the variable again under the same scope and
// name gives the same one. Dropout is added only in TRAIN. Columns without image_shape are one
// square channel, so a table of 784 columns is an image of 28 by 28 without any flag.
#include <math.h>
#include <stdio.h>

#include "models/parts.h"

int bel_part_layers(bel_model_context *context, const char *name, const char *otherwise,
                    int64_t high, int64_t out_sizes[BEL_PART_MAX_LAYERS])
{
    bel_graph *g = bel_context_graph(context);
    int count = bel_context_param_list(context, name, otherwise, out_sizes, BEL_PART_MAX_LAYERS);
    for (int i = 0; i < count; i++) {
        if (out_sizes[i] >= 1 && out_sizes[i] <= high) continue;
        bel_graph_fail(g, BEL_INVALID_ARGUMENT,
                       "parameter %s: layer %d must have 1 to %lld units, got %lld", name, i,
                       (long long)high, (long long)out_sizes[i]);
        return 0;
    }
    return count;
}

bel_value *bel_part_kernel(bel_model_context *context, const char *layer, const bel_shape *shape)
{
    bel_graph *g = bel_context_graph(context);
    bel_graph_push_scope(g, layer);
    bel_value *kernel =
        bel_variable(g, "kernel", shape, (bel_initializer){.kind = BEL_INIT_GLOROT_UNIFORM},
                     BEL_VARIABLE_TRAINABLE);
    bel_graph_pop_scope(g);
    return kernel;
}

void bel_part_add_penalty(bel_model_context *context, bel_value *kernel, bel_value **penalty)
{
    bel_graph *g = bel_context_graph(context);
    double l2 = bel_context_param_number(context, "l2", 0);
    if (l2 == 0) return;
    bel_value *loss = bel_l2_loss(g, kernel), *rate = bel_scalar(g, BEL_DTYPE_F32, l2);
    bel_value *share = bel_mul(g, loss, rate);
    *penalty = *penalty == NULL ? share : bel_add(g, *penalty, share);
}

bel_value *bel_part_dense(bel_model_context *context, bel_value *x, int64_t units, const char *name,
                          bel_value **penalty)
{
    bel_value *y = bel_dense(bel_context_graph(context), x, units, name);
    if (y == NULL) return NULL;
    bel_shape shape = BEL_SHAPE(bel_value_shape(x).dims[1], units);
    bel_part_add_penalty(context, bel_part_kernel(context, name, &shape), penalty);
    return y;
}

static double dropout_ratio(bel_model_context *context)
{
    double ratio = bel_context_param_number(context, "dropout", 0);
    if (ratio >= 0 && ratio < 1) return ratio;
    bel_graph_fail(bel_context_graph(context), BEL_INVALID_ARGUMENT,
                   "parameter dropout must be at least 0 and below 1, got %g", ratio);
    return 0;
}

bel_value *bel_part_dense_layers(bel_model_context *context, bel_value *x, const int64_t *units,
                                 int layer_count, bel_value **penalty)
{
    bel_graph *g = bel_context_graph(context);
    bool training = bel_context_mode(context) == BEL_MODE_TRAIN;
    double dropout = dropout_ratio(context);
    for (int i = 0; i < layer_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "dense_%d", i);
        x = bel_relu(g, bel_part_dense(context, x, units[i], name, penalty));
        if (training && dropout > 0) x = bel_dropout(g, x, dropout);
    }
    return x;
}

// [c, h, w] from parameter image_shape; without it one channel with the square root of `columns` as
// sides.
static bel_shape image_shape(bel_model_context *context, int64_t columns)
{
    int64_t sizes[3], side = (int64_t)lround(sqrt((double)columns));
    int count = bel_context_param_list(context, "image_shape", "", sizes, 3);
    if (count == 0) return BEL_SHAPE(1, side, side);
    return count == 3 ? BEL_SHAPE(sizes[0], sizes[1], sizes[2]) : bel_shape_scalar();
}

bel_value *bel_part_images(bel_model_context *context)
{
    bel_graph *g = bel_context_graph(context);
    bel_value *x = bel_context_only_feature(context);
    bel_shape shape = bel_value_shape(x);
    bool is_float = bel_value_dtype(x) == BEL_DTYPE_F32;
    if (x == NULL || (shape.rank == 4 && is_float)) return x;
    bel_shape image = shape.rank == 2 ? image_shape(context, shape.dims[1]) : bel_shape_scalar();
    if (shape.rank == 3) image = BEL_SHAPE(1, shape.dims[1], shape.dims[2]);
    bool fits = is_float && image.rank == 3 && shape.dims[1] > 0;
    for (int i = 0; fits && i < 3; i++)
        fits = image.dims[i] > 0 && image.dims[i] <= INT32_MAX;
    if (fits && (shape.rank == 3 || bel_shape_elements(&image) == shape.dims[1])) {
        bel_shape images = BEL_SHAPE(-1, image.dims[0], image.dims[1], image.dims[2]);
        return bel_reshape(g, x, &images);
    }
    char have[BEL_SHAPE_TEXT];
    bel_graph_fail(
        g, BEL_INVALID_ARGUMENT,
        "the model takes images f32 [batch, c, h, w], [batch, h, w] or [batch, columns], "
        "got %s %s; columns are one square channel unless image_shape gives c,h,w whose "
        "product they are",
        bel_dtype_name(bel_value_dtype(x)), bel_shape_text(&shape, have));
    return NULL;
}
