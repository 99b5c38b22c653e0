// Selection of the instruction-set level, once per process. A compiler may use all of a level. A
// level therefore counts only if the processor has every part of it and the system saves its
// registers. The levels of x86-64 are those of its psABI. Every aarch64 processor has NEON, and the
// portable level needs nothing.
#include "base/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#if BEL_ISA_X86
#include <cpuid.h>

enum { ONE_C, SEVEN_B, EXTENDED_C, STATES };

// Levels as the psABI counts them, including those that this build leaves out.
#define BEL_ISA_PSABI(with, name, title) with##_##name,
enum { number_v2 = 2, number_v3, number_v4 };

// Parts that each level adds to the one below it.
static const struct {
    int number;
    const char *name;
    int where;
    uint32_t bits;
} parts[] = {
    {number_v2, "sse3", ONE_C, 1u << 0},
    {number_v2, "ssse3", ONE_C, 1u << 9},
    {number_v2, "cx16", ONE_C, 1u << 13},
    {number_v2, "sse4.1", ONE_C, 1u << 19},
    {number_v2, "sse4.2", ONE_C, 1u << 20},
    {number_v2, "popcnt", ONE_C, 1u << 23},
    {number_v2, "lahf", EXTENDED_C, 1u << 0},
    {number_v3, "fma", ONE_C, 1u << 12},
    {number_v3, "movbe", ONE_C, 1u << 22},
    {number_v3, "avx", ONE_C, 1u << 28},
    {number_v3, "f16c", ONE_C, 1u << 29},
    {number_v3, "bmi1", SEVEN_B, 1u << 3},
    {number_v3, "avx2", SEVEN_B, 1u << 5},
    {number_v3, "bmi2", SEVEN_B, 1u << 8},
    {number_v3, "lzcnt", EXTENDED_C, 1u << 5},
    {number_v3, "a system that saves ymm", STATES, 0x6},
    {number_v4, "avx512f", SEVEN_B, 1u << 16},
    {number_v4, "avx512dq", SEVEN_B, 1u << 17},
    {number_v4, "avx512cd", SEVEN_B, 1u << 28},
    {number_v4, "avx512bw", SEVEN_B, 1u << 30},
    {number_v4, "avx512vl", SEVEN_B, 1u << 31},
    {number_v4, "a system that saves zmm", STATES, 0xe6},
};

// Reads the processor's features by cpuid, and by xgetbv the registers that the system saves;
// xgetbv is valid only with osxsave.
static void read_registers(bel_isa_registers *out)
{
    const uint32_t osxsave = 1u << 27;
    uint32_t a, b, c, d;
    *out = (bel_isa_registers){0};
    if (__get_cpuid(1, &a, &b, &c, &d)) out->one_c = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) out->seven_b = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d)) out->extended_c = c;
    if ((out->one_c & osxsave) == 0) return;
    __asm__("xgetbv" : "=a"(out->states), "=d"(d) : "c"(0));
}

const char *bel_isa_lacks_of(const bel_isa_registers *registers, bel_isa isa,
                             char text[BEL_ISA_TEXT])
{
    static const int numbers[BEL_ISA_COUNT] = {BEL_ISA_LEVELS(BEL_ISA_PSABI, number)};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const uint32_t values[] = {registers->one_c, registers->seven_b, registers->extended_c,
                                   registers->states};
        bool there = (values[parts[i].where] & parts[i].bits) == parts[i].bits;
        if (parts[i].number > numbers[isa] || there || used >= BEL_ISA_TEXT) continue;
        used += (size_t)bel_snprintf(text + used, BEL_ISA_TEXT - used, "%s%s", used > 0 ? ", " : "",
                                     parts[i].name);
    }
    return text;
}

static bel_isa_registers own;

static void ask_processor(void)
{
    read_registers(&own);
}

static const char *own_lacks(bel_isa isa, char text[BEL_ISA_TEXT])
{
    return bel_isa_lacks_of(&own, isa, text);
}
#else
static void ask_processor(void)
{
}

static const char *own_lacks(bel_isa isa, char text[BEL_ISA_TEXT])
{
    (void)isa;
    text[0] = '\0';
    return text;
}
#endif

// --- Choice --------------------------------------------------------------------------------------

static pthread_once_t choose_once = PTHREAD_ONCE_INIT;
static bel_isa chosen;

#define BEL_ISA_TEXTS(with, name, title) {#name, title},
static const struct {
    const char *name, *title;
} levels[BEL_ISA_COUNT] = {BEL_ISA_LEVELS(BEL_ISA_TEXTS, )};

// Selects the best level of the processor, or a lower one by BELFRY_ISA; a higher one is ignored.
static void isa_choose(void)
{
    char text[BEL_ISA_TEXT];
    ask_processor();
    for (int isa = BEL_ISA_LEAST; isa < BEL_ISA_COUNT; isa++)
        if (own_lacks((bel_isa)isa, text)[0] == '\0') chosen = (bel_isa)isa;
    const char *wanted = getenv("BELFRY_ISA");
    for (int isa = BEL_ISA_LEAST; wanted != NULL && isa <= (int)chosen; isa++)
        if (strcmp(levels[isa].name, wanted) == 0) chosen = (bel_isa)isa;
}

bel_status *bel_isa_check_wanted(void)
{
    const char *wanted = getenv("BELFRY_ISA");
    if (getenv("BEL_ISA") != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "environment variable BEL_ISA is no longer read; use BELFRY_ISA");
    }
    if (wanted == NULL || wanted[0] == '\0') return NULL;
    char names[64] = "";
    for (size_t isa = 0, used = 0; isa < BEL_ISA_COUNT; isa++) {
        if (strcmp(levels[isa].name, wanted) == 0) return NULL;
        const char *between = isa == 0 ? "" : isa + 1 < BEL_ISA_COUNT ? ", " : " or ";
        used += (size_t)bel_snprintf(names + used, sizeof names - used, "%s%s", between,
                                     levels[isa].name);
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable BELFRY_ISA: expected %s, got \"%s\"",
                   names, wanted);
}

bel_isa bel_isa_get(void)
{
    pthread_once(&choose_once, isa_choose);
    return chosen;
}

const char *bel_isa_name(bel_isa isa)
{
    return levels[isa].name;
}

const char *bel_isa_title(bel_isa isa)
{
    return levels[isa].title;
}

const char *bel_isa_lacks(bel_isa isa, char text[BEL_ISA_TEXT])
{
    pthread_once(&choose_once, isa_choose);
    return own_lacks(isa, text);
}

bel_status *bel_isa_check(void)
{
    char text[BEL_ISA_TEXT];
    if (bel_isa_lacks(BEL_ISA_LEAST, text)[0] == '\0') return NULL;
    return BEL_ERR(
        BEL_FAILED_PRECONDITION,
        "this processor lacks %s, which Belfry's kernels need (%s); hint: does a virtual "
        "machine hide it?",
        text, bel_isa_title(BEL_ISA_LEAST));
}
