// Table of vector kernels for this processor. The tables are in the order of bel_isa. All of them
// give the same bits, so the choice affects only speed, and hosts of a job may differ. BELFRY_ISA
// selects a lower level, so one machine can test all that it has.
#include "ops/kernels/cpu.h"

#include "base/isa.h"

const bel_cpu_kernels *bel_cpu_kernels_get(void)
{
    static const bel_cpu_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_cpu_kernels)};
    return tables[bel_isa_get()];
}
