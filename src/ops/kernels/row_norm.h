// Normalization of rows, f32, shared by layer, instance and group normalization. Each row is read
// from memory once and then stays in a cache.
//
// Mean and variance use two passes, the second over distances to the rounded mean, whose sum
// corrects both (Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance"). Sums
// run over 16 lanes for at most 4,096 elements; these sums are added in double.
#ifndef BELFRY_OPS_KERNELS_ROW_NORM_H
#define BELFRY_OPS_KERNELS_ROW_NORM_H

#include "base/isa_levels.h"
#include "ops/op.h"

// x [rows, columns], where a row has `scales` runs of `run` elements that share a scale; the scales
// of rows repeat after `period` rows. In layer normalization run and period are 1. In group
// normalization a run is a channel's image and the period is the number of groups.
typedef struct bel_row_norm {
    int64_t rows, columns, scales, run, period;
    double epsilon;
} bel_row_norm;

// Params of these kernels; the plain kernels use only the first member.
typedef struct bel_row_norm_params {
    bel_row_norm norm;
    int64_t rows_per_tile; // backward: a tile is a part of the sums over rows
} bel_row_norm_params;

// Choose calls for f32: inputs x, scale, bias (or not), or dy, x, scale, mean, 1 / deviation.
void bel_row_norm_prepare(const bel_prepare *prepare, bel_kernel_call *call, const bel_row_norm *n);
void bel_row_norm_prepare_gradient(const bel_prepare *prepare, bel_kernel_call *call,
                                   const bel_row_norm *n);

// x' = (x - shift) · factor + offset
typedef struct bel_row_norm_map {
    float shift, factor, offset;
} bel_row_norm_map;

typedef struct bel_row_norm_kernels {
    // Sums over n elements: of x, x - shift and its square; of x · y, x' · y and x' · y · scale.
    double (*sum)(const float *x, int64_t n);
    double (*sum_distances)(const float *x, float shift, int64_t n);
    double (*sum_squares)(const float *x, float shift, int64_t n);
    double (*dot)(const float *x, const float *y, int64_t n);
    double (*dot_mapped)(const float *x, bel_row_norm_map map, const float *y, int64_t n);
    double (*dot_scaled)(const float *x, bel_row_norm_map map, const float *y, const float *scale,
                         int64_t n);
    // y = x' · scale + bias; bias NULL: 0.
    void (*scale_each)(const float *x, bel_row_norm_map map, const float *scale, const float *bias,
                       float *y, int64_t n);
    void (*scale_all)(const float *x, bel_row_norm_map map, float scale, float bias, float *y,
                      int64_t n);
    // Adds dy · x' to dscale and dy to dbias.
    void (*add_scales)(const float *dy, const float *x, bel_row_norm_map map, float *dscale,
                       float *dbias, int64_t n);
    // dx = dy · scale · map.factor - (x' · slope + constant)
    void (*apply_each)(const float *dy, const float *x, bel_row_norm_map map, const float *scale,
                       float slope, float constant, float *dx, int64_t n);
    void (*apply_all)(const float *dy, const float *x, bel_row_norm_map map, float scale,
                      float slope, float constant, float *dx, int64_t n);
} bel_row_norm_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_row_norm_kernels)

#endif
