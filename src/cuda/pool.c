// Pools and their gradients (ops/pool.c): one launch, a thread for each element of the result.
#include "cuda/kernels/pool.h"
#include "cuda/device.h"
#include "cuda/images.h"
#include "ops/pool.h"

static const char *kernel_of(bel_op op, bool plain)
{
    switch (op) {
    case BEL_OP_MAX_POOL: return plain ? "pool_plain" : "pool_max";
    case BEL_OP_MAX_POOL_GRAD: return "pool_max_grad";
    case BEL_OP_AVERAGE_POOL_GRAD: return plain ? "pool_plain_average_grad" : "pool_average_grad";
    default: return plain ? "pool_plain" : "pool_average";
    }
}

bel_status *bel_cuda_prepare_pool(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_pool *pool = call->params;
    bel_cuda_pool p = {.n = pool->n,
                       .channels = pool->channels,
                       .x = bel_cuda_steps_of(&pool->x_steps),
                       .dx = bel_cuda_steps_of(&pool->dx_steps),
                       .y = bel_cuda_steps_of(&pool->y_steps),
                       .top = bel_cuda_steps_of(&pool->top_steps),
                       .result_last = call->outputs_last[0],
                       .count_include_pad = pool->count_include_pad,
                       .is_max = call->op == BEL_OP_MAX_POOL,
                       .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64,
                       .out_half = call->outputs_half[0]};
    for (int i = 0; i < call->input_count && i < 3; i++)
        p.in_half[i] = call->inputs_half[i];
    BEL_TRY(bel_cuda_windows_of(&pool->window, p.window));
    bool plain = bel_prepares_plain(build->prepare, call);
    int64_t blocks = bel_cuda_blocks(bel_shape_elements(&call->outputs[0].shape));
    return bel_cuda_add(build, "pool.cu", kernel_of(call->op, plain), blocks, BEL_CUDA_BLOCK, &p,
                        sizeof p);
}
