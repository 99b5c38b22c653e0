// Matrix products of Belfry beside OpenBLAS's on one thread, in turns; best of rounds, since both
// only lose by what runs beside. Without OpenBLAS (Debian: libopenblas0-pthread) it says so.
// usage: bench_product [ROUNDS]
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/isa.h"
#include "ops/kernels/product.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; // CBLAS

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

// Its kernels are chosen when it is loaded: 0.3.21 takes newer processors for old ones.
static sgemm_fn *open_library(void)
{
    static const char *const cores[] = {
        [BEL_ISA_V2] = "Nehalem", [BEL_ISA_V3] = "Haswell", [BEL_ISA_V4] = "SkylakeX"};
    setenv("OPENBLAS_CORETYPE", cores[bel_isa_get()], 0);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *address = library != NULL ? dlsym(library, "cblas_sgemm") : NULL;
    sgemm_fn *sgemm = NULL;
    if (address != NULL) memcpy(&sgemm, &address, sizeof sgemm);
    return sgemm;
}

typedef struct shape {
    int m, n, k;
    bool transpose_a, transpose_b;
} shape;

static float *make(int64_t count)
{
    float *x = bel_xcalloc((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((i + 1) * 7919 % 2003) / 1001.0f - 1.0f;
    return x;
}

static void measure(const shape *s, sgemm_fn *sgemm, int rounds)
{
    float *a = make((int64_t)s->m * s->k), *b = make((int64_t)s->k * s->n);
    float *y = make((int64_t)s->m * s->n);
    int a_stride = s->transpose_a ? s->m : s->k, b_stride = s->transpose_b ? s->k : s->n;
    const bel_product product = {.m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .a = a,
                                 .a_row = s->transpose_a ? 1 : a_stride,
                                 .a_column = s->transpose_a ? a_stride : 1,
                                 .b = b,
                                 .b_row = s->transpose_b ? 1 : b_stride,
                                 .b_column = s->transpose_b ? b_stride : 1,
                                 .y = y,
                                 .y_row = s->n};
    int64_t own = INT64_MAX, library = INT64_MAX;
    for (int r = 0; r < rounds; r++) {
        int64_t begun = bel_clock_ns();
        bel_product_run(&product);
        int64_t between = bel_clock_ns();
        sgemm(ROW_MAJOR, s->transpose_a ? TRANSPOSE : NO_TRANSPOSE,
              s->transpose_b ? TRANSPOSE : NO_TRANSPOSE, s->m, s->n, s->k, 1.0f, a, a_stride, b,
              b_stride, 0.0f, y, s->n);
        int64_t done = bel_clock_ns();
        if (between - begun < own) own = between - begun;
        if (done - between < library) library = done - between;
    }
    double operations = 2.0 * s->m * s->n * s->k;
    printf("%4d x %4d x %4d %s%s  %6.1f GFLOP/s, OpenBLAS %6.1f, ratio %.2f\n", s->m, s->n, s->k,
           s->transpose_a ? "T" : "N", s->transpose_b ? "T" : "N", operations / (double)own,
           operations / (double)library, (double)library / (double)own);
    bel_free(a);
    bel_free(b);
    bel_free(y);
}

int main(int argc, char **argv)
{
    // A step of the dnn at two batch sizes, and what is much smaller or larger.
    static const shape shapes[] = {{64, 512, 784, false, false},  {64, 512, 512, false, false},
                                   {64, 10, 512, false, false},   {64, 512, 512, false, true},
                                   {512, 512, 64, true, false},   {784, 512, 64, true, false},
                                   {512, 10, 64, true, false},    {64, 512, 10, false, true},
                                   {256, 512, 784, false, false}, {256, 512, 512, false, true},
                                   {784, 512, 256, true, false},  {16, 512, 512, false, false},
                                   {32, 100, 100, false, false},  {1024, 1024, 1024, false, false}};
    sgemm_fn *sgemm = open_library();
    if (sgemm == NULL) {
        printf("bench_product: OpenBLAS is not installed\n");
        return 0;
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        measure(&shapes[i], sgemm, rounds);
    return 0;
}
