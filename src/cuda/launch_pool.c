// Pools and their gradients (ops/pool.c): one launch, with a thread for each element of the result.
// The kernel depends on the windows. If they are inside of the image and do not overlap, an element
// of a gradient has at most one window, and needs few tests.
#include "cuda/kernels/pool.h"

#include <string.h>

#include "cuda/device.h"
#include "cuda/images.h"
#include "ops/pool.h"

// Whether windows are inside and do not overlap …
static bool are_apart(const bel_cuda_window windows[2])
{
    for (int d = 0; d < 2; d++) {
        const bel_cuda_window *w = &windows[d];
        if (w->pad != 0 || w->dilation != 1 || w->stride < w->kernel || w->out < 1) return false;
        if ((w->out - 1) * w->stride + w->kernel > w->in) return false;
    }
    return true;
}

// … and, if so, leave no element out.
static bool are_tiles(const bel_cuda_window windows[2])
{
    for (int d = 0; d < 2; d++)
        if (windows[d].out * windows[d].kernel != windows[d].in) return false;
    return true;
}

static const char *kernel_of(bel_op op, bool plain, const bel_cuda_pool *p)
{
    bool apart = p->near && are_apart(p->window);
    switch (op) {
    case BEL_OP_MAX_POOL: return plain ? "pool_plain" : "pool_max";
    case BEL_OP_MAX_POOL_GRAD:
        return apart && !p->is_f64 && are_tiles(p->window) ? "pool_max_grad_tiled"
                                                           : "pool_max_grad";
    case BEL_OP_AVERAGE_POOL_GRAD:
        return plain   ? "pool_plain_average_grad"
               : apart ? "pool_average_grad_apart"
                       : "pool_average_grad";
    default: return plain ? "pool_plain" : "pool_average";
    }
}

// Sets the pixels that threads count: those of the windows' results, or of the image.
static void count_by(bel_cuda_pool *p, bool windows)
{
    uint32_t rows = (uint32_t)(windows ? p->window[0].out : p->window[0].in);
    uint32_t columns = (uint32_t)(windows ? p->window[1].out : p->window[1].in);
    p->by_channels = divisor_make((uint32_t)p->channels);
    p->by_plane = divisor_make(rows * columns);
    p->by_columns = divisor_make(columns);
}

static void find_near(bel_cuda_pool *p, const bel_kernel_call *call)
{
    p->near = bel_shape_elements(&call->outputs[0].shape) <= INT32_MAX;
    for (int i = 0; i < call->input_count; i++)
        p->near = p->near && bel_shape_elements(&call->inputs[i].shape) <= INT32_MAX;
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
                       .out_bf16 = call->outputs_bf16[0]};
    for (int i = 0; i < call->input_count && i < 3; i++)
        p.in_bf16[i] = call->inputs_bf16[i];
    BEL_TRY(bel_cuda_windows_of(&pool->window, p.window));
    find_near(&p, call);
    const char *kernel = kernel_of(call->op, bel_prepares_plain(build->prepare, call), &p);
    bool tiled = strcmp(kernel, "pool_max_grad_tiled") == 0;
    if (p.near) count_by(&p, !pool->gradient || tiled);
    for (int d = 0; d < 2; d++)
        p.by_stride[d] = divisor_make((uint32_t)p.window[d].stride);
    p.weight = (float)(1.0 / (double)((int64_t)p.window[0].kernel * p.window[1].kernel));
    const bel_shape *each = tiled ? &call->inputs[0].shape : &call->outputs[0].shape;
    return bel_cuda_add(build, "pool.cu", kernel, bel_cuda_blocks(bel_shape_elements(each)),
                        BEL_CUDA_BLOCK, &p, sizeof p);
}
