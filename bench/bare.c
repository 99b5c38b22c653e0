// See bare.h.
#include "bare.h"

#include "base/isa.h"

const bench_bare *bench_bare_get(void)
{
    static const bench_bare *const levels[] = {BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bench_bare)};
    return levels[bel_isa_get()];
}
