// Rows that are processed by 16 threads each, as the CPU's vector kernels have 16 lanes: element i
// belongs to lane i % 16, and lanes are added pairwise at the end (ops/kernels/cpu_isa.c). A block
// has 16 rows.
#ifndef BELFRY_CUDA_KERNELS_ROWS_H
#define BELFRY_CUDA_KERNELS_ROWS_H

#include "cuda/kernels/params.h"

#define BEL_CUDA_LANES 16
#define BEL_CUDA_ROWS 16 // in a block

typedef struct bel_cuda_rows {
    int64_t rows, columns;
    double scale;
    int32_t op; // from reduce.h or softmax.h
    int32_t zero;
} bel_cuda_rows;

#endif
