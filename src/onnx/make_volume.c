// Convolutions and pools over three spatial dimensions, composed of those over two.
//
// A convolution treats the planes under a window as additional channels: x [n, c, d, h, w] becomes
// [n · d', c · kd, h, w], and the memory layout of the weights fits, as [o, c · kd, kh, kw]. A
// maximum is found first within planes and then across them. The same holds for a mean, because the
// number of elements in a window is the product of those along its sides, padded or not.
#include "onnx/make.h"
#include "onnx/windows.h"

// Parameters along depth.
typedef struct depth {
    int64_t kernel, stride, dilation, before, behind, out;
} depth;

static int64_t item(const bel_shape *list, int32_t i, int64_t otherwise)
{
    return i < list->rank ? list->dims[i] : otherwise;
}

static bel_status *read_depth(const bel_onnx_window *w, int64_t size, int64_t kernel, depth *out)
{
    const int64_t most = INT32_MAX;
    depth d = {.kernel = kernel,
               .stride = item(&w->strides, 0, 1),
               .dilation = item(&w->dilations, 0, 1),
               .before = item(&w->pads, 0, 0),
               .behind = item(&w->pads, 3, 0)};
    const int64_t numbers[] = {d.kernel,     d.stride,     d.dilation,
                               d.before + 1, d.behind + 1, size + 1};
    for (int i = 0; i < 6; i++) {
        if (numbers[i] >= 1 && numbers[i] <= most) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a window along the depth of %lld does not fit",
                       (long long)size);
    }
    int64_t covered = (d.kernel - 1) * d.dilation + 1;
    bool same =
        w->options.auto_pad == BEL_PAD_SAME_UPPER || w->options.auto_pad == BEL_PAD_SAME_LOWER;
    if (same) {
        int64_t out_size = (size + d.stride - 1) / d.stride;
        int64_t missing = (out_size - 1) * d.stride + covered - size;
        if (missing < 0) missing = 0;
        d.before = w->options.auto_pad == BEL_PAD_SAME_UPPER ? missing / 2 : missing - missing / 2;
        d.behind = missing - d.before;
    } else if (w->options.auto_pad == BEL_PAD_VALID) {
        d.before = d.behind = 0;
    }
    int64_t free = size + d.before + d.behind - covered;
    if (free < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a window of %lld planes is larger than the depth",
                       (long long)covered);
    }
    d.out = free / d.stride + 1;
    *out = d;
    return NULL;
}

// Makes the window in a plane. Its lists are in `to`.
static void plane_window(const bel_onnx_window *w, bel_onnx_window *to)
{
    *to = (bel_onnx_window){
        .options = {.size = sizeof(bel_window_options), .auto_pad = w->options.auto_pad}};
    to->strides = BEL_SHAPE(item(&w->strides, 1, 1), item(&w->strides, 2, 1));
    to->dilations = BEL_SHAPE(item(&w->dilations, 1, 1), item(&w->dilations, 2, 1));
    to->pads = BEL_SHAPE(item(&w->pads, 1, 0), item(&w->pads, 2, 0), item(&w->pads, 4, 0),
                         item(&w->pads, 5, 0));
    to->options.strides = to->strides.dims;
    to->options.dilations = to->dilations.dims;
    if (w->pads.rank > 0) to->options.pads = to->pads.dims;
}

// Reshapes x [n, c, d, h, w] to [n · d', c · kd, h, w].
static bel_value *planes_as_channels(bel_graph *graph, bel_value *x, const depth *d)
{
    bel_shape s = bel_value_shape(x);
    const int64_t before[] = {0, 0, d->before, 0, 0}, behind[] = {0, 0, d->behind, 0, 0};
    const int64_t axis = 2, perm[] = {0, 3, 1, 2, 4, 5};
    x = bel_pad(graph, x, before, behind, BEL_PAD_CONSTANT, 0);
    bel_value *parts[BEL_OP_MAX_INPUTS], *all = NULL;
    int count = 0;
    for (int64_t k = 0; k < d->kernel && x != NULL; k++) {
        int64_t start = k * d->dilation, end = start + (d->out - 1) * d->stride + 1;
        bel_value *part = bel_slice(graph, x, &axis, &start, &end, &d->stride, 1);
        if (count == BEL_OP_MAX_INPUTS) {
            parts[0] = bel_concat(graph, parts, count, 2);
            count = 1;
        }
        parts[count++] = bel_unsqueeze(graph, part, &axis, 1);
    }
    if (x != NULL) all = bel_concat(graph, parts, count, 2);
    bel_shape flat = BEL_SHAPE(-1, s.dims[1] * d->kernel, s.dims[3], s.dims[4]);
    return bel_reshape(graph, bel_transpose(graph, all, perm), &flat);
}

bel_status *bel_onnx_conv_volume(bel_onnx_call *call, const bel_onnx_window *window)
{
    bel_graph *graph = call->graph;
    bel_value *in[3]; // the bias may be omitted
    bel_onnx_ins(call, 3, in);
    bel_shape x = bel_value_shape(in[0]), weights = bel_value_shape(in[1]);
    BEL_TRY(bel_onnx_closed(&x, 1, "a convolution of three dimensions takes it apart"));
    if (weights.rank != 5) return BEL_ERR(BEL_INVALID_ARGUMENT, "weights must have 5 dimensions");
    depth d;
    BEL_TRY(read_depth(window, x.dims[2], weights.dims[2], &d));
    if (d.kernel > BEL_GRAPH_MAX_ELEMENTS / (x.dims[1] + 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a window of %lld planes", (long long)d.kernel);
    }
    bel_onnx_window plane;
    plane_window(window, &plane);
    bel_shape flat =
        BEL_SHAPE(weights.dims[0], weights.dims[1] * d.kernel, weights.dims[3], weights.dims[4]);
    bel_value *planes = planes_as_channels(graph, in[0], &d);
    bel_value *y = bel_conv(graph, planes, bel_reshape(graph, in[1], &flat), in[2],
                            bel_onnx_int(call, "group"), &plane.options);
    bel_shape s = bel_value_shape(y);
    if (y != NULL) {
        bel_shape apart = BEL_SHAPE(-1, d.out, s.dims[1], s.dims[2], s.dims[3]);
        const int64_t perm[] = {0, 2, 1, 3, 4};
        y = bel_transpose(graph, bel_reshape(graph, y, &apart), perm);
    }
    bel_onnx_out(call, 0, y);
    return NULL;
}

static bel_value *pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                       const bel_window_options *options, const bel_onnx_window *w, bool average)
{
    return average ? bel_average_pool(graph, x, kernel, options, w->ceil_mode, w->count_include_pad)
                   : bel_max_pool(graph, x, kernel, options, w->ceil_mode);
}

bel_status *bel_onnx_pool_volume(bel_onnx_call *call, bel_value *x, const bel_onnx_window *window,
                                 bool average, bel_value **out_y)
{
    bel_graph *graph = call->graph;
    bel_shape s = bel_value_shape(x);
    BEL_TRY(bel_onnx_closed(&s, 1, "a pool of three dimensions takes it apart"));
    bel_onnx_window plane, across = {.options = {.size = sizeof(bel_window_options),
                                                 .auto_pad = window->options.auto_pad}};
    plane_window(window, &plane);
    bel_shape planes = BEL_SHAPE(0, s.dims[1] * s.dims[2], s.dims[3], s.dims[4]);
    bel_value *y = bel_reshape(graph, x, &planes);
    y = pool(graph, y, window->kernel.dims + 1, &plane.options, window, average);
    bel_shape p = bel_value_shape(y);
    *out_y = NULL;
    if (y == NULL) return NULL; // the graph has the error
    bel_shape columns = BEL_SHAPE(0, s.dims[1], s.dims[2], p.dims[2] * p.dims[3]);
    across.strides = BEL_SHAPE(item(&window->strides, 0, 1), 1);
    across.dilations = BEL_SHAPE(item(&window->dilations, 0, 1), 1);
    across.pads = BEL_SHAPE(item(&window->pads, 0, 0), 0, item(&window->pads, 3, 0), 0);
    across.options.strides = across.strides.dims;
    across.options.dilations = across.dilations.dims;
    if (window->pads.rank > 0) across.options.pads = across.pads.dims;
    const int64_t kernel[] = {window->kernel.dims[0], 1};
    y = pool(graph, bel_reshape(graph, y, &columns), kernel, &across.options, window, average);
    if (y == NULL) return NULL;
    bel_shape whole = BEL_SHAPE(0, s.dims[1], bel_value_shape(y).dims[2], p.dims[2], p.dims[3]);
    *out_y = bel_reshape(graph, y, &whole);
    return NULL;
}
