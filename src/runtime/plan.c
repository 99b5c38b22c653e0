// Greedy placement by size. The lowest free offset of a buffer is 0 or the end of a placed one,
// so only these are tried; each try looks at all that is placed. Sizes count rounded up to 64
// bytes, which keeps every offset a multiple of a cache line. Which buffers meet comes either
// from first and last use or, for programs without an order of calls, from a matrix
// (runtime/flow.c). Where a value lies must never enter its bits.
#include "runtime/plan.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { ALIGNMENT = 64 };

// By size, then by first use; large buffers first leave the small ones to fill the gaps.
static int larger_first(const void *a, const void *b)
{
    const bel_plan_buffer *p = *(bel_plan_buffer *const *)a, *q = *(bel_plan_buffer *const *)b;
    if (p->size_bytes != q->size_bytes) return p->size_bytes < q->size_bytes ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

typedef struct planner {
    const bel_plan_buffer *buffers;
    size_t count;
    const bool *together; // NULL: by first and last
    bool no_reuse;
} planner;

// Whether the two are ever needed at the same time. The matrix is [count, count], row by row.
static bool conflict(const planner *p, const bel_plan_buffer *a, const bel_plan_buffer *b)
{
    if (p->no_reuse) return true;
    if (p->together == NULL) return a->first <= b->last && b->first <= a->last;
    return p->together[(size_t)(a - p->buffers) * p->count + (size_t)(b - p->buffers)];
}

static size_t rounded(size_t size)
{
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

// Whether `a` at `offset` would take bytes of `b`.
static bool overlap(const bel_plan_buffer *a, size_t offset, const bel_plan_buffer *b)
{
    return offset < b->offset + rounded(b->size_bytes) &&
           b->offset < offset + rounded(a->size_bytes);
}

// The lowest offset at which `buffer` meets none of the placed ones: tried at 0 and behind each.
static size_t lowest_offset(const planner *p, const bel_plan_buffer *buffer,
                            bel_plan_buffer *const *placed, int placed_count)
{
    size_t best = (size_t)-1;
    for (int candidate = -1; candidate < placed_count; candidate++) {
        size_t offset = 0;
        if (candidate >= 0) {
            offset = placed[candidate]->offset + rounded(placed[candidate]->size_bytes);
        }
        bool free = offset < best;
        for (int i = 0; free && i < placed_count; i++) {
            free = !(conflict(p, buffer, placed[i]) && overlap(buffer, offset, placed[i]));
        }
        if (free) best = offset;
    }
    return best;
}

size_t bel_plan_buffers(bel_plan_buffer *buffers, int count, const bool *together, bool no_reuse)
{
    const planner p = {buffers, (size_t)count, together, no_reuse};
    bel_plan_buffer **order = bel_xcalloc((size_t)count, sizeof *order);
    for (int i = 0; i < count; i++)
        order[i] = &buffers[i];
    if (count > 0) qsort(order, (size_t)count, sizeof *order, larger_first);
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        order[i]->offset = lowest_offset(&p, order[i], order, i);
        size_t end = order[i]->offset + rounded(order[i]->size_bytes);
        if (end > total) total = end;
    }
    bel_free(order);
    return total;
}

bool bel_plan_is_valid(const bel_plan_buffer *buffers, int count, const bool *together)
{
    const planner p = {buffers, (size_t)count, together, false};
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (conflict(&p, &buffers[i], &buffers[j]) &&
                overlap(&buffers[i], buffers[i].offset, &buffers[j]))
                return false;
    return true;
}
