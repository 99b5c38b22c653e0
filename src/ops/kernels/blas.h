// Matrix products through OpenBLAS, opened at run time so that its core type can be chosen first:
// Debian 12's 0.3.21 takes newer processors for old ones and then runs four times slower. Always
// one thread inside: Belfry cuts products into tiles itself, by shape.
#ifndef BELFRY_OPS_KERNELS_BLAS_H
#define BELFRY_OPS_KERNELS_BLAS_H

#include <stdbool.h>
#include <stdint.h>

// c [m, n] = alpha a' b' + beta c, row major. Thread-safe. Without OpenBLAS a plain loop runs.
void bel_blas_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                    float beta, float *c, int64_t c_stride);

// For `doctor`, checkpoints and error messages, e.g. "OpenBLAS 0.3.21 Haswell" or "built-in".
const char *bel_blas_name(void);
bool bel_blas_is_slow_core(
    void); // OpenBLAS runs the kernels of a processor much older than this one

#endif
