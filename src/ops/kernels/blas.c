// The only file that knows OpenBLAS. OPENBLAS_CORETYPE must be in the environment before the
// library is loaded: hence dlopen. A user's own value is respected.
#include "ops/kernels/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "ops/kernels/cpu.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; // CBLAS

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static sgemm_fn *library_sgemm;
static char library_name[96] = "built-in";
static bool slow_core;

// A function pointer from dlsym, by copying its bytes as POSIX describes.
static bool symbol(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    if (address == NULL) return false;
    memcpy(out_function, &address, sizeof address);
    return true;
}

static const char *wanted_core(void)
{
    static const char *const cores[] = {
        [BEL_ISA_V2] = NULL, [BEL_ISA_V3] = "Haswell", [BEL_ISA_V4] = "SkylakeX"};
    return cores[bel_isa_get()];
}

static void open_library(void)
{
    const char *core = wanted_core();
    if (core != NULL) setenv("OPENBLAS_CORETYPE", core, 0);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    void (*set_threads)(int);
    char *(*get_core)(void);
    char *(*get_config)(void);
    sgemm_fn *sgemm;
    if (!symbol(library, "cblas_sgemm", &sgemm) ||
        !symbol(library, "openblas_set_num_threads", &set_threads) ||
        !symbol(library, "openblas_get_corename", &get_core) ||
        !symbol(library, "openblas_get_config", &get_config)) {
        dlclose(library);
        return;
    }
    set_threads(1);
    char config[64];
    snprintf(config, sizeof config, "%s", get_config());
    char *second_space = strchr(config, ' ');
    if (second_space != NULL) second_space = strchr(second_space + 1, ' ');
    if (second_space != NULL) *second_space = '\0'; // "OpenBLAS 0.3.21"
    snprintf(library_name, sizeof library_name, "%s %s", config, get_core());
    slow_core =
        core != NULL && (strcmp(get_core(), "Prescott") == 0 || strcmp(get_core(), "Nehalem") == 0);
    library_sgemm = sgemm;
}

void bel_blas_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                    float beta, float *c, int64_t c_stride)
{
    pthread_once(&open_once, open_library);
    if (library_sgemm != NULL) {
        library_sgemm(ROW_MAJOR, transpose_a ? TRANSPOSE : NO_TRANSPOSE,
                      transpose_b ? TRANSPOSE : NO_TRANSPOSE, (int)m, (int)n, (int)k, alpha, a,
                      (int)a_stride, b, (int)b_stride, beta, c, (int)c_stride);
        return;
    }
    // Without a library: c is divided by alpha, the product added, all multiplied by alpha.
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_stride + j] = beta == 0.0f ? 0.0f : c[i * c_stride + j] * (beta / alpha);
    bel_cpu_kernels_get()->gemm(m, n, k, a, transpose_a ? 1 : a_stride, transpose_a ? a_stride : 1,
                                b, transpose_b ? 1 : b_stride, transpose_b ? b_stride : 1, c,
                                c_stride);
    for (int64_t i = 0; alpha != 1.0f && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * c_stride + j] *= alpha;
}

const char *bel_blas_name(void)
{
    pthread_once(&open_once, open_library);
    return library_name;
}

bool bel_blas_is_slow_core(void)
{
    pthread_once(&open_once, open_library);
    return slow_core;
}
