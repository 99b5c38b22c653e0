// Normalization by channel (ops/norm.c) in up to three launches: sums of each channel by chains of
// pixels, the results of the sums, and the images. Sums that no kernel reads are left out. The
// layout of the images decides which kernels read them; the sums and their order are always the
// same.
#include "cuda/device.h"
#include "cuda/images.h"
#include "cuda/kernels/norm.h"
#include "ops/norm.h"
#include "tensor/moments.h"

_Static_assert(BEL_MOMENTS_COUNT == 0 && BEL_MOMENTS_MEAN == 1 && BEL_MOMENTS_SQUARES == 2 &&
                   BEL_WHOLE_COUNT == 0 && BEL_WHOLE_MEAN == 1 && BEL_WHOLE_INVERSE == 2,
               "kernels name rows by these numbers");
_Static_assert((int)BEL_CUDA_NORM_PARTS == (int)BEL_NORM_PARTS, "threads for each part");

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

static bel_status *norm_add(bel_cuda_build *build, const char *kernel, int64_t blocks, int threads,
                            const bel_cuda_norm *p)
{
    return bel_cuda_add(build, "norm.cu", kernel, blocks, threads, p, sizeof *p);
}

static int64_t blocks_of(int64_t count, int64_t per_block)
{
    return (count + per_block - 1) / per_block;
}

static bel_status *add_sums(bel_cuda_build *build, const bel_cuda_norm *p)
{
    if (p->plain)
        return norm_add(build, "norm_plain_sums", bel_cuda_blocks(p->channels), BEL_CUDA_BLOCK, p);
    // Kernels count in 32 bits: a part's pixels, the channels of all chains, and the channels of a
    // few pixels.
    int64_t chains = p->parts * p->chains_per_part;
    if (p->images_per_part * p->pixels > INT32_MAX / 2 || p->channels > INT32_MAX / 2 / chains ||
        p->channels > INT32_MAX / 64)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the images are too large for a GPU");
    if (p->u_last && p->v_last)
        return norm_add(build, "norm_lanes", blocks_of(chains * p->channels, BEL_CUDA_NORM_LANES),
                        BEL_CUDA_NORM_LANES, p);
    return norm_add(build, "norm_tiles", chains * blocks_of(p->channels, BEL_CUDA_NORM_TILE),
                    BEL_CUDA_NORM_TILE, p);
}

// Processes four elements at a time if they are neighbors in all three images, which start at
// multiples of BEL_PLAN_ALIGNMENT; else one.
static bel_status *add_apply(bel_cuda_build *build, const bel_cuda_norm *p)
{
    enum { MOST_CHANNELS = 1 << 24 }; // at most the number of threads
    int64_t elements = p->n * p->channels * p->pixels, threads = elements;
    const char *kernel = p->plain ? "norm_plain_apply" : "norm_apply";
    bool last = p->u_last && p->v_last && p->y_last;
    bool plain_order = !p->u_last && !p->v_last && !p->y_last;
    if (!p->plain && elements <= INT32_MAX && elements > 0) {
        int64_t by_fours = blocks_of(elements, 4 * BEL_CUDA_NORM_FOURS);
        if (last && p->channels % 4 == 0 && p->channels <= MOST_CHANNELS) {
            kernel = "norm_apply_lanes";
            threads = by_fours > p->channels / 4 ? by_fours : p->channels / 4;
        } else if (plain_order && p->pixels % 4 == 0) {
            kernel = "norm_apply_rows";
            threads = by_fours;
        }
    }
    return norm_add(build, kernel, bel_cuda_blocks(threads), BEL_CUDA_BLOCK, p);
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
                       .pixels_per_chain = norm->pixels_per_chain,
                       .what = what_of(call->op),
                       .training = norm->training,
                       .by_sums = norm->by_sums,
                       .is_f64 = call->inputs[0].dtype == BEL_DTYPE_F64,
                       .epsilon = norm->epsilon,
                       .momentum = norm->momentum};
    if (call->op == BEL_OP_MOMENTS_MOVE)
        return norm_add(build, "norm_move", bel_cuda_blocks(p.channels), BEL_CUDA_BLOCK, &p);
    p.plain = bel_prepares_plain(build->prepare, call);
    p.v_input = has_two_images(p.what) ? 1 : 0;
    p.u_last = call->inputs_last[0] || p.pixels == 1;
    p.v_last = call->inputs_last[p.v_input] || p.pixels == 1;
    p.y_last = call->outputs_last[0] || p.pixels == 1;
    p.u_bf16 = call->inputs_bf16[0];
    p.v_bf16 = call->inputs_bf16[p.v_input];
    p.y_bf16 = call->outputs_bf16[0];
    p.chains_per_part = blocks_of(p.images_per_part * p.pixels, p.pixels_per_chain);
    if (p.plain) p.parts = p.chains_per_part = 1;
    if (!reads_sums(&p)) p.parts = 0;
    int64_t sums = p.parts * p.chains_per_part * 2;
    call->workspace_bytes = (size_t)((sums + 3) * p.channels) * sizeof(double);
    if (sums > 0) BEL_TRY(add_sums(build, &p));
    BEL_TRY(norm_add(build, "norm_channels", blocks_of(p.channels, BEL_CUDA_NORM_CHANNELS),
                     BEL_CUDA_NORM_THREADS, &p));
    return gives_images(p.what) ? add_apply(build, &p) : NULL;
}
