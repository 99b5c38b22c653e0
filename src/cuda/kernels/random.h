// Random numbers in kernels: the CPU's, from the call's key, which is stored after the state of a
// run.
#ifndef BELFRY_CUDA_KERNELS_RANDOM_H
#define BELFRY_CUDA_KERNELS_RANDOM_H

#include "cuda/kernels/params.h"

typedef struct bel_cuda_random {
    int64_t count;
    double first, factor; // for RandomUniform and RandomNormal
    double ratio;         // for Dropout
    int32_t type, fast;   // fast: Dropout in f32, not in double
} bel_cuda_random;

// A number for ReplicaId, CountRatio.
typedef struct bel_cuda_single {
    int64_t replicas;
    double value;
    int32_t type, zero;
} bel_cuda_single;

#endif
