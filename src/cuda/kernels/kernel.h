// Common header of all kernel sources, and the definition of their language. Include it first.
//
// The language is the common subset of C and CUDA C++. NVRTC compiles a source for a GPU, and gcc
// for the stand-in that tests run on (tests/support/cuda_double). The number functions of the CPU's
// kernels (ops/kernels/scalar.h, base/real.c, base/rng.c) are compiled into kernels from the CPU's
// sources, with every operation rounded separately. So both give the same bits. Besides C a source
// may use __shared__ arrays (fixed sizes), __syncthreads(), threadIdx, blockIdx, blockDim, gridDim,
// and fmaf.
//
// Every kernel has the same two arguments, and is written
//
//   KERNEL(name, type_of_params)
//   {
//       const float *x = (const float *)at.in[0];
//       float *y = (float *)at.out[0];
//       … p.count …
//   }
//
// No kernel uses atomic additions of floats: their order is random. No two blocks of a launch, and
// no two threads of a block between barriers, access an element that one of them writes.
#ifndef BELFRY_CUDA_KERNELS_KERNEL_H
#define BELFRY_CUDA_KERNELS_KERNEL_H

#include "cuda/kernels/params.h"

#ifdef BEL_CUDA_DOUBLE
#define KERNEL(name, type)                                                                         \
    static void name(bel_cuda_operands at, type p);                                                \
    const unsigned bel_double_sizes_##name[] = {2, sizeof(bel_cuda_operands), sizeof(type)};       \
    void bel_double_##name(void **arguments)                                                       \
    {                                                                                              \
        name(*(const bel_cuda_operands *)arguments[0], *(const type *)arguments[1]);               \
    }                                                                                              \
    static void name(bel_cuda_operands at, type p)
#else
#define KERNEL(name, type) extern "C" __global__ void name(bel_cuda_operands at, type p)
#endif

// Reports an element that is not in [low, limit). Only the first report of a run is kept, and it
// names the operation. (Calls run in order, so it is of the first call that has one.)
static inline void report_bad(const bel_cuda_operands *at, int64_t value, int64_t low,
                              int64_t limit)
{
    if (atomicCAS(&at->run->error, 0, (int32_t)(at->call + 1)) != 0) return;
    at->run->bad_value = value;
    at->run->bad_low = low;
    at->run->bad_limit = limit;
}

#define THREAD ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) // in a one-dimensional launch
#define THREADS ((int64_t)gridDim.x * blockDim.x)

// Offset of tensor k's element that belongs to element `index` of the space.
static inline int64_t walk_place(const bel_cuda_walk *walk, int k, int64_t index)
{
    int64_t place = 0;
    for (int d = walk->rank - 1; d >= 0; d--) {
        place += index % walk->dims[d] * walk->steps[k][d];
        index /= walk->dims[d];
    }
    return place;
}

#endif
