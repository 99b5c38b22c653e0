// Vector kernels, compiled once for each level of base/isa_levels.h, its BEL_LEVEL. Plain
// loops that both compilers vectorize; nothing here may depend on where a range begins or how wide
// the vectors are.
#include <math.h>
#include <string.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/scalar.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { LANES = 16 };

// --- Element-wise: one loop for each row of elementwise.def --------------------------------------

#define BINARY(id, f32, plain)                                                                     \
    static void id##_vv(const float *a, const float *b, float *y, int64_t n)                       \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float p = a[i], q = b[i];                                                              \
            y[i] = (f32);                                                                          \
        }                                                                                          \
    }                                                                                              \
    static void id##_vs(const float *a, const float *b, float *y, int64_t n)                       \
    {                                                                                              \
        float q = b[0];                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float p = a[i];                                                                        \
            y[i] = (f32);                                                                          \
        }                                                                                          \
    }                                                                                              \
    static void id##_sv(const float *a, const float *b, float *y, int64_t n)                       \
    {                                                                                              \
        float p = a[0];                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float q = b[i];                                                                        \
            y[i] = (f32);                                                                          \
        }                                                                                          \
    }
#define UNARY(id, f32, plain)                                                                      \
    static void id##_v(const float *x, float *y, int64_t n)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float p = x[i];                                                                        \
            y[i] = (f32);                                                                          \
        }                                                                                          \
    }
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain)                                \
    static void id##_v(const float *x, float s, float t, float *y, int64_t n)                      \
    {                                                                                              \
        (void)t;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float p = x[i];                                                                        \
            y[i] = (f32);                                                                          \
        }                                                                                          \
    }
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    static void id##_vv(const float *dy, const float *x, float s, float t, float *dx, int64_t n)   \
    {                                                                                              \
        (void)t;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float p = dy[i], q = x[i];                                                             \
            dx[i] = (f32);                                                                         \
        }                                                                                          \
    }
#include "ops/kernels/elementwise.def"

static void masked_scale(const float *x, const uint8_t *kept, float scale, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = select_f32(kept[i] != 0, x[i] * scale, 0.0f);
}

static void to_bfloat(const float *x, uint16_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = to_bfloat_one(x[i]);
}

static void from_bfloat(const uint16_t *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = from_bfloat_one(x[i]);
}

// --- Sums ----------------------------------------------------------------------------------------

static inline float add_lanes(float lanes[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

// Sums over 16 lanes, element i into lane i % 16, whatever the width of the vectors; the lanes are
// added pairwise at the end. All levels thus add in one order. The same in sum_square and dot.
static float cpu_sum(const float *x, int64_t n)
{
    float lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[i + l];
    for (int l = 0; i < n; i++, l++)
        lanes[l] += x[i];
    return add_lanes(lanes);
}

static float sum_square(const float *x, int64_t n)
{
    float lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[i + l] * x[i + l];
    for (int l = 0; i < n; i++, l++)
        lanes[l] += x[i] * x[i];
    return add_lanes(lanes);
}

static float cpu_dot(const float *x, const float *y, int64_t n)
{
    float lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[i + l] * y[i + l];
    for (int l = 0; i < n; i++, l++)
        lanes[l] += x[i] * y[i];
    return add_lanes(lanes);
}

// One instruction, whereas select_f32 has five.
static inline float cpu_larger(float a, float b)
{
    return a > b ? a : b;
}

static float max_of(const float *x, int64_t n)
{
    float lanes[LANES];
    for (int l = 0; l < LANES; l++)
        lanes[l] = x[0];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] = cpu_larger(x[i + l], lanes[l]);
    for (int l = 0; i < n; i++, l++)
        lanes[l] = cpu_larger(x[i], lanes[l]);
    for (int l = 1; l < LANES; l++)
        lanes[0] = cpu_larger(lanes[l], lanes[0]);
    return lanes[0];
}

static void sum_rows(const float *x, int64_t rows, int64_t stride, float *y, int64_t n)
{
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            y[j] += x[i * stride + j];
}

// --- Channels ------------------------------------------------------------------------------------

typedef float floats __attribute__((vector_size(16), aligned(4)));
typedef double doubles __attribute__((vector_size(32), aligned(8)));

// Keeps the sums of 16 channels in registers.
static void sum_lanes(const float *x, const float *y, int64_t pixels, int64_t channels,
                      double *sums, double *products)
{
    enum { WIDTH = 4, PARTS = LANES / WIDTH };
    doubles s[PARTS], p[PARTS];
    for (int k = 0; k < PARTS; k++) {
        s[k] = *(const doubles *)(sums + k * WIDTH);
        p[k] = *(const doubles *)(products + k * WIDTH);
    }
    for (int64_t i = 0; i < pixels; i++) {
        for (int k = 0; k < PARTS; k++) {
            int64_t at = i * channels + k * WIDTH;
            doubles a = __builtin_convertvector(*(const floats *)(x + at), doubles), b = a;
            if (y != x) b = __builtin_convertvector(*(const floats *)(y + at), doubles);
            s[k] += a;
            p[k] += a * b;
        }
    }
    for (int k = 0; k < PARTS; k++) {
        *(doubles *)(sums + k * WIDTH) = s[k];
        *(doubles *)(products + k * WIDTH) = p[k];
    }
}

// x and y [pixels, channels]; adds each channel's sum of x and of x · y, full runs of 16 channels
// in registers, the rest one by one. y NULL: only sums of x.
static void sum_channels(const float *x, const float *y, int64_t pixels, int64_t channels,
                         double *sums, double *products)
{
    int64_t c = 0;
    for (; y != NULL && c + LANES <= channels; c += LANES)
        sum_lanes(x + c, y + c, pixels, channels, sums + c, products + c);
    for (int64_t i = 0; i < pixels; i++) {
        const float *a = x + i * channels;
        for (int64_t k = c; k < channels; k++) {
            sums[k] += (double)a[k];
            if (y != NULL) products[k] += (double)a[k] * (double)y[i * channels + k];
        }
    }
}

// y = factor · u + second · v + offset by channel, for the first n of `channels`.
static void map_channels(const float *u, const float *v, const float *factors, const float *seconds,
                         const float *offsets, int64_t pixels, int64_t channels, int64_t n,
                         float *y)
{
    for (int64_t i = 0; i < pixels; i++) {
        const float *a = u + i * channels, *b = v + i * channels;
        float *to = y + i * channels;
        for (int64_t c = 0; c < n; c++)
            to[c] = factors[c] * a[c] + seconds[c] * b[c] + offsets[c];
    }
}

// --- Softmax -------------------------------------------------------------------------------------

// Shifted by the largest, so that no power overflows and one of them is 1.
static void softmax(const float *x, float *y, int64_t n)
{
    float shift = max_of(x, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = exp_one(x[i] - shift);
    float scale = 1.0f / cpu_sum(y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

// x - max - log(sum of e^(x - max)), with the sum over lanes as in `sum`, a block of powers at a
// time.
static void log_softmax(const float *x, float *y, int64_t n)
{
    enum { BLOCK = 16 * LANES };
    float shift = max_of(x, n);
    float lanes[LANES] = {0}, powers[BLOCK]; // y may be x, which is read again below
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
        for (int64_t i = 0; i < count; i++)
            powers[i] = exp_one(x[begin + i] - shift);
        for (int64_t i = 0; i < count; i++)
            lanes[i % LANES] += powers[i];
    }
    float offset = shift + log_one(add_lanes(lanes));
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - offset;
}

static float powers(float *x, float scale, float shift, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = exp_one(x[i] * scale - shift);
    return cpu_sum(x, n);
}

static void powers_grad(float *restrict x, float *restrict y, float scale, float shift, float inner,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = exp_one(x[i] * scale - shift);
        y[i] = x[i] * (y[i] - inner) * scale;
    }
}

static void softmax_grad(const float *dy, const float *y, float *dx, int64_t n)
{
    float inner = cpu_dot(dy, y, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - inner);
}

static void log_softmax_grad(const float *dy, const float *y, float *dx, int64_t n)
{
    float total = cpu_sum(dy, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] - exp_one(y[i]) * total;
}

// --- Matrix product without a library ------------------------------------------------------------

// One row of the result, BLOCK columns at a time: their sums stay in registers.
static void few_rows(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     const float *bias, float *y)
{
    for (int64_t i = 0; i < m; i++, a += k, y += n) {
        int64_t j = 0;
        for (; j + LANES <= n; j += LANES) {
            float sums[LANES];
            for (int l = 0; l < LANES; l++)
                sums[l] = bias != NULL ? bias[j + l] : 0.0f;
            for (int64_t p = 0; p < k; p++)
                for (int l = 0; l < LANES; l++)
                    sums[l] += a[p] * b[p * n + j + l];
            memcpy(y + j, sums, sizeof sums);
        }
        for (; j + LANES / 2 <= n; j += LANES / 2) {
            float sums[LANES / 2];
            for (int l = 0; l < LANES / 2; l++)
                sums[l] = bias != NULL ? bias[j + l] : 0.0f;
            for (int64_t p = 0; p < k; p++)
                for (int l = 0; l < LANES / 2; l++)
                    sums[l] += a[p] * b[p * n + j + l];
            memcpy(y + j, sums, sizeof sums);
        }
        for (; j < n; j++) {
            float sum = bias != NULL ? bias[j] : 0.0f;
            for (int64_t p = 0; p < k; p++)
                sum += a[p] * b[p * n + j];
            y[j] = sum;
        }
    }
}

const bel_cpu_kernels JOIN(bel_cpu_kernels_, BEL_LEVEL) = {
#define BINARY(id, f32, plain)                                                                     \
    .binary[BEL_CPU_##id] = id##_vv, .binary_scalar[BEL_CPU_##id] = id##_vs,                       \
    .scalar_binary[BEL_CPU_##id] = id##_sv,
#define UNARY(id, f32, plain) .unary[BEL_CPU_##id] = id##_v,
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) .curve[BEL_CPU_##id] = id##_v,
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain)                           \
    .curve_grad[BEL_CPU_##id] = id##_vv,
#include "ops/kernels/elementwise.def"
    .sum = cpu_sum,
    .sum_square = sum_square,
    .max = max_of,
    .dot = cpu_dot,
    .softmax = softmax,
    .log_softmax = log_softmax,
    .softmax_grad = softmax_grad,
    .log_softmax_grad = log_softmax_grad,
    .powers = powers,
    .powers_grad = powers_grad,
    .sum_rows = sum_rows,
    .sum_channels = sum_channels,
    .map_channels = map_channels,
    .to_bfloat = to_bfloat,
    .from_bfloat = from_bfloat,
    .masked_scale = masked_scale,
    .few_rows = few_rows,
};
