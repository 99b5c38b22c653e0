// Resize and Upsample, one dimension at a time, because interpolation weights are separable. An
// element of a resized dimension is a sum of at most four source elements. So each of these taps is
// a Gather times its weights; nearest is just one Gather. Indices and weights are constants,
// computed in double from the scale, which is the file's or the quotient of the sizes. An open
// dimension cannot be resized.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/make.h"
#include "onnx/sizes.h"
#include "ops/kernels/elements.h"

typedef enum coordinates {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    HALF_PIXEL_SYMMETRIC,
    TF_HALF_PIXEL_FOR_NN,
} coordinates;
typedef enum interpolation { NEAREST, LINEAR, CUBIC } interpolation;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL } rounding;

enum { MOST_TAPS = 4, MOST_RESIZED = 1 << 20 }; // taps of an element; elements of a dimension

typedef struct resize {
    int coordinates, mode, rounding;
    double cubic; // the coefficient a of Keys 1981
    bool exclude_outside, antialias;
} resize;

// A dimension of `in` elements that is resized to `out`.
typedef struct resized_axis {
    int64_t in, out;
    double scale;
} resized_axis;

// --- Places and weights --------------------------------------------------------------------------

// Returns the source coordinate of element i of the result.
static double place_of(const resize *r, const resized_axis *a, int64_t i)
{
    double x = (double)i, in = (double)a->in, out = (double)a->out;
    switch ((coordinates)r->coordinates) {
    case ALIGN_CORNERS: return a->out == 1 ? 0 : x * (in - 1) / (out - 1);
    case ASYMMETRIC: return x / a->scale;
    case PYTORCH_HALF_PIXEL: return a->out == 1 ? 0 : (x + 0.5) / a->scale - 0.5;
    case HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - out / (a->scale * in)) + (x + 0.5) / a->scale - 0.5;
    case TF_HALF_PIXEL_FOR_NN: return (x + 0.5) / a->scale;
    default: return (x + 0.5) / a->scale - 0.5;
    }
}

static double resize_nearest(const resize *r, double place)
{
    double low = floor(place), part = place - low;
    switch ((rounding)r->rounding) {
    case PREFER_FLOOR: return part <= 0.5 ? low : low + 1;
    case PREFER_CEIL: return part < 0.5 ? low : low + 1;
    case FLOOR: return low;
    default: return ceil(place);
    }
}

// Keys, "Cubic convolution interpolation", equation 15; d is a distance below 2.
static double cubic_weight(double a, double d)
{
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Computes the taps of one element: first index (perhaps outside) and weights.
static int taps_of(const resize *r, double place, double *out_first, double out_weights[MOST_TAPS])
{
    double low = floor(place), part = place - low;
    if (r->mode == NEAREST) {
        *out_first = resize_nearest(r, place);
        out_weights[0] = 1;
        return 1;
    }
    if (r->mode == LINEAR) {
        *out_first = low;
        out_weights[0] = 1 - part;
        out_weights[1] = part;
        return 2;
    }
    *out_first = low - 1;
    for (int t = 0; t < 4; t++)
        out_weights[t] = cubic_weight(r->cubic, fabs(part + 1 - t));
    return 4;
}

// Sets weights of indices outside to 0, and scales the others' sum to 1.
static void exclude(double first, int64_t in, int taps, double weights[MOST_TAPS])
{
    double sum = 0;
    for (int t = 0; t < taps; t++) {
        if (first + t < 0 || first + t > (double)(in - 1)) weights[t] = 0;
        sum += weights[t];
    }
    for (int t = 0; t < taps && sum != 0; t++)
        weights[t] /= sum;
}

// --- Building ------------------------------------------------------------------------------------

// Sums over taps: x at the taps' indices times their weights, along one dimension.
static bel_value *resize_axis(bel_graph *graph, bel_value *x, int32_t axis, const resize *r,
                              const resized_axis *a)
{
    int taps = r->mode == NEAREST ? 1 : r->mode == LINEAR ? 2 : 4;
    bel_shape shape = bel_value_shape(x), column = BEL_SHAPE(a->out);
    while (column.rank < shape.rank - axis)
        column.dims[column.rank++] = 1;
    bel_tensor places = {BEL_DTYPE_I64, BEL_SHAPE(a->out), NULL};
    bel_tensor weights = {bel_value_dtype(x), column, NULL};
    bel_value *sum = NULL;
    for (int t = 0; t < taps; t++) {
        int64_t *at = places.data = bel_xcalloc((size_t)a->out, sizeof(int64_t));
        weights.data = bel_xcalloc((size_t)a->out, bel_dtype_size(weights.dtype));
        for (int64_t i = 0; i < a->out; i++) {
            double first, w[MOST_TAPS];
            taps_of(r, place_of(r, a, i), &first, w);
            if (r->exclude_outside) exclude(first, a->in, taps, w);
            at[i] = (int64_t)fmin(fmax(first + t, 0), (double)(a->in - 1));
            if (taps > 1) bel_element_set(&weights, i, w[t]);
        }
        bel_value *part = bel_gather_axis(graph, x, bel_constant(graph, &places), axis);
        if (taps > 1) part = bel_mul(graph, part, bel_constant(graph, &weights));
        sum = sum == NULL ? part : bel_add(graph, sum, part);
        bel_free(places.data);
        bel_free(weights.data);
    }
    return sum;
}

static bel_status *check_axis(const resize *r, const resized_axis *a, int32_t d)
{
    if (!(a->scale > 0) || a->in < 1 || a->out < 1 || a->out > MOST_RESIZED) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of %lld elements becomes %lld", (int)d,
                       (long long)a->in, (long long)a->out);
    }
    if (r->antialias && r->mode != NEAREST && a->scale < 1) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "antialias where dimension %d becomes smaller", (int)d);
    }
    return NULL;
}

static bel_status *resize_all(bel_onnx_call *call, const resize *r,
                              const resized_axis axes[BEL_MAX_RANK])
{
    bel_value *x = bel_onnx_in(call, 0);
    bel_dtype dtype = bel_value_dtype(x);
    bel_shape shape = bel_value_shape(x);
    if (r->mode != NEAREST && dtype != BEL_DTYPE_F32 && dtype != BEL_DTYPE_F64) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "interpolation of %s; Belfry has f32 and f64",
                       bel_dtype_name(dtype));
    }
    for (int32_t d = 0; d < shape.rank && x != NULL; d++) {
        if (axes[d].in == axes[d].out && axes[d].scale == 1) continue;
        BEL_TRY(check_axis(r, &axes[d], d));
        BEL_TRY(bel_onnx_spend(call, (double)axes[d].out * (r->mode == NEAREST ? 1 : MOST_TAPS)));
        x = resize_axis(call->graph, x, d, r, &axes[d]);
    }
    bel_onnx_out(call, 0, x == bel_onnx_in(call, 0) ? bel_identity(call->graph, x) : x);
    return NULL;
}

// --- Attributes and inputs -----------------------------------------------------------------------

static bel_status *set_scale(const bel_shape *x, int32_t d, double scale, resized_axis *out)
{
    if (x->dims[d] < 0 && scale != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d is open, and cannot be resized by %g",
                       (int)d, scale);
    }
    double size = floor((double)x->dims[d] * scale);
    bool fits = size >= 0 && size <= MOST_RESIZED;
    out->scale = scale;
    if (x->dims[d] >= 0 && scale != 1) out->out = fits ? (int64_t)size : -1;
    return NULL;
}

// Reads the dimensions of scales or sizes: all, or the attribute `axes`.
static bel_status *read_axes(const bel_onnx_call *call, int32_t rank, bel_shape *out_axes)
{
    bel_shape axes;
    BEL_TRY(bel_onnx_ints(call, "axes", &axes));
    for (int32_t i = 0; i < axes.rank; i++) {
        int32_t axis;
        BEL_TRY(bel_onnx_axis(axes.dims[i], rank, &axis));
        axes.dims[i] = axis;
    }
    if (axes.rank == 0) {
        for (; axes.rank < rank; axes.rank++)
            axes.dims[axes.rank] = axes.rank;
    }
    *out_axes = axes;
    return NULL;
}

static bel_status *wrong_count(int64_t count, const bel_shape *axes)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld scales or sizes for %d dimensions", (long long)count,
                   (int)axes->rank);
}

static bel_status *by_scales(bel_onnx_call *call, int input, const bel_shape *axes,
                             resized_axis *out)
{
    bel_tensor scales;
    bel_shape x = bel_onnx_in_shape(call, 0);
    BEL_TRY(bel_onnx_known(call, input, &scales));
    int64_t count = bel_shape_elements(&scales.shape);
    if (count != axes->rank) return wrong_count(count, axes);
    for (int32_t i = 0; i < axes->rank; i++) {
        int32_t d = (int32_t)axes->dims[i];
        BEL_TRY(set_scale(&x, d, bel_element_get(&scales, i), &out[d]));
    }
    return NULL;
}

// keep_aspect_ratio_policy: one scale for all, so that no size is larger, or smaller, than
// requested.
static void keep_ratio(int policy, const bel_shape *axes, resized_axis *out)
{
    double scale = policy == 1 ? INFINITY : 0;
    for (int32_t i = 0; i < axes->rank; i++) {
        double own = out[axes->dims[i]].scale;
        scale = policy == 1 ? fmin(scale, own) : fmax(scale, own);
    }
    for (int32_t i = 0; i < axes->rank; i++) {
        resized_axis *a = &out[axes->dims[i]];
        a->scale = scale;
        a->out = (int64_t)floor(fmin(scale * (double)a->in, MOST_RESIZED) + 0.5);
    }
}

static bel_status *by_sizes(bel_onnx_call *call, int input, const bel_shape *axes,
                            resized_axis *out)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy;
    bel_onnx_size_list sizes;
    bel_shape x = bel_onnx_in_shape(call, 0);
    BEL_TRY(bel_onnx_choice(call, "keep_aspect_ratio_policy", policies, 3, &policy));
    BEL_TRY(bel_onnx_known_sizes(call, input, &sizes));
    if (sizes.count != axes->rank) return wrong_count(sizes.count, axes);
    for (int32_t i = 0; i < axes->rank; i++) {
        int32_t d = (int32_t)axes->dims[i];
        int64_t size;
        bool fits = bel_onnx_dim_of(sizes.items[i], &size);
        if (fits && size == x.dims[d]) continue;
        if (!fits || size < 0 || x.dims[d] < 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d is open and cannot be resized",
                           (int)d);
        }
        out[d].out = size;
        out[d].scale = (double)size / (double)x.dims[d];
    }
    if (policy != 0) {
        bel_shape kept = {.rank = 0};
        for (int32_t i = 0; i < axes->rank; i++)
            kept.dims[kept.rank++] = x.dims[axes->dims[i]];
        BEL_TRY(bel_onnx_closed(&kept, 0, "its ratio to others is kept"));
        keep_ratio(policy, axes, out);
    }
    return NULL;
}

static bel_status *read_resize(const bel_onnx_call *call, resize *r)
{
    static const char *const places[] = {"half_pixel",           "pytorch_half_pixel",
                                         "align_corners",        "asymmetric",
                                         "half_pixel_symmetric", "tf_half_pixel_for_nn"};
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    BEL_TRY(bel_onnx_choice(call, "coordinate_transformation_mode", places, 6, &r->coordinates));
    BEL_TRY(bel_onnx_choice(call, "mode", modes, 3, &r->mode));
    BEL_TRY(bel_onnx_choice(call, "nearest_mode", roundings, 4, &r->rounding));
    r->cubic = bel_onnx_number(call, "cubic_coeff_a");
    r->exclude_outside = bel_onnx_int(call, "exclude_outside") != 0;
    r->antialias = bel_onnx_int(call, "antialias") != 0;
    return NULL;
}

static void make_resize_stay(const bel_shape *x, resized_axis out[BEL_MAX_RANK])
{
    for (int32_t d = 0; d < x->rank; d++)
        out[d] = (resized_axis){x->dims[d], x->dims[d], 1};
}

// Inputs: x, roi (only used in an unsupported mode), scales, sizes: one of the last two.
bel_status *bel_onnx_resize(bel_onnx_call *call)
{
    resize r;
    bel_shape axes, x = bel_onnx_in_shape(call, 0);
    resized_axis resized[BEL_MAX_RANK];
    BEL_TRY(read_resize(call, &r));
    BEL_TRY(read_axes(call, x.rank, &axes));
    make_resize_stay(&x, resized);
    bool scales = bel_onnx_has(call, 2);
    if (scales && bel_onnx_has(call, 3)) { // scales may be present without elements
        bel_tensor none;
        BEL_TRY(bel_onnx_known(call, 2, &none));
        scales = bel_shape_elements(&none.shape) > 0;
    }
    if (scales) {
        BEL_TRY(by_scales(call, 2, &axes, resized));
    } else {
        BEL_TRY(by_sizes(call, 3, &axes, resized));
    }
    return resize_all(call, &r, resized);
}

// Resize of opset 10 and Upsample: the source coordinate is x / scale, rounded down.
static bel_status *old_resize(bel_onnx_call *call, const bel_onnx_attr *scales)
{
    static const char *const modes[] = {"nearest", "linear"};
    resize r = {.coordinates = ASYMMETRIC, .rounding = FLOOR};
    bel_shape axes, x = bel_onnx_in_shape(call, 0);
    resized_axis resized[BEL_MAX_RANK];
    BEL_TRY(bel_onnx_choice(call, "mode", modes, 2, &r.mode));
    BEL_TRY(read_axes(call, x.rank, &axes));
    make_resize_stay(&x, resized);
    if (scales == NULL) {
        BEL_TRY(by_scales(call, 1, &axes, resized));
        return resize_all(call, &r, resized);
    }
    if (scales->list_count != (size_t)axes.rank)
        return wrong_count((int64_t)scales->list_count, &axes);
    for (int32_t d = 0; d < x.rank; d++)
        BEL_TRY(set_scale(&x, d, (double)scales->numbers[d], &resized[d]));
    return resize_all(call, &r, resized);
}

bel_status *bel_onnx_scaled_resize(bel_onnx_call *call)
{
    return old_resize(call, NULL);
}

bel_status *bel_onnx_old_upsample(bel_onnx_call *call)
{
    const bel_onnx_attr *scales = bel_onnx_find_attr(call, "scales");
    if (scales == NULL) return BEL_ERR(BEL_DATA_LOSS, "attribute \"scales\" is missing");
    return old_resize(call, scales);
}
