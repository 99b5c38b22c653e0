// The f32 functions of elementwise.def, for one element: plain C that both compilers vectorize. GPU
// kernels are compiled from it as well (cuda/kernels/kernel.h), so that both have the same bits.
// exp, log and tanh follow the Cephes library's f32 methods (S. Moshier, 1989): range reduction,
// then a short polynomial; worst error about 2 units in the last place.
#ifndef BELFRY_OPS_KERNELS_SCALAR_H
#define BELFRY_OPS_KERNELS_SCALAR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

// Selection without a branch: `condition` is 0 or 1.
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

// e^r for |r| <= ln2 / 2.
static inline float exp_part_one(float r)
{
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r + 1.0f;
}

// e^x = 2^n e^r with |r| <= ln2 / 2, for |x| <= 88.7. Adding 1.5 * 2^23 rounds to the nearest
// integer n, which is read from the bits, as a NaN cannot be converted.
static inline float exp_split_one(float x, int32_t *out_n)
{
    float shifted = x * 1.44269504088896341f + 12582912.0f;
    float n = shifted - 12582912.0f;
    float r = x - n * 0.693359375f;
    memcpy(out_n, &shifted, 4);
    *out_n -= 0x4b400000; // the bits of 1.5 * 2^23
    return exp_part_one(r - n * -2.12194440e-4f);
}

static inline float power_of_two_one(int32_t n) // -126 … 127
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

// exp_one for |x| <= 87, where nothing overflows.
static inline float exp_near_one(float x)
{
    int32_t n;
    float p = exp_split_one(x, &n);
    return p * power_of_two_one(n);
}

static inline float exp_one(float x)
{
    float clamped = select_f32(x > 88.7f, 88.7f, x);
    clamped = select_f32(clamped < -87.3f, -87.3f, clamped);
    // n is in [-126, 128]: scaling in two steps keeps both factors normal.
    int32_t n;
    float p = exp_split_one(clamped, &n);
    int32_t half = n / 2;
    float y = p * power_of_two_one(half) * power_of_two_one(n - half);
    y = select_f32(x > 88.72284f, INFINITY, y);
    y = select_f32(x < -87.33654f, 0.0f, y);
    return select_f32(x != x, x, y);
}

// log x = e · ln 2 + log(1 + r), where x = 2^e (1 + r) with 1 + r in [sqrt(1/2), sqrt(2)): the
// exponent is read from the bits, and the logarithm of the rest is a polynomial (Cephes logf).
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

// Quotient of polynomials on [-4, 4], outside of which erf is 1 in f32: that of Eigen and XLA.
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

// The slopes clamp x, so that no factor overflows where the slope has long been 0 or 1.
static inline float gelu_slope_one(float x)
{
    float c = clip_one(x, -13.0f, 13.0f);
    return 0.5f * (1.0f + erf_one(c * 0.707106781f)) + c * exp_one(-0.5f * c * c) * 0.398942280f;
}

// (1 + tanh u) / 2 = 1 / (1 + e^-2u), with u = sqrt(2 / pi) (c + 0.044715 c^3). For |c| <= 9.9,
// |2 u| is below 86.
static inline float gelu_gate_one(float c)
{
    return 1.0f / (1.0f + exp_near_one(-1.59576912f * (c + 0.044715f * (c * c * c))));
}

// Below -9.9 the gate is 1e-37, so that the function is 0 but for the last digits of f32.
static inline float gelu_tanh_one(float x)
{
    float raised = select_f32(x < -9.9f, -9.9f, x);
    return raised * gelu_gate_one(select_f32(raised > 9.9f, 9.9f, raised));
}

static inline float gelu_tanh_slope_one(float x)
{
    float c = clip_one(x, -9.9f, 9.9f), gate = gelu_gate_one(c);
    float inner = 1.59576912f * (1.0f + 0.134145f * (c * c));
    return gate + c * (gate * (1.0f - gate) * inner);
}

static inline float silu_slope_one(float x)
{
    float y = sigmoid_one(x);
    return y + x * (y * (1.0f - y));
}

// Rounds to bfloat16, the upper half of the bits: to nearest, ties to even. Adds half of the last
// place, less one if a tie would give an odd result. NaN keeps its sign and becomes the quiet one,
// since the addition could carry into infinity.
static inline uint16_t to_bfloat_one(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t nan = (bits >> 16 & 0x8000) | 0x7fc0, is_nan = 0u - (uint32_t)(x != x);
    return (uint16_t)((rounded & ~is_nan) | (nan & is_nan));
}

static inline uint32_t bits_of_one(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Dither of a value in [0, 1), a multiple of 2^-16: a hash of its bits.
static inline float dither_one(float x, uint32_t salt)
{
    uint32_t hash = (bits_of_one(x) ^ salt) * 0x9e3779b1u;
    hash = (hash ^ hash >> 15) * 0x85ebca77u;
    return (float)(int32_t)(hash >> 16) * 0x1p-16f;
}

static inline float from_bfloat_one(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

#endif
