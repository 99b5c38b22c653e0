// Values on lanes as bf16, with --exchange_precision bf16: 2 bytes each instead of 4.
//
// Every sum over replicas is rounded to bf16: each replica's gradient, and each addition of the
// tree. So the sums are the same wherever an addition is done, and a lane that carries them as bf16
// loses nothing. An update is rounded as well: new = old + bf16(new - old), at the shard. A worker
// that has the old values makes the same addition from the bf16 difference. Nothing is kept from
// step to step, so a process that is replaced has lost nothing.
//
// Rounding is to nearest, ties to even; NaN stays NaN. All functions are thread-safe.
#ifndef BELFRY_PS_LAYOUT_ROUNDING_H
#define BELFRY_PS_LAYOUT_ROUNDING_H

#include <stdint.h>

// Type of sums and updates between workers and shards (bel_run_config.exchange_precision). Setups
// have the number.
typedef enum bel_rounding { BEL_ROUNDING_NONE, BEL_ROUNDING_BF16, BEL_ROUNDING_COUNT } bel_rounding;

// The difference that changes no value, whatever its sign: -0.
#define BEL_ROUNDING_SAME ((uint16_t)0x8000)

// Rounds `n` values in place.
void bel_rounding_round(float *values, int64_t n);

// Writes `n` rounded values as bf16, and back.
void bel_rounding_pack(const float *values, uint16_t *out_packed, int64_t n);
void bel_rounding_unpack(const uint16_t *packed, float *out_values, int64_t n);

// Replaces values by before + bf16(values - before), and writes the differences unless the output
// is NULL.
void bel_rounding_differ(const float *before, float *values, uint16_t *out_differences, int64_t n);

// values = before + differences: what bel_rounding_differ has left in its values.
void bel_rounding_add(const float *before, const uint16_t *differences, float *out_values,
                      int64_t n);

#endif
