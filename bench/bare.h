// Arithmetic in plain C, for the peers of benchmarks. It is compiled as Belfry's kernels are: once
// for each instruction-set level, of which the processor's is chosen at start (base/isa.h).
// Products are fused with additions if the level can.
#ifndef BELFRY_BENCH_BARE_H
#define BELFRY_BENCH_BARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/isa_levels.h"

enum { BENCH_CHAIN_WIDTH = 8 };

typedef struct bench_bare {
    // y [out] = x [in] · w [in × out], negative elements set to 0 if `relu`. `in`: a multiple of 4.
    void (*dense)(const float *x, int in, int out, const float *w, bool relu, float *y);
    // y [8] = x [8] · w [8 × 8] · w [8 × 8] …, by one chain of additions for each element. `w`:
    // `layers` matrices, one after another.
    void (*chain)(const float *x, int layers, const float *w, float *y);
    // to[i] = values[i] - rate · (a[i] + b[i]) / 2. `to` may be `values`.
    void (*sgd)(const float *a, const float *b, int64_t count, float rate, const float *values,
                float *to);
    // speeds[i] = momentum · speeds[i] + (a[i] + b[i]) / 2, to[i] = values[i] - rate · speeds[i].
    // `to` may be `values`.
    void (*momentum)(const float *a, const float *b, int64_t count, float rate, float momentum,
                     const float *values, float *to, float *speeds);
} bench_bare;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bench_bare) // bench_bare_v2 …

// Returns the functions of the processor's level, or of the lower one that BELFRY_ISA sets.
const bench_bare *bench_bare_get(void);

#endif
