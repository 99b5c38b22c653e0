// Check of a plan, by another algorithm than the planner's. It sweeps over time with a tree over
// addresses that has the largest number of buffers on one address. So it takes time for the
// buffers, not for their pairs. If buffers have a relation, all pairs that share an address are
// checked.
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "runtime/plan.h"

static size_t end_of(const bel_plan_buffer *buffer)
{
    return buffer->offset +
           (buffer->size_bytes + BEL_PLAN_ALIGNMENT - 1) / BEL_PLAN_ALIGNMENT * BEL_PLAN_ALIGNMENT;
}

// Start or end of a buffer's life.
typedef struct event {
    int time;
    bool ends;
    const bel_plan_buffer *buffer;
} event;

// At equal times starts come first: both buffers are alive then.
static int earlier_first(const void *a, const void *b)
{
    const event *p = a, *q = b;
    if (p->time != q->time) return p->time < q->time ? -1 : 1;
    return (p->ends > q->ends) - (p->ends < q->ends);
}

static int lower_first(const void *a, const void *b)
{
    size_t p = *(const size_t *)a, q = *(const size_t *)b;
    return (p > q) - (p < q);
}

typedef struct checker {
    size_t *borders; // ascending; cell c is between borders c and c + 1
    size_t border_count;
    int *added, *most; // by node: buffers over all of it; most over a cell, these included
} checker;

static size_t cell_at(const checker *c, size_t offset)
{
    const size_t *border =
        bsearch(&offset, c->borders, c->border_count, sizeof offset, lower_first);
    return (size_t)(border - c->borders);
}

// Largest number of buffers over a cell of the given range, below the node of cells [begin, end).
static int most_over(const checker *c, size_t node, size_t begin, size_t end, size_t first,
                     size_t behind)
{
    if (behind <= begin || end <= first) return 0;
    if (first <= begin && end <= behind) return c->most[node];
    size_t middle = begin + (end - begin) / 2;
    int left = most_over(c, 2 * node, begin, middle, first, behind);
    int right = most_over(c, 2 * node + 1, middle, end, first, behind);
    return c->added[node] + (left > right ? left : right);
}

static void add_over(checker *c, size_t node, size_t begin, size_t end, size_t first, size_t behind,
                     int count)
{
    if (behind <= begin || end <= first) return;
    if (first <= begin && end <= behind) {
        c->added[node] += count;
        c->most[node] += count;
        return;
    }
    size_t middle = begin + (end - begin) / 2;
    add_over(c, 2 * node, begin, middle, first, behind, count);
    add_over(c, 2 * node + 1, middle, end, first, behind, count);
    int left = c->most[2 * node], right = c->most[2 * node + 1];
    c->most[node] = c->added[node] + (left > right ? left : right);
}

// Lists events in order, and the borders of the buffers. Buffers without bytes are left out.
static size_t list_events(const bel_plan_buffer *buffers, size_t count, event *events, checker *c)
{
    size_t event_count = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        const bel_plan_buffer *buffer = &buffers[i];
        if (end_of(buffer) == buffer->offset) continue;
        c->borders[event_count] = buffer->offset;
        events[event_count++] = (event){buffer->first, false, buffer};
        c->borders[event_count] = end_of(buffer);
        events[event_count++] = (event){buffer->last, true, buffer};
    }
    if (event_count == 0) return 0;
    qsort(events, event_count, sizeof *events, earlier_first);
    qsort(c->borders, event_count, sizeof *c->borders, lower_first);
    for (size_t i = 0; i < event_count; i++)
        if (i == 0 || c->borders[i] != c->borders[i - 1]) c->borders[used++] = c->borders[i];
    c->border_count = used;
    return event_count;
}

static bool holds_over_time(const bel_plan_buffer *buffers, size_t count)
{
    event *events = bel_xcalloc(2 * count, sizeof *events);
    checker c = {.borders = bel_xcalloc(2 * count, sizeof *c.borders)};
    size_t event_count = list_events(buffers, count, events, &c);
    c.added = bel_xcalloc(4 * c.border_count, sizeof *c.added);
    c.most = bel_xcalloc(4 * c.border_count, sizeof *c.most);
    bool holds = true;
    for (size_t i = 0; i < event_count && holds; i++) {
        const bel_plan_buffer *buffer = events[i].buffer;
        size_t first = cell_at(&c, buffer->offset), behind = cell_at(&c, end_of(buffer));
        size_t cells = c.border_count - 1;
        if (!events[i].ends) holds = most_over(&c, 1, 0, cells, first, behind) == 0;
        add_over(&c, 1, 0, cells, first, behind, events[i].ends ? -1 : 1);
    }
    bel_free(events);
    bel_free(c.borders);
    bel_free(c.added);
    bel_free(c.most);
    return holds;
}

static int by_offset(const void *a, const void *b)
{
    const bel_plan_buffer *p = *(const bel_plan_buffer *const *)a;
    const bel_plan_buffer *q = *(const bel_plan_buffer *const *)b;
    return (p->offset > q->offset) - (p->offset < q->offset);
}

// Checks pairs by ascending offset: buffers that start before another one's end overlap it.
static bool holds_by_relation(const bel_plan_buffer *buffers, size_t count,
                              const bel_plan_relation *relation)
{
    const bel_plan_buffer **order = bel_xcalloc(count, sizeof *order);
    bool holds = true;
    for (size_t i = 0; i < count; i++)
        order[i] = &buffers[i];
    qsort(order, count, sizeof *order, by_offset);
    for (size_t i = 0; i < count && holds; i++) {
        size_t end = end_of(order[i]);
        for (size_t k = i + 1; k < count && order[k]->offset < end && holds; k++) {
            holds = end_of(order[k]) == order[k]->offset ||
                    !relation->together(relation->context, (int)(order[i] - buffers),
                                        (int)(order[k] - buffers));
        }
    }
    bel_free(order);
    return holds;
}

bool bel_plan_is_valid(const bel_plan_buffer *buffers, int count, const bel_plan_relation *relation)
{
    if (count <= 0) return true;
    return relation != NULL ? holds_by_relation(buffers, (size_t)count, relation)
                            : holds_over_time(buffers, (size_t)count);
}
