// The table for this processor.
#include "ops/kernels/cpu.h"

#include "base/isa.h"

const bel_cpu_kernels *bel_cpu_kernels_get(void)
{
    static const bel_cpu_kernels *const tables[] = {&bel_cpu_kernels_v2, &bel_cpu_kernels_v3,
                                                    &bel_cpu_kernels_v4};
    return tables[bel_isa_get()];
}
