// Room for rows, and for values of collectives, under way between a worker and the shards. If
// another process reads them in place, their addresses must be fixed before the two meet, and both
// must know the size. So there is room for the maximum: all ids of a worker's batches distinct, and
// all of them at one shard. Unused pages cost nothing.
//
//   a worker's, for each table:  keys of the pull that is under way
//                                for each of its nodes: the reports, shard after shard
//                                after all tables: step statistics that are too long for a
//                                frame, by node; pieces of exchanges (exchange.h)
//   a shard's, for each worker:  rows of its answers, table after table
//                                answers to exchanges
//
// Offsets are in bytes, multiples of BEL_ROW_ALIGN. Inputs are immutable, so thread-safe.
#ifndef BELFRY_PS_LAYOUT_ROW_BUFFER_H
#define BELFRY_PS_LAYOUT_ROW_BUFFER_H

#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"
#include "ps/layout/row_set.h"

enum { BEL_ROW_ALIGN = 8 };

// Maximum bytes of all room of a job. No real model needs more, and there would be no addresses for
// it.
#define BEL_ROW_BUFFER_MOST ((size_t)1 << 44)

static inline size_t bel_row_aligned(size_t bytes)
{
    return (bytes + BEL_ROW_ALIGN - 1) / BEL_ROW_ALIGN * BEL_ROW_ALIGN;
}

// Checks whether that much room is possible for that number of replicas. Call it before any other
// function below. RESOURCE_EXHAUSTED names the table that exceeds the limit, and its numbers.
bel_status *bel_row_buffer_check(const bel_layout *layout, int64_t replica_count) BEL_MUST_USE;

// Returns the maximum number of ids of a table that one worker's replicas have in a step.
int64_t bel_row_buffer_ids(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table);

// Returns the offset of a worker's keys for a table.
size_t bel_row_buffer_keys(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table);

// Returns the offset of the step statistics of a worker's node `node`.
size_t bel_row_buffer_stats(const bel_layout *layout, const bel_assignment *assignment, int node);

// Returns the offset of a worker's pieces of exchanges, a multiple of BEL_EXCHANGE_ALIGN.
size_t bel_row_buffer_exchange(const bel_layout *layout, const bel_assignment *assignment,
                               int worker);
// Returns the size of all its room.
size_t bel_row_buffer_bytes(const bel_layout *layout, const bel_assignment *assignment, int worker);

// Returns the offset of the reports of a worker's node `node`. The report to each shard begins at a
// multiple of BEL_ROW_ALIGN.
size_t bel_row_buffer_report(const bel_layout *layout, const bel_assignment *assignment, int table,
                             int node);

// Returns the largest payload of a report of that node to one shard.
size_t bel_row_buffer_report_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int table, int node);

// Returns the offset of a shard's answers to a worker. Each pull's rows begin at a multiple of
// BEL_ROW_ALIGN.
size_t bel_row_buffer_answers(const bel_layout *layout, const bel_assignment *assignment,
                              int worker, int table);

// Returns the offset of a shard's answers to the worker's exchanges.
size_t bel_row_buffer_exchange_answers(const bel_layout *layout, const bel_assignment *assignment,
                                       int worker);
// Returns the size of all that room.
size_t bel_row_buffer_answer_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int worker);

#endif
