// Products by cuBLASLt: one, or several of the same size whose matrices are at equal distances.
//
// cuBLASLt's matrices are column-major and Belfry's row-major: the same memory is the transposed
// matrix. So y = a · b is computed as yᵀ = bᵀ · aᵀ: its first matrix is b, its second a, and its
// rows are y's columns. A bias has one number for each column of y, so one for each of cuBLASLt's
// rows, as it requires.
//
// The program keeps the matrices' properties as plain numbers. Descriptors are created when an
// algorithm is chosen and when work is queued; from the second run on graphs replay that work.
#ifndef BELFRY_CUDA_LIBRARY_PRODUCT_H
#define BELFRY_CUDA_LIBRARY_PRODUCT_H

#include "cuda/device.h"

typedef struct bel_cuda_library_matrix { // as stored, column-major
    uint64_t rows, columns;
    int64_t apart;  // distance to the next matrix in elements; 0: all products use this one
    int type;       // BEL_CUBLAS_F32 or _BF16
    uint32_t bytes; // alignment of its address, a power of two
} bel_cuda_library_matrix;

typedef struct bel_cuda_library_product {
    int compute;
    uint32_t epilogue;
    int32_t count; // number of products
    bool transposed[2];
    bel_cuda_library_matrix matrices[3]; // b, a, y
    float alpha;
    // As chosen:
    size_t workspace_bytes;
    uint64_t algorithm[8];
} bel_cuda_library_product;

// Addresses of a run's operands, on the GPU.
typedef struct bel_cuda_library_operands {
    const void *b, *a;
    void *y;
    const void *c; // with y's shape and type, added `beta` times; not read if beta is 0
    float beta;
    const void *bias; // with BEL_CUBLAS_THEN_BIAS
    void *work;       // workspace_bytes, at a multiple of BEL_CUDA_WORK_ALIGNMENT
} bel_cuda_library_operands;

// A product y [m, n] = alpha · a [m, k] · b [k, n], with transposed ones stored as [k, m] and [n,
// k], and `count` of each, one after the other. Factors are of `type`, y is f32. Sums are f32; f32
// factors are rounded as `math` says.
bel_cuda_library_product bel_cuda_library_product_of(bel_gpu_math math, int type, int64_t m,
                                                     int64_t n, int64_t k, bool transpose_a,
                                                     bool transpose_b, int64_t count, float alpha);

// Chooses the algorithm by the library's heuristics; *out_found false: it has none. The same GPU
// with the same library chooses the same. Errors: the library's.
bel_status *bel_cuda_library_product_choose(const bel_cuda_device *device,
                                            bel_cuda_library_product *product,
                                            bool *out_found) BEL_MUST_USE;

// Queues the products.
bel_status *bel_cuda_library_product_run(const bel_cuda_device *device, void *stream,
                                         const bel_cuda_library_product *product,
                                         const bel_cuda_library_operands *operands) BEL_MUST_USE;

#endif
