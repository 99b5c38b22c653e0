// The parameter client over lanes. Only the worker's thread takes frames, while it waits, so the
// state of the shards needs no lock. `published` is atomic because other threads print it, and
// relaxed because it orders no data: the lanes order the values. Leases have a mutex because
// prefetching threads wait for them.
//
// Values may arrive before or after their version: the version counts as soon as it is announced
// and all its chunks have arrived. Late or repeated values are recognized by their step, chunk by
// chunk, and skipped. A wait ends with its object, a malformed frame, cancellation, a cut lane of a
// shard that is still missing, or the stall timeout.
#include "ps/client/client_inner.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "ps/layout/rounding.h"
#include "ps/layout/step_stats.h"

// A worker's number in messages.
static int name_of(const bel_client *client)
{
    const bel_client_relayed *relayed = client->config.relayed;
    return relayed != NULL ? client->relayed.worker : client->config.worker;
}

// A relay above is the only shard: messages name it by its worker.
static bool has_relay(const bel_client *client)
{
    return client->config.relayed != NULL && client->relayed.parent >= 0;
}

static const char *peer_kind(const bel_client *client)
{
    return has_relay(client) ? "the relay of worker" : "shard";
}

static int peer_number(const bel_client *client, int shard)
{
    return has_relay(client) ? client->relayed.parent : shard;
}

bel_client *bel_client_create(const bel_client_config *config)
{
    bel_client *client = bel_xcalloc(1, sizeof *client);
    client->config = *config;
    if (config->relayed != NULL) client->relayed = *config->relayed;
    client->shards = bel_xcalloc((size_t)config->layout->shard_count, sizeof *client->shards);
    client->value_steps = bel_xcalloc((size_t)config->layout->chunk_count, sizeof(int64_t));
    client->value_differs = bel_xcalloc((size_t)config->layout->chunk_count, sizeof(bool));
    for (int k = 0; k < config->layout->shard_count; k++) {
        atomic_store(&client->shards[k].published, -1);
        client->shards[k].announced = client->shards[k].values_step = -1;
    }
    pthread_mutex_init(&client->leases.mutex, NULL);
    bel_cond_init(&client->leases.came);
    for (int i = 0; i < LEASES; i++)
        client->leases.numbers[i] = -1;
    for (int c = 0; c < config->layout->chunk_count; c++) {
        client->value_steps[c] = -1;
        // Values from lanes begin in the buffer in which a shard of this process has the version.
        bool frozen = config->layout->chunks[c].kind == BEL_VARIABLE_FROZEN;
        unsigned char buffer = frozen ? 0 : (unsigned char)config->first_buffer;
        if (config->space != NULL) atomic_store(&config->space->current[c], buffer);
    }
    bel_client_create_tables(client);
    bel_client_create_reports(client);
    bel_log_write(BEL_LOG_DEBUG, "worker %d waits for a version for %g s at most", name_of(client),
                  config->stall_timeout_secs);
    return client;
}

void bel_client_destroy(bel_client *client)
{
    if (client == NULL) return;
    pthread_cond_destroy(&client->leases.came);
    pthread_mutex_destroy(&client->leases.mutex);
    bel_client_destroy_tables(client);
    bel_client_destroy_reports(client);
    bel_free(client->shards);
    bel_free(client->value_steps);
    bel_free(client->value_differs);
    bel_status_destroy(client->error);
    bel_free(client);
}

static int64_t client_published(const shard_view *view)
{
    return atomic_load_explicit(&view->published, memory_order_relaxed);
}

// The room for a chunk's differences.
static void *differences_of(const bel_client *client, const bel_chunk *chunk)
{
    const bel_client_config *config = &client->config;
    return (char *)config->rounded_room + bel_rounding_bytes(config->rounding, chunk->offset);
}

// True if a chunk's values come as differences from those that the worker has.
static bool carries_differences(const bel_client *client, int c, size_t payload_bytes)
{
    const bel_chunk *chunk = &client->config.layout->chunks[c];
    return client->config.rounded_room != NULL && chunk->kind == BEL_VARIABLE_TRAINABLE &&
           client_published(&client->shards[chunk->shard]) >= 0 &&
           payload_bytes == bel_rounding_bytes(client->config.rounding, chunk->count);
}

// Runs on the lane's thread. A chunk's next values come only after this worker has reported on the
// current ones, so `current` does not change meanwhile.
void *bel_client_place(void *context, const bel_frame *frame)
{
    const bel_client_peer *peer = context;
    const bel_layout *layout = peer->client->config.layout;
    bel_space *space = peer->client->config.space;
    if (frame->sender != peer->shard) return NULL;
    if (frame->kind == BEL_FRAME_ROWS) {
        return bel_client_place_rows(peer->client, peer->shard, frame);
    }
    if (frame->kind == BEL_FRAME_EXCHANGED && peer->shard == 0)
        return bel_client_place_exchanged(peer->client, frame);
    if (frame->kind != BEL_FRAME_PARAMS) return NULL;
    int32_t c = bel_params_frame_read(frame).chunk;
    if (c < 0 || c >= layout->chunk_count) return NULL;
    const bel_chunk *chunk = &layout->chunks[c];
    if (chunk->shard != peer->shard) return NULL;
    size_t count = (size_t)chunk->count;
    if (carries_differences(peer->client, c, frame->payload_bytes))
        return differences_of(peer->client, chunk);
    if (frame->payload_bytes != count * sizeof(float)) return NULL;
    // The first version goes where a shard of this process has it: all chunks of a variable must be
    // in the same buffer.
    bool first = client_published(&peer->client->shards[peer->shard]) < 0;
    unsigned char current = atomic_load(&space->current[c]);
    return space->buffers[first ? current : 1 - current] + chunk->offset;
}

// For mapped memory: the shard names the buffer that holds the version; frozen chunks stay in the
// first.
static void point_at_buffer(bel_client *client, int shard, unsigned char buffer)
{
    const bel_layout *layout = client->config.layout;
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (chunk->shard != shard || chunk->kind == BEL_VARIABLE_FROZEN) continue;
        atomic_store(&client->config.space->current[c], buffer);
    }
}

// Injected fault: flips the sign of one of the values that arrived from a shard.
static void flip_sign(const bel_client *client, int shard)
{
    const bel_space *space = client->config.space;
    for (int c = 0; c < space->layout->chunk_count; c++) {
        const bel_chunk *chunk = &space->layout->chunks[c];
        if (chunk->shard != shard) continue;
        space->buffers[atomic_load(&space->current[c])][chunk->offset] *= -1; // also of 0
        return;
    }
}

// When all values of the announced version have arrived, they become current.
static void complete_version(bel_client *client, int shard)
{
    shard_view *view = &client->shards[shard];
    int64_t version = view->announced;
    if (version <= client_published(view)) return;
    if (view->expected > 0 && (view->values_step != version || view->values < view->expected)) {
        return;
    }
    bool mapped = client->config.lanes[shard]->ops->maps_memory && !client->config.ledger;
    if (mapped) point_at_buffer(client, shard, view->buffer);
    const bel_layout *layout = client->config.layout;
    bool flip = view->expected > 0 && client_published(view) >= 0;
    for (int c = 0; flip && c < layout->chunk_count; c++) {
        if (layout->chunks[c].shard != shard || client->value_steps[c] != version) continue;
        atomic_uchar *current = &client->config.space->current[c];
        atomic_store(current, (unsigned char)(1 - atomic_load(current)));
    }
    if (view->expected > 0 && bel_fault_flips()) flip_sign(client, shard);
    atomic_store_explicit(&view->published, version, memory_order_relaxed);
}

// Leases arrive on shard 0's lane, and prefetching threads wait for them (bel_client_lease).
static void take_lease(bel_client *client, const bel_frame *frame)
{
    leases *g = &client->leases;
    bel_lease_frame lease = bel_lease_frame_read(frame);
    if (lease.number < 0) return;
    pthread_mutex_lock(&g->mutex);
    int64_t slot = lease.number % LEASES;
    if (lease.number > g->numbers[slot]) { // otherwise a repeat
        g->numbers[slot] = lease.number;
        g->blocks[slot] = lease.first_block;
        pthread_cond_broadcast(&g->came);
    }
    pthread_mutex_unlock(&g->mutex);
}

// Ends the next wait. Lanes check only frames with a payload; the client checks the rest.
static void refuse_frame(bel_client *client, int shard, const bel_frame *frame)
{
    if (client->error != NULL) return;
    char words[BEL_FRAME_WORDS_BYTES];
    bel_frame_words(frame, words);
    client->error = BEL_ERR(BEL_INTERNAL, "worker %d: malformed frame from %s %d: %s",
                            name_of(client), peer_kind(client), peer_number(client, shard), words);
}

// Makes a chunk's next values in the buffer that is not current.
static void add_differences(const bel_client *client, int c)
{
    const bel_chunk *chunk = &client->config.layout->chunks[c];
    const bel_space *space = client->config.space;
    int current = atomic_load(&space->current[c]);
    bel_rounding_add(client->config.rounding, space->buffers[current] + chunk->offset,
                     differences_of(client, chunk), space->buffers[1 - current] + chunk->offset,
                     chunk->count);
}

// Counts a chunk's values, which the lane has put in their place.
static void take_params(bel_client *client, int shard, const bel_frame *frame)
{
    shard_view *view = &client->shards[shard];
    bel_params_frame params = bel_params_frame_read(frame);
    const bel_layout *layout = client->config.layout;
    if (params.version <= client_published(view)) return; // late or repeated
    if (params.chunk < 0 || params.chunk >= layout->chunk_count ||
        layout->chunks[params.chunk].shard != shard) {
        refuse_frame(client, shard, frame);
        return;
    }
    if (client->value_steps[params.chunk] >= params.version) return;
    bool differs = carries_differences(client, params.chunk, frame->payload_bytes);
    if (differs) {
        if (params.version != client_published(view) + 1) {
            refuse_frame(client, shard, frame);
            return;
        }
        add_differences(client, params.chunk);
    }
    client->value_steps[params.chunk] = params.version;
    client->value_differs[params.chunk] = differs;
    if (view->values_step != params.version) view->values = 0;
    view->values_step = params.version;
    view->values++;
    complete_version(client, shard);
}

// A version counts once its values have arrived, before or after it.
static void take_version(bel_client *client, int shard, const bel_frame *frame)
{
    shard_view *view = &client->shards[shard];
    bel_version_frame version = bel_version_frame_read(frame);
    if (version.version <= client_published(view)) return; // late or repeated
    if (version.chunks < 0 || version.chunks > client->config.layout->chunk_count ||
        bel_decision_function(version.decision) >= BEL_MAX_STEP_FUNCTIONS) {
        refuse_frame(client, shard, frame);
        return;
    }
    if (view->announced >= version.version) return;
    view->announced = version.version;
    view->expected = version.chunks;
    view->buffer = (unsigned char)(version.buffer & 1);
    bel_client_take_limit(client, shard, &version);
    if (shard == 0) client->decision = version.decision;
    complete_version(client, shard);
}

// Skips frames of another generation.
static void take_frame(bel_client *client, int shard, const bel_frame *frame)
{
    if (frame->generation != client->config.generation) return;
    switch (frame->kind) {
    case BEL_FRAME_PARAMS: take_params(client, shard, frame); break;
    case BEL_FRAME_VERSION: take_version(client, shard, frame); break;
    case BEL_FRAME_ROOM: bel_client_take_room(client, shard, frame); break;
    case BEL_FRAME_ROWS: bel_client_take_rows(client, shard, frame); break;
    case BEL_FRAME_EXCHANGED:
        if (shard == 0) bel_client_take_exchanged(client, frame);
        break;
    case BEL_FRAME_LEASE:
        if (client->config.ledger && shard == 0) take_lease(client, frame);
        break;
    default: refuse_frame(client, shard, frame); break;
    }
}

// Takes the frames that have arrived, from each shard up to `version`. Returns true if all shards
// have published it.
static bool client_drain(bel_client *client, int64_t version)
{
    bool all = true;
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        const shard_view *view = &client->shards[k];
        bel_frame frame;
        while (client_published(view) < version &&
               bel_lane_receive(client->config.lanes[k], &frame))
            take_frame(client, k, &frame);
        all = all && client_published(view) >= version;
    }
    return all;
}

static bool is_published(const bel_client *client, int64_t version)
{
    for (int k = 0; k < client->config.layout->shard_count; k++)
        if (client_published(&client->shards[k]) < version) return false;
    return true;
}

void bel_client_drain(bel_client *client)
{
    (void)client_drain(client, INT64_MAX);
}

static bool lacks_version(const bel_client *client, int64_t version, int shard)
{
    return client_published(&client->shards[shard]) < version;
}

// Appends the shards with missing parts, as "0, 2".
static void name_missing(const bel_client *client, int64_t version,
                         bool (*lacks)(const bel_client *client, int64_t version, int shard),
                         bel_str *out)
{
    const char *separator = "";
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        if (!lacks(client, version, k)) continue;
        bel_str_printf(out, "%s%d", separator, peer_number(client, k));
        separator = ", ";
    }
}

void bel_client_missing(const bel_client *client, int64_t version, bel_str *out)
{
    bel_str names = {0}; // empty if the last one has just arrived
    name_missing(client, version, lacks_version, &names);
    if (names.length > 0) bel_str_printf(out, " of %s %s", peer_kind(client), names.text);
    bel_str_deinit(&names);
}

// Error of a wait without success; names its object and the missing shards.
static bel_status *missing(const bel_client *client, int64_t version,
                           const bel_client_awaited *awaited, bel_code code, const char *why)
{
    bel_str names = {0};
    name_missing(client, version, awaited->lacks, &names);
    bel_status *status = BEL_ERR(code, "worker %d waits for %s %lld of %s %s: %s", name_of(client),
                                 awaited->what, (long long)version, peer_kind(client),
                                 names.text != NULL ? names.text : "none", why);
    bel_str_deinit(&names);
    return status;
}

// A cut lane matters only if something is still missing from it.
static bel_status *check_lanes(const bel_client *client, int64_t version,
                               const bel_client_awaited *awaited)
{
    for (int k = 0; k < client->config.layout->shard_count; k++) {
        if (awaited->lacks(client, version, k) && bel_lane_is_cut(client->config.lanes[k])) {
            return missing(client, version, awaited, BEL_UNAVAILABLE, "the lane is cut");
        }
    }
    return NULL;
}

bool bel_client_is_cancelled(const bel_client *client)
{
    const bel_client_config *config = &client->config;
    return config->cancelled != NULL && config->cancelled(config->cancelled_context);
}

static bel_status *take_error(bel_client *client)
{
    BEL_TRY(bel_client_reports_error(client));
    bel_status *error = client->error;
    client->error = NULL;
    return error;
}

// A limit of many years is 30: the sum with the clock fits.
static int64_t stall_ns_of(const bel_client *client)
{
    const double most = 1e9, secs = client->config.stall_timeout_secs;
    return (int64_t)((secs < most ? secs : most) * 1e9);
}

// Runs on the worker's thread. In one process any thread's work for the shards is progress and
// postpones the stall. The first successful wait maps other processes' memory (attach).
//
// Every arrival rings the bell, and so does a cancellation. Naps are for events that do not ring: a
// stall, a lane that was cut quietly, and work of shards in this process that another thread left.
bel_status *bel_client_wait_until(bel_client *client, int64_t version,
                                  const bel_client_awaited *awaited)
{
    enum { NAP_NS = 500000000, HELPER_NAP_NS = 1000000 };
    const bel_client_config *config = &client->config;
    int64_t nap_ns = config->help != NULL ? HELPER_NAP_NS : NAP_NS;
    int64_t stall_ns = stall_ns_of(client);
    int64_t deadline = bel_clock_awake_ns() + stall_ns;
    for (;;) {
        bool done;
        BEL_TRY(awaited->is_there(client, version, &done));
        BEL_TRY(take_error(client));
        if (done) break;
        if (bel_client_is_cancelled(client)) {
            return missing(client, version, awaited, BEL_CANCELLED, "training is ending");
        }
        if (config->help != NULL && config->help(config->help_context)) {
            deadline = bel_clock_awake_ns() + stall_ns; // the shards make progress
            continue;
        }
        BEL_TRY(check_lanes(client, version, awaited));
        if (bel_clock_awake_ns() >= deadline) {
            return missing(client, version, awaited, BEL_DEADLINE_EXCEEDED,
                           "no progress for the stall timeout");
        }
        bel_doorbell_wait(config->bell, bel_clock_ns() + nap_ns);
    }
    if (!client->attached && config->attach != NULL)
        BEL_TRY(config->attach(config->attach_context));
    client->attached = true;
    return NULL;
}

static bel_status *version_is_there(bel_client *client, int64_t version, bool *out_there)
{
    *out_there = client_drain(client, version);
    return NULL;
}

bel_status *bel_client_wait(bel_client *client, int64_t version, uint32_t *out_decision)
{
    static const bel_client_awaited a_version = {"version", version_is_there, lacks_version};
    BEL_TRY(bel_client_wait_until(client, version, &a_version));
    *out_decision = client->decision;
    bel_client_begin_report(client, version);
    return NULL;
}

bel_status *bel_client_look(bel_client *client, int64_t version, bool *out_there,
                            uint32_t *out_decision)
{
    static const bel_client_awaited a_version = {"version", version_is_there, lacks_version};
    bel_client_drain(client);
    *out_there = is_published(client, version);
    BEL_TRY(take_error(client));
    if (!*out_there) return check_lanes(client, version, &a_version);
    *out_decision = client->decision;
    bel_client_begin_report(client, version);
    return NULL;
}

bool bel_client_has_values(const bel_client *client, int chunk, int64_t version)
{
    int shard = client->config.layout->chunks[chunk].shard;
    return client->value_steps[chunk] >= version ||
           client_published(&client->shards[shard]) >= version;
}

bool bel_client_has_differences(const bel_client *client, int chunk)
{
    return client->value_differs[chunk];
}

// With a ledger a worker may be several reports ahead of a slow shard, as shard 0 drops late ones
// and answers. So it waits for room there, until the stall timeout.
static bel_status *send_in_time(const bel_client *client, bel_lane *lane, const bel_frame *frame)
{
    const bel_client_config *config = &client->config;
    const struct timespec nap = {.tv_nsec = 1000000};
    int64_t deadline = bel_clock_awake_ns() + stall_ns_of(client);
    for (;;) {
        bel_status *status = bel_lane_send(lane, frame);
        bool is_full = config->ledger && bel_status_code(status) == BEL_RESOURCE_EXHAUSTED;
        if (!is_full || bel_clock_awake_ns() >= deadline || bel_client_is_cancelled(client))
            return status;
        bel_status_ignore(status); // tried again
        (void)nanosleep(&nap, NULL);
    }
}

bel_status *bel_client_send(bel_client *client, int shard, bel_frame frame)
{
    const bel_client_config *config = &client->config;
    frame.generation = config->generation;
    frame.incarnation = config->incarnation;
    frame.sender = config->worker;
    BEL_TRY_CTX(send_in_time(client, config->lanes[shard], &frame), "worker %d, %s to %s %d",
                name_of(client), bel_frame_kind_name(frame.kind), peer_kind(client),
                peer_number(client, shard));
    return NULL;
}

bel_status *bel_client_pull(bel_client *client, int64_t version)
{
    int shards = client->config.ledger ? 1 : client->config.layout->shard_count;
    bel_pull_frame pull = {.version = client->config.ledger ? 0 : version};
    for (int k = 0; k < shards; k++)
        BEL_TRY(bel_client_send(client, k, bel_pull_frame_write(pull, NULL, 0)));
    return NULL;
}

// --- With a ledger -------------------------------------------------------------------------------

static bool has_lease(bel_client *client, int64_t index)
{
    leases *g = &client->leases;
    pthread_mutex_lock(&g->mutex);
    bool has = g->numbers[index % LEASES] >= index;
    pthread_mutex_unlock(&g->mutex);
    return has;
}

// True when shard 0 has answered, and the other shards have sent the same version. It also waits
// for the lease, since no frames are taken while the step waits for its batch.
static bel_status *answer_is_there(bel_client *client, int64_t version, bool *out_there)
{
    *out_there = false;
    bel_client_drain(client);
    int64_t answer = client_published(&client->shards[0]);
    if (answer < version) return NULL;
    bool stops = (client->decision & BEL_DECIDE_STOP) != 0;
    if (!stops && !has_lease(client, client->answers)) return NULL;
    *out_there = true;
    for (int k = 1; k < client->config.layout->shard_count; k++)
        if (client_published(&client->shards[k]) < answer) *out_there = false;
    return NULL;
}

// The number of answers is the index of the lease that the following step reads.
bel_status *bel_client_wait_next(bel_client *client, int64_t *version, uint32_t *out_decision)
{
    static const bel_client_awaited an_answer = {"version", answer_is_there, lacks_version};
    BEL_TRY(bel_client_wait_until(client, *version + 1, &an_answer));
    client->answers++;
    *version = client_published(&client->shards[0]);
    *out_decision = client->decision;
    return NULL;
}

int64_t bel_client_lease(bel_client *client, int64_t index)
{
    leases *g = &client->leases;
    pthread_mutex_lock(&g->mutex);
    while (!g->over && g->numbers[index % LEASES] < index)
        pthread_cond_wait(&g->came, &g->mutex); // bel_client_end_leases ends it at the latest
    int64_t block = g->over ? BEL_LEASE_NONE : g->blocks[index % LEASES];
    pthread_mutex_unlock(&g->mutex);
    return block;
}

// Any thread: calls that wait for a lease return BEL_LEASE_NONE.
void bel_client_end_leases(bel_client *client)
{
    pthread_mutex_lock(&client->leases.mutex);
    client->leases.over = true;
    pthread_cond_broadcast(&client->leases.came);
    pthread_mutex_unlock(&client->leases.mutex);
}
