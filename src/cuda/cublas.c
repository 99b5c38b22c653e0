// Products by cuBLASLt, where fast arithmetic is asked for: MatMul, Gemm, and the gradients that
// they are.
//
// Its matrices lie column by column, and Belfry's row by row, which is the same memory as the
// transposed matrix column by column. So y = a · b is asked for as yᵀ = bᵀ · aᵀ: its first matrix
// is b, its second a, and its rows are y's columns. A bias, a number for each column of y, is one
// for each of its rows, as it wants it.
//
// What it needs to know of matrices is kept as plain numbers in the program; its descriptors are
// made when an algorithm is chosen and when work is queued, which from the second run on graphs
// replay.
#include <string.h>

#include "cuda/device.h"
#include "ops/matmul.h"
#include "runtime/plan.h"

enum { MOST_WORKSPACE = 32 << 20 };

typedef struct matrix { // as it lies, column by column
    uint64_t rows, columns;
    int64_t apart; // elements to the next one; 0: all products take this one
} matrix;

typedef struct library_product {
    int compute;
    uint32_t epilogue;
    int32_t count;              // products
    bool transposed[2], adds_c; // else the third operand, if there is one, is a bias
    matrix matrices[3];         // b, a, y
    float alpha, beta;
    size_t workspace_bytes;
    uint64_t algorithm[8];
} library_product;

typedef struct descriptors {
    void *product, *layouts[3], *preference;
} descriptors;

// --- Descriptors ---------------------------------------------------------------------------------

static void destroy(const bel_cuda_api *api, const descriptors *d)
{
    if (d->product != NULL) api->cublas_product_destroy(d->product);
    for (int i = 0; i < 3; i++)
        if (d->layouts[i] != NULL) api->cublas_layout_destroy(d->layouts[i]);
    if (d->preference != NULL) api->cublas_preference_destroy(d->preference);
}

static int make_layout(const bel_cuda_api *api, const matrix *m, int32_t count, void **out_layout)
{
    int error = api->cublas_layout_create(out_layout, BEL_CUBLAS_F32, m->rows, m->columns,
                                          (int64_t)m->rows);
    if (error == 0)
        error = api->cublas_layout_set(*out_layout, BEL_CUBLAS_LAYOUT_COUNT, &count, sizeof count);
    if (error == 0)
        error =
            api->cublas_layout_set(*out_layout, BEL_CUBLAS_LAYOUT_STEP, &m->apart, sizeof m->apart);
    return error;
}

// `bias`: where it lies, of which choosing looks at the alignment alone.
static int make_product(const bel_cuda_api *api, const library_product *p, const void *bias,
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

static int make(const bel_cuda_api *api, const library_product *p, const void *bias, descriptors *d)
{
    int error = make_product(api, p, bias, &d->product);
    for (int i = 0; i < 3 && error == 0; i++)
        error = make_layout(api, &p->matrices[i], p->count, &d->layouts[i]);
    return error;
}

// --- Choosing ------------------------------------------------------------------------------------

static int make_preference(const bel_cuda_api *api, void **out_preference)
{
    const size_t most = MOST_WORKSPACE;
    const uint32_t alignment = BEL_PLAN_ALIGNMENT;
    int error = api->cublas_preference_create(out_preference);
    if (error == 0)
        error = api->cublas_preference_set(*out_preference, BEL_CUBLAS_MOST_WORKSPACE, &most,
                                           sizeof most);
    for (int i = 0; i < 4 && error == 0; i++) // of a, b, c, d
        error = api->cublas_preference_set(*out_preference, BEL_CUBLAS_ALIGNMENT_A + i, &alignment,
                                           sizeof alignment);
    return error;
}

// *out_found false: the library has no algorithm for it.
static bel_status *choose(const bel_cuda_device *device, library_product *p, bool *out_found)
{
    const bel_cuda_api *api = device->api;
    _Alignas(BEL_PLAN_ALIGNMENT) static const char aligned[1]; // nobody reads there
    descriptors d = {.product = NULL};
    bel_cublas_choice choice = {.status = -1};
    int count = 0, error = make(api, p, aligned, &d);
    if (error == 0) error = make_preference(api, &d.preference);
    if (error == 0)
        error = api->cublas_choose(device->cublas, d.product, d.layouts[0], d.layouts[1],
                                   d.layouts[2], d.layouts[2], d.preference, 1, &choice, &count);
    destroy(api, &d);
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

// --- Reading a call ------------------------------------------------------------------------------

// False: the stack is broadcast in a way that steps do not say.
static bool read_matrix(const bel_tensor *tensor, int64_t rows, int64_t columns, int64_t count,
                        matrix *out)
{
    int64_t elements = bel_shape_elements(&tensor->shape), size = rows * columns;
    *out = (matrix){.rows = (uint64_t)columns, // row by row is the other way round
                    .columns = (uint64_t)rows,
                    .apart = elements == size ? 0 : size};
    return elements == size || elements == size * count;
}

// False: what is added to the product is neither a bias nor a matrix.
static bool read_c(const bel_kernel_call *call, const bel_gemm *gemm, library_product *p)
{
    if (!gemm->has_c || gemm->beta == 0) return true;
    const bel_shape *c = &call->inputs[2].shape;
    int64_t elements = bel_shape_elements(c);
    p->adds_c = elements == gemm->m * gemm->n * gemm->count;
    if (p->adds_c) {
        p->beta = (float)gemm->beta;
        return true;
    }
    if (gemm->beta != 1 || c->rank == 0 || c->dims[c->rank - 1] != gemm->n || elements != gemm->n)
        return false;
    p->epilogue |= BEL_CUBLAS_THEN_BIAS;
    return true;
}

static bool read(const bel_cuda_build *build, const bel_gemm *gemm, library_product *p)
{
    const bel_kernel_call *call = build->call;
    const bel_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    static const int computes[] = {[BEL_GPU_MATH_F32] = BEL_CUBLAS_COMPUTE_F32,
                                   [BEL_GPU_MATH_TF32] = BEL_CUBLAS_COMPUTE_TF32,
                                   [BEL_GPU_MATH_BF16] = BEL_CUBLAS_COMPUTE_BF16};
    *p = (library_product){.compute = computes[build->prepare->gpu_math],
                           .epilogue = gemm->relu ? BEL_CUBLAS_THEN_RELU : 0,
                           .count = (int32_t)gemm->count,
                           .transposed = {gemm->transpose_b, gemm->transpose_a},
                           .alpha = (float)gemm->alpha};
    if (m <= 0 || n <= 0 || k <= 0 || gemm->count <= 0 || gemm->count > INT32_MAX) return false;
    bool good = read_matrix(b, gemm->transpose_b ? n : k, gemm->transpose_b ? k : n, gemm->count,
                            &p->matrices[0]) &&
                read_matrix(a, gemm->transpose_a ? k : m, gemm->transpose_a ? m : k, gemm->count,
                            &p->matrices[1]) &&
                read_matrix(y, m, n, gemm->count, &p->matrices[2]) && read_c(call, gemm, p);
    if (p->epilogue == 0) p->epilogue = BEL_CUBLAS_THEN_NOTHING;
    return good;
}

// --- Running -------------------------------------------------------------------------------------

static bel_status *multiply(bel_cuda_device *device, void *stream,
                            const bel_cuda_operands *operands, const void *params)
{
    const library_product *p = params;
    const bel_cuda_api *api = device->api;
    descriptors d = {.product = NULL};
    const void *c = p->adds_c ? operands->in[2] : operands->out[0];
    int error = make(api, p, operands->in[2], &d);
    if (error == 0)
        error = api->cublas_multiply(device->cublas, d.product, &p->alpha, operands->in[1],
                                     d.layouts[0], operands->in[0], d.layouts[1], &p->beta, c,
                                     d.layouts[2], operands->out[0], d.layouts[2], p->algorithm,
                                     bel_cuda_work_at(operands, 0), p->workspace_bytes, stream);
    destroy(api, &d);
    return bel_cuda_library_status(error, "cuBLAS", "multiply");
}

bel_status *bel_cuda_try_cublas(bel_cuda_build *build, bool *out_taken)
{
    library_product p;
    *out_taken = false;
    if (!bel_cuda_is_fast(build)) return NULL;
    BEL_TRY(bel_cuda_libraries(build->device));
    bool found = false;
    if (read(build, build->call->params, &p)) BEL_TRY(choose(build->device, &p, &found));
    if (!found) return NULL;
    if (p.workspace_bytes > 0)
        build->call->workspace_bytes = p.workspace_bytes + BEL_CUDA_WORK_ALIGNMENT;
    bel_cuda_add_library(build, multiply, &p, sizeof p);
    *out_taken = true;
    return NULL;
}
