// The relay's thread runs its shard, whose parent is the client here. The client's frames are taken
// under the shard's lock, by this thread only, as only it polls. The shard asks for the decision of
// a version when its step is complete; until the client has that version, the answer is LATER.
#include "ps/relay/relay.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/linux_sched.h"
#include "base/thread.h"
#include "ps/client/client.h"
#include "ps/frames/frames.h"
#include "ps/layout/lane_frames.h"
#include "ps/server/shard.h"
#include "transport/inproc/inproc.h"
#include "transport/streams/stream_lane.h"
#include "wire/role.h"

struct bel_relay {
    bel_relay_config config;
    bel_fan_in_place place;
    bool shares_memory;      // with its reporters
    bel_reporters reporters; // below
    bel_reporters above;     // those of the relay or the shards that it reports to
    const bel_layout *up;    // as the client sees it: with all shards, or joined
    bel_doorbell *bell;
    bel_team *team;
    bel_space *space;    // the shard's
    bel_space *came;     // the client's: the same buffers
    void *rounded_room;  // with rounding: the client's
    float **sums;        // by its nodes above
    int node_count;      // their number
    double *stats;       // the same
    bel_optimizers rule; // none: a shard must have one
    bel_shard_parent parent;
    bel_shard *shard;
    uint32_t *incarnations; // by reporter; the first is this process's
    bel_shard_peer *peers;  // by reporter
    bel_lane **lanes;       // by reporter
    bel_client_relayed name;
    bel_client *client;
    bel_client_peer *client_peers; // by shard above
    bel_lane **up_lanes;           // the same
    int64_t wanted;                // the version that the client looks for
    bool there;                    // it has come, with
    uint32_t decision;             // this decision
    bool over;                     // the last version was passed down
    pthread_t thread;
    bool runs;
    atomic_bool stop;
};

// --- The parent ----------------------------------------------------------------------------------

// A published version stays the wanted one until the shard has taken its decision. None follows the
// last one, after which those above may end first.
static bel_status *poll_parent(void *context)
{
    bel_relay *r = context;
    if (r->over) return NULL;
    return bel_client_look(r->client, r->wanted, &r->there, &r->decision);
}

static bool has_values(void *context, int chunk, int64_t version)
{
    const bel_relay *r = context;
    return bel_client_has_values(r->client, chunk, version);
}

// If a process has several relays, only the client of the highest one gets values.
static const bel_relay *highest(const bel_relay *r)
{
    while (r->config.above != NULL)
        r = r->config.above;
    return r;
}

static bool has_differences(void *context, int chunk)
{
    return bel_client_has_differences(highest(context)->client, chunk);
}

static bel_status *report(void *context, int64_t step, uint32_t decision, int chunk, int node,
                          bel_weight weight, const float *sums)
{
    const bel_relay *r = context;
    return bel_client_report(r->client, step, decision, chunk, node, weight, sums);
}

static bel_status *report_stats(void *context, int64_t step, uint32_t decision, int node,
                                uint64_t hash, const double *stats)
{
    const bel_relay *r = context;
    return bel_client_stats(r->client, step, decision, node, hash, stats);
}

// --- The thread ----------------------------------------------------------------------------------

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    bel_relay *r = context;
    (void)stats, (void)left;
    if (!r->there || r->wanted != version) return BEL_DECIDE_LATER;
    r->wanted = version + 1;
    r->there = false;
    r->over = (r->decision & BEL_DECIDE_STOP) != 0;
    bel_fault_point("relay_passes_on");
    return r->decision;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version; // a relay has none
}

static void *relay_main(void *argument)
{
    enum { NAP_NS = 50000000 };
    bel_relay *r = argument;
    const bel_shard_events events = {
        .context = r, .decide = decide, .snapshot_ready = snapshot_ready};
    bel_linux_give_way();
    bel_shard_start(r->shard, &events);
    while (!atomic_load(&r->stop)) {
        if (bel_shard_work_together(r->shard, r->team)) continue;
        (void)bel_doorbell_wait(r->bell, bel_clock_ns() + NAP_NS);
    }
    return NULL;
}

// --- Life ----------------------------------------------------------------------------------------

static size_t rounded_bytes(const bel_relay *r)
{
    return bel_rounding_bytes(r->config.rounding, r->config.layout->size * (1 + r->node_count));
}

static bel_status *make_memory(bel_relay *r)
{
    const bel_layout *layout = r->config.layout;
    const int *first = r->above.assignment->first_node + r->place.index;
    int cores = bel_available_cores();
    r->node_count = first[1] - first[0];
    size_t nodes = (size_t)r->node_count;
    r->stats = bel_xcalloc(nodes * (size_t)bel_stats_size(r->config.stats), sizeof *r->stats);
    r->sums = bel_xcalloc(nodes, sizeof *r->sums);
    for (size_t k = 0; k < nodes; k++)
        BEL_TRY(bel_space_array(layout, "sums of a relay", &r->sums[k]));
    if (r->config.rounding != BEL_ROUNDING_NONE && r->config.above == NULL)
        BEL_TRY(bel_pages_create(rounded_bytes(r), false, "rounded sums", &r->rounded_room));
    r->space = bel_space_over(layout, r->config.buffers);
    r->came = bel_space_over(layout, r->config.buffers);
    int hands = layout->chunk_count < cores ? layout->chunk_count : cores;
    return bel_team_create(hands > 0 ? hands : 1, &r->team);
}

static bel_status *make_shard(bel_relay *r)
{
    const bel_relay_config *config = &r->config;
    size_t count = (size_t)r->reporters.count;
    r->lanes = bel_xcalloc(count, sizeof *r->lanes);
    r->peers = bel_xcalloc(count, sizeof *r->peers);
    r->rule.main = bel_optimizer_default();
    r->rule.main.kind = BEL_OPTIMIZER_SGD;
    r->parent = (bel_shard_parent){.context = r,
                                   .assignment = r->above.assignment,
                                   .reporter = r->place.index,
                                   .sums = r->sums,
                                   .stats = r->stats,
                                   .poll = poll_parent,
                                   .has_values = has_values,
                                   .has_differences = has_differences,
                                   .differences = highest(r)->rounded_room,
                                   .report = report,
                                   .report_stats = report_stats};
    const bel_shard_config shard = {
        .layout = config->joined,
        .assignment = r->reporters.assignment,
        .names = r->reporters.workers,
        .parent = &r->parent,
        .space = r->space,
        .settings = {.optimizers = &r->rule,
                     .function_count = 1,
                     .counting = {.kind = BEL_COUNTING_ALL, .workers = r->reporters.count},
                     .stats = config->stats,
                     .rounding = config->rounding},
        .generation = config->generation,
        .worker_lanes = r->lanes,
        .report_room = config->report_room};
    BEL_TRY(bel_shard_create(&shard, &r->shard));
    for (int i = 1; i < r->reporters.count && !r->shares_memory; i++)
        BEL_TRY(bel_shard_reserve(r->shard, i));
    bel_shard_begin_at(r->shard, config->step);
    return NULL;
}

static void admit(bel_relay *r, int reporter, bel_lane *lane)
{
    int64_t step;
    (void)bel_shard_admit(r->shard, reporter, r->incarnations[reporter], lane, &step);
}

static size_t capacity_of(const bel_relay *r, int reporter, bool shares_memory)
{
    return bel_lane_frames_of_worker(r->config.joined, r->reporters.assignment, reporter, 0,
                                     shares_memory);
}

static bel_lane *make_stream_lane(bel_relay *r, int reporter)
{
    r->peers[reporter] = (bel_shard_peer){r->shard, reporter, 0};
    const bel_stream_lane_config lane = {.capacity = capacity_of(r, reporter, false),
                                         .bell = r->bell,
                                         .joined = 1u << BEL_FRAME_PARAMS, // a version follows
                                         .place = bel_shard_place,
                                         .place_context = &r->peers[reporter]};
    return bel_stream_lane_create(r->config.endpoint, &lane);
}

// The reporter's region must hold a range for each of its replicas.
static bel_lane *make_shm_lane(bel_relay *r, int reporter)
{
    size_t replicas = (size_t)bel_assignment_replicas(r->reporters.assignment, reporter);
    const bel_shm_lane_config lane = {.capacity = capacity_of(r, reporter, true),
                                      .bell = r->bell,
                                      .region = r->config.region,
                                      .peer_bytes = replicas * bel_space_bytes(r->config.layout)};
    return bel_shm_lane_create(r->config.hub, &lane);
}

static void make_lanes(bel_relay *r)
{
    for (int i = 1; i < r->reporters.count; i++)
        admit(r, i, r->shares_memory ? make_shm_lane(r, i) : make_stream_lane(r, i));
}

static void make_client(bel_relay *r)
{
    const bel_relay_config *config = &r->config;
    r->name = (bel_client_relayed){.worker = config->worker,
                                   .parent = r->place.worker,
                                   .first_node = r->above.assignment->first_node[r->place.index]};
    const bel_client_config client = {.worker = r->place.index,
                                      .relayed = &r->name,
                                      .generation = config->generation,
                                      .incarnation = r->incarnations[0],
                                      .layout = r->up,
                                      .assignment = r->above.assignment,
                                      .lanes = r->up_lanes,
                                      .space = r->came,
                                      .rounded_room = r->rounded_room,
                                      .rounding = config->rounding,
                                      .stats = config->stats,
                                      .bell = r->bell,
                                      .stall_timeout_secs = config->stall_timeout_secs};
    r->client = bel_client_create(&client);
}

// A chunk's values ring, as they can be passed on at once.
static bel_lane *connect_up(bel_relay *r, int shard)
{
    const bel_relay_config *config = &r->config;
    bool relayed = r->place.worker >= 0;
    const bel_lane_hello hello = {.kind = relayed ? BEL_HELLO_REPORTER : BEL_HELLO_WORKER,
                                  .index = config->worker,
                                  .generation = config->generation,
                                  .incarnation = r->incarnations[0]};
    r->client_peers[shard] = (bel_client_peer){r->client, shard};
    const bel_stream_lane_config lane = {
        .capacity =
            bel_lane_frames_of_worker(r->up, r->above.assignment, r->place.index, shard, false),
        .bell = r->bell,
        .quiet = 1u << BEL_FRAME_ROOM,
        .urgent = 1u << BEL_FRAME_ROOM,
        .at_once = bel_client_take_at_once,
        .joined = BEL_FRAMES_OF_REPORT,
        .place = bel_client_place,
        .place_context = &r->client_peers[shard]};
    return bel_stream_lane_connect(config->endpoint, config->addresses[shard], &hello, &lane);
}

static void find_place(bel_relay *r)
{
    const bel_relay_config *config = &r->config;
    r->place = bel_fan_in_place_of(config->tree, config->worker, config->level);
    r->shares_memory = bel_fan_in_is_host(config->tree, config->level);
    r->reporters = bel_fan_in_members(config->tree, config->worker, config->level);
    r->above = bel_fan_in_beside(config->tree, &r->place);
    r->up = r->place.worker < 0 ? config->layout : config->joined;
    r->wanted = config->step;
    r->incarnations = bel_xcalloc((size_t)r->reporters.count, sizeof *r->incarnations);
    for (int i = 0; i < r->reporters.count; i++)
        r->incarnations[i] = config->incarnations[r->reporters.workers[i]];
}

bel_status *bel_relay_create(const bel_relay_config *config, bel_relay **out_relay)
{
    bel_relay *r = bel_xcalloc(1, sizeof *r);
    r->config = *config;
    find_place(r);
    size_t shards = (size_t)r->up->shard_count;
    r->bell = bel_doorbell_create();
    r->up_lanes = bel_xcalloc(shards, sizeof *r->up_lanes);
    r->client_peers = bel_xcalloc(shards, sizeof *r->client_peers);
    bel_status *status = make_memory(r);
    if (status == NULL) status = make_shard(r);
    if (status != NULL) {
        bel_relay_destroy(r);
        return status;
    }
    make_lanes(r);
    make_client(r);
    for (int k = 0; k < r->up->shard_count; k++)
        r->up_lanes[k] =
            config->above != NULL ? bel_relay_connect(config->above, r->bell) : connect_up(r, k);
    r->config.addresses = NULL; // the lanes have copies
    r->config.incarnations = NULL;
    r->config.buffers = NULL; // the spaces have them
    *out_relay = r;
    return NULL;
}

bel_lane *bel_relay_connect(bel_relay *relay, bel_doorbell *bell)
{
    bel_lane *theirs, *own;
    bel_inproc_lane_create(capacity_of(relay, 0, true), bell, relay->bell, &theirs, &own);
    admit(relay, 0, own);
    return theirs;
}

bel_space *bel_relay_space(bel_relay *relay)
{
    return relay->space;
}

bel_status *bel_relay_start(bel_relay *relay)
{
    BEL_TRY(bel_client_pull(relay->client, relay->config.step));
    BEL_TRY(bel_thread_start(&relay->thread, relay_main, relay));
    relay->runs = true;
    return NULL;
}

void bel_relay_stop(bel_relay *relay)
{
    atomic_store(&relay->stop, true);
    bel_doorbell_ring(relay->bell);
    if (relay->runs) pthread_join(relay->thread, NULL);
    relay->runs = false;
}

void bel_relay_destroy(bel_relay *relay)
{
    if (relay == NULL) return;
    bel_relay_stop(relay);
    if (relay->lanes != NULL) bel_lane_close_all(relay->lanes, relay->reporters.count);
    bel_lane_close_all(relay->up_lanes, relay->up->shard_count);
    bel_client_destroy(relay->client);
    bel_shard_destroy(relay->shard);
    for (int k = 0; k < relay->node_count; k++)
        bel_space_free_array(relay->config.layout, relay->sums[k]);
    bel_pages_destroy(relay->rounded_room, rounded_bytes(relay));
    bel_space_destroy(relay->space);
    bel_space_destroy(relay->came);
    bel_team_destroy(relay->team);
    bel_doorbell_destroy(relay->bell);
    bel_reporters_deinit(&relay->reporters);
    bel_reporters_deinit(&relay->above);
    bel_free(relay->sums);
    bel_free(relay->stats);
    bel_free(relay->lanes);
    bel_free(relay->peers);
    bel_free(relay->incarnations);
    bel_free(relay->up_lanes);
    bel_free(relay->client_peers);
    bel_free(relay);
}

void bel_relay_find(bel_relay *relay, const bel_lane_hello *hello, bool shm, bel_lane **out_lane)
{
    if (hello->generation != relay->config.generation || shm != relay->shares_memory) return;
    for (int i = 1; i < relay->reporters.count; i++) {
        bool opens = relay->reporters.workers[i] == hello->index;
        if (opens && relay->incarnations[i] == hello->incarnation) *out_lane = relay->lanes[i];
    }
}

// --- What it does --------------------------------------------------------------------------------

// A lost peer returns; one that sends malformed frames would do so again.
bel_status *bel_relay_check(bel_relay *relay)
{
    int worker = relay->config.worker;
    for (int i = 0; i < relay->reporters.count; i++)
        BEL_TRY_CTX(bel_lane_fault(relay->lanes[i]), "relay of worker %d, lane of worker %d",
                    worker, relay->reporters.workers[i]);
    for (int k = 0; k < relay->up->shard_count; k++)
        BEL_TRY_CTX(bel_lane_fault(relay->up_lanes[k]), "relay of worker %d, lane upward %d",
                    worker, k);
    BEL_TRY_CTX(bel_shard_check(relay->shard), "relay of worker %d", worker);
    return NULL;
}

void bel_relay_doing(bel_relay *relay, bel_str *out_words)
{
    (void)bel_shard_doing(relay->shard, out_words);
}
