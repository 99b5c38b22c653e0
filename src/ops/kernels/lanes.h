// Row of 16 floats, by instruction-set level: the unit of sums of products. Each level has a header
// (lanes_avx512.h, …), chosen by the compiler's target; product_isa.c is written over it.
// Each header defines (without LANES_MASKED and LANES_TILES the defaults below apply)
//   lanes    16 floats; number: one float for all of them
//   lanes_load(p), lanes_store(p, x)                 at any address
//   lanes_load_some(p, n), lanes_store_some(p, x, n) only the first n of 1 … 16 are read or
//            written; the other lanes are 0
//   number_load(p)
//   lanes_add_product(x, b, c)    c + x · b, rounded once: the same bits on every level
//   lanes_multiply(x, b)          x · b
//   lanes_add(x, y), lanes_subtract(x, y)
//   lanes_relu(x)                 max(x, 0), 0 for NaN
//   lanes_turn(from, step, out)   transposes LANES_TURNED numbers of each of 16 rows:
//            lane l of out[i] = from[l * step + i]
//   LANES_TILES(tile)  tile(rows, units) for all tiles of rows · 16 · units sums that fit the
//            registers
//   LANES_ROWS         their maximal rows, by units; LANES_WIDTH: units with many rows
//   LANES_CACHED       floats of b that may stay in the second-level cache of such processors
#ifndef BELFRY_OPS_KERNELS_LANES_H
#define BELFRY_OPS_KERNELS_LANES_H

#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

// Results stay in registers only if the functions are inlined.
#define LANES_INLINE static inline __attribute__((always_inline))

#if defined(BEL_PORTABLE)
#include "ops/kernels/lanes_plain.h"
#elif defined(__AVX512F__)
#include "ops/kernels/lanes_avx512.h"
#elif defined(__FMA__)
#include "ops/kernels/lanes_avx2.h"
#elif defined(__SSE4_1__)
#include "ops/kernels/lanes_sse4.h"
#elif defined(__aarch64__)
#include "ops/kernels/lanes_neon.h"
#else
#include "ops/kernels/lanes_plain.h"
#endif

#ifndef LANES_TILES // 6 rows of 16 lanes, and tiles with the same number of sums
#define LANES_ROWS                                                                                 \
    {                                                                                              \
        [1] = 6, [2] = 3, [4] = 1                                                                  \
    }
#define LANES_TILES(tile)                                                                          \
    tile(1, 1) tile(2, 1) tile(3, 1) tile(4, 1) tile(5, 1) tile(6, 1) tile(1, 2) tile(2, 2)        \
        tile(3, 2) tile(1, 4)
enum { LANES_WIDTH = 1, LANES_CACHED = 1 << 16 };
#endif

#ifndef LANES_MASKED // no masked load or store instruction: through memory
LANES_INLINE lanes lanes_load_some(const float *p, int64_t n)
{
    float some[LANES] = {0};
    memcpy(some, p, (size_t)n * sizeof *p);
    return lanes_load(some);
}

LANES_INLINE void lanes_store_some(float *p, lanes x, int64_t n)
{
    float some[LANES];
    lanes_store(some, x);
    memcpy(p, some, (size_t)n * sizeof *p);
}
#endif

#endif
