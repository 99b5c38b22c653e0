// Products by cuBLASLt (library_product.h), for fast arithmetic: MatMul, Gemm, and their gradients,
// which are products too.
//
// With bf16, the factors of large products are passed as bf16, and so is the result if it is stored
// as bf16: tensor cores then read half as much and multiply twice as fast. A factor stored as f32
// is copied to the call's workspace for that. Small products are not worth the copies; the library
// rounds their factors as it reads them.
//
// Gradients of Relu and of a bias are separate kernels, although the library could make both with a
// product. It needs 440 and 160 microseconds, and the kernels 130 and 65 ([16384 × 4096] by [4096 ×
// 4096] on an H100, cuBLASLt 13.1). Its marks of Relu's sides cost another 100.
#include "cuda/kernels/arrange.h"
#include "cuda/library_product.h"
#include "ops/matmul.h"

// Least multiplications, or elements of the result, for which factors are copied as bf16: some 10
// microseconds of multiplying or writing, on GPUs with tensor cores. Copying an element is worth
// COPY_MULTIPLICATIONS multiplications, or one element of the result.
#define MANY_MULTIPLICATIONS 2e9
#define MANY_RESULTS 8e6
#define COPY_MULTIPLICATIONS 500

typedef struct call_product {
    bel_cuda_library_product product;
    bool adds_c;       // else a third operand is a bias
    bool copied[2];    // b and a: read from the workspace at …
    size_t offsets[2]; // … these offsets
    bool bias_copied;  // the bias, which has y's type
    size_t bias_offset;
    float beta;
    size_t workspace_offset; // the library's workspace
} call_product;

// --- Reading a call ------------------------------------------------------------------------------

// False: no fixed distance describes how the stack is broadcast.
static bool read_stack(const bel_tensor *tensor, int64_t count, bel_cuda_library_matrix *matrix)
{
    int64_t elements = bel_shape_elements(&tensor->shape), size = matrix->apart;
    if (elements == size) matrix->apart = 0;
    return elements == size || elements == size * count;
}

// False: the summand is neither a bias nor a matrix.
static bool read_c(const bel_kernel_call *call, const bel_gemm *gemm, call_product *p)
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
    p->product.epilogue |= BEL_CUBLAS_THEN_BIAS;
    return true;
}

static bool cublas_read(const bel_cuda_build *build, const bel_gemm *gemm, call_product *p)
{
    const bel_kernel_call *call = build->call;
    const bel_tensor *operands[3] = {&call->inputs[1], &call->inputs[0], &call->outputs[0]};
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    if (m <= 0 || n <= 0 || k <= 0 || gemm->count <= 0 || gemm->count > INT32_MAX) return false;
    *p = (call_product){.product = bel_cuda_library_product_of(
                            build->prepare->gpu_math, BEL_CUBLAS_F32, m, n, k, gemm->transpose_a,
                            gemm->transpose_b, gemm->count, (float)gemm->alpha)};
    p->product.epilogue = gemm->relu ? BEL_CUBLAS_THEN_RELU : 0;
    bool good = read_c(call, gemm, p);
    if (p->product.epilogue == 0) p->product.epilogue = BEL_CUBLAS_THEN_NOTHING;
    for (int i = 0; i < 3; i++)
        good = good && read_stack(operands[i], gemm->count, &p->product.matrices[i]);
    return good;
}

// Room in the workspace for a bf16 copy of `elements`.
static size_t add_copy(call_product *p, int64_t elements)
{
    return bel_cuda_add_work(&p->workspace_offset, elements, sizeof(uint16_t));
}

// Makes the factors bf16, and the result as it is stored.
static void take_bf16(const bel_kernel_call *call, call_product *p)
{
    p->product.compute = BEL_CUBLAS_COMPUTE_F32; // for sums; factors keep their type
    for (int i = 0; i < 2; i++) {
        int input = 1 - i;
        p->product.matrices[i].type = BEL_CUBLAS_BF16;
        p->copied[i] = !call->inputs_bf16[input];
        if (p->copied[i])
            p->offsets[i] = add_copy(p, bel_shape_elements(&call->inputs[input].shape));
    }
    if (!call->outputs_bf16[0]) return;
    p->product.matrices[2].type = BEL_CUBLAS_BF16;
    p->bias_copied = (p->product.epilogue & BEL_CUBLAS_THEN_BIAS) != 0;
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

// *out_found false: the library cannot compute the call.
static bel_status *find_way(bel_cuda_build *build, call_product *out, bool *out_found)
{
    const bel_kernel_call *call = build->call;
    const bel_gemm *gemm = call->params;
    call_product p;
    *out_found = false;
    if (!bel_cuda_is_fast(build)) return NULL;
    BEL_TRY(bel_cuda_libraries(build->device));
    if (!cublas_read(build, gemm, &p)) return NULL;
    bool bf16 = call->inputs_bf16[0] || call->inputs_bf16[1] || call->outputs_bf16[0];
    *out = p;
    if (bf16 || (build->prepare->gpu_math == BEL_GPU_MATH_BF16 && is_large(gemm))) {
        take_bf16(call, out);
        BEL_TRY(bel_cuda_library_product_choose(build->device, &out->product, out_found));
        if (*out_found || bf16) return NULL;
        *out = p;
    }
    return bel_cuda_library_product_choose(build->device, &out->product, out_found);
}

// Answers as if operands were bf16: factors, and the result if no other summand would have to be
// bf16.
bel_status *bel_cuda_cublas_bf16(bel_cuda_build *build, bel_bf16_operands *out)
{
    const bel_gemm *gemm = build->call->params;
    bel_kernel_call call = *build->call;
    bel_cuda_build asked = *build;
    call_product p;
    bool found;
    asked.call = &call;
    if (build->prepare->gpu_math != BEL_GPU_MATH_BF16) return NULL;
    call.inputs_bf16[0] = call.inputs_bf16[1] = true;
    BEL_TRY(find_way(&asked, &p, &found));
    if (!found) return NULL;
    *out = (bel_bf16_operands){.inputs = 3, .multiplies = is_large(gemm)};
    if (p.adds_c) return NULL;
    call.outputs_bf16[0] = true;
    BEL_TRY(find_way(&asked, &p, &found));
    out->outputs = found ? 1 : 0;
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

static const void *copy_at(const bel_cuda_operands *operands, bool copied, size_t offset, int input)
{
    return copied ? (const char *)operands->work + offset : operands->in[input];
}

static bel_status *cublas_multiply(bel_cuda_device *device, void *stream,
                                   const bel_cuda_operands *operands, const void *params)
{
    const call_product *p = params;
    const bel_cuda_library_operands at = {.b = copy_at(operands, p->copied[0], p->offsets[0], 1),
                                          .a = copy_at(operands, p->copied[1], p->offsets[1], 0),
                                          .y = operands->out[0],
                                          .c = p->adds_c ? operands->in[2] : NULL,
                                          .beta = p->beta,
                                          .bias =
                                              copy_at(operands, p->bias_copied, p->bias_offset, 2),
                                          .work = bel_cuda_work_at(operands, p->workspace_offset)};
    return bel_cuda_library_product_run(device, stream, &p->product, &at);
}

static bel_status *cublas_copy(bel_cuda_build *build, int input, size_t offset)
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
    call_product p;
    BEL_TRY(find_way(build, &p, out_taken));
    if (!*out_taken) return NULL;
    for (int i = 0; i < 2; i++)
        if (p.copied[i]) BEL_TRY(cublas_copy(build, 1 - i, p.offsets[i]));
    if (p.bias_copied) BEL_TRY(cublas_copy(build, 2, p.bias_offset));
    size_t bytes = p.workspace_offset + p.product.workspace_bytes;
    if (bytes > 0) build->call->workspace_bytes = bytes + BEL_CUDA_WORK_ALIGNMENT;
    bel_cuda_add_library(build, cublas_multiply, &p, sizeof p);
    return NULL;
}
