// BatchNormalization, its gradient, and sums over all but the channels: x [n, c, …].
//
// Sums run over parts of the batch, and chains of pixels in each (norm.h), divided only by shape,
// in double; they are added in order. `before` makes the parts, `run` normalizes images.
//
// Over all replicas both passes are split in two, and replicas exchange in between: moments of x,
// then MomentsNorm, which uses those of all replicas together; and sums of dy, then
// MomentsNormGrad. Each half processes its images like the same half of BatchNormalization.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/channel_norm.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/norm.h"
#include "tensor/moments.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *needs_image(const bel_shape *x)
{
    if (x->rank >= 2 && x->dims[1] >= 1) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected x [n, c, ...], got %s", bel_shape_text(x, text));
}

bel_status *bel_infer_channel_sum(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    out_outputs[0].shape = BEL_SHAPE(inputs[0].shape.dims[1]);
    return NULL;
}

// inputs[first … end) must be vectors of x's channels and type.
static bel_status *check_vectors(const bel_spec *inputs, const bel_spec *x, int first, int end)
{
    bel_shape want = BEL_SHAPE(x->shape.dims[1]);
    for (int i = first; i < end; i++) {
        bool same = inputs[i].dtype == x->dtype && bel_shape_equal(&inputs[i].shape, &want);
        char wt[BEL_SHAPE_TEXT], ht[BEL_SHAPE_TEXT];
        if (same) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d: expected %s %s, got %s %s", i,
                       bel_dtype_name(x->dtype), bel_shape_text(&want, wt),
                       bel_dtype_name(inputs[i].dtype), bel_shape_text(&inputs[i].shape, ht));
    }
    return NULL;
}

// A matrix [rows, channels] of x's type.
static bel_status *check_rows(const bel_spec *matrix, const bel_spec *x, int64_t rows)
{
    bel_shape want = BEL_SHAPE(rows, x->shape.dims[1]);
    if (matrix->dtype == x->dtype && bel_shape_equal(&matrix->shape, &want)) return NULL;
    char wt[BEL_SHAPE_TEXT], ht[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected %s %s, got %s %s", bel_dtype_name(x->dtype),
                   bel_shape_text(&want, wt), bel_dtype_name(matrix->dtype),
                   bel_shape_text(&matrix->shape, ht));
}

bel_status *bel_infer_batch_norm(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    BEL_TRY(check_vectors(inputs, &inputs[0], 1, 5));
    for (int i = 1; i < 5; i++)
        out_outputs[i] = inputs[1];
    return NULL;
}

bel_status *bel_infer_batch_norm_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(bel_infer_binary_same(attrs, inputs, 2, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    BEL_TRY(check_vectors(inputs, &inputs[0], 2, 5));
    out_outputs[1] = out_outputs[2] = inputs[2];
    return NULL;
}

// x, scale, bias, moments [3, c].
bel_status *bel_infer_moments_norm(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    BEL_TRY(check_vectors(inputs, &inputs[0], 1, 3));
    BEL_TRY(check_rows(&inputs[3], &inputs[0], BEL_MOMENTS_ROWS));
    out_outputs[1] = inputs[3];
    return NULL;
}

// mean, variance, moments [3, c].
bel_status *bel_infer_moments_move(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(bel_infer_binary_same(attrs, inputs, 2, out_outputs));
    if (inputs[0].shape.rank != 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected vectors, got rank %d",
                       (int)inputs[0].shape.rank);
    const bel_spec image = {inputs[0].dtype, BEL_SHAPE(1, inputs[0].shape.dims[0])};
    BEL_TRY(check_rows(&inputs[2], &image, BEL_MOMENTS_ROWS));
    out_outputs[1] = inputs[0];
    return NULL;
}

bel_status *bel_infer_batch_moments(const bel_attr_list *attrs, const bel_spec *inputs,
                                    int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_channel_sum(attrs, inputs, input_count, out_outputs));
    out_outputs[0].shape = BEL_SHAPE(BEL_MOMENTS_ROWS, inputs[0].shape.dims[1]);
    return NULL;
}

// dy, x, statistics [3, c].
bel_status *bel_infer_moments_norm_sums(const bel_attr_list *attrs, const bel_spec *inputs,
                                        int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(bel_infer_binary_same(attrs, inputs, 2, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    BEL_TRY(check_rows(&inputs[2], &inputs[0], BEL_MOMENTS_ROWS));
    int64_t channels = inputs[0].shape.dims[1];
    out_outputs[0].shape = BEL_SHAPE(2, channels);
    out_outputs[1] = out_outputs[2] = (bel_spec){inputs[0].dtype, BEL_SHAPE(channels)};
    return NULL;
}

// dy, x, statistics [3, c], scale, sums [2, c].
bel_status *bel_infer_moments_norm_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                        int input_count, bel_spec *out_outputs)
{
    bel_spec made[3];
    BEL_TRY(bel_infer_moments_norm_sums(attrs, inputs, input_count, made));
    BEL_TRY(check_vectors(inputs, &inputs[0], 3, 4));
    BEL_TRY(check_rows(&inputs[4], &inputs[0], 2));
    out_outputs[0] = inputs[0];
    return NULL;
}

// --- Sums ----------------------------------------------------------------------------------------

// True where dy comes first and x second.
static bool is_gradient(bel_op op)
{
    return op == BEL_OP_BATCH_NORM_GRAD || op == BEL_OP_MOMENTS_NORM_SUMS ||
           op == BEL_OP_MOMENTS_NORM_GRAD;
}

// True where the channels of a pixel, and the pixels of an image, are neighbors.
static bool is_dense(const bel_channel_norm *p, const bel_image_steps *steps)
{
    return steps->channel == 1 && steps->column == p->channels;
}

// Adds u and u · v (v may be NULL) of `count` pixels of one image, from number `first` on, to
// sums[0 … channels) and the `channels` after them. (Rows are one: see make_params.)
static void add_pixels(const bel_channel_norm *p, const float *u, const float *v, int64_t first,
                       int64_t count, double *sums)
{
    double *products = sums + p->channels;
    u += first * p->u.column;
    if (v != NULL) v += first * p->v.column;
    if (is_dense(p, &p->u) && (v == NULL || is_dense(p, &p->v))) {
        bel_cpu_kernels_get()->sum_channels(u, v, count, p->channels, sums, products);
        return;
    }
    for (int64_t column = 0; column < count; column++) {
        const float *a = u + column * p->u.column;
        for (int64_t c = 0; c < p->channels; c++)
            sums[c] += (double)a[c * p->u.channel];
        if (v == NULL) continue;
        const float *b = v + column * p->v.column;
        for (int64_t c = 0; c < p->channels; c++)
            products[c] += (double)a[c * p->u.channel] * (double)b[c * p->v.channel];
    }
}

// Adds both sums of a chain to those of its part, and begins the next one.
static void end_chain(const bel_channel_norm *p, double *chain, double *sums)
{
    for (int64_t c = 0; c < 2 * p->channels; c++)
        sums[c] += chain[c];
    memset(chain, 0, 2 * (size_t)p->channels * sizeof *chain);
}

// Sums u = input 0 and u · v; v is input 1 of a gradient, else u itself. The workspace has the sums
// of all parts, followed by those of each part's current chain.
static void run_parts(const bel_kernel_call *call, int64_t tile)
{
    const bel_channel_norm *p = call->params;
    double *sums = (double *)call->workspace + tile * 2 * p->channels;
    double *chain = sums + p->parts * 2 * p->channels;
    memset(sums, 0, 2 * (size_t)p->channels * sizeof *sums);
    memset(chain, 0, 2 * (size_t)p->channels * sizeof *chain);
    int64_t begin = tile * p->images_per_part, end = begin + p->images_per_part;
    if (end > p->n) end = p->n;
    const float *u = call->inputs[0].data;
    const float *v = call->op == BEL_OP_CHANNEL_SUM ? NULL
                     : is_gradient(call->op)        ? call->inputs[1].data
                                                    : u;
    int64_t pixels = p->rows * p->columns, left = p->pixels_per_chain;
    for (int64_t i = begin; i < end; i++) {
        int64_t count;
        for (int64_t first = 0; first < pixels; first += count) {
            count = pixels - first < left ? pixels - first : left;
            add_pixels(p, u + i * p->u.image, v == NULL ? NULL : v + i * p->v.image, first, count,
                       chain);
            left -= count;
            if (left > 0) continue;
            end_chain(p, chain, sums);
            left = p->pixels_per_chain;
        }
    }
    end_chain(p, chain, sums);
}

// Returns sum number `which` (0: u, 1: u · v) of channel c over all parts; 0 without parts.
static double norm_total(const bel_kernel_call *call, int which, int64_t c)
{
    const bel_channel_norm *p = call->params;
    if (call->workspace == NULL) return 0;
    const double *sums = (const double *)call->workspace + which * p->channels + c;
    double sum = 0;
    for (int64_t part = 0; part < p->parts; part++)
        sum += sums[part * 2 * p->channels];
    return sum;
}

static double count_of(const bel_channel_norm *p)
{
    return (double)(p->n * p->rows * p->columns);
}

static void set_moments(const bel_kernel_call *call, int64_t c, double sum, double squares)
{
    const bel_channel_norm *p = call->params;
    const bel_tensor *to = &call->outputs[0];
    double count = count_of(p), mean = count > 0 ? sum / count : 0;
    bool by_sums = p->by_sums;
    bel_element_set(to, BEL_MOMENTS_COUNT * p->channels + c, count);
    bel_element_set(to, BEL_MOMENTS_MEAN * p->channels + c, by_sums ? sum : mean);
    bel_element_set(to, BEL_MOMENTS_SQUARES * p->channels + c,
                    by_sums ? squares : bel_larger_of(squares - mean * sum, 0));
}

// Element c of a row of a matrix [rows, channels].
static double row_get(const bel_channel_norm *p, const bel_tensor *matrix, int64_t row, int64_t c)
{
    return bel_element_get(matrix, row * p->channels + c);
}

// Sets Σ dy and Σ dy x', x' = (x - mean) / deviation, for the exchange; and as dscale and dbias.
static void set_gradient_sums(const bel_kernel_call *call, int64_t c, double sum, double products)
{
    const bel_channel_norm *p = call->params;
    const bel_tensor *whole = &call->inputs[2];
    double mean = row_get(p, whole, BEL_WHOLE_MEAN, c),
           inverse = row_get(p, whole, BEL_WHOLE_INVERSE, c);
    double scaled = bel_channel_scaled(sum, products, mean, inverse);
    bel_element_set(&call->outputs[0], c, sum);
    bel_element_set(&call->outputs[0], p->channels + c, scaled);
    bel_element_set(&call->outputs[1], c, scaled);
    bel_element_set(&call->outputs[2], c, sum);
}

// Sets the results of a channel's sums, if the call makes no image.
static void set_channel(const bel_kernel_call *call, int64_t c, double sum, double products)
{
    if (call->op == BEL_OP_CHANNEL_SUM) {
        bel_element_set(&call->outputs[0], c, sum);
    } else if (call->op == BEL_OP_BATCH_MOMENTS) {
        set_moments(call, c, sum, products);
    } else {
        set_gradient_sums(call, c, sum, products);
    }
}

static void run_channels(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_channel_norm *p = call->params;
    for (int64_t c = 0; c < p->channels; c++)
        set_channel(call, c, norm_total(call, 0, c),
                    call->op == BEL_OP_CHANNEL_SUM ? 0 : norm_total(call, 1, c));
}

// --- Channels ------------------------------------------------------------------------------------

// u = x; the statistics go to the outputs when `write`.
static bel_channel_map forward_channel(const bel_kernel_call *call, int64_t c, double sum,
                                       double squares, bool write)
{
    const bel_channel_norm *p = call->params;
    double mean = bel_element_get(&call->inputs[3], c);
    double variance = bel_element_get(&call->inputs[4], c), new_mean = mean;
    double new_variance = variance, count = count_of(p);
    if (p->training && count > 0) {
        bel_channel_statistics(sum, squares, count, &mean, &variance);
        new_mean = bel_channel_moved(new_mean, mean, p->momentum);
        new_variance = bel_channel_moved(new_variance, variance, p->momentum);
    }
    double inverse = bel_channel_inverse(variance, p->epsilon);
    if (write) {
        bel_element_set(&call->outputs[1], c, new_mean);
        bel_element_set(&call->outputs[2], c, new_variance);
        bel_element_set(&call->outputs[3], c, mean);
        bel_element_set(&call->outputs[4], c, inverse);
    }
    return bel_channel_forward(bel_element_get(&call->inputs[1], c),
                               bel_element_get(&call->inputs[2], c), mean, inverse);
}

// u = dy, v = x; the gradients of vectors go to the outputs when `write`.
static bel_channel_map backward_channel(const bel_kernel_call *call, int64_t c, double sum,
                                        double products, bool write)
{
    const bel_channel_norm *p = call->params;
    double mean = bel_element_get(&call->inputs[3], c);
    double inverse = bel_element_get(&call->inputs[4], c), count = count_of(p);
    double dscale = bel_channel_scaled(sum, products, mean, inverse);
    if (write) {
        bel_element_set(&call->outputs[1], c, dscale);
        bel_element_set(&call->outputs[2], c, sum);
    }
    return bel_channel_backward(bel_element_get(&call->inputs[2], c), mean, inverse, sum, dscale,
                                p->training ? count : 0);
}

// Computes mean and variance from moments [3, c].
static void whole_of(const bel_channel_norm *p, const bel_tensor *moments, int64_t c,
                     double *out_mean, double *out_variance)
{
    bel_channel_whole(p->by_sums, row_get(p, moments, BEL_MOMENTS_COUNT, c),
                      row_get(p, moments, BEL_MOMENTS_MEAN, c),
                      row_get(p, moments, BEL_MOMENTS_SQUARES, c), out_mean, out_variance);
}

// Forward, with moments that include elements of other replicas.
static bel_channel_map whole_channel(const bel_kernel_call *call, int64_t c, bool write)
{
    const bel_channel_norm *p = call->params;
    const bel_tensor *moments = &call->inputs[3], *whole = &call->outputs[1];
    double count = row_get(p, moments, BEL_MOMENTS_COUNT, c), mean = 0, variance = 0;
    if (count > 0) whole_of(p, moments, c, &mean, &variance);
    double inverse = bel_channel_inverse(variance, p->epsilon);
    if (write) {
        bel_element_set(whole, BEL_WHOLE_COUNT * p->channels + c, count);
        bel_element_set(whole, BEL_WHOLE_MEAN * p->channels + c, mean);
        bel_element_set(whole, BEL_WHOLE_INVERSE * p->channels + c, inverse);
    }
    return bel_channel_forward(bel_element_get(&call->inputs[1], c),
                               bel_element_get(&call->inputs[2], c), mean, inverse);
}

// Updates the moving mean and variance.
static void run_move(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_channel_norm *p = call->params;
    const bel_tensor *moments = &call->inputs[2];
    for (int64_t c = 0; c < p->channels; c++) {
        double old_mean = bel_element_get(&call->inputs[0], c), mean = old_mean;
        double old_variance = bel_element_get(&call->inputs[1], c), variance = old_variance;
        if (row_get(p, moments, BEL_MOMENTS_COUNT, c) > 0)
            whole_of(p, moments, c, &mean, &variance);
        bel_element_set(&call->outputs[0], c, bel_channel_moved(old_mean, mean, p->momentum));
        bel_element_set(&call->outputs[1], c,
                        bel_channel_moved(old_variance, variance, p->momentum));
    }
}

// dx as in backward_channel, with sums over all elements of the moments.
static bel_channel_map whole_backward_channel(const bel_kernel_call *call, int64_t c)
{
    const bel_channel_norm *p = call->params;
    const bel_tensor *whole = &call->inputs[2], *sums = &call->inputs[4];
    return bel_channel_backward(bel_element_get(&call->inputs[3], c),
                                row_get(p, whole, BEL_WHOLE_MEAN, c),
                                row_get(p, whole, BEL_WHOLE_INVERSE, c), row_get(p, sums, 0, c),
                                row_get(p, sums, 1, c), row_get(p, whole, BEL_WHOLE_COUNT, c));
}

static bel_channel_map channel_of(const bel_kernel_call *call, int64_t c, double sum,
                                  double products, bool write)
{
    switch (call->op) {
    case BEL_OP_MOMENTS_NORM: return whole_channel(call, c, write);
    case BEL_OP_MOMENTS_NORM_GRAD: return whole_backward_channel(call, c);
    case BEL_OP_BATCH_NORM: return forward_channel(call, c, sum, products, write);
    default: return backward_channel(call, c, sum, products, write);
    }
}

// --- Kernels -------------------------------------------------------------------------------------

enum { RUN = 64 }; // channels at a time

// y = factor · u + second · v + offset by channel, for one image; in one call if all three are
// channels-last.
static void channel_norm_apply(const bel_channel_norm *p, const float *u, const float *v,
                               float (*affines)[RUN], int64_t count, float *y)
{
    if (is_dense(p, &p->u) && is_dense(p, &p->v) && is_dense(p, &p->y)) {
        bel_cpu_kernels_get()->map_channels(u, v, affines[0], affines[1], affines[2],
                                            p->rows * p->columns, p->channels, count, y);
        return;
    }
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t column = 0; column < p->columns; column++) {
            const float *a = u + row * p->u.row + column * p->u.column;
            const float *b = v + row * p->v.row + column * p->v.column;
            float *to = y + row * p->y.row + column * p->y.column;
            for (int64_t c = 0; c < count; c++)
                to[c * p->y.channel] = affines[0][c] * a[c * p->u.channel] +
                                       affines[1][c] * b[c * p->v.channel] + affines[2][c];
        }
    }
}

// Processes RUN channels at a time. Every tile computes their maps from the parts' sums; only tile
// 0 writes statistics and gradients of vectors.
static void run_apply(const bel_kernel_call *call, int64_t tile)
{
    const bel_channel_norm *p = call->params;
    int64_t begin = tile * p->images_per_tile, end = begin + p->images_per_tile;
    if (end > p->n) end = p->n;
    const float *u = call->inputs[0].data, *v = is_gradient(call->op) ? call->inputs[1].data : u;
    float *y = call->outputs[0].data;
    for (int64_t first = 0; first < p->channels; first += RUN) {
        float affines[3][RUN];
        int64_t count = p->channels - first < RUN ? p->channels - first : RUN;
        for (int64_t c = 0; c < count; c++) {
            bel_channel_map a = channel_of(call, first + c, norm_total(call, 0, first + c),
                                           norm_total(call, 1, first + c), tile == 0);
            affines[0][c] = (float)a.factor;
            affines[1][c] = (float)a.second;
            affines[2][c] = (float)a.offset;
        }
        for (int64_t i = begin; i < end; i++)
            channel_norm_apply(p, u + i * p->u.image + first * p->u.channel,
                               v + i * p->v.image + first * p->v.channel, affines, count,
                               y + i * p->y.image + first * p->y.channel);
    }
}

// Returns true if a call makes images, false if it makes only vectors.
static bool gives_images(bel_op op)
{
    return op != BEL_OP_CHANNEL_SUM && op != BEL_OP_BATCH_MOMENTS && op != BEL_OP_MOMENTS_NORM_SUMS;
}

// Any type, plain order.
static void run_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_channel_norm *p = call->params;
    int64_t plane = p->rows * p->columns;
    int v = is_gradient(call->op) ? 1 : 0;
    for (int64_t c = 0; c < p->channels; c++) {
        double sum = 0, products = 0;
        for (int64_t i = 0; i < p->n * plane; i++) {
            int64_t at = (i / plane * p->channels + c) * plane + i % plane;
            double a = bel_element_get(&call->inputs[0], at);
            sum += a;
            if (call->op != BEL_OP_CHANNEL_SUM) {
                products += a * bel_element_get(&call->inputs[v], at);
            }
        }
        if (!gives_images(call->op)) {
            set_channel(call, c, sum, products);
            continue;
        }
        bel_channel_map a = channel_of(call, c, sum, products, true);
        for (int64_t i = 0; i < p->n * plane; i++) {
            int64_t at = (i / plane * p->channels + c) * plane + i % plane;
            double y = a.factor * bel_element_get(&call->inputs[0], at) + a.offset +
                       a.second * bel_element_get(&call->inputs[v], at);
            bel_element_set(&call->outputs[0], at, y);
        }
    }
}

// Returns the pixels of a chain. A part of one image has one chain, which keeps the bits of earlier
// versions. Otherwise there are enough chains to fill a GPU, over all channels and parts. They are
// long enough to hide their start and end, and few enough in a part that adding them takes no
// longer.
static int64_t chain_of(const bel_channel_norm *p)
{
    enum { CHAINS = 1 << 16, MOST = 256, LEAST_PIXELS = 64, MULTIPLE = 32 };
    int64_t pixels = p->rows * p->columns, length = LEAST_PIXELS;
    if (p->images_per_part <= 1) return pixels > 0 ? pixels : 1;
    int64_t for_all = p->n * pixels * p->channels / CHAINS;
    int64_t for_part = p->images_per_part * pixels / MOST;
    if (length < for_all) length = for_all;
    if (length < for_part) length = for_part;
    return (length + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
}

static bel_channel_norm make_params(const bel_prepare *prepare, const bel_kernel_call *call)
{
    const bel_shape *x = &call->inputs[0].shape;
    bel_channel_norm p = {.n = x->dims[0],
                          .channels = x->dims[1],
                          .rows = 1,
                          .training = bel_attr_number(prepare->attrs, "training_mode", 0) != 0,
                          .by_sums = bel_attr_flag(prepare->attrs, "by_sums"),
                          .epsilon = bel_attr_number(prepare->attrs, "epsilon", 1e-5),
                          .momentum = bel_attr_number(prepare->attrs, "momentum", 0.9)};
    bel_shape flat = BEL_SHAPE(p.n, p.channels, 1); // spatial dimensions as one
    for (int32_t i = 2; i < x->rank; i++)
        flat.dims[2] *= x->dims[i];
    int v = is_gradient(call->op) ? 1 : 0;
    p.columns = flat.dims[2];
    p.u = bel_image_steps_of(&flat, call->inputs_last[0]);
    p.v = bel_image_steps_of(&flat, call->inputs_last[v]);
    p.y = bel_image_steps_of(&flat, call->outputs_last[0]);
    p.images_per_part = (p.n + BEL_NORM_PARTS - 1) / BEL_NORM_PARTS;
    p.parts = p.n == 0 ? 0 : (p.n + p.images_per_part - 1) / p.images_per_part;
    p.pixels_per_chain = chain_of(&p);
    p.images_per_tile = bel_tile_rows(p.u.image);
    return p;
}

// False: the plain kernel, in one tile. The workspace has two sums of each channel for each part,
// and two for its current chain.
static bool is_fast(const bel_prepare *prepare, bel_kernel_call *call, const bel_channel_norm *p)
{
    call->run = run_reference;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, p, sizeof *p);
    if (bel_prepares_plain(prepare, call) || p->n == 0) return false;
    call->workspace_bytes = (size_t)(p->parts * 4 * p->channels) * sizeof(double);
    return true;
}

void bel_prepare_channel_sum(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_channel_norm p = make_params(prepare, call);
    if (!is_fast(prepare, call, &p)) return;
    call->run = run_parts;
    call->tile_count = p.parts;
    call->after = run_channels;
    call->after_tiles = 1;
}

void bel_prepare_batch_norm(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_channel_norm p = make_params(prepare, call);
    if (!is_fast(prepare, call, &p)) return;
    call->before = run_parts;
    call->before_tiles = p.parts;
    call->run = run_apply;
    call->tile_count = (p.n + p.images_per_tile - 1) / p.images_per_tile;
}

void bel_prepare_batch_norm_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_prepare_batch_norm(prepare, call);
}

void bel_prepare_batch_moments(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_prepare_channel_sum(prepare, call);
}

// The last stage also reads statistics, so it is no `after`.
void bel_prepare_moments_norm_sums(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_channel_norm p = make_params(prepare, call);
    if (!is_fast(prepare, call, &p)) return;
    call->before = run_parts;
    call->before_tiles = p.parts;
    call->run = run_channels;
    call->tile_count = 1;
}

void bel_prepare_moments_norm(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_channel_norm p = make_params(prepare, call);
    if (!is_fast(prepare, call, &p)) return;
    call->workspace_bytes = 0;
    call->run = run_apply;
    call->tile_count = (p.n + p.images_per_tile - 1) / p.images_per_tile;
}

void bel_prepare_moments_move(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_channel_norm p = {.channels = call->inputs[0].shape.dims[0],
                                .by_sums = bel_attr_flag(prepare->attrs, "by_sums"),
                                .momentum = bel_attr_number(prepare->attrs, "momentum", 0.9)};
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
    call->run = run_move;
    call->tile_count = 1;
}
