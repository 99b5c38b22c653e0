// Vector kernels, compiled once for each level of base/isa_levels.h, its BEL_LEVEL. All but
// few_rows are plain loops that both compilers vectorize; nothing here may depend on where a range
// begins or how wide the vectors are.
#include <math.h>
#include <string.h>

#include "ops/kernels/cpu.h"
#include "ops/kernels/lanes.h"
#include "ops/kernels/scalar.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

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

// Biased exponent of the scale for the largest magnitude: the quotient is at most 127. 255: the
// magnitude is not finite, or might be rounded up to infinity.
static inline uint32_t int8_exponent(uint32_t largest)
{
    uint32_t exponent = largest >> 23, above = (largest & 0x7fffff) > 0x7e0000;
    if (exponent + above >= 255) return 255;
    return exponent > 6 ? exponent - 6 + above : 1; // no subnormal scale
}

// Quotients are exact, or too small to matter; they lie 128 higher before the fraction is cut.
static void to_int8_block(const float *x, uint8_t *y, uint32_t salt)
{
    uint32_t largest = 0, bits;
    for (int i = 0; i < BEL_CPU_INT8_BLOCK; i++) {
        bits = bits_of_one(x[i]) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    uint32_t exponent = int8_exponent(largest);
    y[0] = (uint8_t)exponent;
    if (exponent == 255) {
        memset(y + 1, 0, BEL_CPU_INT8_BLOCK);
        return;
    }
    float scale;
    bits = (254 - exponent) << 23;
    memcpy(&scale, &bits, sizeof scale);
    for (int i = 0; i < BEL_CPU_INT8_BLOCK; i++) {
        float raised = x[i] * scale + (dither_one(x[i], salt + (uint32_t)i) + 128.0f);
        y[1 + i] = (uint8_t)((int32_t)raised - 128);
    }
}

static void to_int8(const float *x, uint8_t *y, uint32_t salt, int64_t n)
{
    for (; n >= BEL_CPU_INT8_BLOCK; n -= BEL_CPU_INT8_BLOCK) {
        to_int8_block(x, y, salt);
        x += BEL_CPU_INT8_BLOCK;
        y += BEL_CPU_INT8_BYTES;
    }
    if (n == 0) return;
    float last[BEL_CPU_INT8_BLOCK] = {0};
    memcpy(last, x, (size_t)n * sizeof *x);
    to_int8_block(last, y, salt);
}

// Adding -0 changes nothing, adding NaN makes NaN.
static inline void from_int8_block(const uint8_t *x, float *y, int n)
{
    uint32_t bits = (uint32_t)x[0] << 23, also_bits = x[0] == 255 ? 0x7fc00000 : 0x80000000;
    float scale, also;
    memcpy(&scale, &bits, sizeof scale);
    memcpy(&also, &also_bits, sizeof also);
    for (int i = 0; i < n; i++) {
        float integer = (float)(int8_t)x[1 + i];
        y[i] = select_f32(integer != 0, integer * scale, -0.0f) + also;
    }
}

static void from_int8(const uint8_t *x, float *y, int64_t n)
{
    for (; n >= BEL_CPU_INT8_BLOCK; n -= BEL_CPU_INT8_BLOCK) {
        from_int8_block(x, y, BEL_CPU_INT8_BLOCK);
        x += BEL_CPU_INT8_BYTES;
        y += BEL_CPU_INT8_BLOCK;
    }
    if (n > 0) from_int8_block(x, y, (int)n);
}

// --- Sums ----------------------------------------------------------------------------------------

static inline float add_lanes(float each[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            each[l] += each[l + half];
    return each[0];
}

// Sums over 16 lanes, element i into lane i % 16, whatever the width of the vectors; the lanes are
// added pairwise at the end. All levels thus add in one order. The same in sum_square and dot.
static float cpu_sum(const float *x, int64_t n)
{
    float each[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            each[l] += x[i + l];
    for (int l = 0; i < n; i++, l++)
        each[l] += x[i];
    return add_lanes(each);
}

static float sum_square(const float *x, int64_t n)
{
    float each[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            each[l] += x[i + l] * x[i + l];
    for (int l = 0; i < n; i++, l++)
        each[l] += x[i] * x[i];
    return add_lanes(each);
}

static float cpu_dot(const float *x, const float *y, int64_t n)
{
    float each[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            each[l] += x[i + l] * y[i + l];
    for (int l = 0; i < n; i++, l++)
        each[l] += x[i] * y[i];
    return add_lanes(each);
}

// One instruction, whereas select_f32 has five.
static inline float cpu_larger(float a, float b)
{
    return a > b ? a : b;
}

static float max_of(const float *x, int64_t n)
{
    float each[LANES];
    for (int l = 0; l < LANES; l++)
        each[l] = x[0];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            each[l] = cpu_larger(x[i + l], each[l]);
    for (int l = 0; i < n; i++, l++)
        each[l] = cpu_larger(x[i], each[l]);
    for (int l = 1; l < LANES; l++)
        each[0] = cpu_larger(each[l], each[0]);
    return each[0];
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
    float each[LANES] = {0}, powers[BLOCK]; // y may be x, which is read again below
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        int64_t count = n - begin < BLOCK ? n - begin : BLOCK;
        for (int64_t i = 0; i < count; i++)
            powers[i] = exp_one(x[begin + i] - shift);
        for (int64_t i = 0; i < count; i++)
            each[i % LANES] += powers[i];
    }
    float offset = shift + log_one(add_lanes(each));
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

// Columns of one row of the result: one chain of sums for each of four units of 16 columns, or for
// one unit. Chains are variables, so they stay in registers.
#define FEW_START(u) lanes sum_##u = bias != NULL ? lanes_load(bias + u * LANES) : zero;
#define FEW_ADD(u) sum_##u = lanes_add(sum_##u, lanes_multiply(x, lanes_load(b + u * LANES)));
#define FEW_END(u) lanes_store(y + u * LANES, sum_##u);
#define FEW_EACH(step) step(0) step(1) step(2) step(3)

static const float zeros[LANES];

static void few_units(int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                      float *y)
{
    const lanes zero = lanes_load(zeros);
    FEW_EACH(FEW_START)
    for (int64_t p = 0; p < k; p++, b += n) {
        const number x = number_load(a + p);
        FEW_EACH(FEW_ADD)
    }
    FEW_EACH(FEW_END)
}

static void few_unit(int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                     float *y)
{
    lanes sum = lanes_load(bias != NULL ? bias : zeros);
    for (int64_t p = 0; p < k; p++, b += n)
        sum = lanes_add(sum, lanes_multiply(number_load(a + p), lanes_load(b)));
    lanes_store(y, sum);
}

// A row of fewer columns than a unit.
#ifdef LANES_MASKED
static void few_narrow(int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                       float *y)
{
    lanes sum = bias != NULL ? lanes_load_some(bias, n) : lanes_load(zeros);
    for (int64_t p = 0; p < k; p++, b += n)
        sum = lanes_add(sum, lanes_multiply(number_load(a + p), lanes_load_some(b, n)));
    lanes_store_some(y, sum, n);
}
#else // partial loads are slow
enum { FEW_HALF = LANES / 2 };

static void few_half(int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                     float *y)
{
    if (bias == NULL) bias = zeros;
    floats low = *(const floats *)bias, high = *(const floats *)(bias + 4);
    for (int64_t p = 0; p < k; p++, b += n) {
        low += a[p] * *(const floats *)b;
        high += a[p] * *(const floats *)(b + 4);
    }
    *(floats *)y = low;
    *(floats *)(y + 4) = high;
}

static void few_narrow(int64_t n, int64_t k, const float *a, const float *b, const float *bias,
                       float *y)
{
    if (n >= FEW_HALF) {
        const int64_t last = n - FEW_HALF;
        few_half(n, k, a, b, bias, y);
        if (last > 0) few_half(n, k, a, b + last, bias != NULL ? bias + last : NULL, y + last);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        float sum = bias != NULL ? bias[j] : 0.0f;
        for (int64_t p = 0; p < k; p++)
            sum += a[p] * b[p * n + j];
        y[j] = sum;
    }
}
#endif

// A column has the same bits in each unit, so the last unit may overlap the one before.
static void few_rows(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     const float *bias, float *y)
{
    for (int64_t i = 0; i < m; i++, a += k, y += n) {
        int64_t j = 0;
        for (; j + 4 * LANES <= n; j += 4 * LANES)
            few_units(n, k, a, b + j, bias != NULL ? bias + j : NULL, y + j);
        for (; j < n && n >= LANES; j += LANES) {
            if (j > n - LANES) j = n - LANES;
            few_unit(n, k, a, b + j, bias != NULL ? bias + j : NULL, y + j);
        }
        if (n < LANES) few_narrow(n, k, a, b, bias, y);
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
    .to_int8 = to_int8,
    .from_int8 = from_int8,
    .masked_scale = masked_scale,
    .few_rows = few_rows,
};
