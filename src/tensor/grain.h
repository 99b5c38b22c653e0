// The grain: the run of elements, counted from a variable's start, in which norms and hashes are
// taken. Chunks and checkpoint pieces are cut only at grain borders.
#ifndef BELFRY_TENSOR_GRAIN_H
#define BELFRY_TENSOR_GRAIN_H

enum { BEL_GRAIN = 4096 };

#endif
