// Dispatch of operations to families. The CPU's prepare function comes first: it reads the
// attributes and decides everything that affects the bits (the cut of a sum, when a product rounds
// twice). A family turns its result into launches. So a GPU and the CPU cannot differ in either.
#include "cuda/device.h"
#include "ops/collective.h"

// An operation without a family gives an error with its name, before anything runs.
static bel_cuda_prepare_fn *const families[BEL_OP_COUNT] = {
#define FAMILY(id, family) [BEL_OP_##id] = bel_cuda_prepare_##family,
#include "cuda/families.def"
#undef FAMILY
};

bel_status *bel_cuda_prepare(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_cuda_prepare_fn *family = families[call->op];
    if (bel_op_is_collective(call->op)) { // the runner of the replicas computes it
        bel_op_get(call->op)->prepare(prepare, call);
        call->tile_elements = 0; // a report leaves as a whole
        return NULL;
    }
    if (family == NULL)
        return BEL_ERR(BEL_UNIMPLEMENTED, "GPUs have no kernel for it yet; hint: --device cpu");
    bel_op_get(call->op)->prepare(prepare, call);
    bel_cuda_call *made = bel_arena_alloc(prepare->arena, sizeof *made);
    call->before = call->after = NULL;
    call->tile_elements = 0;
    call->workspace_bytes = call->packed_bytes = 0;
    bel_cuda_build build = {
        .device = (bel_cuda_device *)device, .prepare = prepare, .call = call, .made = made};
    BEL_TRY(family(&build));
    call->params = made;
    call->tile_count = made->count;
    return NULL;
}
