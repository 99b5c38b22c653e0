// Which family of operations runs what, and the launches that families add. The CPU's prepare
// function comes first: it reads the attributes and decides what enters the bits (how a sum is cut,
// when a product rounds twice), and a family turns what it has made into launches. So a card and
// the CPU cannot come to differ in either.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/texts.h"
#include "ops/collective.h"

// What an operation without a family is: an error that names it, before anything runs.
static bel_cuda_prepare_fn *const families[BEL_OP_COUNT] = {
#define FAMILY(id, family) [BEL_OP_##id] = bel_cuda_prepare_##family,
#include "cuda/families.def"
#undef FAMILY
};

int64_t bel_cuda_blocks(int64_t elements)
{
    enum { MOST = 1 << 15 };
    int64_t blocks = (elements + BEL_CUDA_BLOCK - 1) / BEL_CUDA_BLOCK;
    return blocks < MOST ? blocks : MOST;
}

static bel_status *add(bel_cuda_build *build, const char *name, const char *text,
                       const char *kernel, int64_t blocks, int threads, const void *params,
                       size_t params_bytes)
{
    bel_cuda_call *made = build->made;
    if (blocks == 0) return NULL; // no elements
    if (made->count == BEL_CUDA_MAX_LAUNCHES || blocks > INT32_MAX)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the shapes are too large for a card");
    bel_cuda_launch *launch = &made->launches[made->count++];
    launch->blocks = (unsigned)blocks;
    launch->threads = (unsigned)threads;
    launch->params = bel_arena_copy(build->prepare->arena, params, params_bytes);
    return bel_cuda_kernel(build->device, name, text, kernel, &launch->function);
}

bel_status *bel_cuda_add(bel_cuda_build *build, const char *source, const char *kernel,
                         int64_t blocks, int threads, const void *params, size_t params_bytes)
{
    char *name = bel_strf("cuda/kernels/%s", source);
    const char *text = bel_cuda_text_of(name);
    bel_status *status =
        text == NULL ? BEL_ERR(BEL_INTERNAL, "there is no source %s", name)
                     : add(build, name, text, kernel, blocks, threads, params, params_bytes);
    bel_free(name);
    return status;
}

bel_status *bel_cuda_add_text(bel_cuda_build *build, const char *name, const char *text,
                              const char *kernel, int64_t blocks, const void *params,
                              size_t params_bytes)
{
    return add(build, name, text, kernel, blocks, BEL_CUDA_BLOCK, params, params_bytes);
}

bel_status *bel_cuda_prepare(bel_device *device, const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_cuda_prepare_fn *family = families[call->op];
    if (bel_op_is_collective(call->op)) { // whoever runs the replicas computes it, by these params
        bel_op_get(call->op)->prepare(prepare, call);
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
    return NULL;
}
