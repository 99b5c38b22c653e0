// Destination of frames from lanes without shared memory. Frames are checked here completely, on
// the lane's thread and against immutable data, before a byte of the payload is written; so no lock
// is needed. One room for each node is enough: a worker reports again only when it has a newer
// version, and its last report has been used by then. A repeated frame goes to the same place with
// the same bytes. If there is no room for all reports, report_room.c has the places instead, and
// repeated frames go where no one reads.
#include "base/alloc.h"
#include "ps/layout/exchange.h"
#include "ps/server/shard_inner.h"

// Reserves room for a worker's nodes of this shard's chunks, end to end (inbox_offset), and for its
// rows. Step statistics of all workers are one small array, allocated with the first room.
bel_status *bel_shard_reserve(bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    bool limited = shard->room.plan.limited;
    if (limited) BEL_TRY(bel_shard_reserve_room(shard));
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        void *memory;
        if (limited) break; // the slots are for all
        size_t bytes = (size_t)shard->inbox.elements * sizeof(float);
        if (bytes == 0) break; // a shard without chunks
        BEL_TRY(bel_pages_create(bytes, true, "reports", &memory));
        shard->inbox.sums[k] = memory;
    }
    bool rounds = shard->config.settings.rounding != BEL_ROUNDING_NONE && !shard->config.mirrors;
    if (shard->memory.differences == NULL && rounds) { // a mirror sends no values
        void *memory;
        size_t bytes =
            bel_rounding_bytes(shard->config.settings.rounding, shard->config.layout->size);
        BEL_TRY(bel_pages_create(bytes, false, "differences of values", &memory));
        shard->memory.differences = memory;
    }
    size_t rows = bel_row_buffer_bytes(shard->config.layout, assignment, worker);
    if (rows > 0) BEL_TRY(bel_pages_create(rows, false, "reports", &shard->inbox.rows[worker]));
    if (shard->inbox.stats != NULL) return NULL;
    size_t stats = (size_t)bel_stats_size(shard->config.settings.stats);
    shard->inbox.stats = bel_xcalloc((size_t)assignment->node_count * stats, sizeof(double));
    return NULL;
}

void bel_shard_free_inboxes(bel_shard *shard)
{
    for (int k = 0; k < shard->config.assignment->node_count; k++)
        bel_pages_destroy(shard->inbox.sums[k], (size_t)shard->inbox.elements * sizeof(float));
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bel_pages_destroy(shard->inbox.rows[w],
                          bel_row_buffer_bytes(shard->config.layout, shard->config.assignment, w));
    }
    bel_free(shard->inbox.sums);
    bel_free(shard->inbox.rows);
    bel_free(shard->inbox.stats);
    for (int k = 1; shard->inbox.norms != NULL && k < shard->config.layout->shard_count; k++)
        bel_free(shard->inbox.norms[k]);
    bel_free(shard->inbox.norms);
    bel_free(shard->inbox.factors);
}

// NULL if the chunk is another shard's, as for a wrong size.
static void *place_report(const bel_shard *shard, const bel_report_frame *report, size_t bytes)
{
    int local = bel_shard_local_chunk(shard, report->chunk);
    if (local < 0) return NULL;
    bel_rounding rounding = bel_shard_rounding(shard, report->chunk);
    int64_t count = shard->config.layout->chunks[report->chunk].count;
    if (bytes != bel_rounding_bytes(rounding, count)) return NULL;
    if (shard->room.memory != NULL) return bel_shard_place_in_room(shard, report, local);
    float *inbox = shard->inbox.sums[report->node];
    return inbox != NULL ? inbox + shard->chunks[local].inbox_offset : NULL;
}

static void *place_pull(const bel_shard *shard, int worker, int32_t table, size_t bytes)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    char *inbox = shard->inbox.rows[worker];
    if (inbox == NULL || table < 0 || table >= layout->table_count) return NULL;
    int64_t ids = bel_row_buffer_ids(layout, assignment, worker, table);
    if (bytes > (size_t)ids * sizeof(int64_t)) return NULL;
    return inbox + bel_row_buffer_keys(layout, assignment, worker, table);
}

static void *place_rows(const bel_shard *shard, int worker, int32_t table, int32_t node,
                        size_t bytes)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    char *inbox = shard->inbox.rows[worker];
    if (inbox == NULL || table < 0 || table >= layout->table_count) return NULL;
    if (bytes > bel_row_buffer_report_bytes(layout, assignment, table, node)) return NULL;
    return inbox + bel_row_buffer_report(layout, assignment, table, node);
}

static void *place_stats(const bel_shard *shard, int32_t node, size_t bytes)
{
    size_t size = (size_t)bel_stats_size(shard->config.settings.stats);
    if (shard->inbox.stats == NULL || bytes != size * sizeof(double)) return NULL;
    return shard->inbox.stats + (size_t)node * size;
}

static void *place_exchange(const bel_shard *shard, int worker, uint32_t at, size_t bytes)
{
    const bel_layout *layout = shard->config.layout;
    char *inbox = shard->inbox.rows[worker];
    if (inbox == NULL || !layout->exchanges) return NULL;
    if (at > BEL_EXCHANGE_ROOM || bytes > BEL_EXCHANGE_ROOM - at) return NULL;
    return inbox + bel_row_buffer_exchange(layout, shard->config.assignment, worker) + at;
}

static void *place_factors(const bel_shard *shard, size_t bytes)
{
    size_t variables = (size_t)shard->config.layout->variable_count;
    return bytes == variables * sizeof(float) ? shard->inbox.factors : NULL;
}

// Places a worker's frame: only that worker's nodes may be written.
static void *place_from_worker(const bel_shard *shard, int worker, const bel_frame *frame)
{
    const bel_assignment *assignment = shard->config.assignment;
    size_t bytes = frame->payload_bytes;
    if (frame->sender != worker) return NULL;
    if (frame->kind == BEL_FRAME_FACTORS && shard->config.mirrors)
        return place_factors(shard, bytes);
    if (frame->kind == BEL_FRAME_ROW_PULL)
        return place_pull(shard, worker, bel_row_pull_frame_read(frame).table, bytes);
    if (frame->kind == BEL_FRAME_EXCHANGE)
        return place_exchange(shard, worker, bel_exchange_frame_read(frame).at, bytes);
    if (frame->kind == BEL_FRAME_REPORT) {
        bel_report_frame report = bel_report_frame_read(frame);
        if (!bel_assignment_is_node_of(assignment, report.node, worker)) return NULL;
        return place_report(shard, &report, bytes);
    }
    if (frame->kind == BEL_FRAME_ROW_REPORT) {
        bel_row_report_frame report = bel_row_report_frame_read(frame);
        if (!bel_assignment_is_node_of(assignment, report.node, worker)) return NULL;
        return place_rows(shard, worker, report.table, report.node, bytes);
    }
    if (frame->kind == BEL_FRAME_STATS) {
        int32_t node = bel_stats_frame_read(frame).node;
        if (!bel_assignment_is_node_of(assignment, node, worker)) return NULL;
        return place_stats(shard, node, bytes);
    }
    return NULL;
}

// Other shards send norms to shard 0, and shard 0 sends factors to them; no other frames between
// shards have a payload (but those of a state, mirror_state.c).
void *bel_shard_place(void *context, const bel_frame *frame)
{
    const bel_shard_peer *peer = context;
    const bel_shard *shard = peer->shard;
    if (peer->worker >= 0) return place_from_worker(shard, peer->worker, frame);
    int sender = peer->peer_shard;
    if (frame->sender != sender) return NULL;
    if (shard->config.shard == 0) {
        bool fits = frame->kind == BEL_FRAME_NORMS && shard->inbox.norms != NULL &&
                    frame->payload_bytes == bel_shard_norm_bytes(shard, sender);
        return fits ? shard->inbox.norms[sender] : NULL;
    }
    bool factors = frame->kind == BEL_FRAME_FACTORS && sender != shard->config.shard;
    return factors ? place_factors(shard, frame->payload_bytes) : NULL;
}
