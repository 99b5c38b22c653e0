// Scaling an image: first down the columns, then along the rows, each by a list of weights for every
// new row or column. Weights are 14-bit integers whose sum is exactly 2^14, so that an area of one
// colour keeps it and no sum leaves its range; between the two passes numbers have six binary digits
// behind the point. Only what the wanted part needs is computed, and it has the same bits as in the
// whole.
#include "features/image.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { WEIGHT_BITS = 14, MIDDLE_BITS = 6 };

// For each wanted place along one axis: which old ones count, and how much.
typedef struct axis_weights {
    int64_t count;
    int64_t taps;     // weights kept for each place
    int64_t *first;   // [count]: the first old place
    int64_t *used;    // [count]: how many count, at most `taps`
    int16_t *weights; // [count, taps]
} axis_weights;

static void axis_deinit(axis_weights *axis)
{
    bel_free(axis->first);
    bel_free(axis->used);
    bel_free(axis->weights);
}

// Rounds weights that sum to `sum` to integers that sum to 2^WEIGHT_BITS: each to its nearest, and
// the largest takes what is then missing.
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

// A triangle as wide as a new place, or as an old one where these are wider, around its middle.
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

// Old places begin … begin + old - 1 become `size` new ones, of which `count` from `part` on are
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
    return axis;
}

// One new row over `count` old numbers, as weighted sums of old rows that lie `stride` apart.
static void mix_rows(const uint8_t *rows, int64_t stride, const int16_t *weights, int64_t taps,
                     int64_t count, int32_t *restrict sums, int16_t *restrict out)
{
    for (int64_t x = 0; x < count; x++)
        sums[x] = 1 << (WEIGHT_BITS - MIDDLE_BITS - 1);
    for (int64_t k = 0; k < taps; k++) {
        const uint8_t *restrict row = rows + k * stride;
        int32_t weight = weights[k];
        for (int64_t x = 0; x < count; x++)
            sums[x] += weight * row[x];
    }
    for (int64_t x = 0; x < count; x++)
        out[x] = (int16_t)(sums[x] >> (WEIGHT_BITS - MIDDLE_BITS));
}

static inline uint8_t to_byte(int32_t sum)
{
    enum { BITS = WEIGHT_BITS + MIDDLE_BITS };
    return (uint8_t)((sum + (1 << (BITS - 1))) >> BITS);
}

// New numbers of one row; `origin` is the old place that row[0] belongs to.
static void mix_columns(const axis_weights *axis, const int16_t *row, int64_t origin,
                        int64_t channels, uint8_t *out)
{
    for (int64_t i = 0; i < axis->count; i++) {
        const int16_t *at = row + (axis->first[i] - origin) * channels;
        const int16_t *weights = axis->weights + i * axis->taps;
        int64_t used = axis->used[i];
        if (channels == 3) {
            int32_t red = 0, green = 0, blue = 0;
            for (int64_t k = 0; k < used; k++) {
                red += weights[k] * at[3 * k];
                green += weights[k] * at[3 * k + 1];
                blue += weights[k] * at[3 * k + 2];
            }
            out[3 * i] = to_byte(red);
            out[3 * i + 1] = to_byte(green);
            out[3 * i + 2] = to_byte(blue);
            continue;
        }
        int32_t sum = 0;
        for (int64_t k = 0; k < used; k++)
            sum += weights[k] * at[k];
        out[i] = to_byte(sum);
    }
}

bel_image bel_image_scale(const bel_image *image, const bel_image_scaling *s)
{
    int64_t channels = image->channels;
    axis_weights down =
        axis_make(s->top, s->window_height, s->height, s->part_top, s->part_height, s->filter);
    axis_weights across =
        axis_make(s->left, s->window_width, s->width, s->part_left, s->part_width, s->filter);
    // Old columns that any of the wanted new ones needs.
    int64_t origin = across.first[0], last = across.count - 1;
    int64_t count = (across.first[last] + across.used[last] - origin) * channels;
    int32_t *sums = bel_xmalloc((size_t)count * sizeof *sums);
    int16_t *middle = bel_xmalloc((size_t)count * sizeof *middle);
    bel_image out = bel_image_make(s->part_height, s->part_width, channels);
    for (int64_t y = 0; y < down.count; y++) {
        const uint8_t *rows = image->pixels + (down.first[y] * image->width + origin) * channels;
        mix_rows(rows, image->width * channels, down.weights + y * down.taps, down.used[y], count,
                 sums, middle);
        mix_columns(&across, middle, origin, channels, out.pixels + y * s->part_width * channels);
    }
    bel_free(sums);
    bel_free(middle);
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
