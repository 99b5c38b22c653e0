// Walks over tensors with different layouts: broadcast, transposed, or summed into. A walk has a
// space of elements, in row-major order, and for each tensor its step along each dimension.
// Neighboring dimensions with equal steps are merged; the last one is a run, which a kernel
// processes in one loop.
#ifndef BELFRY_OPS_KERNELS_WALK_H
#define BELFRY_OPS_KERNELS_WALK_H

#include "ops/op.h"

enum { BEL_WALK_TENSORS = 3 };

typedef struct bel_walk {
    int32_t rank; // 0: one element
    int tensors;
    int64_t dims[BEL_MAX_RANK];
    int64_t steps[BEL_WALK_TENSORS][BEL_MAX_RANK]; // elements
} bel_walk;

// Over `shape`; tensor k moves by steps[k][d] along its dimension d.
bel_walk bel_walk_make(const bel_shape *shape, int64_t steps[][BEL_MAX_RANK], int tensors);

// Over `shape`, to which every one of `tensors` is broadcast.
bel_walk bel_walk_broadcast(const bel_shape *shape, const bel_tensor *tensors, int count);

// Run: n elements from element `at` of the space on. Tensor k's first one is number places[k]; the
// others follow at distance steps[k], which is 0 or 1 in a broadcast.
typedef struct bel_run {
    int64_t at, n;
    int64_t places[BEL_WALK_TENSORS], steps[BEL_WALK_TENSORS];
} bel_run;
typedef void bel_run_fn(const void *context, const bel_run *run);

// Calls `run` for the runs of the elements [begin, end) in their order.
void bel_walk_runs(const bel_walk *walk, int64_t begin, int64_t end, bel_run_fn *run,
                   const void *context);

#endif
