// Arguments of product.cu.
#ifndef BELFRY_CUDA_KERNELS_PRODUCT_H
#define BELFRY_CUDA_KERNELS_PRODUCT_H

#include "cuda/kernels/params.h"

// y [count, m, n] = alpha · a b + beta · c: bel_gemm (ops/matmul.h).
typedef struct bel_cuda_product {
    int64_t m, n, k, count;
    int64_t a_row, a_column, b_row, b_column; // steps
    int64_t tiles_m, tiles_n;                 // blocks of a matrix
    bel_cuda_walk stack;                      // matrices of y; tensors: those of a and b
    bel_cuda_walk c;                          // elements of y; tensor: those of c
    double alpha, beta;
    int32_t starts, adds_c, relu, zero;
} bel_cuda_product;

#endif
