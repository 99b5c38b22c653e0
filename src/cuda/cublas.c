// Products by cuBLASLt, where fast arithmetic is asked for: MatMul, Gemm, and the gradients that
// they are.
//
// Its matrices lie column by column, and Belfry's row by row, which is the same memory as the
// transposed matrix column by column. So y = a · b is asked for as yᵀ = bᵀ · aᵀ: its first matrix
// is b, its second a, and its rows are y's columns. A bias, a number for each column of y, is one
// for each of its rows, as it wants it.
//
// With bf16 the factors of large products are given to it as bfloat16, and the result taken so
// where it lies so: tensor cores read half as much then, and multiply twice as fast. A factor that
// lies in f32 is copied to the call's workspace for that. Small products are not worth the copies;
// their factors are rounded by the library as it reads them.
//
// Relu's gradient and a bias's are kernels of their own, although the library could make both with
// a product: it needs 440 and 160 microseconds for what they do in 130 and 65 ([16384 × 4096] by
// [4096 × 4096] on an H100, cuBLASLt 13.1), and marks of Relu's sides cost another 100.
//
// What it needs to know of matrices is kept as plain numbers in the program; its descriptors are
// made when an algorithm is chosen and when work is queued, which from the second run on graphs
// replay.
#include <string.h>

#include "cuda/device.h"
#include "cuda/kernels/arrange.h"
#include "ops/matmul.h"
#include "runtime/plan.h"

enum { MOST_WORKSPACE = 32 << 20 };

// From so many multiplications, or elements of the result, on factors are copied to be bfloat16:
// some 10 microseconds of multiplying or of writing, on the cards that have tensor cores. A copy of
// an element is worth so many multiplications, or one element of the result.
#define MANY_MULTIPLICATIONS 2e9
#define MANY_RESULTS 8e6
#define COPY_MULTIPLICATIONS 500

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
    int types[3];
    bool copied[2];    // b and a: read from the workspace, behind …
    size_t offsets[2]; // … this much
    bool bias_copied;  // the bias, too, which is of y's type
    size_t bias_offset;
    float alpha, beta;
    size_t workspace_offset, workspace_bytes;
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

static int make_layout(const bel_cuda_api *api, const matrix *m, int type, int32_t count,
                       void **out_layout)
{
    int error = api->cublas_layout_create(out_layout, type, m->rows, m->columns, (int64_t)m->rows);
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
        error = make_layout(api, &p->matrices[i], p->types[i], p->count, &d->layouts[i]);
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
                           .types = {BEL_CUBLAS_F32, BEL_CUBLAS_F32, BEL_CUBLAS_F32},
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

// Room in the workspace for a copy as bfloat16 of so many elements.
static size_t add_copy(library_product *p, int64_t elements)
{
    size_t at = p->workspace_offset, bytes = (size_t)elements * sizeof(uint16_t);
    p->workspace_offset +=
        (bytes + BEL_CUDA_WORK_ALIGNMENT - 1) / BEL_CUDA_WORK_ALIGNMENT * BEL_CUDA_WORK_ALIGNMENT;
    return at;
}

// The product with factors as bfloat16, and a result that lies as it does.
static void take_halves(const bel_kernel_call *call, library_product *p)
{
    p->compute = BEL_CUBLAS_COMPUTE_F32; // sums; factors are what they are
    for (int i = 0; i < 2; i++) {
        int input = 1 - i;
        p->types[i] = BEL_CUBLAS_BF16;
        p->copied[i] = !call->inputs_half[input];
        if (p->copied[i])
            p->offsets[i] = add_copy(p, bel_shape_elements(&call->inputs[input].shape));
    }
    if (!call->outputs_half[0]) return;
    p->types[2] = BEL_CUBLAS_BF16;
    p->bias_copied = (p->epilogue & BEL_CUBLAS_THEN_BIAS) != 0;
    if (p->bias_copied) p->bias_offset = add_copy(p, bel_shape_elements(&call->inputs[2].shape));
}

static bool is_large(const bel_gemm *gemm)
{
    double count = (double)gemm->count, results = (double)gemm->m * (double)gemm->n * count;
    double factors = (double)(gemm->m + gemm->n) * (double)gemm->k * count;
    double multiplications = results * (double)gemm->k;
    return (multiplications >= MANY_MULTIPLICATIONS || results >= MANY_RESULTS) &&
           factors <= multiplications / COPY_MULTIPLICATIONS + results;
}

// *out_found false: the library cannot.
static bel_status *find_way(bel_cuda_build *build, library_product *out, bool *out_found)
{
    const bel_kernel_call *call = build->call;
    const bel_gemm *gemm = call->params;
    library_product p;
    *out_found = false;
    if (!bel_cuda_is_fast(build)) return NULL;
    BEL_TRY(bel_cuda_libraries(build->device));
    if (!read(build, gemm, &p)) return NULL;
    bool half = call->inputs_half[0] || call->inputs_half[1] || call->outputs_half[0];
    *out = p;
    if (half || (build->prepare->gpu_math == BEL_GPU_MATH_BF16 && is_large(gemm))) {
        take_halves(call, out);
        BEL_TRY(choose(build->device, out, out_found));
        if (*out_found || half) return NULL;
        *out = p;
    }
    return choose(build->device, out, out_found);
}

// As if operands lay so: factors, and the result where nothing else is added that would have to.
bel_status *bel_cuda_cublas_halves(bel_cuda_build *build, bel_half_operands *out)
{
    const bel_gemm *gemm = build->call->params;
    bel_kernel_call call = *build->call;
    bel_cuda_build asked = *build;
    library_product p;
    bool found;
    asked.call = &call;
    if (build->prepare->gpu_math != BEL_GPU_MATH_BF16) return NULL;
    call.inputs_half[0] = call.inputs_half[1] = true;
    BEL_TRY(find_way(&asked, &p, &found));
    if (!found) return NULL;
    *out = (bel_half_operands){.inputs = 3, .multiplies = is_large(gemm)};
    if (p.adds_c) return NULL;
    call.outputs_half[0] = true;
    BEL_TRY(find_way(&asked, &p, &found));
    out->outputs = found ? 1 : 0;
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

static const void *copy_at(const bel_cuda_operands *operands, bool copied, size_t offset, int input)
{
    return copied ? (const char *)operands->work + offset : operands->in[input];
}

static bel_status *multiply(bel_cuda_device *device, void *stream,
                            const bel_cuda_operands *operands, const void *params)
{
    const library_product *p = params;
    const bel_cuda_api *api = device->api;
    descriptors d = {.product = NULL};
    const void *c = p->adds_c ? operands->in[2] : operands->out[0];
    const void *b = copy_at(operands, p->copied[0], p->offsets[0], 1),
               *a = copy_at(operands, p->copied[1], p->offsets[1], 0);
    int error = make(api, p, copy_at(operands, p->bias_copied, p->bias_offset, 2), &d);
    if (error == 0)
        error = api->cublas_multiply(
            device->cublas, d.product, &p->alpha, b, d.layouts[0], a, d.layouts[1], &p->beta, c,
            d.layouts[2], operands->out[0], d.layouts[2], p->algorithm,
            bel_cuda_work_at(operands, p->workspace_offset), p->workspace_bytes, stream);
    destroy(api, &d);
    return bel_cuda_library_status(error, "cuBLAS", "multiply");
}

static bel_status *copy(bel_cuda_build *build, int input, size_t offset)
{
    const bel_cuda_arrange_flat flat = {.count =
                                            bel_shape_elements(&build->call->inputs[input].shape),
                                        .offset = (int64_t)offset,
                                        .operand = input};
    return bel_cuda_add(build, "arrange.cu", "arrange_flat", bel_cuda_blocks((flat.count + 3) / 4),
                        BEL_CUDA_BLOCK, &flat, sizeof flat);
}

bel_status *bel_cuda_try_cublas(bel_cuda_build *build, bool *out_taken)
{
    library_product p;
    BEL_TRY(find_way(build, &p, out_taken));
    if (!*out_taken) return NULL;
    for (int i = 0; i < 2; i++)
        if (p.copied[i]) BEL_TRY(copy(build, 1 - i, p.offsets[i]));
    if (p.bias_copied) BEL_TRY(copy(build, 2, p.bias_offset));
    size_t bytes = p.workspace_offset + p.workspace_bytes;
    if (bytes > 0) build->call->workspace_bytes = bytes + BEL_CUDA_WORK_ALIGNMENT;
    bel_cuda_add_library(build, multiply, &p, sizeof p);
    return NULL;
}
