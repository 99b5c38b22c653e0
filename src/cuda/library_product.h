// Products by cuBLASLt: one, or several of the same size whose matrices lie at equal steps.
//
// Its matrices lie column by column, and Belfry's row by row, which is the same memory as the
// transposed matrix column by column. So y = a · b is asked for as yᵀ = bᵀ · aᵀ: its first matrix
// is b, its second a, and its rows are y's columns. A bias, a number for each column of y, is one
// for each of its rows, as it wants it.
//
// What it needs to know of matrices is kept as plain numbers in the program; its descriptors are
// made when an algorithm is chosen and when work is queued, which from the second run on graphs
// replay.
#ifndef BELFRY_CUDA_LIBRARY_PRODUCT_H
#define BELFRY_CUDA_LIBRARY_PRODUCT_H

#include "cuda/device.h"

typedef struct bel_cuda_library_matrix { // as it lies, column by column
    uint64_t rows, columns;
    int64_t apart;  // elements to the next one; 0: all products take this one
    int type;       // BEL_CUBLAS_F32 or _BF16
    uint32_t bytes; // it begins at a multiple of so many, a power of two
} bel_cuda_library_matrix;

typedef struct bel_cuda_library_product {
    int compute;
    uint32_t epilogue;
    int32_t count; // products
    bool transposed[2];
    bel_cuda_library_matrix matrices[3]; // b, a, y
    float alpha;
    // As chosen:
    size_t workspace_bytes;
    uint64_t algorithm[8];
} bel_cuda_library_product;

// Where the operands of a run lie, on the card.
typedef struct bel_cuda_library_operands {
    const void *b, *a;
    void *y;
    const void *c; // of y's shape and type, added `beta` times; with beta 0 not read
    float beta;
    const void *bias; // with BEL_CUBLAS_THEN_BIAS
    void *work;       // workspace_bytes, at a multiple of BEL_CUDA_WORK_ALIGNMENT
} bel_cuda_library_operands;

// A product y [m, n] = alpha · a [m, k] · b [k, n], transposed ones lying as [k, m] and [n, k], and
// `count` of each one behind the other; factors are of `type` and y of f32. Sums are f32, and the
// factors rounded as `math` says if they are f32.
bel_cuda_library_product bel_cuda_library_product_of(bel_gpu_math math, int type, int64_t m,
                                                     int64_t n, int64_t k, bool transpose_a,
                                                     bool transpose_b, int64_t count, float alpha);

// Chooses the algorithm, of the library's own rules; *out_found false: it has none. The same card
// with the same library chooses the same. Errors: what the library says.
bel_status *bel_cuda_library_product_choose(const bel_cuda_device *device,
                                            bel_cuda_library_product *product,
                                            bool *out_found) BEL_MUST_USE;

// Queues it.
bel_status *bel_cuda_library_product_run(const bel_cuda_device *device, void *stream,
                                         const bel_cuda_library_product *product,
                                         const bel_cuda_library_operands *operands) BEL_MUST_USE;

#endif
