// The conversions are kernels of the processor (ops/kernels/cpu.h); this file works in pieces that
// stay in the L1 cache.
#include "ps/layout/rounding.h"

#include <stddef.h>

#include "ops/kernels/cpu.h"

enum { PIECE = 1024 };

void bel_rounding_pack(const float *values, uint16_t *out_packed, int64_t n)
{
    bel_cpu_kernels_get()->to_bfloat(values, out_packed, n);
}

void bel_rounding_unpack(const uint16_t *packed, float *out_values, int64_t n)
{
    bel_cpu_kernels_get()->from_bfloat(packed, out_values, n);
}

void bel_rounding_round(float *values, int64_t n)
{
    uint16_t packed[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        bel_rounding_pack(values + at, packed, count);
        bel_rounding_unpack(packed, values + at, count);
    }
}

void bel_rounding_add(const float *before, const uint16_t *differences, float *out_values,
                      int64_t n)
{
    float piece[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        bel_rounding_unpack(differences + at, piece, count);
        for (int64_t i = 0; i < count; i++)
            out_values[at + i] = before[at + i] + piece[i];
    }
}

void bel_rounding_differ(const float *before, float *values, uint16_t *out_differences, int64_t n)
{
    uint16_t packed[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t count = n - at < PIECE ? n - at : PIECE;
        uint16_t *differences = out_differences != NULL ? out_differences + at : packed;
        for (int64_t i = 0; i < count; i++)
            values[at + i] -= before[at + i];
        bel_rounding_pack(values + at, differences, count);
        bel_rounding_add(before + at, differences, values + at, count);
    }
}
