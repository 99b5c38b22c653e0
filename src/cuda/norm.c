// Normalisation by channel (ops/norm.c) in up to three launches: sums of each channel by parts of
// the batch, what they become, and the images. Sums that nobody reads are left out.
#include "cuda/kernels/norm.h"
#include "cuda/device.h"
#include "cuda/images.h"
#include "ops/norm.h"
#include "tensor/moments.h"

_Static_assert(BEL_MOMENTS_COUNT == 0 && BEL_MOMENTS_MEAN == 1 && BEL_MOMENTS_SQUARES == 2 &&
                   BEL_WHOLE_COUNT == 0 && BEL_WHOLE_MEAN == 1 && BEL_WHOLE_INVERSE == 2,
               "kernels name rows by these numbers");

static int what_of(bel_op op)
{
    switch (op) {
    case BEL_OP_BATCH_MOMENTS: return BEL_CUDA_NORM_MOMENTS;
    case BEL_OP_BATCH_NORM: return BEL_CUDA_NORM_FORWARD;
    case BEL_OP_BATCH_NORM_GRAD: return BEL_CUDA_NORM_BACKWARD;
    case BEL_OP_MOMENTS_NORM: return BEL_CUDA_NORM_WHOLE;
    case BEL_OP_MOMENTS_NORM_SUMS: return BEL_CUDA_NORM_WHOLE_SUMS;
    case BEL_OP_MOMENTS_NORM_GRAD: return BEL_CUDA_NORM_WHOLE_BACKWARD;
    default: return BEL_CUDA_NORM_SUM;
    }
}

static bool has_two_images(int what)
{
    return what == BEL_CUDA_NORM_BACKWARD || what == BEL_CUDA_NORM_WHOLE_SUMS ||
           what == BEL_CUDA_NORM_WHOLE_BACKWARD;
}

static bool gives_images(int what)
{
    return what != BEL_CUDA_NORM_SUM && what != BEL_CUDA_NORM_MOMENTS &&
           what != BEL_CUDA_NORM_WHOLE_SUMS;
}

static bool reads_sums(const bel_cuda_norm *p)
{
    return p->what != BEL_CUDA_NORM_WHOLE && p->what != BEL_CUDA_NORM_WHOLE_BACKWARD &&
           (p->what != BEL_CUDA_NORM_FORWARD || p->training);
}

static bel_status *add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                       const bel_cuda_norm *p)
{
    return bel_cuda_add(build, "norm.cu", kernel, blocks, BEL_CUDA_NORM_THREADS, p, sizeof *p);
}

static bel_status *add_sums(bel_cuda_build *build, bool plain, const bel_cuda_norm *p)
{
    if (plain) return add(build, "norm_plain_sums", bel_cuda_blocks(p->channels), p);
    // Kernels count the pixels of a part in 32 bits.
    if (p->images_per_part * p->pixels > INT32_MAX - BEL_CUDA_NORM_PIXELS)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the images are too large for a card");
    int64_t groups = (p->channels + BEL_CUDA_NORM_CHANNELS - 1) / BEL_CUDA_NORM_CHANNELS;
    return add(build, "norm_parts", p->parts * groups, p);
}

bel_status *bel_cuda_prepare_norm(bel_cuda_build *build)
{
    bel_kernel_call *call = build->call;
    const bel_channel_norm *norm = call->params;
    bel_cuda_norm p = {.n = norm->n,
                       .channels = norm->channels,
                       .pixels = norm->rows * norm->columns,
                       .parts = norm->parts,
                       .images_per_part = norm->images_per_part,
                       .u = bel_cuda_steps_of(&norm->u),
                       .v = bel_cuda_steps_of(&norm->v),
                       .y = bel_cuda_steps_of(&norm->y),
                       .u_last = call->inputs_last[0],
                       .y_last = call->outputs_last[0],
                       .what = what_of(call->op),
                       .training = norm->training,
                       .by_sums = norm->by_sums,
                       .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64,
                       .epsilon = norm->epsilon,
                       .momentum = norm->momentum};
    int64_t channel_blocks = bel_cuda_blocks(p.channels);
    if (call->op == BEL_OP_MOMENTS_MOVE) return add(build, "norm_move", channel_blocks, &p);
    bool plain = bel_prepares_plain(build->prepare, call);
    p.v_input = has_two_images(p.what) ? 1 : 0;
    p.v_last = call->inputs_last[p.v_input];
    if (plain) p.parts = 1;
    if (!reads_sums(&p)) p.parts = 0;
    call->workspace_bytes = (size_t)((p.parts * 2 + 3) * p.channels) * sizeof(double);
    if (p.parts > 0) BEL_TRY(add_sums(build, plain, &p));
    BEL_TRY(add(build, "norm_channels", channel_blocks, &p));
    if (!gives_images(p.what)) return NULL;
    int64_t blocks = bel_cuda_blocks(bel_shape_elements(&call->outputs[0].shape));
    return add(build, plain ? "norm_plain_apply" : "norm_apply", blocks, &p);
}
