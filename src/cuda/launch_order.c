// ArgMax, ArgMin, TopK, CumSum: see kernels/order.cu.
//
// One thread takes a lane. For long contiguous lanes of ArgMax, ArgMin and TopK a block does, as
// their result does not depend on the order. CumSum adds in the CPU's order.
#include "ops/order.h"

#include "cuda/device.h"
#include "cuda/kernels/order.h"

enum { LONG_LANE = 128 }; // least elements that are worth a block

bel_status *bel_cuda_prepare_order(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_lane_params *lanes = call->params;
    bel_cuda_lanes p = {.count = lanes->count,
                        .inner = lanes->inner,
                        .lanes = lanes->lanes,
                        .k = lanes->k,
                        .type = (int32_t)call->inputs[0].dtype,
                        .smallest = lanes->smallest,
                        .last_of_equals = lanes->last_of_equals,
                        .exclusive = lanes->exclusive,
                        .reverse = lanes->reverse};
    bool sum = call->op == BEL_OP_CUM_SUM, top = call->op == BEL_OP_TOP_K;
    const char *kernel = sum ? "cum_sum" : top ? "top_k" : "arg";
    int64_t blocks = bel_cuda_blocks(p.lanes);
    if (sum && p.count == 0) return NULL; // for any number of empty lanes
    if (!sum && p.inner == 1 && p.count >= LONG_LANE) {
        enum { MOST = 1 << 15 };
        kernel = top ? "top_k_rows" : "arg_rows";
        blocks = p.lanes < MOST ? p.lanes : MOST;
    }
    return bel_cuda_add(build, "order.cu", kernel, blocks, BEL_CUDA_BLOCK, &p, sizeof p);
}
