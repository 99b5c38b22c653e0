// Lookups in tables. A lookup is no operation but another input of the graph, F32 [ids…, width],
// which the code that runs the graph fills with rows first. A program therefore knows nothing of
// tables, and ids must be an unmodified input of the data. The input is named "table:number", with
// a ':' that no field's name has. Tables and variables share one namespace; a repeated name means
// the same table.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "graph/graph.h"

enum { MAX_WIDTH = 1 << 20 };

static bool check_arguments(bel_graph *graph, const char *name, const bel_value *ids, int64_t width,
                            const bel_initializer *initializer)
{
    bool feedable = ids->graph == graph && ids->node->op == BEL_OP_INPUT &&
                    ids->spec.dtype == BEL_DTYPE_I64 && ids->spec.shape.rank >= 1 &&
                    ids->spec.shape.rank < BEL_MAX_RANK &&
                    bel_graph_lookup_of(graph, ids->node->leaf) == NULL;
    bool starts = initializer->kind == BEL_INIT_ZEROS || initializer->kind == BEL_INIT_UNIFORM ||
                  initializer->kind == BEL_INIT_NORMAL;
    if (!feedable) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "embedding \"%s\": ids must be an input of type i64 [batch, …] as it comes "
                       "from the data, got %s %s",
                       name, bel_dtype_name(ids->spec.dtype),
                       bel_shape_text(&ids->spec.shape, text));
    } else if (width < 1 || width > MAX_WIDTH) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "embedding \"%s\": width must be from 1 to %d, got %lld", name, MAX_WIDTH,
                       (long long)width);
    } else if (!starts || !(initializer->value >= 0) || isinf(initializer->value)) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "embedding \"%s\": rows begin as ZEROS, UNIFORM or NORMAL with a value that "
                       "is finite and not negative",
                       name);
    }
    return feedable && starts && graph->error_code == BEL_OK;
}

static int find_table(bel_graph *graph, const char *name, int64_t width,
                      bel_initializer initializer)
{
    char full[BEL_GRAPH_MAX_NAME];
    if (!bel_graph_full_name(graph, name, full)) return -1;
    if (bel_graph_find_variable(graph, full) >= 0) {
        bel_graph_fail(graph, BEL_ALREADY_EXISTS, "embedding \"%s\": a variable has this name",
                       full);
        return -1;
    }
    int found = bel_graph_find_table(graph, full);
    if (found >= 0) {
        const bel_graph_table *table = &graph->tables[found];
        bool agrees = table->width == width && table->initializer.kind == initializer.kind &&
                      table->initializer.value == initializer.value;
        if (agrees) return found;
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "embedding \"%s\" was used before with another width or initializer", full);
        return -1;
    }
    graph->tables = bel_xgrow(graph->tables, &graph->table_capacity, graph->table_count + 1,
                              sizeof *graph->tables);
    bel_index_put_text(&graph->table_names, full, (int)graph->table_count);
    graph->tables[graph->table_count] =
        (bel_graph_table){.name = bel_arena_strdup(graph->arena, full),
                          .width = (int)width,
                          .initializer = initializer,
                          .first_lookup = -1,
                          .last_lookup = -1};
    return (int)graph->table_count++;
}

// Appends to the other lookups of its table.
static void add_lookup(bel_graph *graph, int table, int ids, int rows)
{
    int lookup = (int)graph->lookup_count;
    bel_graph_table *t = &graph->tables[table];
    graph->lookups = bel_xgrow(graph->lookups, &graph->lookup_capacity, graph->lookup_count + 1,
                               sizeof *graph->lookups);
    graph->lookups[graph->lookup_count++] =
        (bel_graph_lookup){.table = table, .ids = ids, .rows = rows, .next = -1};
    graph->inputs[rows].lookup = lookup + 1;
    if (t->first_lookup < 0) {
        t->first_lookup = lookup;
    } else {
        graph->lookups[t->last_lookup].next = lookup;
    }
    t->last_lookup = lookup;
}

bel_value *bel_embedding(bel_graph *graph, const char *name, bel_value *ids, int64_t width,
                         bel_initializer initializer)
{
    if (graph->error_code != BEL_OK || ids == NULL) return NULL;
    if (!check_arguments(graph, name, ids, width, &initializer)) return NULL;
    int table = find_table(graph, name, width, initializer);
    if (table < 0) return NULL;
    bel_shape shape = ids->spec.shape;
    shape.dims[shape.rank++] = width;
    char input[352]; // no field's name has a ':'
    bel_snprintf(input, sizeof input, "%s:%zu", graph->tables[table].name, graph->lookup_count);
    bel_value *rows = bel_input_value(graph, input, BEL_DTYPE_F32, &shape);
    if (rows == NULL) return NULL;
    add_lookup(graph, table, ids->node->leaf, rows->node->leaf);
    return rows;
}

int64_t bel_graph_lookup_ids(const bel_graph *graph, const bel_graph_lookup *lookup)
{
    const bel_shape *shape = &graph->inputs[lookup->ids].value->spec.shape;
    int64_t count = 1;
    for (int d = 1; d < shape->rank; d++) {
        if (shape->dims[d] < 0) return -1;
        count *= shape->dims[d];
    }
    return count;
}

const bel_graph_lookup *bel_graph_lookup_of(const bel_graph *graph, int input)
{
    int lookup = graph->inputs[input].lookup;
    return lookup > 0 ? &graph->lookups[lookup - 1] : NULL;
}
