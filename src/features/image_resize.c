// Image scaling: first down the columns, then along the rows, with a list of weights for every new
// row or column. Weights are 14-bit integers whose sum is exactly 2^14, so that an area of one
// color keeps it and no sum overflows. Sums of the first pass are integers below 2^22, which a
// float holds exactly. Those of the second are floats in the order of the columns, three colors
// side by side. Only the inputs of the wanted part are computed, and its bits are those of the
// whole image.
#include "features/image.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { WEIGHT_BITS = 14 };

// Weights along one axis: for each wanted place, the old places that contribute, and how much.
typedef struct axis_weights {
    int64_t count;
    int64_t taps;   // weights kept for each place
    int64_t *first; // [count]: the first old place
    int64_t *used;  // [count]: number of contributing places, at most `taps`
    int64_t most_used;
    int16_t *weights; // [count, taps], with a sum of 2^WEIGHT_BITS for each place
    float *parts;     // the same over 2^(2 · WEIGHT_BITS), to scale sums back to pixels
} axis_weights;

static void axis_deinit(axis_weights *axis)
{
    bel_free(axis->first);
    bel_free(axis->used);
    bel_free(axis->weights);
    bel_free(axis->parts);
}

// Rounds weights that sum to `sum` to integers that sum to 2^WEIGHT_BITS: each to its nearest, and
// the largest absorbs the difference.
static void round_weights(const double *weights, int64_t count, double sum, int16_t *out)
{
    int32_t left = 1 << WEIGHT_BITS;
    int64_t largest = 0;
    for (int64_t k = 0; k < count; k++) {
        out[k] = (int16_t)floor(weights[k] / sum * (1 << WEIGHT_BITS) + 0.5);
        left -= out[k];
        if (out[k] > out[largest]) largest = k;
    }
    out[largest] = (int16_t)(out[largest] + left);
}

// Fills in a triangle around `middle`, as wide as a new place or an old one, whichever is wider.
static void fill_bilinear(axis_weights *axis, int64_t i, double middle, double reach, int64_t begin,
                          int64_t end, double *weights)
{
    int64_t first = (int64_t)floor(middle - reach + 0.5),
            behind = (int64_t)floor(middle + reach + 0.5);
    if (first < begin) first = begin;
    if (behind > end) behind = end;
    double sum = 0;
    for (int64_t k = first; k < behind; k++) {
        double height = 1 - fabs((double)k + 0.5 - middle) / reach;
        weights[k - first] = height > 0 ? height : 0;
        sum += weights[k - first];
    }
    axis->first[i] = first;
    axis->used[i] = behind - first;
    round_weights(weights, behind - first, sum, axis->weights + i * axis->taps);
}

// Maps old places begin … begin + old - 1 to `size` new ones, of which `count` from `part` on are
// wanted.
static axis_weights axis_make(int64_t begin, int64_t old, int64_t size, int64_t part, int64_t count,
                              bel_image_filter filter)
{
    double step = (double)old / (double)size, reach = step > 1 ? step : 1;
    axis_weights axis = {.count = count, .taps = 1};
    if (filter == BEL_IMAGE_BILINEAR) axis.taps = 2 * (int64_t)ceil(reach) + 2;
    axis.first = bel_xmalloc((size_t)count * sizeof *axis.first);
    axis.used = bel_xmalloc((size_t)count * sizeof *axis.used);
    axis.weights = bel_xcalloc((size_t)(count * axis.taps), sizeof *axis.weights);
    double *weights = bel_xmalloc((size_t)axis.taps * sizeof *weights);
    for (int64_t i = 0; i < count; i++) {
        double middle = (double)begin + ((double)(part + i) + 0.5) * step;
        if (filter == BEL_IMAGE_BILINEAR) {
            fill_bilinear(&axis, i, middle, reach, begin, begin + old, weights);
            continue;
        }
        int64_t nearest = (int64_t)floor(middle);
        axis.first[i] = nearest < begin + old ? nearest : begin + old - 1;
        axis.used[i] = 1;
        axis.weights[i] = 1 << WEIGHT_BITS;
    }
    bel_free(weights);
    for (int64_t i = 0; i < count; i++)
        if (axis.used[i] > axis.most_used) axis.most_used = axis.used[i];
    axis.parts = bel_xmalloc((size_t)(count * axis.taps) * sizeof *axis.parts);
    for (int64_t i = 0; i < count * axis.taps; i++)
        axis.parts[i] = (float)axis.weights[i] * 0x1p-28F;
    return axis;
}

enum { ROWS = 4 }; // old rows that one pass over a new row adds

// Adds Σ_k weights[k] · rows[k][x] to sums[x], or sets it in the first pass. Products are of 16-bit
// numbers with a 32-bit result, which every vector unit has.
static inline void add_rows(const uint8_t *const rows[ROWS], const int16_t weights[ROWS],
                            int64_t count, bool first, float *restrict sums)
{
    const uint8_t *restrict a = rows[0], *restrict b = rows[1];
    const uint8_t *restrict c = rows[2], *restrict d = rows[3];
    const int16_t p = weights[0], q = weights[1], r = weights[2], s = weights[3];
    for (int64_t x = 0; x < count; x++) {
        int32_t ab = p * (int16_t)a[x] + q * (int16_t)b[x];
        int32_t cd = r * (int16_t)c[x] + s * (int16_t)d[x];
        sums[x] = (first ? 0 : sums[x]) + (float)(ab + cd);
    }
}

// Computes one new row over `count` old numbers, as weighted sums of old rows that are `stride`
// apart. If fewer rows than a pass are left, the last one fills up with weights of 0.
static void mix_rows(const uint8_t *rows, int64_t stride, const int16_t *weights, int64_t taps,
                     int64_t count, float *restrict sums)
{
    for (int64_t k = 0; k < taps; k += ROWS) {
        const uint8_t *group[ROWS];
        int16_t group_weights[ROWS];
        for (int64_t i = 0; i < ROWS; i++) {
            bool used = k + i < taps;
            group[i] = rows + (used ? k + i : taps - 1) * stride;
            group_weights[i] = used ? weights[k + i] : 0;
        }
        if (k == 0) {
            add_rows(group, group_weights, count, true, sums);
        } else {
            add_rows(group, group_weights, count, false, sums);
        }
    }
}

// A pixel: three colors, and an unused fourth number.
typedef float pixel_floats __attribute__((vector_size(16)));
typedef int32_t pixel_ints __attribute__((vector_size(16)));

// Callers pass a constant `taps` if it is small, so that the loop is unrolled.
static inline void mix_colors(const axis_weights *axis, const float *sums, int64_t origin,
                              int64_t taps, uint8_t *out)
{
    for (int64_t i = 0; i < axis->count; i++, out += 3) {
        const float *at = sums + (axis->first[i] - origin) * 3;
        const float *weights = axis->parts + i * axis->taps;
        pixel_floats total = {0.5F, 0.5F, 0.5F, 0};
        for (int64_t k = 0; k < taps; k++) {
            pixel_floats pixel;
            memcpy(&pixel, at + 3 * k, sizeof pixel);
            total += pixel * weights[k];
        }
        pixel_ints whole = __builtin_convertvector(total, pixel_ints);
        out[0] = (uint8_t)whole[0];
        out[1] = (uint8_t)whole[1];
        out[2] = (uint8_t)whole[2];
    }
}

// Computes new pixels of one row from the sums of old ones, of which the first belongs to place
// `origin`.
static void mix_columns(const axis_weights *axis, const float *sums, int64_t origin, uint8_t *out)
{
    switch (axis->most_used) {
    case 2: mix_colors(axis, sums, origin, 2, out); break;
    case 3: mix_colors(axis, sums, origin, 3, out); break;
    case 4: mix_colors(axis, sums, origin, 4, out); break;
    default: mix_colors(axis, sums, origin, axis->most_used, out); break;
    }
}

// The same for gray pixels.
static void mix_gray(const axis_weights *axis, const float *sums, int64_t origin, uint8_t *out)
{
    for (int64_t i = 0; i < axis->count; i++) {
        const float *at = sums + (axis->first[i] - origin);
        const float *weights = axis->parts + i * axis->taps;
        float total = 0.5F;
        for (int64_t k = 0; k < axis->most_used; k++)
            total += at[k] * weights[k];
        out[i] = (uint8_t)total;
    }
}

bel_image bel_image_scale(const bel_image *image, const bel_image_scaling *s)
{
    int64_t channels = image->channels;
    axis_weights down =
        axis_make(s->top, s->window_height, s->height, s->part_top, s->part_height, s->filter);
    axis_weights across =
        axis_make(s->left, s->window_width, s->width, s->part_left, s->part_width, s->filter);
    // Old columns that the wanted new ones need.
    int64_t origin = across.first[0], last = across.count - 1;
    int64_t count = (across.first[last] + across.used[last] - origin) * channels;
    // Zeros follow: every new pixel reads the same number of old ones, some with weights of 0, as a
    // loop of one length is faster; and three colors are read as four.
    float *sums = bel_xcalloc((size_t)(count + across.most_used * channels + 1), sizeof *sums);
    bel_image out = bel_image_make(s->part_height, s->part_width, channels);
    for (int64_t y = 0; y < down.count; y++) {
        const uint8_t *rows = image->pixels + (down.first[y] * image->width + origin) * channels;
        uint8_t *row = out.pixels + y * s->part_width * channels;
        mix_rows(rows, image->width * channels, down.weights + y * down.taps, down.used[y], count,
                 sums);
        if (channels == 3) {
            mix_columns(&across, sums, origin, row);
        } else {
            mix_gray(&across, sums, origin, row);
        }
    }
    bel_free(sums);
    axis_deinit(&down);
    axis_deinit(&across);
    return out;
}

bel_status *bel_image_resize(const bel_image *image, int64_t height, int64_t width,
                             bel_image_filter filter, bel_image *out_image)
{
    BEL_TRY(bel_image_check_sides(height, width));
    if (filter < BEL_IMAGE_BILINEAR || filter > BEL_IMAGE_NEAREST) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: there is no filter %d", (int)filter);
    }
    bel_image_scaling scaling = {
        .window_height = image->height,
        .window_width = image->width,
        .height = height,
        .width = width,
        .part_height = height,
        .part_width = width,
        .filter = filter,
    };
    *out_image = bel_image_scale(image, &scaling);
    return NULL;
}
