// Greedy placement by size: the lowest offset at which a buffer fits between those that it meets,
// which are alive together with it. Sizes count rounded up to 64 bytes, which keeps every offset a
// multiple of a cache line. Which buffers meet comes either from first and last use or, for
// programs without an order of calls, from a relation (runtime/flow.c). Where a value lies must
// never enter its bits.
//
// By first and last use, what is taken is kept in a tree over time. A node knows, as spans of
// addresses, what is taken at any time of it, and what all through it by buffers that do not last
// through all of its parent. So what a buffer meets are the spans of the few nodes that make up its
// life, and those above them; and as buffers lie close to each other, their spans become one, and
// a plan takes time for its buffers, not for the pairs that meet.
#include "runtime/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

// By size, then by first use; large buffers first leave the small ones to fill the gaps.
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

// Ascending, and with room between each and the next.
typedef struct spans {
    span *items;
    size_t count, capacity;
} spans;

// The first one that ends behind `offset`, or there where `touching`.
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

// What the new one overlaps or touches, [at, end), becomes one with it.
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

// --- What is taken, by time ----------------------------------------------------------------------

// Time is counted in different first uses: two buffers that meet do so at the first use of one.
typedef struct moment {
    spans ever, throughout; // see the head of the file
} moment;

enum { MOST_LISTS = 128 }; // four of a level of the tree, which has less than 32

typedef struct planner {
    int *times; // ascending, none twice
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

// How many times are before `time`, or at it where `included`.
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

// A part of the tree, and the life of a buffer: times [begin, end) and [first, behind).
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

static void take(planner *p, range r, life l, span taken)
{
    if (is_apart(r, l)) return;
    moment *node = &p->nodes[r.node];
    if (has_span(&node->throughout, taken)) return; // and so for all below
    add_span(&node->ever, taken);
    if (is_within(r, l)) {
        add_span(&node->throughout, taken);
        return;
    }
    take(p, left_of(r), l, taken);
    take(p, right_of(r), l, taken);
}

static void meet(planner *p, const spans *list)
{
    if (list->count > 0) p->met[p->met_count++] = list;
}

static void find_met(planner *p, range r, life l)
{
    if (is_apart(r, l)) return;
    if (is_within(r, l)) {
        meet(p, &p->nodes[r.node].ever);
        return;
    }
    meet(p, &p->nodes[r.node].throughout);
    find_met(p, left_of(r), l);
    find_met(p, right_of(r), l);
}

// The lowest offset at which `size` bytes overlap nothing that is met: from list to list, behind
// what is in the way, until nothing is.
static size_t lowest_offset(planner *p, size_t size)
{
    size_t offset = 0;
    int clear = 0; // lists in a row that leave room at `offset`
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
        if (size == 0) continue; // it lies anywhere: at 0
        life l = life_of(&p, order[i]);
        p.met_count = 0;
        find_met(&p, root_of(&p), l);
        order[i]->offset = lowest_offset(&p, size);
        take(&p, root_of(&p), l, (span){order[i]->offset, order[i]->offset + size});
    }
    free_planner(&p);
}

typedef struct placed {
    span at;
    int buffer;
} placed;

// What is placed stands in a list from below, which is walked up to the first gap.
static void place_by_relation(const bel_plan_buffer *buffers, bel_plan_buffer *const *order,
                              size_t count, const bel_plan_relation *relation)
{
    placed *list = bel_xcalloc(count, sizeof *list);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t offset = 0, size = rounded(order[i]->size_bytes), behind = 0;
        int buffer = (int)(order[i] - buffers);
        if (size == 0) continue; // it lies anywhere: at 0
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
