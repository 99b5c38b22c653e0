// Shared part of cublas.cu and cudnn.cu. They are in the language of Belfry's kernels (the common
// part of C and CUDA C++), but use nothing of those. A kernel has one argument.
#include "library_params.h"

#ifdef BEL_CUDA_DOUBLE
const int bel_double_of_a_library = 1; // README.md, "Arguments"
#define KERNEL(name, type)                                                                         \
    static void name(type p);                                                                      \
    const unsigned bel_double_sizes_##name[] = {1, sizeof(type)};                                  \
    void bel_double_##name(void **arguments)                                                       \
    {                                                                                              \
        name(*(const type *)arguments[0]);                                                         \
    }                                                                                              \
    static void name(type p)
#else
#define KERNEL(name, type) extern "C" __global__ void name(type p)
#endif

#define THREAD ((long long)blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((long long)gridDim.x * blockDim.x)

// Drops the lowest bits, rounding to the nearest, ties to even. Infinities and NaNs stay.
static float rounded(float x, int dropped)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (dropped == 0 || (bits & 0x7f800000u) == 0x7f800000u) return x;
    unsigned unit = 1u << dropped;
    bits += unit / 2 - 1 + (bits >> dropped & 1);
    bits &= ~(unit - 1);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float number_of(const void *at, long long index, int bf16)
{
    if (!bf16) return ((const float *)at)[index];
    unsigned bits = (unsigned)((const unsigned short *)at)[index] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void set_number(void *at, long long index, int bf16, float x)
{
    if (!bf16) {
        ((float *)at)[index] = x;
        return;
    }
    x = rounded(x, LIBRARY_DROP_BF16);
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) bits |= 0x400000u; // keeps a NaN that only the lower 16 bits mark
    ((unsigned short *)at)[index] = (unsigned short)(bits >> 16);
}

// The checks of accesses find any other use of the memory at the same time.
static void use_workspace(const library_workspace *w)
{
    for (long long i = THREAD; i < w->words; i += THREADS)
        w->at[i] = (float)i;
}
