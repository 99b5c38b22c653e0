// CTCLoss and its gradient: see kernels/ctc_body.h. Sums over paths are in the CPU's order, with
// its wide-exponent numbers (ops/kernels/wide.h), so the bits are the CPU's. A block computes one
// example at a time in a slot of the workspace, so memory does not grow with the batch.
#include "cuda/kernels/ctc.h"

#include "cuda/device.h"
#include "cuda/kernels/rows.h"
#include "ops/kernels/ctc.h"
#include "ops/kernels/wide.h"

static bel_status *ctc_add(bel_cuda_build *build, const char *kernel, int64_t blocks,
                           const bel_cuda_ctc *p)
{
    const bel_ctc_shape *s = build->call->params;
    return bel_cuda_add(build, s->plain ? "ctc_f64.cu" : "ctc_f32.cu", kernel, blocks,
                        BEL_CUDA_BLOCK, p, sizeof *p);
}

// Slots have numbers of 64 or 128 bits, and shares of 64.
static bel_cuda_ctc lay_out(bel_kernel_call *call, bool gradient)
{
    const bel_ctc_shape *s = call->params; // or a struct that starts with it
    bel_cuda_ctc p = {.n = s->n,
                      .frames = s->frames,
                      .classes = s->classes,
                      .labels = s->labels,
                      .states = 2 * s->labels + 1,
                      .log_p = s->log_p,
                      .label = s->label,
                      .frame_length = s->frame_length,
                      .label_length = s->label_length,
                      .zero_infinity = s->zero_infinity,
                      .gradient = gradient};
    int64_t slots = p.n < BEL_CUDA_CTC_SLOTS ? p.n : BEL_CUDA_CTC_SLOTS;
    int64_t number = s->plain ? 1 : (int64_t)(sizeof(bel_wide) / sizeof(int64_t));
    p.alphas = (gradient ? p.frames : 2) * p.states;
    p.slots_at = (p.n + 1) / 2 * 2;
    p.slot = ((p.alphas + (gradient ? 3 * p.states : 0)) * number + p.states + 1) / 2 * 2;
    call->workspace_bytes = (size_t)(p.slots_at + slots * p.slot) * sizeof(int64_t);
    return p;
}

static int64_t example_blocks(const bel_cuda_ctc *p)
{
    return p->n < BEL_CUDA_CTC_SLOTS ? p->n : BEL_CUDA_CTC_SLOTS;
}

static bel_status *check_type(const bel_kernel_call *call)
{
    const bel_ctc_shape *s = call->params;
    bool fits = call->inputs[0].dtype == (s->plain ? BEL_DTYPE_F64 : BEL_DTYPE_F32);
    return fits ? NULL : BEL_ERR(BEL_UNIMPLEMENTED, "GPUs have only f32 and f64");
}

bel_status *bel_cuda_prepare_ctc_loss(bel_cuda_build *build)
{
    const bel_ctc_shape *s = build->call->params;
    BEL_TRY(check_type(build->call));
    bel_cuda_ctc p = lay_out(build->call, false);
    int64_t rows = p.n * p.frames;
    BEL_TRY(ctc_add(build, "ctc_read", bel_cuda_blocks(p.n), &p));
    BEL_TRY(ctc_add(build, "ctc_log_p",
                    s->plain ? bel_cuda_blocks(rows) : (rows + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS,
                    &p));
    return ctc_add(build, "ctc_loss", example_blocks(&p), &p);
}

bel_status *bel_cuda_prepare_ctc_loss_grad(bel_cuda_build *build)
{
    BEL_TRY(check_type(build->call));
    bel_cuda_ctc p = lay_out(build->call, true);
    BEL_TRY(ctc_add(build, "ctc_read", bel_cuda_blocks(p.n), &p));
    return ctc_add(build, "ctc_grad", example_blocks(&p), &p);
}
