// Offsets are sums over the preceding parts. Both ends compute them from layout and assignment, so
// no offset travels. Only bel_row_buffer_check looks for overflow: it bounds all room of a job
// together, and runs before any other function here. Each part of a report, and each pull's answer,
// may need padding to the next multiple; the padding is bounded by the number of shards and of
// replicas.
#include "ps/layout/row_buffer.h"

#include "base/alloc.h"
#include "ps/layout/exchange.h"

// Adds the room of a table. Each id of a replica has room for its key and its row twice: once in
// the report, once in the pull. Padding is for each node; there are at most as many nodes as
// replicas.
static bool add_table(const bel_layout_table *table, int shard_count, int64_t replica_count,
                      size_t *bytes)
{
    size_t each = 2 * bel_row_set_bytes(1, bel_layout_report_width(table)), filling = BEL_ROW_ALIGN,
           own;
    return bel_size_mul((size_t)table->ids, each, &own) &&
           bel_size_mul(filling, (size_t)shard_count + 3, &filling) &&
           bel_size_add(own, filling, &own) && bel_size_mul(own, (size_t)replica_count, &own) &&
           bel_size_add(*bytes, own, bytes) && *bytes <= BEL_ROW_BUFFER_MOST;
}

bel_status *bel_row_buffer_check(const bel_layout *layout, int64_t replica_count)
{
    size_t bytes = 0;
    for (int t = 0; t < layout->table_count; t++) {
        const bel_layout_table *table = &layout->tables[t];
        if (add_table(table, layout->shard_count, replica_count, &bytes)) continue;
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "table \"%s\": %lld ids of a replica's batch, rows of %d floats, replicas: "
                       "%lld; these need more room than there can be (%zu GiB for all tables)",
                       table->name, (long long)table->ids, table->width, (long long)replica_count,
                       BEL_ROW_BUFFER_MOST >> 30);
    }
    return NULL;
}

int64_t bel_row_buffer_ids(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table)
{
    return (int64_t)bel_assignment_replicas(assignment, worker) * layout->tables[table].ids;
}

size_t bel_row_buffer_report_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int table, int node)
{
    const bel_layout_table *t = &layout->tables[table];
    return bel_row_set_bytes(assignment->nodes[node].count * t->ids, bel_layout_report_width(t));
}

// Each shard's report may need padding to the next multiple.
static size_t report_room(const bel_layout *layout, const bel_assignment *assignment, int table,
                          int node)
{
    size_t filling = (size_t)layout->shard_count * BEL_ROW_ALIGN;
    return bel_row_aligned(bel_row_buffer_report_bytes(layout, assignment, table, node) + filling);
}

// Keys have 8 bytes and need no padding.
static size_t key_room(const bel_layout *layout, const bel_assignment *assignment, int worker,
                       int table)
{
    return (size_t)bel_row_buffer_ids(layout, assignment, worker, table) * sizeof(int64_t);
}

// After the keys and reports of all preceding tables.
size_t bel_row_buffer_keys(const bel_layout *layout, const bel_assignment *assignment, int worker,
                           int table)
{
    size_t bytes = 0;
    for (int t = 0; t < table; t++) {
        bytes += key_room(layout, assignment, worker, t);
        for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++)
            bytes += report_room(layout, assignment, t, k);
    }
    return bytes;
}

size_t bel_row_buffer_report(const bel_layout *layout, const bel_assignment *assignment, int table,
                             int node)
{
    int worker = assignment->nodes[node].worker;
    size_t bytes = bel_row_buffer_keys(layout, assignment, worker, table);
    bytes += key_room(layout, assignment, worker, table);
    for (int k = assignment->first_node[worker]; k < node; k++)
        bytes += report_room(layout, assignment, table, k);
    return bytes;
}

// After the rows of the preceding tables. Each pull is padded to the next multiple; a worker pulls
// at most once for each of its replicas.
size_t bel_row_buffer_answers(const bel_layout *layout, const bel_assignment *assignment,
                              int worker, int table)
{
    size_t bytes = 0;
    for (int t = 0; t < table; t++) {
        size_t width = (size_t)layout->tables[t].width;
        size_t rows = (size_t)bel_row_buffer_ids(layout, assignment, worker, t);
        size_t filling =
            // padding of each pull
            (size_t)bel_assignment_replicas(assignment, worker) * BEL_ROW_ALIGN;
        bytes += bel_row_aligned(rows * width * sizeof(float) + filling);
    }
    return bytes;
}

// Doubles, after parts whose size is a multiple of theirs.
size_t bel_row_buffer_stats(const bel_layout *layout, const bel_assignment *assignment, int node)
{
    int worker = assignment->nodes[node].worker;
    size_t before = (size_t)(node - assignment->first_node[worker]) * layout->stats_bytes;
    return bel_row_buffer_keys(layout, assignment, worker, layout->table_count) + before;
}

// --- Exchanges -----------------------------------------------------------------------------------

static size_t exchange_aligned(size_t bytes)
{
    return (bytes + BEL_EXCHANGE_ALIGN - 1) / BEL_EXCHANGE_ALIGN * BEL_EXCHANGE_ALIGN;
}

size_t bel_row_buffer_exchange(const bel_layout *layout, const bel_assignment *assignment,
                               int worker)
{
    size_t nodes = (size_t)(assignment->first_node[worker + 1] - assignment->first_node[worker]);
    return exchange_aligned(bel_row_buffer_keys(layout, assignment, worker, layout->table_count) +
                            nodes * layout->stats_bytes);
}

size_t bel_row_buffer_bytes(const bel_layout *layout, const bel_assignment *assignment, int worker)
{
    size_t rows = bel_row_buffer_exchange(layout, assignment, worker);
    return rows + (layout->exchanges ? BEL_EXCHANGE_ROOM : 0);
}

size_t bel_row_buffer_exchange_answers(const bel_layout *layout, const bel_assignment *assignment,
                                       int worker)
{
    return exchange_aligned(
        bel_row_buffer_answers(layout, assignment, worker, layout->table_count));
}

// Rooms of several workers follow each other, so each ends at a multiple.
size_t bel_row_buffer_answer_bytes(const bel_layout *layout, const bel_assignment *assignment,
                                   int worker)
{
    size_t rows = bel_row_buffer_exchange_answers(layout, assignment, worker);
    return rows + (layout->exchanges ? BEL_EXCHANGE_ROOM : 0);
}
