// Vector kernels: f32, contiguous. The same source (cpu_isa.c) is compiled for each level of
// base/isa_levels.h; one table is chosen at start. All levels give the same bits: there is no fused
// multiply-add, and sums run over 16 lanes that are added pairwise at the end.
#ifndef BELFRY_OPS_KERNELS_CPU_H
#define BELFRY_OPS_KERNELS_CPU_H

#include <stdint.h>

#include "base/isa_levels.h"

typedef void bel_cpu_binary_fn(const float *a, const float *b, float *y, int64_t n);
typedef void bel_cpu_unary_fn(const float *x, float *y, int64_t n);
// Functions of one input with two number attributes, and their gradients from dy and x.
typedef void bel_cpu_curve_fn(const float *x, float s, float t, float *y, int64_t n);
typedef void bel_cpu_curve_grad_fn(const float *dy, const float *x, float s, float t, float *dx,
                                   int64_t n);
typedef float bel_cpu_reduce_fn(const float *x, int64_t n);

enum { BEL_CPU_INT8_BLOCK = 16, BEL_CPU_INT8_BYTES = 17 }; // values of a block, and its bytes

enum { // order of the tables below
#define BINARY(id, f32, plain) BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
    BEL_CPU_BINARY_COUNT
};

enum {
#define UNARY(id, f32, plain) BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
    BEL_CPU_UNARY_COUNT
};

enum {
#define CURVE(id, s_name, s_default, t_name, t_default, f32, plain) BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
    BEL_CPU_CURVE_COUNT
};

enum {
#define CURVE_GRAD(id, s_name, s_default, t_name, t_default, f32, plain) BEL_CPU_##id,
#include "ops/kernels/elementwise.def"
    BEL_CPU_CURVE_GRAD_COUNT
};

typedef struct bel_cpu_kernels {
    bel_cpu_binary_fn *binary[BEL_CPU_BINARY_COUNT];        // a[n], b[n]
    bel_cpu_binary_fn *binary_scalar[BEL_CPU_BINARY_COUNT]; // a[n], b[1]
    bel_cpu_binary_fn *scalar_binary[BEL_CPU_BINARY_COUNT]; // a[1], b[n]
    bel_cpu_unary_fn *unary[BEL_CPU_UNARY_COUNT];
    bel_cpu_curve_fn *curve[BEL_CPU_CURVE_COUNT];
    bel_cpu_curve_grad_fn *curve_grad[BEL_CPU_CURVE_GRAD_COUNT];
    bel_cpu_reduce_fn *sum, *sum_square, *max; // max of n >= 1
    float (*dot)(const float *x, const float *y, int64_t n);
    bel_cpu_unary_fn *softmax, *log_softmax;            // one row of n
    bel_cpu_binary_fn *softmax_grad, *log_softmax_grad; // one row: dy, y -> dx
    // x = e^(x * scale - shift); returns the sum of these powers
    float (*powers)(float *x, float scale, float shift, int64_t n);
    // x the same, and y = x * (y - inner) * scale
    void (*powers_grad)(float *x, float *y, float scale, float shift, float inner, int64_t n);
    // y[j] = sum over i of x[i * stride + j], rows added in order
    void (*sum_rows)(const float *x, int64_t rows, int64_t stride, float *y, int64_t n);
    // Images, channels last: adds x and x · y (y NULL: only x) of each pixel to its channel's sums
    void (*sum_channels)(const float *x, const float *y, int64_t pixels, int64_t channels,
                         double *sums, double *products);
    // y[c] = factors[c] · u[c] + seconds[c] · v[c] + offsets[c] for n of the channels of each pixel
    void (*map_channels)(const float *u, const float *v, const float *factors, const float *seconds,
                         const float *offsets, int64_t pixels, int64_t channels, int64_t n,
                         float *y);
    // bfloat16: rounded to nearest, ties to even, as bel_bfloat_make; and back
    void (*to_bfloat)(const float *x, uint16_t *y, int64_t n);
    void (*from_bfloat)(const uint16_t *x, float *y, int64_t n);
    // int8: blocks of 16 values, each a biased exponent and 16 integers; ps/layout/rounding.h. The
    // last block is filled up with zeros, and `salt` varies the dither
    void (*to_int8)(const float *x, uint8_t *y, uint32_t salt, int64_t n);
    void (*from_int8)(const uint8_t *x, float *y, int64_t n);
    // y = kept[j] ? x * scale : 0
    void (*masked_scale)(const float *x, const uint8_t *kept, float scale, float *y, int64_t n);
    // y [m, n] = a [m, k] b [k, n], contiguous rows, added to `bias` [n] (NULL: 0) in order of k:
    // for so few rows that packing would cost more than the product
    void (*few_rows)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     const float *bias, float *y);
} bel_cpu_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_cpu_kernels)

// Returns the table of bel_isa_get().
const bel_cpu_kernels *bel_cpu_kernels_get(void);

#endif
