// Vector kernels, compiled once for each level of base/isa_levels.h, its BEL_LEVEL. Plain
// loops that both compilers vectorise; nothing here may depend on where a range begins or how wide
// the vectors are. exp, log and tanh follow the Cephes library's f32 methods (S. Moshier, 1989):
// range reduction, then a short polynomial; worst error about 2 units in the last place.
#include <math.h>
#include <string.h>

#include "ops/kernels/cpu.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { LANES = 16 };

// --- Scalar functions that vectorise -------------------------------------------------------------

// A choice without a branch: `condition` is 0 or 1.
static inline float select_f32(int condition, float yes, float no)
{
    uint32_t mask = 0u - (uint32_t)condition, yes_bits, no_bits;
    memcpy(&yes_bits, &yes, 4);
    memcpy(&no_bits, &no, 4);
    uint32_t bits = (yes_bits & mask) | (no_bits & ~mask);
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float exp_one(float x)
{
    // e^x = 2^n e^r with |r| <= ln2 / 2. Adding 1.5 * 2^23 rounds to the nearest integer.
    float clamped = select_f32(x > 88.7f, 88.7f, x);
    clamped = select_f32(clamped < -87.3f, -87.3f, clamped);
    float shifted = clamped * 1.44269504088896341f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = clamped - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    // n lies in [-126, 128]: scaling in two steps keeps both factors normal. It is read from the
    // bits, for a NaN cannot be converted.
    int32_t whole;
    memcpy(&whole, &shifted, 4);
    whole -= 0x4b400000; // the bits of 1.5 * 2^23
    int32_t half = whole / 2;
    uint32_t first = (uint32_t)(half + 127) << 23, second = (uint32_t)(whole - half + 127) << 23;
    float scale_first, scale_second;
    memcpy(&scale_first, &first, 4);
    memcpy(&scale_second, &second, 4);
    float y = p * scale_first * scale_second;
    y = select_f32(x > 88.72284f, INFINITY, y);
    y = select_f32(x < -87.33654f, 0.0f, y);
    return select_f32(x != x, x, y);
}

// log x = e · ln 2 + log(1 + r), where x = 2^e (1 + r) with 1 + r in [sqrt(1/2), sqrt(2)): the
// exponent is taken from the bits, and the logarithm of the rest is a polynomial (Cephes logf).
static inline float log_one(float x)
{
    // Subnormal numbers are scaled up first.
    int tiny = x < 1.17549435e-38f;
    float scaled = select_f32(tiny, x * 8388608.0f, x);
    uint32_t bits;
    memcpy(&bits, &scaled, 4);
    int32_t exponent = (int32_t)(bits >> 23) - 126 - 23 * tiny;
    bits = (bits & 0x007fffffu) | 0x3f000000u;
    float m; // in [0.5, 1)
    memcpy(&m, &bits, 4);
    int low = m < 0.707106781186547524f;
    float e = (float)exponent - select_f32(low, 1.0f, 0.0f);
    float r = select_f32(low, m + m, m) - 1.0f;
    float z = r * r;
    float p = 7.0376836292e-2f;
    p = p * r + -1.1514610310e-1f;
    p = p * r + 1.1676998740e-1f;
    p = p * r + -1.2420140846e-1f;
    p = p * r + 1.4249322787e-1f;
    p = p * r + -1.6668057665e-1f;
    p = p * r + 2.0000714765e-1f;
    p = p * r + -2.4999993993e-1f;
    p = p * r + 3.3333331174e-1f;
    p = p * r * z;
    p = p + e * -2.12194440e-4f;
    p = p - 0.5f * z;
    float y = r + p + e * 0.693359375f;
    y = select_f32(x == 0.0f, -INFINITY, y);
    y = select_f32(x < 0.0f, NAN, y);
    y = select_f32(x == INFINITY, INFINITY, y);
    return select_f32(x != x, x, y);
}

// A polynomial near 0, where 1 - 2 / (e^2x + 1) would lose digits.
static inline float tanh_one(float x)
{
    float z = x * x;
    float p = -5.70498872745e-3f; // |x| < 0.625
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    float small = p * z * x + x;
    float magnitude = fabsf(x);
    float large = 1.0f - 2.0f / (exp_one(magnitude + magnitude) + 1.0f);
    large = select_f32(x < 0.0f, -large, large);
    return select_f32(magnitude < 0.625f, small, large);
}

static inline float sigmoid_one(float x)
{
    return 1.0f / (1.0f + exp_one(-x));
}

static inline float sigmoid_cross_entropy_one(float x, float z)
{
    float tail = log_one(1.0f + exp_one(-fabsf(x)));
    return select_f32(x > 0.0f, x, 0.0f) - x * z + tail;
}

static inline float softplus_one(float x)
{
    return select_f32(x > 0.0f, x, 0.0f) + log_one(1.0f + exp_one(-fabsf(x)));
}

static inline float clip_one(float x, float low, float high)
{
    float raised = select_f32(x < low, low, x);
    return select_f32(raised > high, high, raised);
}

// A quotient of polynomials on [-4, 4], outside of which erf is 1 in f32: the one of Eigen and XLA.
// Within 5e-7 of erf.
static inline float erf_one(float x)
{
    float c = clip_one(x, -4.0f, 4.0f), z = c * c;
    float p = -2.72614225801306e-10f;
    p = p * z + 2.77068142495902e-08f;
    p = p * z + -2.10102402082508e-06f;
    p = p * z + -5.69250639462346e-05f;
    p = p * z + -7.34990630326855e-04f;
    p = p * z + -2.95459980854025e-03f;
    p = p * z + -1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * z + -2.13374055278905e-04f;
    q = q * z + -1.68282697438203e-03f;
    q = q * z + -7.37332916720468e-03f;
    q = q * z + -1.42647390514189e-02f;
    return c * p / q;
}

// The slopes clip x, so that no factor overflows where the slope has long been 0 or 1.
static inline float gelu_slope_one(float x)
{
    float c = clip_one(x, -13.0f, 13.0f);
    return 0.5f * (1.0f + erf_one(c * 0.707106781f)) + c * exp_one(-0.5f * c * c) * 0.398942280f;
}

static inline float gelu_inner_one(float x)
{
    float c = clip_one(x, -13.0f, 13.0f);
    return 0.797884561f * (c + 0.044715f * (c * c * c));
}

static inline float gelu_tanh_slope_one(float x)
{
    float c = clip_one(x, -13.0f, 13.0f), u = tanh_one(gelu_inner_one(c));
    float inner = 0.797884561f * (1.0f + 0.134145f * (c * c));
    return 0.5f * (1.0f + u) + 0.5f * c * ((1.0f - u * u) * inner);
}

static inline float silu_slope_one(float x)
{
    float y = sigmoid_one(x);
    return y + x * (y * (1.0f - y));
}

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

// The upper half of the bits, rounded to nearest, ties to even: half of the lower part's last place
// is added, and one less where the result would be odd by a tie. NaN keeps its sign and becomes the
// quiet one, since a sum could carry into infinity.
static void to_bfloat(const float *x, uint16_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        uint32_t nan = (bits >> 16 & 0x8000) | 0x7fc0, is_nan = 0u - (x[i] != x[i]);
        y[i] = (uint16_t)((rounded & ~is_nan) | (nan & is_nan));
    }
}

static void from_bfloat(const uint16_t *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
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
// added pairwise at the end. So all levels add in one order. The same in sum_square and dot.
static float sum(const float *x, int64_t n)
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

static float dot(const float *x, const float *y, int64_t n)
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

// One instruction, where select_f32 is five.
static inline float larger(float a, float b)
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
            lanes[l] = larger(x[i + l], lanes[l]);
    for (int l = 0; i < n; i++, l++)
        lanes[l] = larger(x[i], lanes[l]);
    for (int l = 1; l < LANES; l++)
        lanes[0] = larger(lanes[l], lanes[0]);
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

// The sums of 16 channels stay in registers.
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

// x and y [pixels, channels]; adds each channel's sum of x and of x · y, whole runs of 16 channels
// in registers, the rest one by one. y NULL: sums alone.
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

// Shifted by the largest, so that no power overflows and one is 1.
static void softmax(const float *x, float *y, int64_t n)
{
    float shift = max_of(x, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = exp_one(x[i] - shift);
    float scale = 1.0f / sum(y, n);
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

// x - max - log(sum of e^(x - max)), the sum over lanes as in `sum`, a block of powers at a time.
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
    return sum(x, n);
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
    float inner = dot(dy, y, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - inner);
}

static void log_softmax_grad(const float *dy, const float *y, float *dx, int64_t n)
{
    float total = sum(dy, n);
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
    .sum = sum,
    .sum_square = sum_square,
    .max = max_of,
    .dot = dot,
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
