// Convolution, pooling, normalization. Lists are checked against the rank of x here, because
// Belfry's builders take them without a length. Operations that Belfry lacks are composed. LRN is
// an average pool over the channels as if they were the rows of an image. Global pools of more than
// two spatial dimensions are reductions. MaxPool of bytes uses floats, which hold them exactly.
// Training of batch normalization is supported from opset 14 on, where its outputs became the same
// as Belfry's.
#include "onnx/make.h"
#include "onnx/windows.h"

// --- Windows -------------------------------------------------------------------------------------

typedef bel_onnx_window window;

static const int64_t *list_or_null(const bel_shape *list)
{
    return list->rank > 0 ? list->dims : NULL;
}

// The lists must have one number for each spatial dimension: one or two of them, or three, which
// make_volume.c decomposes.
static bel_status *read_window(const bel_onnx_call *call, int32_t rank, window *w)
{
    static const char *const pad_names[] = {[BEL_PAD_EXPLICIT] = "NOTSET",
                                            [BEL_PAD_SAME_UPPER] = "SAME_UPPER",
                                            [BEL_PAD_SAME_LOWER] = "SAME_LOWER",
                                            [BEL_PAD_VALID] = "VALID"};
    const struct {
        const char *name;
        bel_shape *list;
        int32_t count;
    } lists[] = {{"kernel_shape", &w->kernel, rank - 2},
                 {"strides", &w->strides, rank - 2},
                 {"pads", &w->pads, 2 * (rank - 2)},
                 {"dilations", &w->dilations, rank - 2}};
    if (rank < 3 || rank > 5) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "images have %d dimensions, expected 3 to 5: [n, c, w], [n, c, h, w] or "
                       "[n, c, d, h, w]",
                       (int)rank);
    }
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        BEL_TRY(bel_onnx_ints(call, lists[i].name, lists[i].list));
        int32_t have = lists[i].list->rank;
        if (have == 0 || have == lists[i].count) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "attribute \"%s\" has %d numbers, expected %d",
                       lists[i].name, (int)have, (int)lists[i].count);
    }
    int auto_pad;
    BEL_TRY(bel_onnx_choice(call, "auto_pad", pad_names, 4, &auto_pad));
    w->options = (bel_window_options){.size = sizeof(bel_window_options),
                                      .strides = list_or_null(&w->strides),
                                      .pads = list_or_null(&w->pads),
                                      .dilations = list_or_null(&w->dilations),
                                      .auto_pad = (bel_auto_pad)auto_pad};
    return NULL;
}

static bel_status *read_convolution(bel_onnx_call *call, window *w)
{
    bel_shape weights = bel_onnx_in_shape(call, 1);
    BEL_TRY(read_window(call, bel_onnx_in_shape(call, 0).rank, w));
    for (int32_t d = 0; d < w->kernel.rank; d++) {
        if (weights.rank == w->kernel.rank + 2 && weights.dims[d + 2] == w->kernel.dims[d])
            continue;
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "attribute \"kernel_shape\" does not fit weights %s",
                       bel_shape_text(&weights, text));
    }
    return NULL;
}

bel_status *bel_onnx_conv(bel_onnx_call *call)
{
    window w;
    BEL_TRY(read_convolution(call, &w));
    if (bel_onnx_in_shape(call, 0).rank == 5) return bel_onnx_conv_volume(call, &w);
    bel_value *inputs[3]; // the bias may be omitted
    bel_onnx_ins(call, 3, inputs);
    bel_onnx_out(call, 0,
                 bel_conv(call->graph, inputs[0], inputs[1], inputs[2], bel_onnx_int(call, "group"),
                          &w.options));
    return NULL;
}

// Reads a list with a number for each spatial dimension, or an absent list.
static bel_status *read_spatial(const bel_onnx_call *call, const char *name, int32_t count,
                                bel_shape *out_list)
{
    BEL_TRY(bel_onnx_ints(call, name, out_list));
    if (out_list->rank == 0 || out_list->rank == count) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "attribute \"%s\" has %d numbers, expected %d", name,
                   (int)out_list->rank, (int)count);
}

bel_status *bel_onnx_conv_transpose(bel_onnx_call *call)
{
    window w;
    bel_shape padding, shape;
    int32_t spatial_count = bel_onnx_in_shape(call, 0).rank - 2;
    BEL_TRY(read_convolution(call, &w));
    if (spatial_count > 2) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "images have 5 dimensions, expected 3 or 4");
    }
    BEL_TRY(read_spatial(call, "output_padding", spatial_count, &padding));
    BEL_TRY(read_spatial(call, "output_shape", spatial_count, &shape));
    bel_value *in[3]; // the bias may be omitted
    bel_onnx_ins(call, 3, in);
    bel_onnx_out(call, 0,
                 bel_conv_transpose(call->graph, in[0], in[1], in[2], bel_onnx_int(call, "group"),
                                    &w.options, list_or_null(&padding), list_or_null(&shape)));
    return NULL;
}

static bel_status *read_pool(const bel_onnx_call *call, int32_t rank, window *w)
{
    BEL_TRY(read_window(call, rank, w));
    w->ceil_mode = bel_onnx_int(call, "ceil_mode") != 0;
    w->count_include_pad = bel_onnx_int(call, "count_include_pad") != 0;
    if (w->kernel.rank > 0) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "attribute \"kernel_shape\" is missing");
}

// uint8 is converted to floats, which hold it exactly.
bel_status *bel_onnx_max_pool(bel_onnx_call *call)
{
    window w;
    bel_value *x = bel_onnx_in(call, 0);
    bel_dtype dtype = bel_value_dtype(x);
    BEL_TRY(read_pool(call, bel_value_shape(x).rank, &w));
    bool bytes = dtype == BEL_DTYPE_U8;
    if (bytes) x = bel_cast(call->graph, x, BEL_DTYPE_F32);
    bel_value *y = NULL;
    if (bel_value_shape(x).rank == 5) {
        BEL_TRY(bel_onnx_pool_volume(call, x, &w, false, &y));
    } else {
        y = bel_max_pool(call->graph, x, w.kernel.dims, &w.options, w.ceil_mode);
    }
    bel_onnx_out(call, 0, bytes ? bel_cast(call->graph, y, dtype) : y);
    return NULL;
}

bel_status *bel_onnx_average_pool(bel_onnx_call *call)
{
    window w;
    bel_value *x = bel_onnx_in(call, 0), *y = NULL;
    BEL_TRY(read_pool(call, bel_value_shape(x).rank, &w));
    if (bel_value_shape(x).rank == 5) {
        BEL_TRY(bel_onnx_pool_volume(call, x, &w, true, &y));
    } else {
        y = bel_average_pool(call->graph, x, w.kernel.dims, &w.options, w.ceil_mode,
                             w.count_include_pad);
    }
    bel_onnx_out(call, 0, y);
    return NULL;
}

// all dimensions from the third on
static const int64_t spatial[] = {2, 3, 4, 5, 6, 7};

bel_status *bel_onnx_global_max_pool(bel_onnx_call *call)
{
    int32_t rank = bel_onnx_in_shape(call, 0).rank;
    if (rank < 3) return BEL_ERR(BEL_INVALID_ARGUMENT, "an image has at least 3 dimensions");
    bel_onnx_out(call, 0,
                 bel_reduce_max(call->graph, bel_onnx_in(call, 0), spatial, rank - 2, true));
    return NULL;
}

bel_status *bel_onnx_global_average_pool(bel_onnx_call *call)
{
    bel_value *x = bel_onnx_in(call, 0);
    int32_t rank = bel_value_shape(x).rank;
    if (rank < 3) return BEL_ERR(BEL_INVALID_ARGUMENT, "an image has at least 3 dimensions");
    bel_onnx_out(call, 0,
                 rank > 4 ? bel_reduce_mean(call->graph, x, spatial, rank - 2, true)
                          : bel_global_average_pool(call->graph, x));
    return NULL;
}

// --- Normalization -------------------------------------------------------------------------------

// Scale and bias may have fewer dimensions than a row, or 1 instead of a size.
bel_status *bel_onnx_layer_norm(bel_onnx_call *call)
{
    bel_value *in[3]; // the bias may be omitted
    bel_onnx_ins(call, 3, in);
    bel_shape x = bel_value_shape(in[0]);
    int32_t axis;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), x.rank, &axis));
    BEL_TRY(bel_onnx_closed(&x, axis, "a row of LayerNormalization"));
    bel_shape row = bel_shape_make(x.rank - axis, x.dims + axis);
    for (int i = 1; i < 3; i++) {
        bel_shape have = bel_value_shape(in[i]);
        if (in[i] == NULL || bel_shape_equal(&have, &row)) continue;
        in[i] = bel_expand(call->graph, in[i], &row);
    }
    bel_value *y = bel_layer_normalization(call->graph, in[0], in[1], in[2], axis,
                                           bel_onnx_number(call, "epsilon"));
    for (int i = 0; i < 3 && y != NULL; i++)
        bel_onnx_out(call, i, bel_graph_output(y, i));
    return NULL;
}

// x / sqrt(mean of x² over all dimensions from the axis on), times a scale.
bel_status *bel_onnx_rms_norm(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *in[2];
    bel_onnx_ins(call, 2, in);
    bel_shape x = bel_value_shape(in[0]);
    bel_dtype dtype = bel_value_dtype(in[0]);
    int64_t axes[BEL_MAX_RANK];
    int32_t axis, count = 0;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), x.rank, &axis));
    for (int32_t d = axis; d < x.rank; d++)
        axes[count++] = d;
    bel_value *squares = bel_reduce_mean(graph, bel_mul(graph, in[0], in[0]), axes, count, true);
    bel_value *epsilon = bel_scalar(graph, dtype, bel_onnx_number(call, "epsilon"));
    bel_value *root = bel_sqrt(graph, bel_add(graph, squares, epsilon));
    bel_onnx_out(call, 0, bel_mul(graph, bel_div(graph, in[0], root), in[1]));
    return NULL;
}

bel_status *bel_onnx_instance_norm(bel_onnx_call *call)
{
    bel_value *in[3];
    bel_onnx_ins(call, 3, in);
    bel_onnx_out(call, 0,
                 bel_instance_normalization(call->graph, in[0], in[1], in[2],
                                            bel_onnx_number(call, "epsilon")));
    return NULL;
}

bel_status *bel_onnx_group_norm(bel_onnx_call *call)
{
    bel_value *in[3];
    bel_onnx_ins(call, 3, in);
    bel_onnx_out(call, 0,
                 bel_group_normalization(call->graph, in[0], in[1], in[2],
                                         bel_onnx_int(call, "num_groups"),
                                         bel_onnx_number(call, "epsilon")));
    return NULL;
}

// Before opset 21 scale and bias are per group: each is repeated for the group's channels.
bel_status *bel_onnx_old_group_norm(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *in[3];
    bel_onnx_ins(call, 3, in);
    bel_shape x = bel_value_shape(in[0]);
    int64_t groups = bel_onnx_int(call, "num_groups");
    if (x.rank < 2 || x.dims[1] < 1 || groups < 1 || x.dims[1] % groups != 0) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "channels of %s do not fall into %lld groups",
                       bel_shape_text(&x, text), (long long)groups);
    }
    bel_shape column = BEL_SHAPE(groups, 1), channels = BEL_SHAPE(x.dims[1]);
    bel_shape spread = BEL_SHAPE(groups, x.dims[1] / groups);
    for (int i = 1; i < 3; i++) {
        in[i] = bel_expand(graph, bel_reshape(graph, in[i], &column), &spread);
        in[i] = bel_reshape(graph, in[i], &channels);
    }
    bel_onnx_out(call, 0,
                 bel_group_normalization(graph, in[0], in[1], in[2], groups,
                                         bel_onnx_number(call, "epsilon")));
    return NULL;
}

// Training updates the statistics: outputs 1 and 2.
static bel_value *make_image_normalize(bel_onnx_call *call, bool training, bel_value **out_mean,
                                       bel_value **out_variance)
{
    bel_value *in[5];
    bel_onnx_ins(call, 5, in);
    return bel_batch_normalization(
        call->graph, in[0], in[1], in[2], in[3], in[4], bel_onnx_number(call, "epsilon"),
        bel_onnx_number(call, "momentum"), training, out_mean, out_variance);
}

bel_status *bel_onnx_batch_norm(bel_onnx_call *call)
{
    bel_value *mean, *variance;
    bool training = bel_onnx_int(call, "training_mode") != 0;
    bel_value *merged = training ? NULL : bel_onnx_merge_norm(call);
    if (merged != NULL) {
        bel_onnx_out(call, 0, merged);
        return NULL;
    }
    bel_onnx_out(call, 0, make_image_normalize(call, training, &mean, &variance));
    bel_onnx_out(call, 1, mean);
    bel_onnx_out(call, 2, variance);
    return NULL;
}

bel_status *bel_onnx_resting_batch_norm(bel_onnx_call *call)
{
    if (bel_onnx_int(call, "spatial") == 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "statistics of single activations (spatial = 0)");
    }
    bel_value *merged = bel_onnx_merge_norm(call);
    bel_onnx_out(call, 0, merged != NULL ? merged : make_image_normalize(call, false, NULL, NULL));
    return NULL;
}

bel_status *bel_onnx_old_batch_norm(bel_onnx_call *call)
{
    if (bel_onnx_int(call, "is_test") != 0) return bel_onnx_resting_batch_norm(call);
    return BEL_ERR(BEL_UNIMPLEMENTED, "training mode is read from opset 14 on (is_test = 0)");
}

// x / (bias + alpha · m)^beta, where m is the mean of x² over `size` neighboring channels; missing
// ones count as 0.
bel_status *bel_onnx_lrn(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_value *x = bel_onnx_in(call, 0);
    bel_shape shape = bel_value_shape(x);
    bel_dtype dtype = bel_value_dtype(x);
    int64_t size = bel_onnx_int(call, "size");
    if (shape.rank < 3 || size < 1 || size > INT32_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld neighbors in an image of %d dimensions",
                       (long long)size, (int)shape.rank);
    }
    BEL_TRY(bel_onnx_closed(&shape, 1, "channels are neighbors"));
    bel_shape plane = BEL_SHAPE(0, 1, shape.dims[1], -1), whole = shape;
    whole.dims[0] = 0;
    const int64_t kernel[] = {size, 1}, pads[] = {(size - 1) / 2, 0, size / 2, 0};
    bel_window_options options = {.size = sizeof options, .pads = pads};
    bel_value *mean = bel_reshape(graph, bel_mul(graph, x, x), &plane);
    mean = bel_average_pool(graph, mean, kernel, &options, false, true);
    mean = bel_reshape(graph, mean, &whole);
    bel_value *scale =
        bel_mul(graph, mean, bel_scalar(graph, dtype, bel_onnx_number(call, "alpha")));
    scale = bel_add(graph, scale, bel_scalar(graph, dtype, bel_onnx_number(call, "bias")));
    scale = bel_pow(graph, scale, bel_scalar(graph, dtype, bel_onnx_number(call, "beta")));
    bel_onnx_out(call, 0, bel_div(graph, x, scale));
    return NULL;
}

// (x - mean) / (deviation + 1e-9) over the axes. The deviation is computed from x - mean, which is
// more accurate than ONNX's difference of squares.
bel_status *bel_onnx_mean_variance_norm(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    bel_shape axes;
    BEL_TRY(bel_onnx_ints(call, "axes", &axes));
    if (axes.rank == 0) axes = BEL_SHAPE(0, 2, 3);
    bel_value *x = bel_onnx_in(call, 0);
    bel_value *centered = bel_sub(graph, x, bel_reduce_mean(graph, x, axes.dims, axes.rank, true));
    bel_value *square = bel_mul(graph, centered, centered);
    bel_value *variance = bel_reduce_mean(graph, square, axes.dims, axes.rank, true);
    bel_value *epsilon = bel_scalar(graph, bel_value_dtype(x), 1e-9);
    bel_value *deviation = bel_add(graph, bel_sqrt(graph, variance), epsilon);
    bel_onnx_out(call, 0, bel_div(graph, centered, deviation));
    return NULL;
}
