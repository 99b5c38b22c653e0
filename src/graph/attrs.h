// Packs attributes, for the builders.
#ifndef BELFRY_GRAPH_ATTRS_H
#define BELFRY_GRAPH_ATTRS_H

#include "graph/graph.h"

static inline void bel_attr_put(bel_attr_list *attrs, const char *name, double number)
{
    attrs->items[attrs->count++] = (bel_attr){.name = name, .number = number};
}

// Does nothing if `ints` is NULL.
static inline void bel_attr_put_ints(bel_attr_list *attrs, const char *name, int32_t count,
                                     const int64_t *ints)
{
    if (ints == NULL) return;
    attrs->items[attrs->count++] = (bel_attr){.name = name, .ints = bel_shape_make(count, ints)};
}

// Fails the graph and returns false if a list is longer than attributes can be.
static inline bool bel_attr_count_ok(bel_graph *graph, const char *what, int count)
{
    if (count >= 0 && count <= BEL_MAX_RANK) return true;
    bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                   "%s%s: %d axes are more than the %d that a tensor has", graph->scope, what,
                   count, BEL_MAX_RANK);
    return false;
}

#endif
