// Instruction-set level of the kernels.
#ifndef BELFRY_BASE_ISA_H
#define BELFRY_BASE_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/isa_levels.h"
#include "belfry/status.h"

#define BEL_ISA_NUMBER(with, name, title) with##_##name,
typedef enum bel_isa { // BEL_ISA_v2, BEL_ISA_v3 …
    BEL_ISA_LEVELS(BEL_ISA_NUMBER, BEL_ISA) BEL_ISA_COUNT
} bel_isa;

// Lowest level, which every processor must have, and the level for fast training, which has a fused
// multiply-add.
#define BEL_ISA_LEAST ((bel_isa)0)
#if BEL_ISA_X86
#define BEL_ISA_FAST BEL_ISA_v3
#else
#define BEL_ISA_FAST BEL_ISA_LEAST
#endif

// Returns the best level of this processor, or a lower one by BELFRY_ISA. Returns the lowest one
// even if the processor lacks a part of it, see bel_isa_check. Decided once.
bel_isa bel_isa_get(void);
// INVALID_ARGUMENT: BELFRY_ISA names no level of this architecture.
bel_status *bel_isa_check_wanted(void) BEL_MUST_USE;
const char *bel_isa_name(bel_isa isa);  // "v3"
const char *bel_isa_title(bel_isa isa); // "x86-64-v3"

// Lists the parts of a level, and of those below it, that the processor lacks: "avx2, fma", or "".
enum { BEL_ISA_TEXT = 160 };
const char *bel_isa_lacks(bel_isa isa, char text[BEL_ISA_TEXT]);

// FAILED_PRECONDITION: the processor lacks a part (named) of the lowest level, which every kernel
// needs.
bel_status *bel_isa_check(void) BEL_MUST_USE;

#if BEL_ISA_X86
// Features that a processor reports, and its missing parts: for tests.
typedef struct bel_isa_registers {
    uint32_t one_c;      // CPUID 1: ECX
    uint32_t seven_b;    // CPUID 7, 0: EBX
    uint32_t extended_c; // CPUID 0x80000001: ECX
    uint32_t states;     // XCR0: vectors that the system saves; 0 without OSXSAVE
} bel_isa_registers;
const char *bel_isa_lacks_of(const bel_isa_registers *registers, bel_isa isa,
                             char text[BEL_ISA_TEXT]);
#endif

#endif
