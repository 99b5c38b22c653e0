// Builders of collectives. A graph with one replica (or for evaluation) gets none: its replica's
// value is the result. The same model function therefore serves every number of replicas, and a
// program of one pays nothing.
//
// Each collective records where it was called, for messages about processes that built different
// graphs, or replicas with different shapes.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/ops.h"
#include "graph/attrs.h"
#include "graph/graph.h"

int bel_replica_count(const bel_graph *graph)
{
    return graph->replica_count > 1 ? graph->replica_count : 1;
}

bel_value *bel_replica_id(bel_graph *graph)
{
    int64_t zero = 0;
    bel_tensor alone = {BEL_DTYPE_I64, bel_shape_scalar(), &zero};
    if (bel_replica_count(graph) == 1) return bel_constant(graph, &alone);
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "replicas", bel_replica_count(graph));
    return bel_graph_add(graph, BEL_OP_REPLICA_ID, &attrs, NULL, 0);
}

// --- Collectives as nodes ------------------------------------------------------------------------

static bel_value *collectives_add(bel_graph *graph, const bel_collective *what, bel_value *value,
                                  const bel_graph_collective *place)
{
    bel_attr_list attrs = {.count = 0};
    bool reduces = what->op == BEL_OP_ALL_REDUCE || what->op == BEL_OP_REDUCE_SCATTER;
    if (reduces) bel_attr_put(&attrs, "reduce", what->reduce);
    if (what->op == BEL_OP_BROADCAST_FROM) bel_attr_put(&attrs, "source", what->source);
    bel_attr_put(&attrs, "replicas", bel_replica_count(graph));
    if (what->weighted) bel_attr_put(&attrs, "weighted", 1);
    if (what->needs_all) bel_attr_put(&attrs, "needs_all", 1);
    bel_attr_put(&attrs, "collective", (double)graph->collective_count);
    bel_value *made = bel_graph_add(graph, what->op, &attrs, &value, 1);
    if (made == NULL) return NULL;
    graph->collectives = bel_xgrow(graph->collectives, &graph->collective_capacity,
                                   graph->collective_count + 1, sizeof *graph->collectives);
    graph->collectives[graph->collective_count] = *place;
    graph->collectives[graph->collective_count++].op = what->op;
    return made;
}

bel_value *bel_graph_add_collective(bel_graph *graph, bel_collective what, bel_value *value,
                                    const char *file, int line)
{
    const bel_graph_collective place = {.file = bel_arena_strdup(graph->arena, file), .line = line};
    return collectives_add(graph, &what, value, &place);
}

bel_value *bel_graph_add_collective_gradient(bel_graph *graph, bel_collective what,
                                             bel_value *value, int gradient_of)
{
    bel_graph_collective place = graph->collectives[gradient_of];
    place.gradient = true;
    return collectives_add(graph, &what, value, &place);
}

const char *bel_graph_collective_text(const bel_graph *graph, int index,
                                      char text[BEL_COLLECTIVE_TEXT])
{
    const bel_graph_collective *place = &graph->collectives[index];
    (void)bel_snprintf(text, BEL_COLLECTIVE_TEXT, "%s%s called at %s:%d",
                       place->gradient ? "the gradient of " : "", bel_op_get(place->op)->name,
                       place->file, place->line);
    return text;
}

int bel_graph_exchanges(const bel_graph *graph, bel_value *const *values, int count,
                        int *out_exchanges)
{
    bool *needed = bel_xcalloc(graph->node_count, sizeof *needed);
    int *behind = bel_xcalloc(graph->node_count, sizeof *behind); // exchanges, by node
    int exchanges = 0;
    bel_graph_mark(graph, values, count, needed);
    for (size_t c = 0; c < graph->collective_count; c++)
        out_exchanges[c] = -1;
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!needed[n]) continue;
        for (int i = 0; i < node->input_count; i++) {
            int before = behind[node->inputs[i]->node->index];
            if (before > behind[n]) behind[n] = before;
        }
        if (!bel_op_is_collective(node->op)) continue;
        out_exchanges[bel_collective_read(node->op, &node->attrs).index] = behind[n]++;
        if (behind[n] > exchanges) exchanges = behind[n];
    }
    bel_free(behind);
    bel_free(needed);
    return exchanges;
}

// --- Public functions ----------------------------------------------------------------------------

// A graph of one replica reports the same errors of a wrong call as any other.
static bool fits_alone(bel_graph *graph, const bel_collective *what, const bel_value *value,
                       bel_infer_fn *infer)
{
    if (value == NULL) return graph->error_code == BEL_OK;
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "reduce", what->reduce);
    bel_attr_put(&attrs, "source", what->source);
    bel_spec result;
    bel_status *status = infer(&attrs, &value->spec, 1, &result);
    if (status == NULL) return true;
    bel_graph_fail(graph, bel_status_code(status), "%s: %s", bel_op_get(what->op)->name,
                   bel_status_message(status));
    bel_status_destroy(status);
    return false;
}

// Returns one replica's value, with the leading axis that a collective adds or drops.
static bel_value *alone(bel_graph *graph, const bel_collective *what, bel_value *value)
{
    static const int64_t first[] = {0};
    if (!fits_alone(graph, what, value, bel_op_get(what->op)->infer)) return NULL;
    if (what->op == BEL_OP_ALL_GATHER) return bel_unsqueeze(graph, value, first, 1);
    if (what->op == BEL_OP_REDUCE_SCATTER) return bel_squeeze(graph, value, first, 1);
    return bel_identity(graph, value);
}

static bel_value *collective(bel_graph *graph, bel_collective what, bel_value *value,
                             const char *file, int line)
{
    if (bel_replica_count(graph) == 1) return alone(graph, &what, value);
    return bel_graph_add_collective(graph, what, value, file, line);
}

bel_value *bel_all_reduce_at(bel_graph *graph, bel_value *value, bel_reduce_op op, const char *file,
                             int line)
{
    return collective(graph, (bel_collective){.op = BEL_OP_ALL_REDUCE, .reduce = op}, value, file,
                      line);
}

void bel_all_reduce_n_at(bel_graph *graph, bel_value **values, int count, bel_reduce_op op,
                         const char *file, int line)
{
    for (int i = 0; i < count; i++)
        values[i] = bel_all_reduce_at(graph, values[i], op, file, line);
}

bel_value *bel_all_gather_at(bel_graph *graph, bel_value *value, const char *file, int line)
{
    return collective(graph, (bel_collective){.op = BEL_OP_ALL_GATHER}, value, file, line);
}

bel_value *bel_reduce_scatter_at(bel_graph *graph, bel_value *value, bel_reduce_op op,
                                 const char *file, int line)
{
    return collective(graph, (bel_collective){.op = BEL_OP_REDUCE_SCATTER, .reduce = op}, value,
                      file, line);
}

bel_value *bel_broadcast_at(bel_graph *graph, bel_value *value, int source, const char *file,
                            int line)
{
    return collective(graph, (bel_collective){.op = BEL_OP_BROADCAST_FROM, .source = source}, value,
                      file, line);
}

void bel_broadcast_n_at(bel_graph *graph, bel_value **values, int count, int source,
                        const char *file, int line)
{
    for (int i = 0; i < count; i++)
        values[i] = bel_broadcast_at(graph, values[i], source, file, line);
}

// --- Lists of items ------------------------------------------------------------------------------

// Items that this replica maps: number j of `each` is item id · each + j.
typedef struct dealing {
    bel_graph *graph;
    bel_value *stacked; // all items along a leading axis
    int count, each;
} dealing;

static bel_value *whole_number(bel_graph *graph, int64_t number)
{
    return bel_constant(graph, &(bel_tensor){BEL_DTYPE_I64, bel_shape_scalar(), &number});
}

static bel_value *stack(bel_graph *graph, bel_value *const *values, int count)
{
    static const int64_t first[] = {0};
    bel_value **parts = bel_xcalloc((size_t)count, sizeof *parts);
    for (int i = 0; i < count; i++)
        parts[i] = bel_unsqueeze(graph, values[i], first, 1);
    bel_value *stacked = bel_concat(graph, parts, count, 0);
    bel_free(parts);
    return stacked;
}

static bool dealing_begin(dealing *d, bel_graph *graph, const char *what, bel_value *const *items,
                          int count)
{
    int replicas = bel_replica_count(graph);
    if (count < 1) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "%s: expected at least one item, got %d", what,
                       count);
        return false;
    }
    *d = (dealing){graph, stack(graph, items, count), count, (count + replicas - 1) / replicas};
    return graph->error_code == BEL_OK;
}

// After the last item, the last one is mapped once more, and *out_exists is then false.
static bel_value *map_item(const dealing *d, int j, bel_map_item_fn *map, void *user,
                           bel_value **out_exists)
{
    bel_graph *graph = d->graph;
    bel_value *first = bel_mul(graph, bel_replica_id(graph), whole_number(graph, d->each));
    bel_value *number = bel_add(graph, first, whole_number(graph, j));
    *out_exists = bel_less(graph, number, whole_number(graph, d->count));
    bel_value *index = bel_min(graph, number, whole_number(graph, d->count - 1));
    return map(user, graph, bel_gather(graph, d->stacked, index));
}

static bel_value *pair(bel_graph *graph, bel_reduce_op op, bel_value *a, bel_value *b)
{
    if (op == BEL_REDUCE_MIN) return bel_min(graph, a, b);
    if (op == BEL_REDUCE_MAX) return bel_max(graph, a, b);
    if (op == BEL_REDUCE_PRODUCT) return bel_mul(graph, a, b);
    return bel_add(graph, a, b);
}

// Returns the neutral element of a reduction.
static double collectives_neutral(bel_reduce_op op)
{
    if (op == BEL_REDUCE_MIN) return INFINITY;
    if (op == BEL_REDUCE_MAX) return -INFINITY;
    return op == BEL_REDUCE_PRODUCT ? 1 : 0;
}

bel_value *bel_map_reduce_at(bel_graph *graph, bel_value *const *items, int count,
                             bel_map_item_fn *map, void *user, bel_reduce_op op, const char *file,
                             int line)
{
    dealing d;
    bel_value *sum = NULL;
    if (!dealing_begin(&d, graph, "map_reduce", items, count)) return NULL;
    for (int j = 0; j < d.each; j++) {
        bel_value *exists, *mapped = map_item(&d, j, map, user, &exists);
        if (mapped == NULL) break;
        bel_value *nothing = bel_scalar(graph, bel_value_dtype(mapped), collectives_neutral(op));
        mapped = bel_where(graph, exists, mapped, nothing);
        sum = sum == NULL ? mapped : pair(graph, op, sum, mapped);
    }
    bool mean = op == BEL_REDUCE_MEAN;
    const bel_collective what = {
        .op = BEL_OP_ALL_REDUCE, .reduce = mean ? BEL_REDUCE_SUM : op, .needs_all = true};
    bel_value *all = collective(graph, what, sum, file, line);
    if (!mean || all == NULL) return all;
    return bel_div(graph, all, bel_scalar(graph, bel_value_dtype(all), count));
}

bel_value *bel_map_gather_at(bel_graph *graph, bel_value *const *items, int count,
                             bel_map_item_fn *map, void *user, const char *file, int line)
{
    dealing d;
    if (!dealing_begin(&d, graph, "map_gather", items, count)) return NULL;
    bel_value **mapped = bel_xcalloc((size_t)d.each, sizeof *mapped), *exists;
    for (int j = 0; j < d.each; j++)
        mapped[j] = map_item(&d, j, map, user, &exists);
    bel_value *own = stack(graph, mapped, d.each);
    bel_free(mapped);
    const bel_collective what = {.op = BEL_OP_ALL_GATHER, .needs_all = true};
    bel_value *all = collective(graph, what, own, file, line);
    if (all == NULL) return NULL;
    bel_shape shape = bel_value_shape(all); // [replicas, each, …]
    shape.dims[1] *= shape.dims[0];
    bel_shape flat = bel_shape_make(shape.rank - 1, shape.dims + 1);
    if (bel_shape_elements(&flat) < 0) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "map_gather: the result of an item must have a closed shape");
        return NULL;
    }
    static const int64_t axis[] = {0}, start[] = {0};
    const int64_t end[] = {count};
    return bel_slice(graph, bel_reshape(graph, all, &flat), axis, start, end, NULL, 1);
}

void bel_graph_write_collectives(const bel_graph *graph, bel_str *out)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (!bel_op_is_collective(node->op)) continue;
        const bel_collective c = bel_collective_read(node->op, &node->attrs);
        const bel_graph_collective *place = &graph->collectives[c.index];
        const bel_spec *spec = &node->inputs[0]->spec;
        char shape[BEL_SHAPE_TEXT];
        bel_str_printf(out, "%s%s of %s %s (%d, %d), called at %s:%d\n",
                       place->gradient ? "the gradient of " : "", bel_op_get(c.op)->name,
                       bel_dtype_name(spec->dtype), bel_shape_text(&spec->shape, shape),
                       (int)c.reduce, c.source, place->file, place->line);
    }
}
