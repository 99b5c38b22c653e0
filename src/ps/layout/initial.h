// Initial values of a variable.
#ifndef BELFRY_PS_LAYOUT_INITIAL_H
#define BELFRY_PS_LAYOUT_INITIAL_H

#include "ps/layout/layout.h"

// Fills values[elements], a function of (seed, name, initializer, shape) alone. RESOURCE_EXHAUSTED:
// no memory for what BEL_INIT_ORTHOGONAL computes with.
bel_status *bel_initial_values(const bel_layout_variable *variable, uint64_t seed,
                               float *values) BEL_MUST_USE;

#endif
