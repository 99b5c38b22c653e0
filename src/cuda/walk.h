// Walks (ops/kernels/walk.h) in the form that kernels read.
#ifndef BELFRY_CUDA_WALK_H
#define BELFRY_CUDA_WALK_H

#include "cuda/kernels/params.h"
#include "ops/kernels/walk.h"

// Walk over `shape`, to which each of `tensors`, at most 4, is broadcast. Further tensors are left
// out: they are full, single or rows.
bel_cuda_walk bel_cuda_walk_broadcast(const bel_shape *shape, const bel_tensor *tensors, int count);

bel_cuda_walk bel_cuda_walk_of(const bel_walk *walk);

#endif
