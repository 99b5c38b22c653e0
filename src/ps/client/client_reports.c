// A worker's reports. A frame refers to the worker's data, which stays until the next version, so a
// frame that waits for room costs a copy of its header. Parts are sent in their order, whatever
// order they are computed in, and each shard's step statistics after its last part: they complete
// the report, and small reports wait in the lane for them.
//
// The frame that says how much room there is may come before or after the version, on this thread
// or a lane's, and more than once: it has the version that it is about, and its number only grows.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "ps/client/client_inner.h"
#include "ps/layout/report_room.h"
#include "ps/layout/rounding.h"
#include "ps/layout/step_stats.h"

static int nodes_of(const bel_client *client)
{
    const int *first = client->config.assignment->first_node + client->config.worker;
    return first[1] - first[0];
}

void bel_client_create_reports(bel_client *client)
{
    const bel_layout *layout = client->config.layout;
    held_reports *held = &client->held;
    pthread_mutex_init(&held->mutex, NULL);
    held->step = held->function = -1;
    held->shards = bel_xcalloc((size_t)layout->shard_count, sizeof *held->shards);
    for (int k = 0; k < layout->shard_count; k++)
        held->shards[k].version = -1;
}

void bel_client_destroy_reports(bel_client *client)
{
    held_reports *held = &client->held;
    pthread_mutex_destroy(&held->mutex);
    bel_free(held->shards);
    bel_free(held->first);
    bel_free(held->order);
    bel_free(held->sums);
    bel_free(held->stats);
    bel_status_destroy(held->error);
}

bel_status *bel_client_reports_error(bel_client *client)
{
    pthread_mutex_lock(&client->held.mutex);
    bel_status *error = client->held.error;
    client->held.error = NULL;
    pthread_mutex_unlock(&client->held.mutex);
    return error;
}

// --- Parts ---------------------------------------------------------------------------------------

static held_frame *sums_of(const bel_client *client, int chunk, int node)
{
    return &client->held.sums[(size_t)chunk * (size_t)nodes_of(client) + (size_t)node];
}

static held_frame *stats_of(const bel_client *client, int shard, int node)
{
    return &client->held.stats[(size_t)shard * (size_t)nodes_of(client) + (size_t)node];
}

static bool part_is_complete(const bel_client *client, int chunk)
{
    for (int k = 0; k < nodes_of(client); k++)
        if (!sums_of(client, chunk, k)->waits) return false;
    return true;
}

static bel_status *send_part_locked(bel_client *client, int shard, int chunk)
{
    for (int k = 0; k < nodes_of(client); k++) {
        held_frame *sums = sums_of(client, chunk, k);
        sums->waits = false;
        BEL_TRY(bel_client_send(client, shard, sums->frame));
    }
    return NULL;
}

// Sends the parts that have their turn and room; *out_last: no part is left.
static bel_status *send_parts_locked(bel_client *client, int shard, bool *out_last)
{
    const held_reports *held = &client->held;
    held_report *report = &held->shards[shard];
    *out_last = false;
    int parts = held->first[shard + 1] - held->first[shard];
    for (; report->next < parts; report->next++) {
        int chunk = held->order[held->first[shard] + report->next];
        if (report->next < report->reported) continue;
        if (report->next >= report->room || !part_is_complete(client, chunk)) return NULL;
        BEL_TRY(send_part_locked(client, shard, chunk));
        bel_fault_point("worker_sent_part");
    }
    *out_last = true;
    return NULL;
}

// Sends what has its turn and room, and no part without it: the next one may be long in coming.
static bel_status *send_held_locked(bel_client *client, int shard)
{
    const held_reports *held = &client->held;
    held_report *report = &held->shards[shard];
    if (!report->limited || report->version != held->step || held->error != NULL) return NULL;
    int before = report->next;
    bool last;
    BEL_TRY(send_parts_locked(client, shard, &last));
    if (!last && report->next > before) bel_lane_flush(client->config.lanes[shard]);
    if (!last) return NULL;
    for (; report->next_stats < nodes_of(client); report->next_stats++) {
        held_frame *stats = stats_of(client, shard, report->next_stats);
        if (!stats->waits) return NULL;
        stats->waits = false;
        BEL_TRY(bel_client_send(client, shard, stats->frame));
    }
    return NULL;
}

// Adds a frame to those that wait, and sends what can be sent.
static bel_status *hold(bel_client *client, int shard, held_frame *place, bel_frame frame)
{
    pthread_mutex_lock(&client->held.mutex);
    *place = (held_frame){.waits = true, .frame = frame};
    bel_status *status = send_held_locked(client, shard);
    pthread_mutex_unlock(&client->held.mutex);
    return status;
}

// --- Room ----------------------------------------------------------------------------------------

static void set_room_locked(bel_client *client, int shard, int64_t version, int reported, int room)
{
    held_report *report = &client->held.shards[shard];
    if (version < report->version) return;
    if (version > report->version) report->room = report->reported = 0;
    report->version = version;
    if (reported > report->reported) report->reported = reported;
    if (room > report->room) report->room = room;
}

void bel_client_take_room(bel_client *client, int shard, const bel_frame *frame)
{
    held_reports *held = &client->held;
    bel_room_frame room = bel_room_frame_read(frame);
    if (frame->generation != client->config.generation) return;
    pthread_mutex_lock(&held->mutex);
    set_room_locked(client, shard, room.version, 0, room.parts);
    bel_status *status = send_held_locked(client, shard);
    if (held->error == NULL) {
        held->error = status;
    } else {
        bel_status_ignore(status); // the first one ends the wait
    }
    pthread_mutex_unlock(&held->mutex);
}

void bel_client_take_at_once(void *peer, const bel_frame *frame)
{
    const bel_client_peer *p = peer;
    if (frame->kind == BEL_FRAME_ROOM && frame->sender == p->shard)
        bel_client_take_room(p->client, p->shard, frame);
}

void bel_client_take_limit(bel_client *client, int shard, const bel_version_frame *version)
{
    held_reports *held = &client->held;
    pthread_mutex_lock(&held->mutex);
    held->shards[shard].will_be = version->limited != 0;
    if (version->limited != 0)
        set_room_locked(client, shard, version->version, version->reported, version->room);
    pthread_mutex_unlock(&held->mutex);
}

// Allocates the places of frames with the first report that is limited.
static void make_places_locked(bel_client *client)
{
    const bel_layout *layout = client->config.layout;
    held_reports *held = &client->held;
    size_t nodes = (size_t)nodes_of(client), shards = (size_t)layout->shard_count;
    if (held->sums != NULL) return;
    held->first = bel_xcalloc(shards + 1, sizeof *held->first);
    held->order = bel_xcalloc((size_t)layout->chunk_count + 1, sizeof *held->order);
    held->sums = bel_xcalloc((size_t)layout->chunk_count * nodes + 1, sizeof *held->sums);
    held->stats = bel_xcalloc(shards * nodes + 1, sizeof *held->stats);
}

// Frames of parts that need not be sent are still there.
static void forget_held_locked(bel_client *client)
{
    const bel_layout *layout = client->config.layout;
    size_t nodes = (size_t)nodes_of(client);
    for (size_t i = 0; i < (size_t)layout->chunk_count * nodes; i++)
        client->held.sums[i].waits = false;
    for (size_t i = 0; i < (size_t)layout->shard_count * nodes; i++)
        client->held.stats[i].waits = false;
}

void bel_client_begin_report(bel_client *client, int64_t step)
{
    const bel_layout *layout = client->config.layout;
    held_reports *held = &client->held;
    int function = bel_decision_function(client->decision);
    bool limited = false;
    if (held->step == step) return; // it is in work
    pthread_mutex_lock(&held->mutex);
    held->step = step;
    for (int k = 0; k < layout->shard_count; k++) {
        held->shards[k].next = held->shards[k].next_stats = 0;
        held->shards[k].limited = held->shards[k].will_be;
        limited = limited || held->shards[k].limited;
    }
    if (limited) make_places_locked(client);
    if (limited) forget_held_locked(client);
    for (int k = 0; k < layout->shard_count && limited && held->function != function; k++)
        held->first[k + 1] =
            held->first[k] + bel_report_order(layout, k, function, held->order + held->first[k]);
    if (limited) held->function = function;
    pthread_mutex_unlock(&held->mutex);
}

// --- Reports -------------------------------------------------------------------------------------

// Index of a node among the worker's.
static int own_of(const bel_client *client, int node)
{
    const bel_client_config *config = &client->config;
    if (config->relayed != NULL) return node - client->relayed.first_node;
    return node - config->assignment->first_node[config->worker];
}

static int number_of(const bel_client *client, int own)
{
    return client->config.assignment->first_node[client->config.worker] + own;
}

// Stamps a frame and sends it, at once or when there is room. `limited` changes only at the end of
// a wait, before the worker's threads report.
static bel_status *send_or_hold(bel_client *client, int shard, held_frame *place, bel_frame frame)
{
    if (client->held.shards[shard].limited) return hold(client, shard, place, frame);
    return bel_client_send(client, shard, frame);
}

bel_status *bel_client_report(bel_client *client, int64_t step, uint32_t decision, int chunk,
                              int node, bel_weight weight, const float *data)
{
    const bel_client_config *config = &client->config;
    const bel_chunk *part = &config->layout->chunks[chunk];
    int own = own_of(client, node);
    bel_report_frame report = {.version = step,
                               .decision = decision,
                               .chunk = chunk,
                               .node = number_of(client, own),
                               .replicas = (int32_t)weight.replicas,
                               .examples = weight.examples};
    held_frame *place = client->held.sums != NULL ? sums_of(client, chunk, own) : NULL;
    bool packs = config->rounded_room != NULL && part->kind == BEL_VARIABLE_TRAINABLE &&
                 !config->lanes[part->shard]->ops->shares_memory;
    const void *payload = data;
    size_t bytes = (size_t)part->count * sizeof(float);
    if (packs) {
        int64_t at = (1 + own) * config->layout->size + part->offset;
        char *room = (char *)config->rounded_room + bel_rounding_bytes(config->rounding, at);
        bel_rounding_pack(config->rounding, step, data, room, part->count);
        payload = room;
        bytes = bel_rounding_bytes(config->rounding, part->count);
    }
    return send_or_hold(client, part->shard, place, bel_report_frame_write(report, payload, bytes));
}

bel_status *bel_client_stats(bel_client *client, int64_t step, uint32_t decision, int node,
                             uint64_t hash, const double *stats)
{
    const bel_client_config *config = &client->config;
    int own = own_of(client, node);
    bel_stats_frame said = {
        .version = step, .decision = decision, .node = number_of(client, own), .hash = hash};
    size_t bytes = (size_t)bel_stats_size(config->stats) * sizeof(double);
    if (config->layout->stats_bytes > 0) { // shards have taken the preceding step's
        char *room = config->row_buffer;
        room += bel_row_buffer_stats(config->layout, config->assignment, node);
        stats = memcpy(room, stats, bytes);
    }
    for (int k = 0; k < config->layout->shard_count; k++) {
        held_frame *place = client->held.stats != NULL ? stats_of(client, k, own) : NULL;
        BEL_TRY(send_or_hold(client, k, place, bel_stats_frame_write(said, stats, bytes)));
        bel_fault_point("worker_sent_stats");
    }
    return NULL;
}
