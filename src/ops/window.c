// Geometry of windows, as ONNX defines it; convolutions and pools compute sizes only here. An image
// with one spatial dimension is one of height 1, so kernels need only two dimensions. An odd pad
// that SAME computes is after (UPPER) or before (LOWER). A transposed convolution is described by
// the convolution whose gradient it is, and refused if that one would not give the sizes of x. With
// ceil_mode a window that would begin after the image is left out.
#include "ops/window.h"
#include "belfry/ops.h"

// Reads `count` integers >= low of attribute `name` into out; `otherwise` when it is missing.
static bel_status *read_list(const bel_attr_list *attrs, const char *name, int32_t count,
                             int64_t low, int64_t otherwise, int64_t *out)
{
    const bel_shape *list = bel_attr_ints(attrs, name);
    if (list != NULL && list->rank != count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s needs %d numbers, got %d", name, (int)count,
                       (int)list->rank);
    }
    for (int32_t i = 0; i < count; i++) {
        out[i] = list == NULL ? otherwise : list->dims[i];
        if (list == NULL || (out[i] >= low && out[i] <= INT32_MAX)) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be at least %lld, got %lld", name,
                       (long long)low, (long long)out[i]);
    }
    return NULL;
}

static int64_t extent(const bel_window *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

// Pads and positions of dimension d, by auto_pad, pads and ceil_mode.
static bel_status *window_place(const bel_attr_list *attrs, bel_window *w, int d)
{
    int64_t auto_pad = bel_attr_whole(attrs, "auto_pad", BEL_PAD_EXPLICIT);
    int64_t in = w->in[d], stride = w->stride[d];
    if (auto_pad == BEL_PAD_SAME_UPPER || auto_pad == BEL_PAD_SAME_LOWER) {
        w->out[d] = (in + stride - 1) / stride;
        int64_t total = (w->out[d] - 1) * stride + extent(w, d) - in;
        if (total < 0) total = 0;
        w->pad[d] = auto_pad == BEL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        w->pad_end[d] = total - w->pad[d];
        return NULL;
    }
    if (auto_pad == BEL_PAD_VALID) w->pad[d] = w->pad_end[d] = 0;
    int64_t room = in + w->pad[d] + w->pad_end[d] - extent(w, d);
    if (room < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a window of %lld does not fit into %lld with pads of %lld and %lld",
                       (long long)extent(w, d), (long long)in, (long long)w->pad[d],
                       (long long)w->pad_end[d]);
    }
    bool ceil_mode = bel_attr_number(attrs, "ceil_mode", 0) != 0;
    w->out[d] = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    // A window that would begin after the image is left out.
    if (ceil_mode && (w->out[d] - 1) * stride >= in + w->pad[d]) w->out[d]--;
    return NULL;
}

// Reads the common part of all windows: kernel, strides, dilations and pads as given.
static bel_status *read_window(const bel_attr_list *attrs, const bel_shape *x,
                               const int64_t *kernel, bel_window *out_window)
{
    int32_t spatial = x->rank - 2, first = 2 - spatial;
    char text[BEL_SHAPE_TEXT];
    if (spatial < 1 || spatial > 2 || x->dims[1] < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected x [n, c, w] or [n, c, h, w], got %s",
                       bel_shape_text(x, text));
    }
    bel_window w = {.in = {1, 1},
                    .out = {1, 1},
                    .kernel = {1, 1},
                    .stride = {1, 1},
                    .dilation = {1, 1},
                    .pad = {0, 0}};
    int64_t pads[4];
    BEL_TRY(read_list(attrs, "strides", spatial, 1, 1, w.stride + first));
    BEL_TRY(read_list(attrs, "dilations", spatial, 1, 1, w.dilation + first));
    BEL_TRY(read_list(attrs, "pads", 2 * spatial, 0, 0, pads));
    for (int d = first; d < 2; d++) {
        w.kernel[d] = kernel[d - first];
        w.pad[d] = pads[d - first];
        w.pad_end[d] = pads[d - first + spatial];
        if (x->dims[d - first + 2] >= 1 && w.kernel[d] >= 1 && w.kernel[d] <= INT32_MAX) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a window of %lld over an image %s",
                       (long long)w.kernel[d], bel_shape_text(x, text));
    }
    *out_window = w;
    return NULL;
}

bel_status *bel_window_make(const bel_attr_list *attrs, const bel_shape *x, const int64_t *kernel,
                            bel_window *out_window)
{
    bel_window w;
    BEL_TRY(read_window(attrs, x, kernel, &w));
    for (int d = 4 - x->rank; d < 2; d++) {
        w.in[d] = x->dims[d + x->rank - 2];
        BEL_TRY(window_place(attrs, &w, d));
    }
    *out_window = w;
    return NULL;
}

// Computes the pads for a result of given size: the excess of the windows, half on either side.
static void pad_for(const bel_attr_list *attrs, bel_window *w, int d, int64_t covered)
{
    int64_t total = covered - w->in[d];
    if (total < 0) total = 0;
    bool upper = bel_attr_whole(attrs, "auto_pad", BEL_PAD_EXPLICIT) == BEL_PAD_SAME_UPPER;
    w->pad[d] = upper ? total / 2 : total - total / 2;
    w->pad_end[d] = total - w->pad[d];
}

// As ONNX defines it; `shape` is output_shape, 0: unset.
static bel_status *place_transposed(const bel_attr_list *attrs, bel_window *w, int d,
                                    int64_t padding, int64_t shape)
{
    int64_t auto_pad = bel_attr_whole(attrs, "auto_pad", BEL_PAD_EXPLICIT);
    if (w->out[d] > INT64_MAX / 4 / w->stride[d]) { // so that sums below cannot overflow
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld elements at strides of %lld are too many",
                       (long long)w->out[d], (long long)w->stride[d]);
    }
    int64_t covered = (w->out[d] - 1) * w->stride[d] + extent(w, d) + padding;
    bool same = auto_pad == BEL_PAD_SAME_UPPER || auto_pad == BEL_PAD_SAME_LOWER;
    if (shape > 0 || same) {
        w->in[d] = shape > 0 ? shape : w->out[d] * w->stride[d];
        pad_for(attrs, w, d, covered);
    } else {
        if (auto_pad == BEL_PAD_VALID) w->pad[d] = w->pad_end[d] = 0;
        w->in[d] = covered - w->pad[d] - w->pad_end[d];
    }
    int64_t room = w->in[d] + w->pad[d] + w->pad_end[d] - extent(w, d);
    if (w->in[d] >= 1 && room >= 0 && room / w->stride[d] + 1 == w->out[d]) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%lld elements with windows of %lld at strides of %lld cannot become %lld with "
                   "pads of %lld and %lld: output padding must be less than the stride",
                   (long long)w->out[d], (long long)extent(w, d), (long long)w->stride[d],
                   (long long)w->in[d], (long long)w->pad[d], (long long)w->pad_end[d]);
}

bel_status *bel_window_make_transposed(const bel_attr_list *attrs, const bel_shape *x,
                                       const int64_t *kernel, bel_window *out_window)
{
    bel_window w;
    int32_t first = 4 - x->rank;
    int64_t padding[2], shape[2];
    BEL_TRY(read_window(attrs, x, kernel, &w));
    BEL_TRY(read_list(attrs, "output_padding", x->rank - 2, 0, 0, padding + first));
    BEL_TRY(read_list(attrs, "output_shape", x->rank - 2, 1, 0, shape + first));
    for (int d = first; d < 2; d++) {
        w.out[d] = x->dims[d + x->rank - 2];
        BEL_TRY(place_transposed(attrs, &w, d, padding[d], shape[d]));
    }
    *out_window = w;
    return NULL;
}

bel_shape bel_window_shape(const bel_window *window, const bel_shape *x, int64_t channels)
{
    bel_shape y = *x;
    y.dims[1] = channels;
    for (int32_t i = 2; i < x->rank; i++)
        y.dims[i] = window->out[i - x->rank + 2];
    return y;
}

bel_image_steps bel_image_steps_of(const bel_shape *shape, bool channels_last)
{
    int64_t columns = shape->dims[shape->rank - 1], channels = shape->dims[1];
    int64_t rows = shape->rank > 3 ? shape->dims[2] : 1;
    bel_image_steps steps = {.image = channels * rows * columns};
    steps.channel = channels_last ? 1 : rows * columns;
    steps.column = channels_last ? channels : 1;
    steps.row = columns * steps.column;
    return steps;
}
