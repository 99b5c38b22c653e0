// The instruction-set level that kernels are chosen for.
#ifndef BELFRY_BASE_ISA_H
#define BELFRY_BASE_ISA_H

#include "belfry/status.h"

typedef enum bel_isa { BEL_ISA_V2, BEL_ISA_V3, BEL_ISA_V4 } bel_isa; // x86-64-v2, v3 (AVX2), v4

// The best level of this processor, or a lower one that BEL_ISA=v2|v3|v4 asks for. Decided once.
bel_isa bel_isa_get(void);
// INVALID_ARGUMENT: BEL_ISA is set, and none of these.
bel_status *bel_isa_check(void) BEL_MUST_USE;
const char *bel_isa_name(bel_isa isa); // "v3"

#endif
