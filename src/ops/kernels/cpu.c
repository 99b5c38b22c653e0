// Choice of the instruction-set level, once per process.
#include "ops/kernels/cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t choose_once = PTHREAD_ONCE_INIT;
static const bel_cpu_kernels *chosen;

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
    const bel_cpu_kernels *const levels[] = {&bel_cpu_kernels_v2, &bel_cpu_kernels_v3,
                                             &bel_cpu_kernels_v4};
    int best = has_v3() ? 1 : 0;
    if (best == 1 && has_v4()) best = 2;
    chosen = levels[best];
    const char *wanted = getenv("BEL_ISA");
    for (int i = 0; wanted != NULL && i <= best; i++)
        if (strcmp(levels[i]->level, wanted) == 0) chosen = levels[i];
}

const bel_cpu_kernels *bel_cpu_kernels_get(void)
{
    pthread_once(&choose_once, choose);
    return chosen;
}
