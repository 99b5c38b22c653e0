// Walks (ops/kernels/walk.h) as kernels take them.
#ifndef BELFRY_CUDA_WALK_H
#define BELFRY_CUDA_WALK_H

#include "cuda/kernels/params.h"
#include "ops/kernels/walk.h"

// Over `shape`, to which every one of `tensors` is broadcast, 4 at most. Others are left out: they
// are full, single or rows.
bel_cuda_walk bel_cuda_walk_broadcast(const bel_shape *shape, const bel_tensor *tensors, int count);

bel_cuda_walk bel_cuda_walk_of(const bel_walk *walk);

#endif
