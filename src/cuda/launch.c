// Launches that families add to a call: a kernel, the number of threads, and a copy of the params
// that lives as long as the program. The kernel is looked up now, so that compile errors appear
// before anything runs. A launch without blocks is left out.
#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "cuda/device.h"
#include "cuda/texts.h"

int64_t bel_cuda_blocks(int64_t elements)
{
    enum { MOST = 1 << 15 };
    int64_t blocks = (elements + BEL_CUDA_BLOCK - 1) / BEL_CUDA_BLOCK;
    return blocks < MOST ? blocks : MOST;
}

// *out_launch NULL: the launch has no elements, and is left out.
static bel_status *launch_add(bel_cuda_build *build, int64_t blocks, int threads,
                              const void *params, size_t params_bytes, bel_cuda_launch **out_launch)
{
    bel_cuda_call *made = build->made;
    *out_launch = NULL;
    if (blocks == 0) return NULL;
    BEL_CHECK(made->count < BEL_CUDA_MAX_LAUNCHES &&
              params_bytes + sizeof(bel_cuda_operands) <= 4096);
    if (blocks > INT32_MAX) return BEL_ERR(BEL_UNIMPLEMENTED, "the shapes are too large for a GPU");
    bel_cuda_launch *launch = *out_launch = &made->launches[made->count++];
    launch->blocks = (unsigned)blocks;
    launch->threads = (unsigned)threads;
    launch->params = bel_arena_copy(build->prepare->arena, params, params_bytes);
    return NULL;
}

bel_status *bel_cuda_kernel_of(const bel_cuda_build *build, const char *source, const char *kernel,
                               void **out_function)
{
    char *name = bel_strf("cuda/kernels/%s", source);
    const char *text = bel_cuda_text_of(name);
    bel_status *status = text == NULL
                             ? BEL_ERR(BEL_INTERNAL, "there is no source %s", name)
                             : bel_cuda_kernel(build->device, name, text, kernel, out_function);
    bel_free(name);
    return status;
}

bel_status *bel_cuda_add(bel_cuda_build *build, const char *source, const char *kernel,
                         int64_t blocks, int threads, const void *params, size_t params_bytes)
{
    bel_cuda_launch *launch;
    BEL_TRY(launch_add(build, blocks, threads, params, params_bytes, &launch));
    return launch == NULL ? NULL : bel_cuda_kernel_of(build, source, kernel, &launch->function);
}

bel_status *bel_cuda_add_text(bel_cuda_build *build, const char *name, const char *text,
                              const char *kernel, int64_t blocks, const void *params,
                              size_t params_bytes)
{
    bel_cuda_launch *launch;
    BEL_TRY(launch_add(build, blocks, BEL_CUDA_BLOCK, params, params_bytes, &launch));
    return launch == NULL ? NULL
                          : bel_cuda_kernel(build->device, name, text, kernel, &launch->function);
}

void bel_cuda_add_library(bel_cuda_build *build, bel_cuda_library_fn *library, const void *params,
                          size_t params_bytes)
{
    bel_cuda_call *made = build->made;
    BEL_CHECK(made->count < BEL_CUDA_MAX_LAUNCHES);
    made->launches[made->count++] = (bel_cuda_launch){
        .library = library, .params = bel_arena_copy(build->prepare->arena, params, params_bytes)};
}
