// Room for rows, and for values of collectives, on their way between a worker and the shards. What
// another process reads in place must have its place before the two meet, and both must know how
// much there is; so there is room for the most that can come: all ids of a worker's batches
// distinct, and all of them at one shard. Unused pages cost nothing.
//
//   a worker's, for each table:  the keys of the pull that is under way
//                                for each of its nodes: the reports, shard after shard
//                                behind all tables: step statistics that are too long for a
//                                frame, by node; pieces of exchanges (exchange.h)
//   a shard's, for each worker:  the rows that it answers with, table after table
//                                answers to exchanges
//
// Offsets are bytes, multiples of BEL_ROW_ALIGN. Immutable inputs, so thread-safe.
#ifndef BELFRY_PS_LAYOUT_ROW_BUFFER_H
#define BELFRY_PS_LAYOUT_ROW_BUFFER_H

#include "ps/layout/assignment.h"
#include "ps/layout/layout.h"
#include "ps/layout/row_set.h"

enum { BEL_ROW_ALIGN = 8 };

// The bytes that all room of a job together may take: no real model needs more, and there would be
// no addresses for it.
#define BEL_ROW_BUFFER_MOST ((size_t)1 << 44)

static inline size_t bel_row_aligned(size_t bytes)
{
    return (bytes + BEL_ROW_ALIGN - 1) / BEL_ROW_ALIGN * BEL_ROW_ALIGN;
}

// Before anything below is asked: whether there can be that much room for so many replicas.
// RESOURCE_EXHAUSTED names the table with which it is too much, and its numbers.
bel_status *bel_row_buffer_check(const bel_layout *layout, int64_t replica_count) BEL_MUST_USE;

// Ids of a table that one worker's replicas have in a step, at most.
int64_t bel_row_buffer_ids(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table);

// Where a worker's keys for a table begin.
size_t bel_row_buffer_keys(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table);

// Where the step statistics of node `node`, one of its own, lie.
size_t bel_row_buffer_stats(const bel_layout *layout, const bel_assignment *assignment, int node);

// Where its pieces of exchanges begin, at a multiple of BEL_EXCHANGE_ALIGN, and all its room.
size_t bel_row_buffer_exchange(const bel_layout *layout, const bel_assignment *assignment,
                               int worker);
size_t bel_row_buffer_bytes(const bel_layout *layout, const bel_assignment *assignment, int worker);

// Where its reports of node `node`, one of its own, begin. The report to a shard begins at a
// multiple of BEL_ROW_ALIGN.
size_t bel_row_buffer_report(const bel_layout *layout, const bel_assignment *assignment, int table,
                             int node);

// The largest payload of a report of that node to one shard.
size_t bel_row_buffer_report_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int table, int node);

// Where a shard's answers to a worker begin.
// Each pull's rows begin at a multiple of BEL_ROW_ALIGN.
size_t bel_row_buffer_answers(const bel_layout *layout, const bel_assignment *assignment,
                              int worker, int table);

// Where its answers to the worker's exchanges begin, and all that room.
size_t bel_row_buffer_exchange_answers(const bel_layout *layout, const bel_assignment *assignment,
                                       int worker);
size_t bel_row_buffer_answer_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int worker);

#endif
