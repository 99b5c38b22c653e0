// Gather, GatherElements and their gradients: see kernels/gather.cu. Gradients add elements with
// the same index in the order of positions, so indices are first sorted, with a stable sort; there
// are no atomic additions.
#include "cuda/kernels/gather.h"

#include "cuda/device.h"
#include "ops/moves.h"

static bel_cuda_gather gather_read(const bel_kernel_call *call, const bel_tensor *data)
{
    const bel_gather_params *gather = call->params;
    int64_t columns = gather->outer * gather->width;
    return (bel_cuda_gather){.outer = gather->outer,
                             .rows = gather->rows,
                             .width = gather->width,
                             .count = gather->count,
                             .lines = columns > 0 ? gather->count / columns : 0,
                             .size = (int32_t)bel_dtype_size(data->dtype),
                             .type = (int32_t)data->dtype};
}

static bel_status *gather_add(bel_cuda_build *build, const char *kernel, const bel_tensor *made,
                              const bel_cuda_gather *p)
{
    int64_t blocks = bel_cuda_blocks(bel_shape_elements(&made->shape));
    return bel_cuda_add(build, "gather.cu", kernel, blocks, BEL_CUDA_BLOCK, p, sizeof *p);
}

bel_status *bel_cuda_prepare_gather(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    bel_cuda_gather p = gather_read(call, &call->inputs[0]);
    bool elements = call->op == BEL_OP_GATHER_ELEMENTS;
    return gather_add(build, elements ? "gather_elements" : "gather", &call->outputs[0], &p);
}

bel_status *bel_cuda_prepare_gather_elements_grad(bel_cuda_build *build)
{
    bel_cuda_gather p = gather_read(build->call, &build->call->outputs[0]);
    return gather_add(build, "gather_elements_grad", &build->call->outputs[0], &p);
}

// Radix sort by the digits of row numbers; p.rows replaces an index out of range.
bel_status *bel_cuda_prepare_gather_grad(bel_cuda_build *build)
{
    bel_cuda_gather p = gather_read(build->call, &build->call->outputs[0]);
    if (p.rows >= INT32_MAX || p.count >= INT32_MAX)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the shapes are too large for a GPU");
    for (int64_t left = p.rows; left > 0; left >>= BEL_CUDA_SORT_BITS)
        p.passes++;
    build->call->workspace_bytes = (size_t)BEL_CUDA_SORT_BYTES(p.count);
    BEL_TRY(
        bel_cuda_add(build, "gather.cu", "gather_sort", 1, BEL_CUDA_SORT_THREADS, &p, sizeof p));
    return gather_add(build, "gather_grad", &build->call->outputs[0], &p);
}
