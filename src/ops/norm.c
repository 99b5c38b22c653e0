// BatchNormalization, its gradient, and sums over all but the channels: x [n, c, …].
//
// Sums run over parts of the batch, cut by shape alone, in double; the parts are added in order.
// `before` makes the parts, `run` normalises images.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/window.h"

enum { PARTS = 8 };

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

// inputs[first … 4] must be vectors of x's channels and type.
static bel_status *check_vectors(const bel_spec *inputs, const bel_spec *x, int first)
{
    bel_shape want = BEL_SHAPE(x->shape.dims[1]);
    for (int i = first; i < 5; i++) {
        bool same = inputs[i].dtype == x->dtype && bel_shape_equal(&inputs[i].shape, &want);
        char wt[BEL_SHAPE_TEXT], ht[BEL_SHAPE_TEXT];
        if (same) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d: expected %s %s, got %s %s", i,
                       bel_dtype_name(x->dtype), bel_shape_text(&want, wt),
                       bel_dtype_name(inputs[i].dtype), bel_shape_text(&inputs[i].shape, ht));
    }
    return NULL;
}

bel_status *bel_infer_batch_norm(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    BEL_TRY(needs_image(&inputs[0].shape));
    BEL_TRY(check_vectors(inputs, &inputs[0], 1));
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
    BEL_TRY(check_vectors(inputs, &inputs[0], 2));
    out_outputs[1] = out_outputs[2] = inputs[2];
    return NULL;
}

// --- Sums ----------------------------------------------------------------------------------------

typedef struct norm_params {
    int64_t n, channels, rows, columns;
    int64_t parts, images_per_part, images_per_tile;
    bel_image_steps u, v, y;
    bool training;
    double epsilon, momentum;
} norm_params;

// True where the channels of a pixel, and the pixels of an image, are neighbours.
static bool is_dense(const norm_params *p, const bel_image_steps *steps)
{
    return steps->channel == 1 && steps->column == p->channels;
}

// Adds u and u · v (v may be NULL) of one image to sums[0 … channels) and the `channels` behind.
static void add_image(const norm_params *p, const float *u, const float *v, double *sums)
{
    double *products = sums + p->channels;
    if (is_dense(p, &p->u) && (v == NULL || is_dense(p, &p->v))) {
        bel_cpu_kernels_get()->sum_channels(u, v, p->rows * p->columns, p->channels, sums,
                                            products);
        return;
    }
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t column = 0; column < p->columns; column++) {
            const float *a = u + row * p->u.row + column * p->u.column;
            for (int64_t c = 0; c < p->channels; c++)
                sums[c] += (double)a[c * p->u.channel];
            if (v == NULL) continue;
            const float *b = v + row * p->v.row + column * p->v.column;
            for (int64_t c = 0; c < p->channels; c++)
                products[c] += (double)a[c * p->u.channel] * (double)b[c * p->v.channel];
        }
    }
}

// Sums of u = input 0 and u · v; v is input 1 of a gradient, else u itself.
static void run_parts(const bel_kernel_call *call, int64_t tile)
{
    const norm_params *p = call->params;
    double *sums = (double *)call->workspace + tile * 2 * p->channels;
    memset(sums, 0, 2 * (size_t)p->channels * sizeof *sums);
    int64_t first = tile * p->images_per_part, end = first + p->images_per_part;
    if (end > p->n) end = p->n;
    const float *u = call->inputs[0].data;
    const float *v = call->op == BEL_OP_CHANNEL_SUM  ? NULL
                     : call->op == BEL_OP_BATCH_NORM ? u
                                                     : call->inputs[1].data;
    for (int64_t i = first; i < end; i++)
        add_image(p, u + i * p->u.image, v == NULL ? NULL : v + i * p->v.image, sums);
}

// Sum number `which` (0: u, 1: u · v) of channel c over all parts.
static double total(const bel_kernel_call *call, int which, int64_t c)
{
    const norm_params *p = call->params;
    const double *sums = (const double *)call->workspace + which * p->channels + c;
    double sum = 0;
    for (int64_t part = 0; part < p->parts; part++)
        sum += sums[part * 2 * p->channels];
    return sum;
}

static void run_channel_sum(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const norm_params *p = call->params;
    for (int64_t c = 0; c < p->channels; c++)
        bel_element_set(&call->outputs[0], c, total(call, 0, c));
}

// --- Channels ------------------------------------------------------------------------------------

// What happens to the elements of a channel: y = factor · u + second · v + offset.
typedef struct channel_map {
    double factor, second, offset;
} channel_map;

static double count_of(const norm_params *p)
{
    return (double)(p->n * p->rows * p->columns);
}

// u = x; the statistics go to the outputs when `write`.
static channel_map forward_channel(const bel_kernel_call *call, int64_t c, double sum,
                                   double squares, bool write)
{
    const norm_params *p = call->params;
    double mean = bel_element_get(&call->inputs[3], c);
    double variance = bel_element_get(&call->inputs[4], c), new_mean = mean;
    double new_variance = variance, count = count_of(p);
    if (p->training && count > 0) {
        double batch_mean = sum / count;
        double batch_variance = bel_larger_of(squares / count - batch_mean * batch_mean, 0);
        new_mean = mean * p->momentum + batch_mean * (1 - p->momentum);
        new_variance = variance * p->momentum + batch_variance * (1 - p->momentum);
        mean = batch_mean;
        variance = batch_variance;
    }
    double inverse = 1 / sqrt(variance + p->epsilon);
    if (write) {
        bel_element_set(&call->outputs[1], c, new_mean);
        bel_element_set(&call->outputs[2], c, new_variance);
        bel_element_set(&call->outputs[3], c, mean);
        bel_element_set(&call->outputs[4], c, inverse);
    }
    double factor = bel_element_get(&call->inputs[1], c) * inverse;
    return (channel_map){.factor = factor,
                         .offset = bel_element_get(&call->inputs[2], c) - mean * factor};
}

// u = dy, v = x. With x' = (x - mean) / deviation: dscale = Σ dy x', dbias = Σ dy, and
// dx = scale / deviation · (dy - dbias / m - x' dscale / m), without the last two where the
// statistics were not the batch's own (Ioffe & Szegedy 2015, section 3).
static channel_map backward_channel(const bel_kernel_call *call, int64_t c, double sum,
                                    double products, bool write)
{
    const norm_params *p = call->params;
    double mean = bel_element_get(&call->inputs[3], c);
    double inverse = bel_element_get(&call->inputs[4], c), count = count_of(p);
    double dscale = inverse * (products - mean * sum);
    if (write) {
        bel_element_set(&call->outputs[1], c, dscale);
        bel_element_set(&call->outputs[2], c, sum);
    }
    channel_map a = {.factor = bel_element_get(&call->inputs[2], c) * inverse};
    if (!p->training || count == 0) return a;
    a.second = -a.factor * inverse * dscale / count;
    a.offset = -a.factor * sum / count - a.second * mean;
    return a;
}

static channel_map channel_of(const bel_kernel_call *call, int64_t c, double sum, double products,
                              bool write)
{
    return call->op == BEL_OP_BATCH_NORM ? forward_channel(call, c, sum, products, write)
                                         : backward_channel(call, c, sum, products, write);
}

// --- Kernels -------------------------------------------------------------------------------------

enum { RUN = 64 }; // channels at a time

// y = factor · u + second · v + offset by channel, for one image; in one go where all three lie
// channels-last.
static void apply(const norm_params *p, const float *u, const float *v, float (*affines)[RUN],
                  int64_t count, float *y)
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

// RUN channels at a time: their maps are made from the parts' sums, by every tile for itself; tile
// 0 alone writes statistics and gradients of vectors.
static void run_apply(const bel_kernel_call *call, int64_t tile)
{
    const norm_params *p = call->params;
    int64_t begin = tile * p->images_per_tile, end = begin + p->images_per_tile;
    if (end > p->n) end = p->n;
    bool gradient = call->op == BEL_OP_BATCH_NORM_GRAD;
    const float *u = call->inputs[0].data, *v = gradient ? call->inputs[1].data : u;
    float *y = call->outputs[0].data;
    for (int64_t first = 0; first < p->channels; first += RUN) {
        float affines[3][RUN];
        int64_t count = p->channels - first < RUN ? p->channels - first : RUN;
        for (int64_t c = 0; c < count; c++) {
            channel_map a = channel_of(call, first + c, total(call, 0, first + c),
                                       total(call, 1, first + c), tile == 0);
            affines[0][c] = (float)a.factor;
            affines[1][c] = (float)a.second;
            affines[2][c] = (float)a.offset;
        }
        for (int64_t i = begin; i < end; i++)
            apply(p, u + i * p->u.image + first * p->u.channel,
                  v + i * p->v.image + first * p->v.channel, affines, count,
                  y + i * p->y.image + first * p->y.channel);
    }
}

// Any type, plain order.
static void run_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const norm_params *p = call->params;
    int64_t plane = p->rows * p->columns;
    int v = call->op == BEL_OP_BATCH_NORM_GRAD ? 1 : 0;
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
        if (call->op == BEL_OP_CHANNEL_SUM) {
            bel_element_set(&call->outputs[0], c, sum);
            continue;
        }
        channel_map a = channel_of(call, c, sum, products, true);
        for (int64_t i = 0; i < p->n * plane; i++) {
            int64_t at = (i / plane * p->channels + c) * plane + i % plane;
            double y = a.factor * bel_element_get(&call->inputs[0], at) + a.offset +
                       a.second * bel_element_get(&call->inputs[v], at);
            bel_element_set(&call->outputs[0], at, y);
        }
    }
}

static norm_params make_params(const bel_prepare *prepare, const bel_kernel_call *call)
{
    const bel_shape *x = &call->inputs[0].shape;
    norm_params p = {.n = x->dims[0],
                     .channels = x->dims[1],
                     .rows = 1,
                     .training = bel_attr_number(prepare->attrs, "training_mode", 0) != 0,
                     .epsilon = bel_attr_number(prepare->attrs, "epsilon", 1e-5),
                     .momentum = bel_attr_number(prepare->attrs, "momentum", 0.9)};
    bel_shape flat = BEL_SHAPE(p.n, p.channels, 1); // spatial dimensions as one
    for (int32_t i = 2; i < x->rank; i++)
        flat.dims[2] *= x->dims[i];
    int v = call->op == BEL_OP_BATCH_NORM_GRAD ? 1 : 0;
    p.columns = flat.dims[2];
    p.u = bel_image_steps_of(&flat, call->inputs_last[0]);
    p.v = bel_image_steps_of(&flat, call->inputs_last[v]);
    p.y = bel_image_steps_of(&flat, call->outputs_last[0]);
    p.images_per_part = (p.n + PARTS - 1) / PARTS;
    p.parts = p.n == 0 ? 0 : (p.n + p.images_per_part - 1) / p.images_per_part;
    p.images_per_tile = bel_tile_rows(p.u.image);
    return p;
}

// Else the plain kernel, in one tile. The workspace has two sums of each channel for each part.
static bool is_fast(const bel_prepare *prepare, bel_kernel_call *call, const norm_params *p)
{
    call->run = run_reference;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, p, sizeof *p);
    if (prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32 || p->n == 0) return false;
    call->workspace_bytes = (size_t)(p->parts * 2 * p->channels) * sizeof(double);
    return true;
}

void bel_prepare_channel_sum(const bel_prepare *prepare, bel_kernel_call *call)
{
    norm_params p = make_params(prepare, call);
    if (!is_fast(prepare, call, &p)) return;
    call->run = run_parts;
    call->tile_count = p.parts;
    call->after = run_channel_sum;
    call->after_tiles = 1;
}

void bel_prepare_batch_norm(const bel_prepare *prepare, bel_kernel_call *call)
{
    norm_params p = make_params(prepare, call);
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
