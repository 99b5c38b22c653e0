// Static memory plan: the offset of each buffer in a tower's arena.
#ifndef BELFRY_RUNTIME_PLAN_H
#define BELFRY_RUNTIME_PLAN_H

#include <stdbool.h>
#include <stddef.h>

enum { BEL_PLAN_ALIGNMENT = 64 }; // for every buffer

// Buffer that is alive from instruction `first`, which writes it, to `last`, which reads it last.
typedef struct bel_plan_buffer {
    size_t size_bytes;
    int first, last;
    size_t offset; // out: a multiple of BEL_PLAN_ALIGNMENT
} bel_plan_buffer;

// Symmetric relation for instructions without a single order: whether two buffers, by index, may be
// alive at the same time.
typedef struct bel_plan_relation {
    bool (*together)(const void *context, int a, int b);
    const void *context;
} bel_plan_relation;

// Places the buffers so that no two that are alive together overlap; returns the arena's size.
// Largest first, each at the lowest free offset: within a few percent of the lower bound in
// practice. With no_reuse, buffers never share memory. With a `relation` (else NULL), `first` and
// `last` only break ties. Then all pairs may be looked up, so it takes longer.
size_t bel_plan_buffers(bel_plan_buffer *buffers, int count, const bel_plan_relation *relation,
                        bool no_reuse);

// True when no two buffers that are alive together overlap.
bool bel_plan_is_valid(const bel_plan_buffer *buffers, int count,
                       const bel_plan_relation *relation);

#endif
