#include "runtime/cost.h"

int64_t bel_cost_ns(const bel_kernel_call *call)
{
    if (call->op == BEL_OP_GEMM || call->op == BEL_OP_MATMUL) {
        return 1 + bel_shape_elements(&call->inputs[0].shape) * call->outputs[0].shape.dims[1] / 50;
    }
    int64_t work = call->work;
    for (int i = 0; work == 0 && i < call->input_count; i++)
        work += bel_shape_elements(&call->inputs[i].shape);
    for (int i = 0; i < call->output_count; i++)
        work += bel_shape_elements(&call->outputs[i].shape);
    return 1 + work / 6;
}
