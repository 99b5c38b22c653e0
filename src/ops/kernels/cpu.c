// The table of vector kernels for this processor. The tables stand in the order of bel_isa. All
// of them give the same bits, so the choice is one of speed alone, and hosts of a job may
// differ; BELFRY_ISA asks for a lower level, which is how one machine tests all it has.
#include "ops/kernels/cpu.h"

#include "base/isa.h"

const bel_cpu_kernels *bel_cpu_kernels_get(void)
{
    static const bel_cpu_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_cpu_kernels)};
    return tables[bel_isa_get()];
}
