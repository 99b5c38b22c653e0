// Greedy placement by size: the lowest offset at which a buffer fits between those that it meets,
// which are taken from below. Sizes count rounded up to 64 bytes, which keeps every offset a
// multiple of a cache line. Which buffers meet comes either from first and last use or, for
// programs without an order of calls, from a matrix (runtime/flow.c). Where a value lies must
// never enter its bits.
//
// By first and last use, those that a buffer meets begin while it is alive, which is a range in
// the order of beginnings, or before it and end no earlier than it begins: these are found in a
// tree over that order whose nodes know the latest end below them. So a plan takes time for what
// meets, not for all pairs.
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

typedef struct span {
    size_t offset, end;
} span;

typedef struct planner {
    const bel_plan_buffer *buffers;
    size_t count;
    const bool *together; // NULL: by first and last
    bool no_reuse;
    const bel_plan_buffer **by_first; // in the order of `first`
    int *latest;                      // node n: the greatest `last` below it; children 2n, 2n + 1
    bool *is_placed;
    span *met; // where those lie that are placed and that the buffer in question meets
    size_t met_count;
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

// --- Who meets whom ------------------------------------------------------------------------------

static int earlier_first(const void *a, const void *b)
{
    const bel_plan_buffer *p = *(const bel_plan_buffer *const *)a;
    const bel_plan_buffer *q = *(const bel_plan_buffer *const *)b;
    return (p->first > q->first) - (p->first < q->first);
}

// The tree over positions [begin, end) of the order.
static int build_latest(planner *p, size_t node, size_t begin, size_t end)
{
    if (end - begin == 1) return p->latest[node] = p->by_first[begin]->last;
    size_t middle = begin + (end - begin) / 2;
    int left = build_latest(p, 2 * node, begin, middle);
    int right = build_latest(p, 2 * node + 1, middle, end);
    return p->latest[node] = left > right ? left : right;
}

static void meet(planner *p, const bel_plan_buffer *buffer, const bel_plan_buffer *other)
{
    if (!p->is_placed[other - p->buffers] || !conflict(p, buffer, other)) return;
    p->met[p->met_count++] = (span){other->offset, other->offset + rounded(other->size_bytes)};
}

// Those before position `limit` that end no earlier than `buffer` begins.
static void meet_earlier(planner *p, const bel_plan_buffer *buffer, size_t node, size_t begin,
                         size_t end, size_t limit)
{
    if (begin >= limit || p->latest[node] < buffer->first) return;
    if (end - begin == 1) {
        meet(p, buffer, p->by_first[begin]);
        return;
    }
    size_t middle = begin + (end - begin) / 2;
    meet_earlier(p, buffer, 2 * node, begin, middle, limit);
    meet_earlier(p, buffer, 2 * node + 1, middle, end, limit);
}

// The first position of the order whose buffer begins at `first` or later.
static size_t position_of(const planner *p, int first)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->by_first[middle]->first < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void find_met(planner *p, const bel_plan_buffer *buffer)
{
    p->met_count = 0;
    if (p->together != NULL) {
        for (size_t i = 0; i < p->count; i++)
            meet(p, buffer, &p->buffers[i]);
        return;
    }
    size_t at = position_of(p, buffer->first);
    meet_earlier(p, buffer, 1, 0, p->count, at);
    for (; at < p->count && p->by_first[at]->first <= buffer->last; at++)
        meet(p, buffer, p->by_first[at]);
}

// --- Placement -----------------------------------------------------------------------------------

static int lower_first(const void *a, const void *b)
{
    const span *p = a, *q = b;
    return (p->offset > q->offset) - (p->offset < q->offset);
}

// The lowest offset at which `buffer` overlaps none of those that it meets.
static size_t lowest_offset(planner *p, const bel_plan_buffer *buffer)
{
    find_met(p, buffer);
    if (p->met_count > 0) qsort(p->met, p->met_count, sizeof *p->met, lower_first);
    size_t offset = 0, size = rounded(buffer->size_bytes);
    for (size_t i = 0; i < p->met_count && p->met[i].offset < offset + size; i++)
        if (p->met[i].end > offset) offset = p->met[i].end;
    return offset;
}

static void place_all(planner *p, bel_plan_buffer *const *order)
{
    for (size_t i = 0; i < p->count; i++)
        p->by_first[i] = &p->buffers[i];
    qsort(p->by_first, p->count, sizeof *p->by_first, earlier_first);
    (void)build_latest(p, 1, 0, p->count);
    for (size_t i = 0; i < p->count; i++) {
        order[i]->offset = lowest_offset(p, order[i]);
        p->is_placed[order[i] - p->buffers] = true;
    }
}

// Nothing is shared: one behind another.
static void line_up(bel_plan_buffer *const *order, size_t count)
{
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = rounded(order[i]->size_bytes);
        order[i]->offset = size > 0 ? end : 0;
        end += size;
    }
}

size_t bel_plan_buffers(bel_plan_buffer *buffers, int count, const bool *together, bool no_reuse)
{
    if (count <= 0) return 0;
    size_t n = (size_t)count, total = 0;
    planner p = {.buffers = buffers,
                 .count = n,
                 .together = together,
                 .no_reuse = no_reuse,
                 .by_first = bel_xcalloc(n, sizeof *p.by_first),
                 .latest = bel_xcalloc(4 * n, sizeof *p.latest),
                 .is_placed = bel_xcalloc(n, sizeof *p.is_placed),
                 .met = bel_xcalloc(n, sizeof *p.met)};
    bel_plan_buffer **order = bel_xcalloc(n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = &buffers[i];
    qsort(order, n, sizeof *order, larger_first);
    if (no_reuse) {
        line_up(order, n);
    } else {
        place_all(&p, order);
    }
    for (size_t i = 0; i < n; i++) {
        size_t end = buffers[i].offset + rounded(buffers[i].size_bytes);
        if (end > total) total = end;
    }
    bel_free(order);
    bel_free(p.met);
    bel_free(p.is_placed);
    bel_free(p.latest);
    bel_free(p.by_first);
    return total;
}

bool bel_plan_is_valid(const bel_plan_buffer *buffers, int count, const bool *together)
{
    const planner p = {.buffers = buffers, .count = (size_t)count, .together = together};
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (conflict(&p, &buffers[i], &buffers[j]) &&
                overlap(&buffers[i], buffers[i].offset, &buffers[j]))
                return false;
    return true;
}
