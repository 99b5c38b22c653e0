// Params of the normalization of rows: bel_row_norm_params.
#ifndef BELFRY_CUDA_KERNELS_ROW_NORM_H
#define BELFRY_CUDA_KERNELS_ROW_NORM_H

#include <stdint.h>

// A block of 16 teams of 16 threads: sums run over 16 lanes for BEL_CUDA_ROW_ELEMENTS elements.
#define BEL_CUDA_ROW_TEAMS 16
#define BEL_CUDA_ROW_LANES 16
#define BEL_CUDA_ROW_ELEMENTS 4096

typedef struct bel_cuda_row_norm {
    int64_t rows, columns, scales, run, period;
    int64_t rows_per_part, parts;
    int64_t slopes; // with sums of runs: bytes from the workspace's start to the rows' slopes
    double epsilon;
    int32_t has_bias, is_f64;
} bel_cuda_row_norm;

#endif
