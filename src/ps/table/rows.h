// Rows of a graph's tables without training: for evaluation and prediction. A table without slots
// holds the rows; an absent row has its start values.
#ifndef BELFRY_PS_TABLE_ROWS_H
#define BELFRY_PS_TABLE_ROWS_H

#include "graph/graph.h"
#include "ps/table/table.h"

typedef struct bel_rows {
    bel_table **tables; // by table of the graph
    int count;
} bel_rows;

// Creates empty tables, one for each table of the graph. The job's seed determines the start values
// of rows. RESOURCE_EXHAUSTED. Free with bel_rows_deinit, also after an error.
bel_status *bel_rows_init(bel_rows *rows, const bel_graph *graph, uint64_t seed) BEL_MUST_USE;
void bel_rows_deinit(bel_rows *rows);

// Adds rows to a table; a callback for bel_shard_read_rows.
bel_status *bel_rows_add(void *table, int64_t count, const int64_t *keys,
                         const float *values) BEL_MUST_USE;

// Copies the rows of `keys`; a callback for bel_evaluation_config. Any thread.
void bel_rows_pull(const void *rows, int table, const int64_t *keys, int64_t count,
                   float *out_rows);

#endif
