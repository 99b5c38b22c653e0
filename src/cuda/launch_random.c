// Random numbers, Dropout, and scalars: see kernels/random.cu. Each number is a function of seed,
// operation, step, replica and element (Philox), so threads draw in any order and the bits are the
// processor's.
#include "ops/random.h"

#include "cuda/device.h"
#include "cuda/kernels/random.h"

static bel_status *random_add(bel_cuda_build *build, const char *kernel, int64_t each,
                              bel_cuda_random *p)
{
    const bel_tensor *y = &build->call->outputs[0];
    p->count = bel_shape_elements(&y->shape);
    p->type = (int32_t)y->dtype;
    return bel_cuda_add(build, "random.cu", kernel, bel_cuda_blocks((p->count + each - 1) / each),
                        BEL_CUDA_BLOCK, p, sizeof *p);
}

bel_status *bel_cuda_prepare_random(bel_cuda_build *build)
{
    const bel_random_params *random = build->call->params;
    bel_cuda_random p = {.first = random->first, .factor = random->factor};
    bool uniform = build->call->op == BEL_OP_RANDOM_UNIFORM;
    build->made->random = uniform ? BEL_PURPOSE_UNIFORM : BEL_PURPOSE_NORMAL;
    return random_add(build, uniform ? "uniform" : "normal", uniform ? 4 : 2, &p);
}

bel_status *bel_cuda_prepare_dropout(bel_cuda_build *build)
{
    const bel_dropout_params *dropout = build->call->params;
    bel_cuda_random p = {.ratio = dropout->ratio, .fast = dropout->fast};
    bool gradient = build->call->op == BEL_OP_DROPOUT_GRAD;
    if (!gradient) build->made->random = BEL_PURPOSE_DROPOUT;
    return random_add(build, gradient ? "dropout_grad" : "dropout", gradient ? 1 : 4, &p);
}

// --- Scalars -------------------------------------------------------------------------------------

static bel_status *add_single(bel_cuda_build *build, const char *kernel, bel_cuda_single p)
{
    return bel_cuda_add(build, "random.cu", kernel, 1, 1, &p, sizeof p);
}

bel_status *bel_cuda_prepare_global_step(bel_cuda_build *build)
{
    return add_single(build, "global_step", (bel_cuda_single){.zero = 0});
}

bel_status *bel_cuda_prepare_replica_id(bel_cuda_build *build)
{
    const int64_t *replicas = build->call->params;
    return add_single(build, "replica_id", (bel_cuda_single){.replicas = *replicas});
}

bel_status *bel_cuda_prepare_count_ratio(bel_cuda_build *build)
{
    const bel_kernel_call *call = build->call;
    double all = (double)bel_shape_elements(&call->inputs[0].shape);
    double kept = (double)bel_shape_elements(&call->inputs[1].shape);
    return add_single(
        build, "number",
        (bel_cuda_single){.value = kept / all, .type = (int32_t)call->outputs[0].dtype});
}
