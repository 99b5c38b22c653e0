// OpenBLAS, opened at run time, so that Belfry neither needs it nor loads its 30 MB without a
// request. It stays open: any thread may call its functions until the process ends. Its environment
// variables must be set before it is loaded. They are removed afterwards, so that a later child
// process, such as a peer in a benchmark, does not inherit them.
#include "base/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "base/number.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 }; // CBLAS

typedef void sgemm_fn(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                      const float *a, int a_step, const float *b, int b_step, float beta, float *y,
                      int y_step);
typedef char *text_fn(void);
typedef void set_threads_fn(int count);

static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static sgemm_fn *sgemm;
static char text[96]; // "" until it is loaded
static char problem[256];

// Finds a function of the library: ISO C has no conversion from void * to it.
static void openblas_find(void *library, const char *name, void *out_function)
{
    void *address = dlsym(library, name);
    memcpy(out_function, &address, sizeof address);
    if (address == NULL && problem[0] == '\0') {
        bel_snprintf(problem, sizeof problem, "libopenblas.so.0 has no function %s", name);
    }
}

static const char *core_type(void)
{
#if BEL_ISA_X86
    static const char *const types[BEL_ISA_COUNT] = {
        [BEL_ISA_v2] = "Nehalem", [BEL_ISA_v3] = "Haswell", [BEL_ISA_v4] = "SkylakeX"};
    return types[bel_isa_get()];
#else
    return NULL; // left to the library
#endif
}

// Sets a variable unless the user has; true: it must be removed again.
static bool set_for_now(const char *name, const char *value)
{
    if (value == NULL || getenv(name) != NULL) return false;
    setenv(name, value, 0);
    return true;
}

static void open_library(void)
{
    bool core_set = set_for_now("OPENBLAS_CORETYPE", core_type());
    bool threads_set = set_for_now("OPENBLAS_NUM_THREADS", "1");
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (core_set) unsetenv("OPENBLAS_CORETYPE");
    if (threads_set) unsetenv("OPENBLAS_NUM_THREADS");
    if (library == NULL) {
        bel_snprintf(problem, sizeof problem, "%s", dlerror());
        return;
    }
    text_fn *config, *core;
    set_threads_fn *set_threads;
    openblas_find(library, "cblas_sgemm", &sgemm);
    openblas_find(library, "openblas_get_config", &config);
    openblas_find(library, "openblas_get_corename", &core);
    openblas_find(library, "openblas_set_num_threads", &set_threads);
    if (problem[0] != '\0') return;
    set_threads(1);
    // "OpenBLAS 0.3.21 …": only the name and the version matter.
    const char *whole = config(), *space = strchr(whole, ' ');
    size_t length =
        space == NULL ? strlen(whole) : strcspn(space + 1, " ") + 1 + (size_t)(space - whole);
    bel_snprintf(text, sizeof text, "%.*s %s", (int)length, whole, core());
}

bel_status *bel_openblas_open(void)
{
    pthread_once(&open_once, open_library);
    if (problem[0] == '\0') return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "products by OpenBLAS: %s; hint: install it (Debian: libopenblas0-pthread), or "
                   "leave products at belfry",
                   problem);
}

const char *bel_openblas_text(void)
{
    return text;
}

void bel_openblas_multiply(int m, int n, int k, const bel_openblas_matrix *a,
                           const bel_openblas_matrix *b, float beta, float *y, int y_step)
{
    sgemm(ROW_MAJOR, a->transposed ? TRANSPOSE : NO_TRANSPOSE,
          b->transposed ? TRANSPOSE : NO_TRANSPOSE, m, n, k, 1.0f, a->x, a->step, b->x, b->step,
          beta, y, y_step);
}
