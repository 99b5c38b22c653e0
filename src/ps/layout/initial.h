// Initial values of a variable.
#ifndef BELFRY_PS_LAYOUT_INITIAL_H
#define BELFRY_PS_LAYOUT_INITIAL_H

#include "ps/layout/layout.h"

// Fills values[elements], a function of only (seed, name, initializer, shape). RESOURCE_EXHAUSTED:
// no working memory for BEL_INIT_ORTHOGONAL.
bel_status *bel_initial_values(const bel_layout_variable *variable, uint64_t seed,
                               float *values) BEL_MUST_USE;

#endif
