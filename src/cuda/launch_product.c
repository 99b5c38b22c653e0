// Matrix products: see kernels/product.cu. The size of a block's tile follows from the shape and
// the GPU's number of multiprocessors. It does not affect the bits, as a chain is never divided.
// With fast arithmetic, a library is tried first (library_cublas.c).
#include "cuda/device.h"
#include "cuda/kernels/product.h"
#include "cuda/walk.h"
#include "ops/matmul.h"

// Walk over the matrices of y, a and b, if there are several: they may be broadcast.
static bel_cuda_walk walk_stack(const bel_kernel_call *call, const bel_gemm *gemm)
{
    bel_cuda_walk none = {.rank = 0};
    if (gemm->count == 1) return none;
    bel_tensor stacks[3] = {call->outputs[0], call->inputs[0], call->inputs[1]};
    for (int i = 0; i < 3; i++)
        stacks[i].shape.rank -= 2;
    return bel_cuda_walk_broadcast(&stacks[0].shape, &stacks[1], 2);
}

static bel_cuda_product product_read(const bel_kernel_call *call, const bel_gemm *gemm)
{
    bel_cuda_product p = {.m = gemm->m,
                          .n = gemm->n,
                          .k = gemm->k,
                          .count = gemm->count,
                          .a_row = gemm->transpose_a ? 1 : gemm->k,
                          .a_column = gemm->transpose_a ? gemm->m : 1,
                          .b_row = gemm->transpose_b ? 1 : gemm->n,
                          .b_column = gemm->transpose_b ? gemm->k : 1,
                          .stack = walk_stack(call, gemm),
                          .alpha = gemm->alpha,
                          .beta = gemm->beta,
                          .relu = gemm->relu};
    if (!gemm->has_c) return p;
    p.starts = gemm->way == BEL_GEMM_CHAINS ? gemm->starts : gemm->way != BEL_GEMM_PLAIN;
    p.adds_c = !p.starts && (gemm->way == BEL_GEMM_PLAIN || gemm->beta != 0);
    p.c = bel_cuda_walk_broadcast(&call->outputs[0].shape, &call->inputs[2], 1);
    return p;
}

// Chooses the largest tile that still gives every multiprocessor one.
static bel_status *add_chains(bel_cuda_build *build, bel_cuda_product *p)
{
    static const struct {
        int side, threads;
        const char *kernel;
    } sizes[] = {{128, 256, "product_128"},
                 {64, 128, "product_64"},
                 {32, 128, "product_32"},
                 {16, 256, "product_16"}};
    for (int i = 0;; i++) {
        int side = sizes[i].side;
        p->tiles_m = (p->m + side - 1) / side;
        p->tiles_n = (p->n + side - 1) / side;
        int64_t blocks = p->tiles_m * p->tiles_n * p->count;
        if (blocks >= build->device->multiprocessors || side == 16)
            return bel_cuda_add(build, "product.cu", sizes[i].kernel, blocks, sizes[i].threads, p,
                                sizeof *p);
    }
}

bel_status *bel_cuda_prepare_product(bel_cuda_build *build)
{
    const bel_gemm *gemm = build->call->params;
    bel_cuda_product p = product_read(build->call, gemm);
    if (build->prepare->openblas)
        return BEL_ERR(BEL_UNIMPLEMENTED, "OpenBLAS multiplies only on the CPU");
    bool taken;
    BEL_TRY(bel_cuda_try_cublas(build, &taken));
    if (taken) return NULL;
    BEL_TRY(bel_cuda_refuse_bf16(build->call));
    if (gemm->way == BEL_GEMM_CHAINS) return add_chains(build, &p);
    const char *kernel = gemm->way == BEL_GEMM_PLAIN      ? "product_f64"
                         : gemm->way == BEL_GEMM_FEW_ROWS ? "product_few_rows"
                                                          : "product_short_chains";
    return bel_cuda_add(build, "product.cu", kernel, bel_cuda_blocks(p.m * p.n * p.count),
                        BEL_CUDA_BLOCK, &p, sizeof p);
}
