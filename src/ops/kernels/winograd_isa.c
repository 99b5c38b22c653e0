// Transforms of winograd.h, compiled once per instruction-set level with BEL_LEVEL: 16 channels at
// a time, only sums and differences, in one order, so that all levels give the same bits
// (tests/op/test_isa.c specifies the order element by element).
#include "ops/kernels/winograd.h"

#include "ops/kernels/lanes.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { SIDE = 4 };

// Rows of Bᵀ: (1 0 -1 0), (0 1 1 0), (0 -1 1 0), (0 1 0 -1).
#define TURN(out, a, b, c, d)                                                                      \
    {                                                                                              \
        (out)[0] = lanes_subtract(a, c);                                                           \
        (out)[1] = lanes_add(b, c);                                                                \
        (out)[2] = lanes_subtract(c, b);                                                           \
        (out)[3] = lanes_subtract(b, d);                                                           \
    }

// Transforms 16 channels of a patch.
LANES_INLINE void turn_patch(const float *pixels, int64_t row, int64_t channels, float *out,
                             int64_t step)
{
    lanes columns[SIDE][SIDE]; // [column][row] of Bᵀ d
    for (int j = 0; j < SIDE; j++, pixels += channels)
        TURN(columns[j], lanes_load(pixels), lanes_load(pixels + row), lanes_load(pixels + 2 * row),
             lanes_load(pixels + 3 * row))
    for (int i = 0; i < SIDE; i++) {
        lanes turned[SIDE];
        TURN(turned, columns[0][i], columns[1][i], columns[2][i], columns[3][i])
        for (int j = 0; j < SIDE; j++, out += step)
            lanes_store(out, turned[j]);
    }
}

static void patches(const float *pixels, int64_t row, int64_t channels, int64_t count, float *out,
                    int64_t step)
{
    for (int64_t p = 0; p < count; p++, pixels += 2 * channels, out += channels)
        for (int64_t c = 0; c < channels; c += LANES)
            turn_patch(pixels + c, row, channels, out + c, step);
}

LANES_INLINE lanes winograd_finish(lanes x, const float *bias, bool has_bias, bool with_relu)
{
    if (has_bias) x = lanes_add(x, lanes_load(bias));
    return with_relu ? lanes_relu(x) : x;
}

// Rows of Aᵀ: (1 1 1 0), (0 1 -1 -1).
#define TURN_BACK(left, right, a, b, c, d)                                                         \
    {                                                                                              \
        left = lanes_add(lanes_add(a, b), c);                                                      \
        right = lanes_subtract(lanes_subtract(b, c), d);                                           \
    }

// Computes 16 channels of a patch's results: [row][column].
LANES_INLINE void turn_results(const float *products, int64_t step, const float *bias,
                               bool has_bias, bool with_relu, lanes out[2][2])
{
    lanes rows[2][SIDE]; // rows of Aᵀ m
    for (int j = 0; j < SIDE; j++, products += step)
        TURN_BACK(rows[0][j], rows[1][j], lanes_load(products), lanes_load(products + SIDE * step),
                  lanes_load(products + 2 * SIDE * step), lanes_load(products + 3 * SIDE * step))
    for (int i = 0; i < 2; i++) {
        lanes left, right;
        TURN_BACK(left, right, rows[i][0], rows[i][1], rows[i][2], rows[i][3])
        out[i][0] = winograd_finish(left, bias, has_bias, with_relu);
        out[i][1] = winograd_finish(right, bias, has_bias, with_relu);
    }
}

static void results(const float *products, int64_t step, int64_t channels, int64_t count,
                    const float *bias, bool relu, int64_t columns, float *upper, float *lower)
{
    for (int64_t p = 0; p < count; p++, products += channels) {
        int64_t at = 2 * p * channels;
        bool is_whole = 2 * p + 1 < columns;
        for (int64_t c = 0; c < channels; c += LANES, at += LANES) {
            lanes out[2][2];
            turn_results(products + c, step, bias == NULL ? NULL : bias + c, bias != NULL, relu,
                         out);
            lanes_store(upper + at, out[0][0]);
            if (is_whole) lanes_store(upper + at + channels, out[0][1]);
            if (lower == NULL) continue;
            lanes_store(lower + at, out[1][0]);
            if (is_whole) lanes_store(lower + at + channels, out[1][1]);
        }
    }
}

const bel_winograd_kernels JOIN(bel_winograd_kernels_, BEL_LEVEL) = {.patches = patches,
                                                                     .results = results};
