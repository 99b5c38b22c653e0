// Softmax and cross-entropy: see kernels/softmax.cu. In f32 a row has 16 threads, as the CPU's row
// has 16 lanes, so its sum is in the CPU's order; in f64 it has one thread.
#include "cuda/device.h"
#include "cuda/kernels/rows.h"

enum { PLAIN = 0, LOG = 1 };

static bel_cuda_rows rows_of(const bel_shape *shape)
{
    bel_cuda_rows p = {.columns = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1};
    p.rows = p.columns > 0 ? bel_shape_elements(shape) / p.columns : 0;
    return p;
}

static bel_status *softmax_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                               const bel_cuda_rows *p)
{
    return bel_cuda_add(build, "softmax.cu", kernel, blocks, BEL_CUDA_BLOCK, p, sizeof *p);
}

static int64_t row_blocks(const bel_cuda_rows *p)
{
    return (p->rows + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS;
}

bel_status *bel_cuda_prepare_softmax(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    bel_cuda_rows p = rows_of(&call->outputs[0].shape);
    bool gradient = call->input_count > 1;
    bool log = call->op == BEL_OP_LOG_SOFTMAX || call->op == BEL_OP_LOG_SOFTMAX_GRAD;
    p.op = log ? LOG : PLAIN;
    if (call->inputs[0].dtype == BEL_DTYPE_F64)
        return softmax_add(build, gradient ? "softmax_grad_f64" : "softmax_f64",
                           bel_cuda_blocks(p.rows), &p);
    const char *kernel =
        gradient ? (log ? "log_softmax_grad" : "softmax_grad") : (log ? "log_softmax" : "softmax");
    return softmax_add(build, kernel, row_blocks(&p), &p);
}

bel_status *bel_cuda_prepare_cross_entropy(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    bool gradient = call->op == BEL_OP_CROSS_ENTROPY_GRAD;
    bel_cuda_rows p = rows_of(&call->inputs[gradient ? 1 : 0].shape);
    bool plain = call->inputs[0].dtype == BEL_DTYPE_F64;
    if (gradient)
        return softmax_add(build, plain ? "cross_entropy_grad_f64" : "cross_entropy_grad",
                           bel_cuda_blocks(p.rows * p.columns), &p);
    if (plain) return softmax_add(build, "cross_entropy_f64", bel_cuda_blocks(p.rows), &p);
    return softmax_add(build, "cross_entropy", row_blocks(&p), &p);
}
