// Products by cuBLASLt: see library_product.h. The algorithm is the library's first choice, for the
// workspace and the alignments of every run. No algorithm is timed, so a restarted process chooses
// the same. Descriptors live for one call; handles are the device's, for any thread.
#include "cuda/library_product.h"

#include <string.h>

#include "runtime/plan.h"

enum { MOST_WORKSPACE = 32 << 20 };

typedef bel_cuda_library_product product; // short name in this file

typedef struct descriptors {
    void *product, *layouts[3], *preference;
} descriptors;

// Swaps rows and columns: row-major is the transpose of column-major.
static bel_cuda_library_matrix matrix_of(int64_t rows, int64_t columns, int type)
{
    return (bel_cuda_library_matrix){.rows = (uint64_t)columns,
                                     .columns = (uint64_t)rows,
                                     .apart = rows * columns,
                                     .type = type,
                                     .bytes = BEL_PLAN_ALIGNMENT};
}

bel_cuda_library_product bel_cuda_library_product_of(bel_gpu_math math, int type, int64_t m,
                                                     int64_t n, int64_t k, bool transpose_a,
                                                     bool transpose_b, int64_t count, float alpha)
{
    static const int computes[] = {[BEL_GPU_MATH_F32] = BEL_CUBLAS_COMPUTE_F32,
                                   [BEL_GPU_MATH_TF32] = BEL_CUBLAS_COMPUTE_TF32,
                                   [BEL_GPU_MATH_BF16] = BEL_CUBLAS_COMPUTE_BF16};
    return (product){.compute = type == BEL_CUBLAS_BF16 ? BEL_CUBLAS_COMPUTE_F32 : computes[math],
                     .epilogue = BEL_CUBLAS_THEN_NOTHING,
                     .count = (int32_t)count,
                     .transposed = {transpose_b, transpose_a},
                     .matrices = {matrix_of(transpose_b ? n : k, transpose_b ? k : n, type),
                                  matrix_of(transpose_a ? k : m, transpose_a ? m : k, type),
                                  matrix_of(m, n, BEL_CUBLAS_F32)},
                     .alpha = alpha};
}

// --- Descriptors ---------------------------------------------------------------------------------

static void library_product_destroy(const bel_cuda_api *api, const descriptors *d)
{
    if (d->product != NULL) api->cublas_product_destroy(d->product);
    for (int i = 0; i < 3; i++)
        if (d->layouts[i] != NULL) api->cublas_layout_destroy(d->layouts[i]);
    if (d->preference != NULL) api->cublas_preference_destroy(d->preference);
}

static int make_layout(const bel_cuda_api *api, const bel_cuda_library_matrix *m, int32_t count,
                       void **out_layout)
{
    int error =
        api->cublas_layout_create(out_layout, m->type, m->rows, m->columns, (int64_t)m->rows);
    if (error == 0)
        error = api->cublas_layout_set(*out_layout, BEL_CUBLAS_LAYOUT_COUNT, &count, sizeof count);
    if (error == 0)
        error =
            api->cublas_layout_set(*out_layout, BEL_CUBLAS_LAYOUT_STEP, &m->apart, sizeof m->apart);
    return error;
}

// `bias`: its address, of which the choice uses only the alignment.
static int make_product(const bel_cuda_api *api, const product *p, const void *bias,
                        void **out_product)
{
    int error = api->cublas_product_create(out_product, p->compute, BEL_CUBLAS_F32);
    static const int attributes[2] = {BEL_CUBLAS_TRANSPOSE_A, BEL_CUBLAS_TRANSPOSE_B};
    for (int i = 0; i < 2 && error == 0; i++) {
        int32_t form = p->transposed[i] ? BEL_CUBLAS_TRANSPOSED : BEL_CUBLAS_PLAIN;
        error = api->cublas_product_set(*out_product, attributes[i], &form, sizeof form);
    }
    if (error == 0)
        error = api->cublas_product_set(*out_product, BEL_CUBLAS_EPILOGUE, &p->epilogue,
                                        sizeof p->epilogue);
    if (error == 0 && (p->epilogue & BEL_CUBLAS_THEN_BIAS) != 0)
        error = api->cublas_product_set(*out_product, BEL_CUBLAS_BIAS, &bias, sizeof bias);
    return error;
}

static int library_product_make(const bel_cuda_api *api, const product *p, const void *bias,
                                descriptors *d)
{
    int error = make_product(api, p, bias, &d->product);
    for (int i = 0; i < 3 && error == 0; i++)
        error = make_layout(api, &p->matrices[i], p->count, &d->layouts[i]);
    return error;
}

// --- Choosing ------------------------------------------------------------------------------------

static int make_preference(const bel_cuda_api *api, const product *p, void **out_preference)
{
    const size_t most = MOST_WORKSPACE;
    int error = api->cublas_preference_create(out_preference);
    if (error == 0)
        error = api->cublas_preference_set(*out_preference, BEL_CUBLAS_MOST_WORKSPACE, &most,
                                           sizeof most);
    for (int i = 0; i < 4 && error == 0; i++) { // a, b, c, d
        uint32_t bytes = p->matrices[i < 2 ? i : 2].bytes;
        error = api->cublas_preference_set(*out_preference, BEL_CUBLAS_ALIGNMENT_A + i, &bytes,
                                           sizeof bytes);
    }
    return error;
}

bel_status *bel_cuda_library_product_choose(const bel_cuda_device *device, product *p,
                                            bool *out_found)
{
    const bel_cuda_api *api = device->api;
    _Alignas(BEL_PLAN_ALIGNMENT) static const char aligned[1]; // never read
    descriptors d = {.product = NULL};
    bel_cublas_choice choice = {.status = -1};
    int count = 0, error = library_product_make(api, p, aligned, &d);
    if (error == 0) error = make_preference(api, p, &d.preference);
    if (error == 0)
        error = api->cublas_choose(device->cublas, d.product, d.layouts[0], d.layouts[1],
                                   d.layouts[2], d.layouts[2], d.preference, 1, &choice, &count);
    library_product_destroy(api, &d);
    bool none = error == BEL_CUBLAS_NOT_SUPPORTED || (error == 0 && count == 0);
    *out_found = error == 0 && count > 0 && choice.status == 0;
    if (!*out_found)
        return none ? NULL
                    : bel_cuda_library_status(error != 0 ? error : choice.status, "cuBLAS",
                                              "choose an algorithm");
    p->workspace_bytes = choice.workspace_bytes;
    memcpy(p->algorithm, choice.algorithm, sizeof p->algorithm);
    return NULL;
}

bel_status *bel_cuda_library_product_run(const bel_cuda_device *device, void *stream,
                                         const product *p, const bel_cuda_library_operands *o)
{
    const bel_cuda_api *api = device->api;
    descriptors d = {.product = NULL};
    int error = library_product_make(api, p, o->bias, &d);
    if (error == 0)
        error = api->cublas_multiply(device->cublas, d.product, &p->alpha, o->b, d.layouts[0], o->a,
                                     d.layouts[1], &o->beta, o->c != NULL ? o->c : o->y,
                                     d.layouts[2], o->y, d.layouts[2], p->algorithm, o->work,
                                     p->workspace_bytes, stream);
    library_product_destroy(api, &d);
    return bel_cuda_library_status(error, "cuBLAS", "multiply");
}
