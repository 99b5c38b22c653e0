// Keys come from the checkpoint, rows from the opened model: a key that another table of the same
// list has added starts there as in training. After the rows there is one of zeros, for keys that
// are not in the list.
#include "export/export_tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "checkpoint/table.h"

// --- Groups of tables ----------------------------------------------------------------------

// Gives tables that share ids the number of the first of them, until nothing changes.
static void group_tables(const bel_graph *graph, int *group)
{
    bool changed = true;
    for (size_t t = 0; t < graph->table_count; t++)
        group[t] = (int)t;
    while (changed) {
        changed = false;
        for (size_t a = 0; a < graph->lookup_count; a++) {
            for (size_t b = 0; b < graph->lookup_count; b++) {
                int *one = &group[graph->lookups[a].table],
                    *other = &group[graph->lookups[b].table];
                if (graph->lookups[a].ids != graph->lookups[b].ids || *one <= *other) continue;
                *one = *other;
                changed = true;
            }
        }
    }
}

// --- Keys ----------------------------------------------------------------------------------------

typedef struct growing {
    int64_t *keys;
    size_t count, capacity;
} growing;

static bel_status *export_tables_take(void *context, int64_t count, const int64_t *keys,
                                      const float *const *columns)
{
    (void)columns;
    growing *g = context;
    g->keys = bel_xgrow(g->keys, &g->capacity, g->count + (size_t)count, sizeof *g->keys);
    memcpy(g->keys + g->count, keys, (size_t)count * sizeof *keys);
    g->count += (size_t)count;
    return NULL;
}

static int export_tables_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_keys(growing *g)
{
    size_t kept = 0;
    if (g->count > 0) qsort(g->keys, g->count, sizeof *g->keys, export_tables_compare);
    for (size_t i = 0; i < g->count; i++)
        if (i == 0 || g->keys[i] != g->keys[kept - 1]) g->keys[kept++] = g->keys[i];
    g->count = kept;
}

// Loads the keys of all tables of a group.
static bel_status *load_list(const bel_saved *saved, const int *group, int first, bel_key_list *out)
{
    const bel_graph *graph = saved->built->graph;
    growing g = {.keys = NULL};
    const bel_ckpt_row_sink sink = {.take = export_tables_take, .context = &g};
    for (size_t t = 0; t < graph->table_count; t++) {
        if (group[t] != first) continue;
        bel_status *status =
            bel_ckpt_read_rows(saved->reader, graph->tables[t].name, graph->tables[t].width, &sink);
        if (status == NULL) continue;
        bel_free(g.keys);
        return status;
    }
    sort_keys(&g);
    *out = (bel_key_list){.keys = g.keys,
                          .count = (int64_t)g.count,
                          .name = bel_strf("%s#keys", graph->tables[first].name)};
    return NULL;
}

// --- Rows ----------------------------------------------------------------------------------------

static size_t bytes_of(const bel_graph *graph, int table, int64_t count)
{
    return (size_t)(count + 1) * (size_t)graph->tables[table].width * sizeof(float);
}

// Fresh pages are zeros, and so is the last row.
static bel_status *export_tables_pull(const bel_saved *saved, int table, const bel_key_list *list,
                                      float **out_rows)
{
    const bel_graph *graph = saved->built->graph;
    void *rows;
    BEL_TRY(bel_pages_create(bytes_of(graph, table, list->count), false, graph->tables[table].name,
                             &rows));
    bel_row_layers_pull(&saved->layers, table, list->keys, list->count, rows);
    *out_rows = rows;
    return NULL;
}

bel_status *bel_export_tables_load(const bel_saved *saved, bel_export_tables *out)
{
    const bel_graph *graph = saved->built->graph;
    size_t count = graph->table_count;
    *out = (bel_export_tables){.rows = bel_xcalloc(count + 1, sizeof *out->rows),
                               .lists = bel_xcalloc(count + 1, sizeof *out->lists),
                               .list_of = bel_xcalloc(count + 1, sizeof *out->list_of),
                               .graph = graph};
    int *group = bel_xcalloc(count + 1, sizeof *group);
    bel_status *status = NULL;
    group_tables(graph, group);
    for (int t = 0; t < (int)count && status == NULL; t++) {
        out->list_of[t] = group[t] == t ? out->list_count : out->list_of[group[t]];
        if (group[t] == t) {
            status = load_list(saved, group, t, &out->lists[out->list_count]);
            if (status == NULL) out->list_count++;
        }
        if (status == NULL)
            status = export_tables_pull(saved, t, &out->lists[out->list_of[t]], &out->rows[t]);
        if (status == NULL) out->table_count++;
    }
    bel_free(group);
    return status;
}

void bel_export_tables_deinit(bel_export_tables *tables)
{
    for (int t = 0; t < tables->table_count; t++)
        bel_pages_destroy(tables->rows[t],
                          bytes_of(tables->graph, t, bel_export_tables_list(tables, t)->count));
    for (int l = 0; l < tables->list_count; l++) {
        bel_free(tables->lists[l].keys);
        bel_free(tables->lists[l].name);
    }
    bel_free(tables->rows);
    bel_free(tables->lists);
    bel_free(tables->list_of);
    *tables = (bel_export_tables){.rows = NULL};
}

const bel_key_list *bel_export_tables_list(const bel_export_tables *tables, int table)
{
    return &tables->lists[tables->list_of[table]];
}

const bel_key_list *bel_export_tables_keys(const bel_export_tables *tables, int input)
{
    const bel_graph *graph = tables->graph;
    for (size_t l = 0; l < graph->lookup_count; l++)
        if (graph->lookups[l].ids == input)
            return bel_export_tables_list(tables, graph->lookups[l].table);
    return NULL;
}

int64_t bel_key_list_place(const bel_key_list *list, int64_t key)
{
    const int64_t *found = list->count == 0 ? NULL
                                            : bsearch(&key, list->keys, (size_t)list->count,
                                                      sizeof key, export_tables_compare);
    return found == NULL ? list->count : found - list->keys;
}
