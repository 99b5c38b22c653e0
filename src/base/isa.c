// Choice of the instruction-set level, once per process.
#include "base/isa.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t choose_once = PTHREAD_ONCE_INIT;
static bel_isa chosen;

static bool has_v4(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
}

static bool has_v3(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static void choose(void)
{
    chosen = has_v3() ? BEL_ISA_V3 : BEL_ISA_V2;
    if (chosen == BEL_ISA_V3 && has_v4()) chosen = BEL_ISA_V4;
    const char *wanted = getenv("BEL_ISA");
    for (int isa = BEL_ISA_V2; wanted != NULL && isa <= (int)chosen; isa++)
        if (strcmp(bel_isa_name((bel_isa)isa), wanted) == 0) chosen = (bel_isa)isa;
}

bel_status *bel_isa_check(void)
{
    const char *wanted = getenv("BEL_ISA");
    if (wanted == NULL || wanted[0] == '\0') return NULL;
    for (int isa = BEL_ISA_V2; isa <= BEL_ISA_V4; isa++)
        if (strcmp(bel_isa_name((bel_isa)isa), wanted) == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable BEL_ISA: expected v2, v3 or v4, got \"%s\"", wanted);
}

bel_isa bel_isa_get(void)
{
    pthread_once(&choose_once, choose);
    return chosen;
}

const char *bel_isa_name(bel_isa isa)
{
    static const char *const names[] = {"v2", "v3", "v4"};
    return names[isa];
}
