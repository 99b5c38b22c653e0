// Source places of Slice, Pad and Expand: along each dimension of the picked tensor, the place in
// the source of its i-th element. Used by the CPU and, as text, by GPU kernels
// (cuda/kernels/kernel.h).
#ifndef BELFRY_OPS_KERNELS_PICK_H
#define BELFRY_OPS_KERNELS_PICK_H

#include <stdint.h>

// Values outside of the source: the modes of Pad (belfry/ops.h), by their numbers.
#define BEL_PICK_NOTHING 0
#define BEL_PICK_EDGE 1
#define BEL_PICK_REFLECT 2

// Element i is from place first + i · step, of `size` places that are `stride` elements apart.
typedef struct bel_pick_dim {
    int64_t count, first, step;
    int64_t size, stride;
} bel_pick_dim;

typedef struct bel_pick_rule {
    int32_t rank, mode;
    bel_pick_dim dims[8];
} bel_pick_rule;

// Returns the place; -1: a fill element.
static inline int64_t bel_pick_place(const bel_pick_dim *d, int32_t mode, int64_t i)
{
    int64_t at = d->first + i * d->step;
    if (at >= 0 && at < d->size) return at;
    if (mode == BEL_PICK_EDGE) return at < 0 ? 0 : d->size - 1;
    if (mode == BEL_PICK_REFLECT) return at < 0 ? -at : 2 * (d->size - 1) - at;
    return -1;
}

#endif
