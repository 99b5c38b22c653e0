// Sums over ranks, as vector loops, compiled once for each level of base/isa_levels.h (add_isa.c).
#ifndef BELFRY_DDL_ADD_H
#define BELFRY_DDL_ADD_H

#include "base/isa_levels.h"
#include "belfry/tensor.h"

enum { BEL_DDL_ADD_BLOCK = 2048 }; // bytes of each rank added at a time

// Adds `count` arrays of `bytes` bytes along the tree over ranks. Each level adds neighbors, and
// an odd last array moves to the next level unchanged. The sum, divided by `divisor`, goes to `out`
// and, unless NULL, to `also`; each may be one of the arrays. Types: F32, F64, I32, I64. Integers
// wrap around and are not divided. `scratch` has BEL_DDL_ADD_BLOCK bytes for every two arrays. All
// levels of instructions give the same bits.
void bel_ddl_add(bel_dtype dtype, const void *const *arrays, int count, size_t bytes,
                 double divisor, void *out, void *also, void *scratch);

// Adds two arrays of n elements; one function per level.
typedef void bel_ddl_add_pair(const void *a, const void *b, int64_t n, double divisor, void *out,
                              void *also);

typedef struct bel_ddl_adders {
    bel_ddl_add_pair *f32, *f64, *i32, *i64;
} bel_ddl_adders;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_ddl_adders)

#endif
