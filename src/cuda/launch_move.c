// Operations that only move elements, and gradients of those that pick some: see kernels/move.cu.
// Elements move as bits of their size, so one kernel serves every type. A gradient adds, in order,
// for each element of x, the elements that were picked from it.
#include "cuda/kernels/move.h"

#include <string.h>

#include "cuda/device.h"
#include "cuda/walk.h"
#include "ops/moves.h"
#include "ops/sequence.h"

static int32_t size_of(const bel_tensor *tensor)
{
    return (int32_t)bel_dtype_size(tensor->dtype);
}

static bel_status *move_add(bel_cuda_build *build, const char *kernel, int64_t elements,
                            const void *params, size_t params_bytes)
{
    return bel_cuda_add(build, "move.cu", kernel, bel_cuda_blocks(elements), BEL_CUDA_BLOCK, params,
                        params_bytes);
}

static bel_status *add_walk(bel_cuda_build *build, const char *kernel, const bel_walk *walk)
{
    const bel_tensor *y = &build->call->outputs[0];
    bel_cuda_moved p = {
        .count = bel_shape_elements(&y->shape), .size = size_of(y), .walk = bel_cuda_walk_of(walk)};
    return move_add(build, kernel, p.count, &p, sizeof p);
}

bel_status *bel_cuda_prepare_broadcast_to(bel_cuda_build *build)
{
    return add_walk(build, "copy", build->call->params);
}

bel_status *bel_cuda_prepare_where(bel_cuda_build *build)
{
    return add_walk(build, "where", build->call->params);
}

// --- Transpose -----------------------------------------------------------------------------------

// Walk over the starts of matrices: all dimensions except the two transposed ones.
static bel_cuda_walk starts_of(const bel_transpose_params *t)
{
    bel_cuda_walk starts = {.tensors = 2};
    int32_t last = t->walk.rank - 1;
    int64_t y_steps[BEL_MAX_RANK], step = 1;
    for (int32_t d = last; d >= 0; d--) {
        y_steps[d] = step;
        step *= t->walk.dims[d];
    }
    for (int32_t d = 0; d < last; d++) {
        if (d == t->unit) continue;
        int32_t to = starts.rank++;
        starts.dims[to] = t->walk.dims[d];
        starts.steps[0][to] = y_steps[d];
        starts.steps[1][to] = t->walk.steps[0][d];
    }
    return starts;
}

bel_status *bel_cuda_prepare_transpose(bel_cuda_build *build)
{
    const bel_transpose_params *t = build->call->params;
    if (t->unit < 0) return add_walk(build, "copy", &t->walk);
    int32_t last = t->walk.rank - 1;
    bel_cuda_turned p = {.outer = t->outer,
                         .rows = t->walk.dims[t->unit],
                         .columns = t->walk.dims[last],
                         .y_step = t->y_step,
                         .x_step = t->walk.steps[0][last],
                         .size = (int32_t)t->size,
                         .starts = starts_of(t)};
    enum { SIDE = 32, MOST = 1 << 15 };
    int64_t squares = p.outer * ((p.rows + SIDE - 1) / SIDE) * ((p.columns + SIDE - 1) / SIDE);
    return bel_cuda_add(build, "move.cu", "turn", squares < MOST ? squares : MOST, BEL_CUDA_BLOCK,
                        &p, sizeof p);
}

// --- Slice, Pad, Expand --------------------------------------------------------------------------

bel_status *bel_cuda_prepare_pick(bel_cuda_build *build)
{
    const bel_pick_params *pick = build->call->params;
    const bel_tensor *y = &build->call->outputs[0];
    bel_cuda_picked p = {.count = bel_shape_elements(&y->shape),
                         .size = size_of(y),
                         .type = (int32_t)y->dtype,
                         .rule = pick->rule};
    memcpy(&p.fill, pick->fill, sizeof p.fill);
    bool gradient = build->call->op == BEL_OP_SLICE_GRAD || build->call->op == BEL_OP_PAD_GRAD;
    return move_add(build, gradient ? "pick_grad" : "pick", p.count, &p, sizeof p);
}

// --- Concat, OneHot, SequenceMask ----------------------------------------------------------------

bel_status *bel_cuda_prepare_concat(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_concat_params *concat = call->params;
    bel_cuda_joined p = {.count = bel_shape_elements(&call->outputs[0].shape),
                         .size = size_of(&call->outputs[0]),
                         .inputs = call->input_count};
    for (int k = 0; k < call->input_count; k++) {
        p.total += (int64_t)concat->sizes[k] / p.size;
        p.ends[k] = p.total;
    }
    return move_add(build, "join", p.count, &p, sizeof p);
}

bel_status *bel_cuda_prepare_one_hot(bel_cuda_build *build)
{
    const bel_shape *y = &build->call->outputs[0].shape;
    bel_cuda_marked p = {.count = bel_shape_elements(y), .width = y->dims[y->rank - 1]};
    return move_add(build, "one_hot", p.count, &p, sizeof p);
}

bel_status *bel_cuda_prepare_sequence_mask(bel_cuda_build *build)
{
    const bel_sequence_mask_params *mask = build->call->params;
    const bel_tensor *x = &build->call->inputs[0];
    bel_cuda_marked p = {.count = bel_shape_elements(&x->shape),
                         .times = mask->times,
                         .outer = mask->outer,
                         .size = size_of(x),
                         .type = (int32_t)build->call->inputs[1].dtype};
    p.width = (int64_t)mask->inner_bytes / p.size;
    return move_add(build, "sequence_mask", p.count, &p, sizeof p);
}
