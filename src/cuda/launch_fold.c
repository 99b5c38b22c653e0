// ReduceMin, ReduceProd, ReduceL1, ReduceL2 and ReduceProdGrad: see kernels/fold.cu.
//
// The CPU folds the elements of a result in order, in double. One thread makes each result, so the
// bits are the CPU's.
#include "cuda/kernels/fold.h"

#include "cuda/device.h"
#include "cuda/walk.h"
#include "ops/reduce.h"

// Walk over the reduced dimensions of x, or over the others, in elements of x.
static bel_cuda_walk fold_part(const bel_shape *x, const bel_reduce_box *box, bool reduced)
{
    bel_shape shape = {.rank = 0};
    int64_t strides[BEL_MAX_RANK], steps[1][BEL_MAX_RANK], stride = 1;
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= x->dims[d];
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if (box->reduced[d] != reduced) continue;
        steps[0][shape.rank] = strides[d];
        shape.dims[shape.rank++] = x->dims[d];
    }
    bel_walk walk = bel_walk_make(&shape, steps, 1);
    return bel_cuda_walk_of(&walk);
}

static int32_t kind_of(bel_op op)
{
    switch (op) {
    case BEL_OP_REDUCE_MIN: return BEL_CUDA_FOLD_MIN;
    case BEL_OP_REDUCE_L1: return BEL_CUDA_FOLD_L1;
    case BEL_OP_REDUCE_L2: return BEL_CUDA_FOLD_L2;
    default: return BEL_CUDA_FOLD_PROD;
    }
}

bel_status *bel_cuda_prepare_fold(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_reduce_box *box = call->params;
    bool gradient = call->op == BEL_OP_REDUCE_PROD_GRAD;
    const bel_tensor *x = &call->inputs[gradient ? 1 : 0];
    const bel_tensor *results = gradient ? &call->inputs[0] : &call->outputs[0];
    bel_cuda_fold p = {.outputs = bel_shape_elements(&results->shape),
                       .count = box->count,
                       .op = kind_of(call->op),
                       .type = (int32_t)x->dtype,
                       .kept = fold_part(&x->shape, box, false),
                       .reduced = fold_part(&x->shape, box, true)};
    enum { LONG = 1024, FEW = 1 << 12 };
    bool by_block = !gradient && p.count >= LONG && p.outputs <= FEW;
    return bel_cuda_add(build, "fold.cu",
                        gradient   ? "prod_grad"
                        : by_block ? "fold_long"
                                   : "fold",
                        by_block ? p.outputs : bel_cuda_blocks(p.outputs), BEL_CUDA_BLOCK, &p,
                        sizeof p);
}
