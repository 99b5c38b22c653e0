// Read-only tables: the same as a shard's, created with a rule that has no slots, so a row costs
// only its values. All rows of a checkpoint are loaded, from all shards. A key without a row has
// the start values of training, which needs the job's seed instead of this process's. Several
// threads may pull at once, but not during a load.
#include "ps/table/rows.h"

#include "base/alloc.h"
#include "optim/settings.h"

bel_status *bel_rows_init(bel_rows *rows, const bel_graph *graph, uint64_t seed)
{
    bel_optimizer none = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 1};
    BEL_TRY(bel_optimizer_check(&none));
    rows->tables = bel_xcalloc(graph->table_count, sizeof(bel_table *));
    for (size_t t = 0; t < graph->table_count; t++) {
        const bel_graph_table *table = &graph->tables[t];
        const bel_table_config config =
            bel_table_describe(table->name, table->width, table->initializer, seed, &none);
        BEL_TRY(bel_table_create(&config, &rows->tables[t]));
        rows->count++;
    }
    return NULL;
}

void bel_rows_deinit(bel_rows *rows)
{
    for (int t = 0; t < rows->count; t++)
        bel_table_destroy(rows->tables[t]);
    bel_free(rows->tables);
    *rows = (bel_rows){0};
}

bel_status *bel_rows_add(void *table, int64_t count, const int64_t *keys, const float *values)
{
    return bel_table_load(table, keys, values, NULL, count);
}

void bel_rows_pull(const void *context, int table, const int64_t *keys, int64_t count,
                   float *out_rows)
{
    const bel_rows *rows = context;
    bel_table_pull(rows->tables[table], keys, count, out_rows);
}
