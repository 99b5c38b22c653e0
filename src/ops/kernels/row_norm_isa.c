// Kernels for parts of a row, compiled once for each level of base/isa_levels.h, its BEL_LEVEL.
// Plain loops that both compilers vectorize, without fused multiply-adds: all levels give the same
// bits. Every sum has a separate loop: gcc 12 compiles a loop of two sums badly.
#include "ops/kernels/row_norm.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

enum { LANES = 16, BLOCK = 4096 };

static inline double add_lanes(float lanes[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return (double)lanes[0];
}

static inline float mapped(float x, bel_row_norm_map map)
{
    return (x - map.shift) * map.factor + map.offset;
}

// --- Sums: a function (operands, n) for each, of `term` for k from 0 to n ------------------------

#define SUM(name, term, ...)                                                                       \
    static double name(__VA_ARGS__, int64_t n)                                                     \
    {                                                                                              \
        double total = 0;                                                                          \
        for (int64_t begin = 0; begin < n; begin += BLOCK) {                                       \
            float lanes[LANES] = {0};                                                              \
            int64_t i = begin, end = n - begin < BLOCK ? n : begin + BLOCK;                        \
            for (; i + LANES <= end; i += LANES) {                                                 \
                for (int64_t l = 0; l < LANES; l++) {                                              \
                    int64_t k = i + l;                                                             \
                    lanes[l] += (term);                                                            \
                }                                                                                  \
            }                                                                                      \
            for (int64_t k = i; k < end; k++)                                                      \
                lanes[k - i] += (term);                                                            \
            total += add_lanes(lanes);                                                             \
        }                                                                                          \
        return total;                                                                              \
    }

SUM(row_norm_sum, x[k], const float *x)
SUM(sum_distances, x[k] - shift, const float *x, float shift)
SUM(sum_squares, (x[k] - shift) * (x[k] - shift), const float *x, float shift)
SUM(row_norm_dot, x[k] * y[k], const float *x, const float *y)
SUM(dot_mapped, y[k] * mapped(x[k], map), const float *x, bel_row_norm_map map, const float *y)
SUM(dot_scaled, y[k] * scale[k] * mapped(x[k], map), const float *x, bel_row_norm_map map,
    const float *y, const float *scale)

// --- Elements ------------------------------------------------------------------------------------

// x' · scale (+ bias) with a scale for each element; scale_all: one for all.
static void scale_each(const float *restrict x, bel_row_norm_map map, const float *restrict scale,
                       const float *restrict bias, float *restrict y, int64_t n)
{
    if (bias == NULL) {
        for (int64_t i = 0; i < n; i++)
            y[i] = mapped(x[i], map) * scale[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = mapped(x[i], map) * scale[i] + bias[i];
}

static void scale_all(const float *restrict x, bel_row_norm_map map, float scale, float bias,
                      float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = mapped(x[i], map) * scale + bias;
}

static void add_scales(const float *restrict dy, const float *restrict x, bel_row_norm_map map,
                       float *restrict dscale, float *restrict dbias, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        dscale[i] += dy[i] * mapped(x[i], map);
        dbias[i] += dy[i];
    }
}

static void apply_each(const float *restrict dy, const float *restrict x, bel_row_norm_map map,
                       const float *restrict scale, float slope, float constant, float *restrict dx,
                       int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * scale[i] * map.factor - (mapped(x[i], map) * slope + constant);
}

static void apply_all(const float *restrict dy, const float *restrict x, bel_row_norm_map map,
                      float scale, float slope, float constant, float *restrict dx, int64_t n)
{
    float factor = scale * map.factor;
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * factor - (mapped(x[i], map) * slope + constant);
}

const bel_row_norm_kernels JOIN(bel_row_norm_kernels_, BEL_LEVEL) = {
    .sum = row_norm_sum,
    .sum_distances = sum_distances,
    .sum_squares = sum_squares,
    .dot = row_norm_dot,
    .dot_mapped = dot_mapped,
    .dot_scaled = dot_scaled,
    .scale_each = scale_each,
    .scale_all = scale_all,
    .add_scales = add_scales,
    .apply_each = apply_each,
    .apply_all = apply_all,
};
