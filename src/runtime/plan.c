// Greedy placement by size: each buffer gets the lowest offset at which it fits between the placed
// buffers that are alive together with it. Sizes are rounded up to 64 bytes, so every offset is a
// multiple of a cache line. Overlaps in time follow from first and last use or, for programs
// without an order of calls, from a relation (runtime/flow.c). The offset of a value must never
// affect its bits.
//
// With first and last use, taken addresses are kept in a tree over time (a segment tree). A node
// has two lists of spans of addresses. `ever` has those taken at any time of the node; `throughout`
// has those taken during all of it by buffers that do not last through all of its parent. The spans
// that a buffer must avoid are in the few nodes that make up its life, and in those above them.
// Buffers are packed closely, so their spans merge. A plan takes time for its buffers, not for the
// pairs that overlap in time.
#include "runtime/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

// By size, then by first use: large buffers first, so that the small ones fill the gaps.
static int larger_first(const void *a, const void *b)
{
    const bel_plan_buffer *p = *(bel_plan_buffer *const *)a, *q = *(bel_plan_buffer *const *)b;
    if (p->size_bytes != q->size_bytes) return p->size_bytes < q->size_bytes ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

static size_t rounded(size_t size)
{
    return (size + BEL_PLAN_ALIGNMENT - 1) / BEL_PLAN_ALIGNMENT * BEL_PLAN_ALIGNMENT;
}

// --- Spans ---------------------------------------------------------------------------------------

typedef struct span {
    size_t offset, end;
} span;

// Ascending, with a gap between each and the next.
typedef struct spans {
    span *items;
    size_t count, capacity;
} spans;

// Index of the first span that ends after `offset`, or at it if `touching`.
static size_t first_behind(const spans *list, size_t offset, bool touching)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t end = list->items[middle].end;
        if (end > offset || (touching && end == offset)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool has_span(const spans *list, span wanted)
{
    size_t at = first_behind(list, wanted.offset, false);
    return at < list->count && list->items[at].offset <= wanted.offset &&
           list->items[at].end >= wanted.end;
}

// Adds a span. All spans that it overlaps or touches, [at, end), merge with it.
static void add_span(spans *list, span added)
{
    size_t at = first_behind(list, added.offset, true), end = at;
    for (; end < list->count && list->items[end].offset <= added.end; end++) {
        if (list->items[end].offset < added.offset) added.offset = list->items[end].offset;
        if (list->items[end].end > added.end) added.end = list->items[end].end;
    }
    size_t count = list->count + 1 - (end - at);
    list->items = bel_xgrow(list->items, &list->capacity, count, sizeof *list->items);
    memmove(list->items + at + 1, list->items + end, (list->count - end) * sizeof *list->items);
    list->items[at] = added;
    list->count = count;
}

// --- Taken addresses, by time --------------------------------------------------------------------

// Time is counted in distinct first uses: two buffers that overlap in time do so at the first use
// of one.
typedef struct moment {
    spans ever, throughout; // see the head of the file
} moment;

enum { MOST_LISTS = 128 }; // four of a level of the tree, which has less than 32

typedef struct planner {
    int *times; // ascending, distinct
    size_t time_count;
    moment *nodes; // children of node n: 2n, 2n + 1; the root is 1
    const spans *met[MOST_LISTS];
    int met_count;
} planner;

static int ascending(const void *a, const void *b)
{
    int p = *(const int *)a, q = *(const int *)b;
    return (p > q) - (p < q);
}

// Number of times before `time`, or at most `time` if `included`.
static size_t times_before(const planner *p, int time, bool included)
{
    size_t low = 0, high = p->time_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->times[middle] < time || (included && p->times[middle] == time)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// Part of the tree: times [begin, end).
typedef struct range {
    size_t node, begin, end;
} range;
typedef struct life {
    size_t first, behind;
} life;

static life life_of(const planner *p, const bel_plan_buffer *buffer)
{
    return (life){times_before(p, buffer->first, false), times_before(p, buffer->last, true)};
}

static bool is_apart(range r, life l)
{
    return l.behind <= r.begin || r.end <= l.first;
}

static bool is_within(range r, life l)
{
    return l.first <= r.begin && r.end <= l.behind;
}

static range left_of(range r)
{
    return (range){2 * r.node, r.begin, r.begin + (r.end - r.begin) / 2};
}

static range right_of(range r)
{
    return (range){2 * r.node + 1, r.begin + (r.end - r.begin) / 2, r.end};
}

static void planner_take(planner *p, range r, life l, span taken)
{
    if (is_apart(r, l)) return;
    moment *node = &p->nodes[r.node];
    if (has_span(&node->throughout, taken)) return; // and so all nodes below have it
    add_span(&node->ever, taken);
    if (is_within(r, l)) {
        add_span(&node->throughout, taken);
        return;
    }
    planner_take(p, left_of(r), l, taken);
    planner_take(p, right_of(r), l, taken);
}

static void planner_meet(planner *p, const spans *list)
{
    if (list->count > 0) p->met[p->met_count++] = list;
}

static void find_met(planner *p, range r, life l)
{
    if (is_apart(r, l)) return;
    if (is_within(r, l)) {
        planner_meet(p, &p->nodes[r.node].ever);
        return;
    }
    planner_meet(p, &p->nodes[r.node].throughout);
    find_met(p, left_of(r), l);
    find_met(p, right_of(r), l);
}

// Lowest offset at which `size` bytes overlap no span in the met lists. Goes through the lists in
// turn, past each span in the way, until no list has one.
static size_t lowest_offset(planner *p, size_t size)
{
    size_t offset = 0;
    int clear = 0; // consecutive lists with room at `offset`
    for (int i = 0; clear < p->met_count; i = (i + 1) % p->met_count) {
        const spans *list = p->met[i];
        size_t at = first_behind(list, offset, false);
        if (at == list->count || list->items[at].offset >= offset + size) {
            clear++;
            continue;
        }
        offset = list->items[at].end;
        clear = 0;
    }
    return offset;
}

static range root_of(const planner *p)
{
    return (range){1, 0, p->time_count};
}

static planner make_planner(const bel_plan_buffer *buffers, size_t count)
{
    planner p = {.times = bel_xcalloc(count, sizeof *p.times)};
    for (size_t i = 0; i < count; i++)
        p.times[i] = buffers[i].first;
    qsort(p.times, count, sizeof *p.times, ascending);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || p.times[i] != p.times[i - 1]) p.times[p.time_count++] = p.times[i];
    p.nodes = bel_xcalloc(4 * p.time_count, sizeof *p.nodes);
    return p;
}

static void free_planner(planner *p)
{
    for (size_t n = 0; n < 4 * p->time_count; n++) {
        bel_free(p->nodes[n].ever.items);
        bel_free(p->nodes[n].throughout.items);
    }
    bel_free(p->nodes);
    bel_free(p->times);
}

// --- Placement -----------------------------------------------------------------------------------

static void place_by_time(const bel_plan_buffer *buffers, bel_plan_buffer *const *order,
                          size_t count)
{
    planner p = make_planner(buffers, count);
    for (size_t i = 0; i < count; i++) {
        size_t size = rounded(order[i]->size_bytes);
        if (size == 0) continue; // any offset is right: 0
        life l = life_of(&p, order[i]);
        p.met_count = 0;
        find_met(&p, root_of(&p), l);
        order[i]->offset = lowest_offset(&p, size);
        planner_take(&p, root_of(&p), l, (span){order[i]->offset, order[i]->offset + size});
    }
    free_planner(&p);
}

typedef struct placed {
    span at;
    int buffer;
} placed;

// Placed buffers are in a list by ascending offset, which is searched for the first gap.
static void place_by_relation(const bel_plan_buffer *buffers, bel_plan_buffer *const *order,
                              size_t count, const bel_plan_relation *relation)
{
    placed *list = bel_xcalloc(count, sizeof *list);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t offset = 0, size = rounded(order[i]->size_bytes), behind = 0;
        int buffer = (int)(order[i] - buffers);
        if (size == 0) continue; // any offset is right: 0
        for (size_t k = 0; k < used && list[k].at.offset < offset + size; k++) {
            if (list[k].at.end <= offset) continue;
            if (relation->together(relation->context, buffer, list[k].buffer)) {
                offset = list[k].at.end;
            }
        }
        order[i]->offset = offset;
        while (behind < used && list[behind].at.offset <= offset)
            behind++;
        memmove(list + behind + 1, list + behind, (used - behind) * sizeof *list);
        list[behind] = (placed){{offset, offset + size}, buffer};
        used++;
    }
    bel_free(list);
}

// Places the buffers one after another, without sharing.
static void line_up(bel_plan_buffer *const *order, size_t count)
{
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = rounded(order[i]->size_bytes);
        order[i]->offset = size > 0 ? end : 0;
        end += size;
    }
}

size_t bel_plan_buffers(bel_plan_buffer *buffers, int count, const bel_plan_relation *relation,
                        bool no_reuse)
{
    if (count <= 0) return 0;
    size_t n = (size_t)count, total = 0;
    bel_plan_buffer **order = bel_xcalloc(n, sizeof *order);
    for (size_t i = 0; i < n; i++) {
        order[i] = &buffers[i];
        buffers[i].offset = 0;
    }
    qsort(order, n, sizeof *order, larger_first);
    if (no_reuse) {
        line_up(order, n);
    } else if (relation != NULL) {
        place_by_relation(buffers, order, n, relation);
    } else {
        place_by_time(buffers, order, n);
    }
    for (size_t i = 0; i < n; i++) {
        size_t end = buffers[i].offset + rounded(buffers[i].size_bytes);
        if (end > total) total = end;
    }
    bel_free(order);
    return total;
}
