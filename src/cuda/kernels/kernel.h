// What every kernel source includes first: the language that kernels are written in.
//
// That language is what C and CUDA C++ have in common, so that a source is compiled by NVRTC for a
// card, and by gcc for the stand-in that tests run on (tests/support/cuda_double). The functions of
// numbers that the CPU's kernels are made of (ops/kernels/scalar.h, base/real.c, base/rng.c) are
// compiled into kernels from the CPU's own sources, with every operation rounded by itself: that is
// what gives both the same bits. Beside C a source may use __shared__ arrays (fixed sizes),
// __syncthreads(), threadIdx, blockIdx, blockDim, gridDim, and fmaf.
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
// No kernel uses atomic additions of floats: their order is chance. No two blocks of a launch, and
// no two threads of a block between barriers, touch an element that one of them writes.
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

// Reports an element that is not in [low, limit): of a run the first one that comes, which names
// the operation. (Calls run one after another, so it is of the first call that has one.)
static inline void report_bad(const bel_cuda_operands *at, int64_t value, int64_t low,
                              int64_t limit)
{
    if (atomicCAS(&at->run->error, 0, (int32_t)(at->call + 1)) != 0) return;
    at->run->bad_value = value;
    at->run->bad_low = low;
    at->run->bad_limit = limit;
}

#define THREAD ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) // in a launch of one dimension
#define THREADS ((int64_t)gridDim.x * blockDim.x)

// Where tensor k's element beside element `index` of the space lies.
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
