// Conv and its gradients: x [n, c, w] or [n, c, h, w], weights [o, c / group, kernel…], y [n, o,
// …]. ConvTranspose is the gradient of a convolution with regard to its input, so that
// convolution's y is the operation's x.

#include "ops/kernels/conv.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *check_types(const bel_spec *inputs, int count)
{
    bel_dtype dtype = inputs[0].dtype;
    bool same = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
    for (int i = 1; i < count; i++)
        same = same && inputs[i].dtype == dtype;
    if (same) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected inputs of one type, f32 or f64");
}

// Kernels work on an image with its pads, which may be far larger than all of a graph's values: the
// product of its sizes must still fit.
static bel_status *check_padded(const bel_window *window, int64_t channels)
{
    const int64_t most = INT64_C(1) << 48;
    bel_shape padded = BEL_SHAPE(channels, window->in[0] + window->pad[0] + window->pad_end[0],
                                 window->in[1] + window->pad[1] + window->pad_end[1]);
    if (bel_shape_elements(&padded) <= most) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "a padded image %s would have too many elements",
                   bel_shape_text(&padded, text));
}

// Reads the shape of a convolution of x with w; y of `out_shape` is inferred. Only n may be open.
static bel_status *read_shape(const bel_attr_list *attrs, const bel_shape *x, const bel_shape *w,
                              bel_conv_shape *out_shape)
{
    int64_t groups = bel_attr_whole(attrs, "group", 1);
    char xt[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    bool fits = w->rank == x->rank && x->rank >= 3 && groups >= 1 && w->dims[0] >= 1 &&
                w->dims[1] >= 1 && w->dims[0] % groups == 0 && x->dims[1] == w->dims[1] * groups;
    if (!fits) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "x %s and weights %s do not fit with %lld groups: expected x [n, c, ...] and "
            "weights [o, c / groups, ...] of the same rank",
            bel_shape_text(x, xt), bel_shape_text(w, wt), (long long)groups);
    }
    bel_conv_shape shape = {.n = x->dims[0],
                            .groups = groups,
                            .in = w->dims[1],
                            .out = w->dims[0] / groups,
                            .x = *x,
                            .w = *w};
    BEL_TRY(bel_window_make(attrs, x, w->dims + 2, &shape.window));
    BEL_TRY(check_padded(&shape.window, x->dims[1] > w->dims[0] ? x->dims[1] : w->dims[0]));
    shape.y = bel_window_shape(&shape.window, x, w->dims[0]);
    *out_shape = shape;
    return NULL;
}

static bel_status *check_bias(const bel_spec *bias, int64_t channels)
{
    bel_shape want = BEL_SHAPE(channels);
    if (bel_shape_equal(&bias->shape, &want)) return NULL;
    char ht[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a bias %s, got %s", bel_shape_text(&want, wt),
                   bel_shape_text(&bias->shape, ht));
}

bel_status *bel_infer_conv(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    bel_conv_shape shape;
    BEL_TRY(check_types(inputs, input_count));
    BEL_TRY(read_shape(attrs, &inputs[0].shape, &inputs[1].shape, &shape));
    out_outputs[0] = (bel_spec){inputs[0].dtype, shape.y};
    return input_count < 3 ? NULL : check_bias(&inputs[2], shape.w.dims[0]);
}

static bel_status *infer_gradient(const bel_attr_list *attrs, const bel_spec *inputs,
                                  const bel_shape *x, const bel_shape *w)
{
    bel_conv_shape shape;
    BEL_TRY(check_types(inputs, 3));
    BEL_TRY(read_shape(attrs, x, w, &shape));
    if (bel_shape_equal(&inputs[0].shape, &shape.y)) return NULL;
    char have[BEL_SHAPE_TEXT], want[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected dy %s, got %s", bel_shape_text(&shape.y, want),
                   bel_shape_text(&inputs[0].shape, have));
}

bel_status *bel_infer_conv_grad_input(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    out_outputs[0] = inputs[2];
    return infer_gradient(attrs, inputs, &inputs[2].shape, &inputs[1].shape);
}

bel_status *bel_infer_conv_grad_weights(const bel_attr_list *attrs, const bel_spec *inputs,
                                        int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    out_outputs[0] = inputs[2];
    return infer_gradient(attrs, inputs, &inputs[1].shape, &inputs[2].shape);
}

// Reads the convolution whose input gradient is the transposed one of x [n, o, …] with weights [o,
// c / groups, …]: its y is x, and its x in `out_shape` is inferred.
static bel_status *read_transposed(const bel_attr_list *attrs, const bel_shape *x,
                                   const bel_shape *w, bel_conv_shape *out_shape)
{
    int64_t groups = bel_attr_whole(attrs, "group", 1);
    char xt[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    bool fits = w->rank == x->rank && x->rank >= 3 && groups >= 1 && w->dims[0] >= 1 &&
                w->dims[1] >= 1 && w->dims[0] % groups == 0 && x->dims[1] == w->dims[0];
    if (!fits) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "x %s and weights %s do not fit with %lld groups: expected x [n, c, ...] "
                       "and weights [c, o / groups, ...] of the same rank",
                       bel_shape_text(x, xt), bel_shape_text(w, wt), (long long)groups);
    }
    bel_conv_shape shape = {.n = x->dims[0],
                            .groups = groups,
                            .in = w->dims[1],
                            .out = w->dims[0] / groups,
                            .x = *x,
                            .w = *w,
                            .y = *x};
    BEL_TRY(bel_window_make_transposed(attrs, x, w->dims + 2, &shape.window));
    shape.x.dims[1] = w->dims[1] * groups;
    BEL_TRY(
        check_padded(&shape.window, x->dims[1] > shape.x.dims[1] ? x->dims[1] : shape.x.dims[1]));
    for (int32_t i = 2; i < x->rank; i++)
        shape.x.dims[i] = shape.window.in[i - x->rank + 2];
    *out_shape = shape;
    return NULL;
}

bel_status *bel_infer_conv_transpose(const bel_attr_list *attrs, const bel_spec *inputs,
                                     int input_count, bel_spec *out_outputs)
{
    bel_conv_shape shape;
    BEL_TRY(check_types(inputs, input_count));
    BEL_TRY(read_transposed(attrs, &inputs[0].shape, &inputs[1].shape, &shape));
    out_outputs[0] = (bel_spec){inputs[0].dtype, shape.x};
    return input_count < 3 ? NULL : check_bias(&inputs[2], shape.x.dims[1]);
}

// --- Plain kernel --------------------------------------------------------------------------------

// One product of the convolution: elements of x, w and y.
typedef void visit_fn(const bel_kernel_call *call, int64_t x, int64_t w, int64_t y);

// Visits all products of y [image, o, row, column]: the taps [first, end) of each dimension inside
// x, over the input channels of the output channel's group. Elements are row-major: x [n, channels,
// rows, columns], w [o, c, taps, taps].
static void visit_position(const bel_kernel_call *call, visit_fn *visit, int64_t image, int64_t o,
                           int64_t row, int64_t column)
{
    const bel_conv_shape *s = call->params;
    const bel_window *w = &s->window;
    int64_t first[2], end[2], at[2] = {row, column}, group = o / s->out;
    for (int d = 0; d < 2; d++)
        bel_window_inside(w, d, at[d], &first[d], &end[d]);
    int64_t y = ((image * s->groups * s->out + o) * w->out[0] + row) * w->out[1] + column;
    for (int64_t c = 0; c < s->in; c++) {
        for (int64_t i = first[0]; i < end[0]; i++) {
            for (int64_t j = first[1]; j < end[1]; j++) {
                int64_t x_row = row * w->stride[0] - w->pad[0] + i * w->dilation[0];
                int64_t x_column = column * w->stride[1] - w->pad[1] + j * w->dilation[1];
                int64_t channel = (image * s->groups + group) * s->in + c;
                visit(call, (channel * w->in[0] + x_row) * w->in[1] + x_column,
                      ((o * s->in + c) * w->kernel[0] + i) * w->kernel[1] + j, y);
            }
        }
    }
}

static void visit_all(const bel_kernel_call *call, visit_fn *visit)
{
    const bel_conv_shape *s = call->params;
    for (int64_t image = 0; image < s->n; image++)
        for (int64_t o = 0; o < s->groups * s->out; o++)
            for (int64_t row = 0; row < s->window.out[0]; row++)
                for (int64_t column = 0; column < s->window.out[1]; column++)
                    visit_position(call, visit, image, o, row, column);
}

static void add_product(const bel_tensor *sum, int64_t at, double a, double b)
{
    bel_element_set(sum, at, bel_element_get(sum, at) + a * b);
}

static void visit_output(const bel_kernel_call *call, int64_t x, int64_t w, int64_t y)
{
    add_product(&call->outputs[0], y, bel_element_get(&call->inputs[0], x),
                bel_element_get(&call->inputs[1], w));
}

static void visit_grad_input(const bel_kernel_call *call, int64_t x, int64_t w, int64_t y)
{
    add_product(&call->outputs[0], x, bel_element_get(&call->inputs[0], y),
                bel_element_get(&call->inputs[1], w));
}

static void visit_grad_weights(const bel_kernel_call *call, int64_t x, int64_t w, int64_t y)
{
    add_product(&call->outputs[0], w, bel_element_get(&call->inputs[0], y),
                bel_element_get(&call->inputs[1], x));
}

// The result begins as the bias or 0 and accumulates its products. The operation determines which
// two operands are multiplied into the third. "y" of a transposed convolution is its input.
static void run_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_conv_shape *s = call->params;
    const bel_tensor *result = &call->outputs[0];
    bool transposed = call->op == BEL_OP_CONV_TRANSPOSE;
    const int64_t *size = transposed ? s->window.in : s->window.out;
    int64_t positions = size[0] * size[1], channels = result->shape.dims[1];
    bool bias = (call->op == BEL_OP_CONV || transposed) && call->input_count > 2;
    for (int64_t i = 0; i < bel_shape_elements(&result->shape); i++) {
        int64_t channel = i / positions % channels;
        bel_element_set(result, i, bias ? bel_element_get(&call->inputs[2], channel) : 0.0);
    }
    visit_all(call, call->op == BEL_OP_CONV                ? visit_output
                    : call->op == BEL_OP_CONV_GRAD_WEIGHTS ? visit_grad_weights
                                                           : visit_grad_input);
}

// --- Choice --------------------------------------------------------------------------------------

typedef void prepare_fast_fn(const bel_prepare *prepare, bel_kernel_call *call,
                             const bel_conv_shape *shape);

static void prepare_shape(const bel_prepare *prepare, bel_kernel_call *call,
                          const bel_conv_shape *shape, prepare_fast_fn *fast)
{
    if (!bel_prepares_plain(prepare, call)) {
        fast(prepare, call, shape);
        return;
    }
    call->run = run_reference;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, shape, sizeof *shape);
}

static void prepare_with(const bel_prepare *prepare, bel_kernel_call *call, int x, int w,
                         prepare_fast_fn *fast)
{
    bel_conv_shape shape;
    bel_status_ignore(read_shape(prepare->attrs, &call->inputs[x].shape, &call->inputs[w].shape,
                                 &shape)); // inferred
    prepare_shape(prepare, call, &shape, fast);
}

void bel_prepare_conv(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, 0, 1, bel_conv_prepare_output);
}

void bel_prepare_conv_grad_input(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, 2, 1, bel_conv_prepare_input);
}

void bel_prepare_conv_grad_weights(const bel_prepare *prepare, bel_kernel_call *call)
{
    prepare_with(prepare, call, 1, 2, bel_conv_prepare_weights);
}

void bel_prepare_conv_transpose(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_conv_shape shape;
    bel_status_ignore(read_transposed(prepare->attrs, &call->inputs[0].shape,
                                      &call->inputs[1].shape, &shape)); // inferred
    prepare_shape(prepare, call, &shape, bel_conv_prepare_input);
}
