// OpenBLAS, loaded when a job asks for it (--products openblas): one function of it, with its
// threads off. Its bits depend on its version and on its kernels, which it selects by the processor
// (the core type). The text has both, and is compared wherever the same bits are promised.
#ifndef BELFRY_BASE_OPENBLAS_H
#define BELFRY_BASE_OPENBLAS_H

#include <stdbool.h>

#include "belfry/status.h"

// Loads libopenblas.so.0, once per process. Call it before other threads run: it temporarily sets
// environment variables that the library reads. An existing OPENBLAS_CORETYPE is kept. Otherwise
// the core type follows bel_isa_get, as Debian's version mistakes newer processors for old ones.
// FAILED_PRECONDITION: it is not installed, or lacks a function.
bel_status *bel_openblas_open(void) BEL_MUST_USE;

// Returns version and core type, "OpenBLAS 0.3.21 SkylakeX". After bel_openblas_open.
const char *bel_openblas_text(void);

// Operand: element (i, j) is at x[i · step + j], or of its transpose, if it is transposed.
typedef struct bel_openblas_matrix {
    const float *x;
    int step;
    bool transposed;
} bel_openblas_matrix;

// y [m, n] = beta · y + a [m, k] · b [k, n], on this thread. After bel_openblas_open.
void bel_openblas_multiply(int m, int n, int k, const bel_openblas_matrix *a,
                           const bel_openblas_matrix *b, float beta, float *y, int y_step);

#endif
