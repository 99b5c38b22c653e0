// Walks for kernels: see walk.h. Kernels divide for each element, while the CPU's go from run to
// run. On a GPU, neighbors are computed side by side, and memory is the bottleneck.
#include "cuda/walk.h"

#include <string.h>

bel_cuda_walk bel_cuda_walk_of(const bel_walk *walk)
{
    bel_cuda_walk made = {.rank = walk->rank, .tensors = walk->tensors};
    memcpy(made.dims, walk->dims, sizeof made.dims);
    for (int k = 0; k < walk->tensors; k++)
        memcpy(made.steps[k], walk->steps[k], sizeof made.steps[k]);
    return made;
}

bel_cuda_walk bel_cuda_walk_broadcast(const bel_shape *shape, const bel_tensor *tensors, int count)
{
    bel_walk walk =
        bel_walk_broadcast(shape, tensors, count < BEL_WALK_TENSORS ? count : BEL_WALK_TENSORS);
    return bel_cuda_walk_of(&walk);
}
