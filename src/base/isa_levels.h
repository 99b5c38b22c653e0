// Instruction-set levels of compiled kernels, from the lowest on: a list for each architecture.
// cmake/levels.cmake has the same names with compiler flags, and compiles the files *_isa.c once
// for each, with BEL_LEVEL the name in a row. A name that only one of the two has does not link.
// The text is the name of the level for people. A build may leave out all levels but one
// (BEL_WITHOUT_v2 …).
//
// A portable build (BEL_PORTABLE) has one level, of plain C.
#ifndef BELFRY_BASE_ISA_LEVELS_H
#define BELFRY_BASE_ISA_LEVELS_H

#if defined(BEL_PORTABLE)
#define BEL_ISA_LEVELS(LEVEL, with) LEVEL(with, plain, "portable C")
#define BEL_ISA_X86 0
#elif defined(__x86_64__)
#if defined(BEL_WITHOUT_v2)
#define BEL_ISA_LEVEL_v2(LEVEL, with)
#else
#define BEL_ISA_LEVEL_v2(LEVEL, with) LEVEL(with, v2, "x86-64-v2")
#endif
#if defined(BEL_WITHOUT_v3)
#define BEL_ISA_LEVEL_v3(LEVEL, with)
#else
#define BEL_ISA_LEVEL_v3(LEVEL, with) LEVEL(with, v3, "x86-64-v3")
#endif
#if defined(BEL_WITHOUT_v4)
#define BEL_ISA_LEVEL_v4(LEVEL, with)
#else
#define BEL_ISA_LEVEL_v4(LEVEL, with) LEVEL(with, v4, "x86-64-v4")
#endif
#define BEL_ISA_LEVELS(LEVEL, with)                                                                \
    BEL_ISA_LEVEL_v2(LEVEL, with) BEL_ISA_LEVEL_v3(LEVEL, with) BEL_ISA_LEVEL_v4(LEVEL, with)
#define BEL_ISA_X86 1
#elif defined(__aarch64__)
#define BEL_ISA_LEVELS(LEVEL, with) LEVEL(with, neon, "aarch64 with NEON")
#define BEL_ISA_X86 0
#else
#error "cmake/levels.cmake knows no levels of this processor, and has to define BEL_PORTABLE"
#endif

// Macros for LEVEL: with a type `kernels`, declarations of its tables kernels_v2 … and their
// addresses in order.
#define BEL_ISA_DECLARE(kernels, name, title) extern const kernels kernels##_##name;
#define BEL_ISA_ADDRESS(kernels, name, title) &kernels##_##name,

#endif
