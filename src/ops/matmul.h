// Parameters of a matrix product, made by bel_prepare_gemm.
#ifndef BELFRY_OPS_MATMUL_H
#define BELFRY_OPS_MATMUL_H

#include "ops/kernels/product.h"
#include "ops/op.h"

// Order of the sums, which determines the bits.
typedef enum bel_gemm_way {
    BEL_GEMM_PLAIN,    // in double, one by one
    BEL_GEMM_CHAINS,   // one chain of fused multiply-adds
    BEL_GEMM_FEW_ROWS, // one chain, products and sums rounded separately, from the bias on
    BEL_GEMM_SHORT,    // four chains: bel_product_few
} bel_gemm_way;

typedef struct bel_gemm {
    bel_gemm_way way;
    bool transpose_a, transpose_b, relu;
    bool has_c;      // any other input after a and b is packed b
    bool starts;     // CHAINS: with c, which is a row; else beta · c is added at the end
    bool continues;  // CHAINS: with c, which has the shape of y
    bool packs_once; // b, which is the same for all matrices and runs
    double alpha, beta;
    int64_t m, n, k;
    int64_t tile_m, tile_n; // rows and columns of y in one tile
    int64_t tiles_n;        // tiles in a row of y
    int64_t count;          // matrices of y
    int64_t per_tile;       // matrices in one tile, if a matrix is at most one tile
    int64_t tiles;          // tiles of one matrix
    int64_t k_parts;        // 1, except with BELFRY_FAULT=threads2
    bel_product_fn *multiply;
    void (*run_few)(const bel_product_few *few);
    void (*few_rows)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     const float *bias, float *y);
} bel_gemm;

#endif
