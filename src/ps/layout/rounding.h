// Narrow values on lanes, with --exchange_precision: bf16 has 2 bytes a value instead of 4, int8
// has 17 for 16 values.
//
// Every sum over replicas is rounded: each replica's gradient, and each addition of the tree. So
// the sums are the same wherever an addition is done, and a lane that carries them in the narrow
// type loses nothing. An update is rounded as well: new = old + rounded(new - old), at the shard. A
// worker that has the old values makes the same addition from the difference. Nothing is kept from
// step to step, so a process that is replaced has lost nothing.
//
// bf16 rounds to nearest, ties to even; NaN stays NaN. int8 has blocks of 16 values with one scale,
// a power of two (as MXINT8 of the Open Compute Project, whose blocks have 32): the smallest with
// which the block's largest magnitude is at most 127. A value is rounded up or down with a
// probability by its distance, so that small gradients are not lost but rare. The dither is a hash
// of the value's bits, its place in the block and the step: so it is the same everywhere, needs no
// state, and a value that comes again in the next step may go the other way. A block with an
// infinity or NaN becomes NaN. Values that were rounded are rounded to themselves in every step.
//
// Blocks are those of the parameter space: elements 16i to 16i + 15. Variables begin at such
// borders (layout.h), and the last block of one is filled up with zeros. So values may be rounded
// in pieces that begin at a multiple of 16 elements. All functions are thread-safe.
#ifndef BELFRY_PS_LAYOUT_ROUNDING_H
#define BELFRY_PS_LAYOUT_ROUNDING_H

#include <stddef.h>
#include <stdint.h>

// Type of sums and updates between workers and shards (bel_run_config.exchange_precision). Setups
// have the number.
typedef enum bel_rounding {
    BEL_ROUNDING_NONE,
    BEL_ROUNDING_BF16,
    BEL_ROUNDING_INT8,
    BEL_ROUNDING_COUNT
} bel_rounding;

// Returns the bytes of `n` values in the type, floats without rounding. For a multiple of 16 they
// are also where element n is.
size_t bel_rounding_bytes(bel_rounding rounding, int64_t n);

// The functions below need a rounding.

// Rounds `n` values of a step in place.
void bel_rounding_round(bel_rounding rounding, int64_t step, float *values, int64_t n);

// Writes `n` rounded values of a step in the narrow type, and back.
void bel_rounding_pack(bel_rounding rounding, int64_t step, const float *values, void *out_packed,
                       int64_t n);
void bel_rounding_unpack(bel_rounding rounding, const void *packed, float *out_values, int64_t n);

// Replaces values by before + rounded(values - before), and writes the differences unless the
// output is NULL.
void bel_rounding_differ(bel_rounding rounding, int64_t step, const float *before, float *values,
                         void *out_differences, int64_t n);

// Writes differences that change no value, whatever its sign.
void bel_rounding_differ_nothing(bel_rounding rounding, void *out_differences, int64_t n);

// values = before + differences: what bel_rounding_differ has left in its values.
void bel_rounding_add(bel_rounding rounding, const float *before, const void *differences,
                      float *out_values, int64_t n);

#endif
