// Rows of a graph's tables where they are not trained: for evaluation and prediction. A table
// without slots holds the rows; those that it does not have are as they begin.
#ifndef BELFRY_PS_TABLE_ROWS_H
#define BELFRY_PS_TABLE_ROWS_H

#include "graph/graph.h"
#include "ps/table/table.h"

typedef struct bel_rows {
    bel_table **tables; // by table of the graph
    int count;
} bel_rows;

// Empty tables for all of the graph's. The job's seed gives the numbers with which rows begin.
// RESOURCE_EXHAUSTED. Free with bel_rows_deinit, also after an error.
bel_status *bel_rows_init(bel_rows *rows, const bel_graph *graph, uint64_t seed) BEL_MUST_USE;
void bel_rows_deinit(bel_rows *rows);

// Adds rows to a table: for bel_shard_read_rows.
bel_status *bel_rows_add(void *table, int64_t count, const int64_t *keys,
                         const float *values) BEL_MUST_USE;

// All rows of a checkpoint, in place of those that are there, whatever slots are beside them.
// NOT_FOUND: a table is not in it; DATA_LOSS: it has another width.
bel_status *bel_rows_load(bel_rows *rows, const bel_graph *graph,
                          const bel_ckpt_reader *reader) BEL_MUST_USE;

// For bel_evaluation_config: the rows of keys. Any thread.
void bel_rows_pull(const void *rows, int table, const int64_t *keys, int64_t count,
                   float *out_rows);

#endif
