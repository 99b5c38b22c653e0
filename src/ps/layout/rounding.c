// The conversions are kernels of the processor (ops/kernels/cpu.h); this file works in pieces that
// stay in the L1 cache. A piece must begin at a border of blocks, or its scales would differ from
// those of the whole.
#include "ps/layout/rounding.h"

#include <stddef.h>
#include <string.h>

#include "ops/kernels/cpu.h"
#include "ps/layout/layout.h"

_Static_assert(BEL_LAYOUT_ALIGN % BEL_CPU_INT8_BLOCK == 0, "variables begin at borders of blocks");

enum { PIECE = 1024, BLOCK = BEL_CPU_INT8_BLOCK, BLOCK_BYTES = BEL_CPU_INT8_BYTES };

size_t bel_rounding_bytes(bel_rounding rounding, int64_t n)
{
    switch (rounding) {
    case BEL_ROUNDING_BF16: return (size_t)n * sizeof(uint16_t);
    case BEL_ROUNDING_INT8: return (size_t)((n + BLOCK - 1) / BLOCK) * BLOCK_BYTES;
    default: return (size_t)n * sizeof(float);
    }
}

// Neighboring steps differ in all bits.
static uint32_t salt_of(int64_t step)
{
    return (uint32_t)((uint64_t)step * 0x9e3779b97f4a7c15u >> 32);
}

void bel_rounding_pack(bel_rounding rounding, int64_t step, const float *values, void *out_packed,
                       int64_t n)
{
    const bel_cpu_kernels *kernels = bel_cpu_kernels_get();
    if (rounding == BEL_ROUNDING_INT8) {
        kernels->to_int8(values, out_packed, salt_of(step), n);
    } else {
        kernels->to_bfloat(values, out_packed, n);
    }
}

void bel_rounding_unpack(bel_rounding rounding, const void *packed, float *out_values, int64_t n)
{
    const bel_cpu_kernels *kernels = bel_cpu_kernels_get();
    if (rounding == BEL_ROUNDING_INT8) {
        kernels->from_int8(packed, out_values, n);
    } else {
        kernels->from_bfloat(packed, out_values, n);
    }
}

static int64_t piece_at(int64_t at, int64_t n)
{
    return n - at < PIECE ? n - at : PIECE;
}

void bel_rounding_round(bel_rounding rounding, int64_t step, float *values, int64_t n)
{
    uint16_t packed[PIECE]; // the wider of the types
    for (int64_t at = 0; at < n; at += PIECE) {
        bel_rounding_pack(rounding, step, values + at, packed, piece_at(at, n));
        bel_rounding_unpack(rounding, packed, values + at, piece_at(at, n));
    }
}

void bel_rounding_add(bel_rounding rounding, const float *before, const void *differences,
                      float *out_values, int64_t n)
{
    float piece[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const char *from = (const char *)differences + bel_rounding_bytes(rounding, at);
        int64_t count = piece_at(at, n);
        bel_rounding_unpack(rounding, from, piece, count);
        for (int64_t i = 0; i < count; i++)
            out_values[at + i] = before[at + i] + piece[i];
    }
}

void bel_rounding_differ(bel_rounding rounding, int64_t step, const float *before, float *values,
                         void *out_differences, int64_t n)
{
    uint16_t packed[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = piece_at(at, n);
        void *differences = packed;
        if (out_differences != NULL)
            differences = (char *)out_differences + bel_rounding_bytes(rounding, at);
        for (int64_t i = 0; i < count; i++)
            values[at + i] -= before[at + i];
        bel_rounding_pack(rounding, step, values + at, differences, count);
        bel_rounding_add(rounding, before + at, differences, values + at, count);
    }
}

// -0 as bf16; a block of zeros stands for -0 as well.
void bel_rounding_differ_nothing(bel_rounding rounding, void *out_differences, int64_t n)
{
    if (rounding == BEL_ROUNDING_INT8) {
        memset(out_differences, 0, bel_rounding_bytes(rounding, n));
        return;
    }
    uint16_t *differences = out_differences;
    for (int64_t i = 0; i < n; i++)
        differences[i] = 0x8000;
}
