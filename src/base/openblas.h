// OpenBLAS, loaded when a job asks for it (--products openblas): one function of it, with its own
// threads off. Its bits depend on its version and on its kernels, which it chooses by the processor
// (the core type); both are in the text, which is compared wherever bits are promised.
#ifndef BELFRY_BASE_OPENBLAS_H
#define BELFRY_BASE_OPENBLAS_H

#include <stdbool.h>

#include "belfry/status.h"

// Loads libopenblas.so.0, once per process. Call it before other threads run: it sets, for a
// moment, environment variables that the library reads. A value of OPENBLAS_CORETYPE that is there
// is kept; else the core type follows bel_isa_get, as Debian's version takes newer processors for
// old ones. FAILED_PRECONDITION: it is not installed, or lacks a function.
bel_status *bel_openblas_open(void) BEL_MUST_USE;

// Version and core type, "OpenBLAS 0.3.21 SkylakeX". After bel_openblas_open.
const char *bel_openblas_text(void);

// An operand: element (i, j) lies at x[i · step + j], or of its transpose, then it is transposed.
typedef struct bel_openblas_matrix {
    const float *x;
    int step;
    bool transposed;
} bel_openblas_matrix;

// y [m, n] = beta · y + a [m, k] · b [k, n], on this thread. After bel_openblas_open.
void bel_openblas_multiply(int m, int n, int k, const bel_openblas_matrix *a,
                           const bel_openblas_matrix *b, float beta, float *y, int y_step);

#endif
