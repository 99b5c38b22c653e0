// Shared part of test_cuda_products.c and test_cuda_convolutions.c beside cases.h: the libraries'
// kernels, compiled before children are forked; numbers that are rounded as the libraries round;
// and lists of cases that end the process.
#ifndef BELFRY_TESTS_SUPPORT_CUDA_DOUBLE_LIBRARY_CASES_H
#define BELFRY_TESTS_SUPPORT_CUDA_DOUBLE_LIBRARY_CASES_H

#include <math.h>
#include <pthread.h>

#include "support/cuda_double/cases.h"

enum { MOST = 4096 };

// --- Kernels of the libraries --------------------------------------------------------------------

static inline int prepare_libraries(void **state)
{
    static const char *const paths[] = {BEL_CUDA_DOUBLE_DIR "/libcublasLt.so.13",
                                        BEL_CUDA_DOUBLE_DIR "/libcudnn.so.9"};
    prepare(state);
    for (int i = 0; i < 2; i++) {
        void *found = dlsym(dlopen(paths[i], RTLD_NOW | RTLD_LOCAL), "cuda_double_compile");
        int (*compile_kernels)(void);
        assert_non_null(found);
        memcpy(&compile_kernels, &found, sizeof found);
        assert_int_equal(compile_kernels(), 0);
    }
    return 0;
}

// --- Numbers -------------------------------------------------------------------------------------

// Rounds to `bits` bits of mantissa, including the leading one; ties to even, as processors round.
static inline float to_bits(float x, int bits)
{
    int exponent;
    double part = frexp((double)x, &exponent);
    return (float)ldexp(rint(ldexp(part, bits)), exponent - bits);
}

enum { BITS_F32 = 24, BITS_TF32 = 11, BITS_BF16 = 8 };

// Numbers that no short mantissa represents exactly.
static inline float some_number(int i)
{
    unsigned x = (unsigned)i * 2654435761u + 12345;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return ((float)(x & 0xffffff) - 8388608.0f) / 4194304.0f;
}

static inline size_t bytes_of(int count, bool bf16)
{
    return (size_t)count * (bf16 ? 2 : 4);
}

// Uploads the numbers. With bf16 it first rounds `values` in place.
static inline uint64_t upload(float *values, int count, bool bf16)
{
    static uint16_t words[MOST];
    NEED(count <= MOST);
    uint64_t address = allocate(bytes_of(count, bf16));
    for (int i = 0; i < count && bf16; i++) {
        uint32_t bits;
        values[i] = to_bits(values[i], BITS_BF16);
        memcpy(&bits, &values[i], sizeof bits);
        words[i] = (uint16_t)(bits >> 16);
    }
    const void *from = bf16 ? (const void *)words : values;
    OK(copy_in(address, from, bytes_of(count, bf16), streams[0]));
    finish();
    return address;
}

static inline void download(uint64_t address, int count, bool bf16, float *out)
{
    static uint16_t words[MOST];
    OK(copy_out(bf16 ? (void *)words : out, address, bytes_of(count, bf16), streams[0]));
    for (int i = 0; i < count && bf16; i++) {
        uint32_t bits = (uint32_t)words[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static inline void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

// --- Ends ----------------------------------------------------------------------------------------

typedef struct misuse {
    body *run;
    const char *part, *other_part;
} misuse;

static inline void expect_ends(const misuse *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        expect_end(all[i].run, all[i].part, all[i].other_part);
}

#endif
