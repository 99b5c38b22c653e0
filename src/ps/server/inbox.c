// Where frames of lanes without shared memory land. Everything about a frame is checked here, on
// the lane's thread and against things that never change, before a byte of its payload is
// written; so no lock is taken. One room for each node is enough: a worker reports again only
// when it has a newer version, and its last report is done with by then. A frame that comes
// again goes to the same place with the same bytes.
#include "base/alloc.h"
#include "ps/server/shard_inner.h"

bel_status *bel_shard_reserve(bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        void *memory;
        size_t bytes = (size_t)shard->inbox_elements * sizeof(float);
        if (bytes == 0) break; // a shard without chunks
        BEL_TRY(bel_pages_create(bytes, true, "reports", &memory));
        shard->inboxes[k] = memory;
    }
    size_t rows = bel_row_buffer_bytes(shard->config.layout, assignment, worker);
    if (rows > 0) BEL_TRY(bel_pages_create(rows, false, "reports", &shard->row_inboxes[worker]));
    if (shard->stats_inbox != NULL) return NULL;
    size_t width = (size_t)shard->config.stats_width;
    shard->stats_inbox = bel_xcalloc((size_t)assignment->node_count * width, sizeof(double));
    return NULL;
}

void bel_shard_free_inboxes(bel_shard *shard)
{
    for (int k = 0; k < shard->config.assignment->node_count; k++)
        bel_pages_destroy(shard->inboxes[k], (size_t)shard->inbox_elements * sizeof(float));
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bel_pages_destroy(shard->row_inboxes[w],
                          bel_row_buffer_bytes(shard->config.layout, shard->config.assignment, w));
    }
    bel_free(shard->inboxes);
    bel_free(shard->row_inboxes);
    bel_free(shard->stats_inbox);
    bel_free(shard->norm_inbox);
    bel_free(shard->factor_inbox);
}

static void *place_report(const bel_shard *shard, const bel_frame *frame)
{
    for (int i = 0; i < shard->chunk_count; i++) {
        if (shard->chunks[i].chunk != frame->chunk) continue;
        int64_t count = shard->config.layout->chunks[frame->chunk].count;
        if (frame->payload_bytes != (size_t)count * sizeof(float)) return NULL;
        float *inbox = shard->inboxes[frame->node];
        return inbox != NULL ? inbox + shard->chunks[i].inbox_offset : NULL;
    }
    return NULL;
}

static void *place_pull(const bel_shard *shard, int worker, const bel_frame *frame)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    char *inbox = shard->row_inboxes[worker];
    if (inbox == NULL || frame->chunk < 0 || frame->chunk >= layout->table_count) return NULL;
    int64_t ids = bel_row_buffer_ids(layout, assignment, worker, frame->chunk);
    if (frame->payload_bytes > (size_t)ids * sizeof(int64_t)) return NULL;
    return inbox + bel_row_buffer_keys(layout, assignment, worker, frame->chunk);
}

static void *place_rows(const bel_shard *shard, int worker, const bel_frame *frame)
{
    const bel_layout *layout = shard->config.layout;
    const bel_assignment *assignment = shard->config.assignment;
    char *inbox = shard->row_inboxes[worker];
    if (inbox == NULL || frame->chunk < 0 || frame->chunk >= layout->table_count) return NULL;
    size_t most = bel_row_buffer_report_bytes(layout, assignment, frame->chunk, frame->node);
    if (frame->payload_bytes > most) return NULL;
    return inbox + bel_row_buffer_report(layout, assignment, frame->chunk, frame->node);
}

static void *place_from_worker(const bel_shard *shard, int worker, const bel_frame *frame)
{
    const bel_assignment *assignment = shard->config.assignment;
    if (frame->sender != worker) return NULL;
    if (frame->kind == BEL_FRAME_ROW_PULL) return place_pull(shard, worker, frame);
    bool its_node = frame->node >= assignment->first_node[worker] &&
                    frame->node < assignment->first_node[worker + 1];
    if (!its_node) return NULL;
    size_t width = (size_t)shard->config.stats_width;
    if (frame->kind == BEL_FRAME_REPORT) return place_report(shard, frame);
    if (frame->kind == BEL_FRAME_ROW_REPORT) return place_rows(shard, worker, frame);
    if (frame->kind != BEL_FRAME_STATS || shard->stats_inbox == NULL) return NULL;
    if (frame->payload_bytes != width * sizeof(double)) return NULL;
    return shard->stats_inbox + (size_t)frame->node * width;
}

void *bel_shard_place(void *context, const bel_frame *frame)
{
    const bel_shard_peer *peer = context;
    const bel_shard *shard = peer->shard;
    if (peer->worker >= 0) return place_from_worker(shard, peer->worker, frame);
    const bel_layout *layout = shard->config.layout;
    size_t norms = bel_shard_norm_count(shard), variables = (size_t)layout->variable_count;
    if (frame->sender != peer->peer_shard) return NULL;
    if (shard->config.shard == 0) {
        bool fits =
            frame->kind == BEL_FRAME_NORMS && frame->payload_bytes == norms * sizeof(double);
        if (!fits || shard->norm_inbox == NULL) return NULL;
        return shard->norm_inbox + (size_t)peer->peer_shard * norms;
    }
    bool fits =
        frame->kind == BEL_FRAME_FACTORS && frame->payload_bytes == variables * sizeof(float);
    return fits ? shard->factor_inbox : NULL;
}
