// Grain: the run of elements, counted from a variable's start, over which norms and hashes are
// computed. Chunks and checkpoint pieces are split only at grain borders.
#ifndef BELFRY_TENSOR_GRAIN_H
#define BELFRY_TENSOR_GRAIN_H

enum { BEL_GRAIN = 4096 };

#endif
