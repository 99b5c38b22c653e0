// MaskedSoftmax: see kernels/masked_softmax.cu. The CPU's prepare function reads which elements are
// hidden (by a mask, lengths, later keys); here a broadcast mask becomes a walk. The kernel reports
// a length out of range.
#include "cuda/kernels/masked_softmax.h"

#include "cuda/device.h"
#include "cuda/kernels/rows.h"
#include "cuda/walk.h"
#include "ops/sequence.h"

bel_status *bel_cuda_prepare_masked_softmax(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    const bel_masked_softmax_params *softmax = call->params;
    bel_cuda_masked_softmax p = {.rows = softmax->rows,
                                 .columns = softmax->columns,
                                 .queries = softmax->queries,
                                 .sequence_rows = softmax->sequence_rows,
                                 .mask = softmax->hiding.mask,
                                 .lengths = softmax->hiding.lengths,
                                 .causal = softmax->hiding.causal,
                                 .type = (int32_t)call->inputs[0].dtype};
    if (p.mask >= 0) {
        const bel_shape *mask = &call->inputs[p.mask].shape;
        p.mask_step = mask->rank > 0 && mask->dims[mask->rank - 1] > 1 ? 1 : 0;
        p.masks = bel_cuda_walk_broadcast(&call->outputs[0].shape, &call->inputs[p.mask], 1);
    }
    bool fast = softmax->softmax != NULL;
    return bel_cuda_add(
        build, "masked_softmax.cu", fast ? "masked_softmax" : "masked_softmax_plain",
        fast ? (p.rows + BEL_CUDA_ROWS - 1) / BEL_CUDA_ROWS : bel_cuda_blocks(p.rows),
        BEL_CUDA_BLOCK, &p, sizeof p);
}
