// Operands of a call that GPU kernels accept as bf16, if products are bf16 (runtime): images and
// matrices of the libraries' calls, and of the operations between them. Parameters and their
// gradients, vectors by channel and losses are f32.
#include "cuda/device.h"
#include "ops/norm.h"

static void norm_bf16(const bel_kernel_call *call, bel_bf16_operands *out)
{
    bool two = call->op == BEL_OP_BATCH_NORM_GRAD || call->op == BEL_OP_MOMENTS_NORM_SUMS ||
               call->op == BEL_OP_MOMENTS_NORM_GRAD;
    bool image = call->op == BEL_OP_BATCH_NORM || call->op == BEL_OP_BATCH_NORM_GRAD ||
                 call->op == BEL_OP_MOMENTS_NORM || call->op == BEL_OP_MOMENTS_NORM_GRAD;
    out->inputs = two ? 3 : 1;
    out->outputs = image ? 1 : 0;
}

static bel_status *ask_family(bel_cuda_build *build, bel_bf16_operands *out)
{
    const bel_kernel_call *call = build->call;
    switch (call->op) {
    case BEL_OP_MATMUL:
    case BEL_OP_MATMUL_FLAT:
    case BEL_OP_GEMM: return bel_cuda_cublas_bf16(build, out);
    case BEL_OP_CONV:
    case BEL_OP_CONV_TRANSPOSE:
    case BEL_OP_CONV_GRAD_INPUT:
    case BEL_OP_CONV_GRAD_WEIGHTS: return bel_cuda_cudnn_bf16(build, out);
    case BEL_OP_BATCH_NORM:
    case BEL_OP_BATCH_NORM_GRAD:
    case BEL_OP_BATCH_MOMENTS:
    case BEL_OP_CHANNEL_SUM:
    case BEL_OP_MOMENTS_NORM:
    case BEL_OP_MOMENTS_NORM_SUMS:
    case BEL_OP_MOMENTS_NORM_GRAD: norm_bf16(call, out); return NULL;
    case BEL_OP_MAX_POOL: // its gradient searches elements that equal the result
        *out = (bel_bf16_operands){.inputs = 1, .outputs = 1, .follows = true};
        break;
    case BEL_OP_AVERAGE_POOL:
    case BEL_OP_GLOBAL_AVERAGE_POOL:
    case BEL_OP_AVERAGE_POOL_GRAD: *out = (bel_bf16_operands){.inputs = 1, .outputs = 1}; break;
    case BEL_OP_MAX_POOL_GRAD: *out = (bel_bf16_operands){.inputs = 7, .outputs = 1}; break;
    case BEL_OP_SUM_TO:
    case BEL_OP_REDUCE_SUM:
    case BEL_OP_REDUCE_MEAN: out->inputs = bel_cuda_reduces_columns(call) ? 1 : 0; break;
    default: break;
    }
    int flags = bel_op_get(call->op)->flags;
    if ((flags & BEL_OP_ELEMENTWISE) != 0 && call->op != BEL_OP_CAST)
        bel_cuda_elementwise_bf16(call, out);
    return NULL;
}

bel_status *bel_cuda_takes_bf16(bel_device *device, const bel_prepare *prepare,
                                bel_kernel_call *call, bel_bf16_operands *out_operands)
{
    *out_operands = (bel_bf16_operands){0};
    if (prepare->gpu_math != BEL_GPU_MATH_BF16) return NULL;
    for (int i = 0; i < call->output_count; i++) // kernels in double accept no bf16
        if (call->outputs[i].dtype != BEL_DTYPE_F32) return NULL;
    if (call->input_count == 0 || call->inputs[0].dtype != BEL_DTYPE_F32) return NULL;
    bel_op_get(call->op)->prepare(prepare, call);
    bel_cuda_build build = {.device = (bel_cuda_device *)device, .prepare = prepare, .call = call};
    return ask_family(&build, out_operands);
}

bel_status *bel_cuda_refuse_bf16(const bel_kernel_call *call)
{
    bool any = false;
    for (int i = 0; i < call->input_count; i++)
        any = any || call->inputs_bf16[i];
    for (int i = 0; i < call->output_count; i++)
        any = any || call->outputs_bf16[i];
    return any ? BEL_ERR(BEL_INTERNAL, "a library refuses operands that it said it accepts") : NULL;
}
