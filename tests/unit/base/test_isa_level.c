// Features that a processor lacks for an ISA level, from its CPUID registers: real processors, and
// a virtual machine that hides some features.
#include "base/isa.h"

#include <stdlib.h>

#include "support/bel_test.h"

#if BEL_ISA_X86
// Registers of Intel Core 2 (Penryn), Nehalem, Haswell and Skylake-SP.
static const bel_isa_registers penryn = {0x0408e3fd & ~(1u << 27), 0, 0x1, 0};
static const bel_isa_registers nehalem = {0x0098e3fd, 0, 0x1, 0};
static const bel_isa_registers haswell = {0x7ffafbff, 0x000027ab, 0x21, 0x7};
static const bel_isa_registers skylake = {0x7ffefbff, 0xd39ffffb, 0x121, 0xe7};

static void check(const bel_isa_registers *registers, bel_isa isa, const char *expected)
{
    char text[BEL_ISA_TEXT];
    assert_string_equal(bel_isa_lacks_of(registers, isa, text), expected);
}

static void test_processors(void **state)
{
    (void)state;
    check(&penryn, BEL_ISA_v2, "sse4.2, popcnt");
    check(&nehalem, BEL_ISA_v2, "");
    check(&nehalem, BEL_ISA_v3,
          "fma, movbe, avx, f16c, bmi1, avx2, bmi2, lzcnt, a system that saves ymm");
    check(&haswell, BEL_ISA_v3, "");
    check(&haswell, BEL_ISA_v4,
          "avx512f, avx512dq, avx512cd, avx512bw, avx512vl, a system that saves zmm");
    check(&skylake, BEL_ISA_v4, "");
}

static void test_hidden(void **state)
{
    (void)state;
    bel_isa_registers r = skylake;
    r.states = 0x7; // an old kernel
    check(&r, BEL_ISA_v3, "");
    check(&r, BEL_ISA_v4, "a system that saves zmm");
    r.extended_c = 0x1;
    check(&r, BEL_ISA_v3, "lzcnt");
    check(&(bel_isa_registers){0}, BEL_ISA_v2, "sse3, ssse3, cx16, sse4.1, sse4.2, popcnt, lahf");
}

#endif

// BELFRY_ISA accepts the names of this architecture's levels.
static void test_wanted(void **state)
{
    (void)state;
    for (int isa = 0; isa < BEL_ISA_COUNT; isa++) {
        setenv("BELFRY_ISA", bel_isa_name((bel_isa)isa), 1);
        BEL_ASSERT_OK(bel_isa_check_wanted());
    }
    setenv("BELFRY_ISA", "v1", 1);
    const char *last = bel_isa_name((bel_isa)(BEL_ISA_COUNT - 1));
    BEL_ASSERT_FAILS(bel_isa_check_wanted(), BEL_INVALID_ARGUMENT, last);
    unsetenv("BELFRY_ISA");
}

// The chosen level lacks nothing on the machine that runs this test.
static void test_own(void **state)
{
    (void)state;
    char text[BEL_ISA_TEXT];
    BEL_ASSERT_OK(bel_isa_check());
    assert_string_equal(bel_isa_lacks(bel_isa_get(), text), "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#if BEL_ISA_X86
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_hidden),
#endif
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_own)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
