// Relays between real shards and clients, over gRPC and, in groups of hosts, through shared memory
// within one process: for every shape of the tree, and with room for few reports, all workers see
// the values that they see without relays.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/thread.h"
#include "ps/client/client.h"
#include "ps/frames/frames.h"
#include "ps/layout/lane_frames.h"
#include "ps/relay/relay.h"
#include "ps/server/shard.h"
#include "support/bel_test.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/stream_lane.h"
#include "wire/role.h"

enum { MOST_WORKERS = 13, MOST_REPLICAS = 32, SHARDS = 2, STEPS = 3, PATIENCE_SECS = 60 };

typedef struct job job;

typedef struct server {
    bel_shard *shard;
    bel_doorbell *bell;
    bel_lane **lanes; // by reporter
    bel_shard_peer *peers;
    pthread_t thread;
    float *snapshot;
} server;

typedef struct player {
    job *job;
    int index;
    bel_fan_in_place place;
    bel_reporters reporters;
    bel_space *own; // NULL: it reads a relay's
    bel_space *space;
    bel_shm_region *relay_values;
    bel_shm_region *gradients; // a relay of its host reads them in place; NULL: it does not
    bel_relay *relays[BEL_FAN_IN_LEVELS];
    int relay_count;
    bel_client *client;
    bel_client_peer peers[SHARDS];
    bel_lane *lanes[SHARDS];
    int lane_count;
    bel_doorbell *bell;
    float **ranges; // by replica of the worker
    void *rounded;  // its client's room for rounded values
    size_t rounded_bytes;
    pthread_t thread;
    uint64_t hash; // the values that it saw at the end
    bel_status *status;
} player;

struct job {
    bel_layout *layout, *joined;
    bel_assignment *assignment;
    bel_fan_in *tree;
    bel_rounding rounding;
    size_t room;
    bel_reporters top;
    bel_endpoint *endpoint;
    bel_shm_hub *hub;
    char *hub_path;
    bel_space *space; // the shards'
    server servers[SHARDS];
    player players[MOST_WORKERS];
    uint32_t incarnations[MOST_WORKERS];
    bel_optimizers optimizers;
    atomic_bool opened; // lanes can be found
    atomic_bool over;
    int64_t liar; // worker that sends another hash in step 1; -1: none
};

// --- Shards --------------------------------------------------------------------------------------

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    (void)context, (void)stats, (void)left;
    return version == STEPS ? BEL_DECIDE_STOP : 0;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version; // no step saves here
}

typedef struct served {
    job *job;
    server *server;
} served;

static void *serve(void *argument)
{
    enum { NAP_NS = 10000000 };
    served *s = argument;
    const bel_shard_events events = {
        .context = s->job, .decide = decide, .snapshot_ready = snapshot_ready};
    bel_shard_start(s->server->shard, &events);
    while (!atomic_load(&s->job->over)) {
        if (bel_shard_work(s->server->shard)) continue;
        (void)bel_doorbell_wait(s->server->bell, bel_clock_ns() + NAP_NS);
    }
    bel_free(s);
    return NULL;
}

static void make_server(job *j, int k)
{
    static bel_lane *const no_lanes[SHARDS] = {NULL}; // plain steps need none between shards
    server *s = &j->servers[k];
    size_t count = (size_t)j->top.count;
    s->bell = bel_doorbell_create();
    s->lanes = bel_xcalloc(count, sizeof *s->lanes);
    s->peers = bel_xcalloc(count, sizeof *s->peers);
    BEL_ASSERT_OK(bel_space_array(j->layout, "snapshot", &s->snapshot));
    const bel_shard_config config = {.layout = j->layout,
                                     .shard = k,
                                     .assignment = j->top.assignment,
                                     .names = j->top.workers,
                                     .space = j->space,
                                     .snapshot = s->snapshot,
                                     .settings = {.optimizers = &j->optimizers,
                                                  .function_count = 1,
                                                  .counting = {.workers = j->top.count},
                                                  .rounding = j->rounding,
                                                  .check_steps = 1},
                                     .generation = 1,
                                     .worker_lanes = s->lanes,
                                     .shard_lanes = no_lanes,
                                     .report_room = j->room};
    BEL_ASSERT_OK(bel_shard_create(&config, &s->shard));
    for (int i = 0; i < j->top.count; i++) {
        int64_t step;
        BEL_ASSERT_OK(bel_shard_reserve(s->shard, i));
        s->peers[i] = (bel_shard_peer){s->shard, i, 0};
        const bel_stream_lane_config lane = {
            .capacity = bel_lane_frames_of_worker(j->layout, j->top.assignment, i, k, false),
            .bell = s->bell,
            .joined = 1u << BEL_FRAME_PARAMS,
            .place = bel_shard_place,
            .place_context = &s->peers[i]};
        (void)bel_shard_admit(s->shard, i, 0, bel_stream_lane_create(j->endpoint, &lane), &step);
    }
}

// --- Lanes ---------------------------------------------------------------------------------------

// Finds lanes at the endpoint of a shard, or of all relays (shard -1).
typedef struct gate {
    job *job;
    int shard;
} gate;

static bel_status *find_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    const gate *g = context;
    const job *j = g->job;
    if (!atomic_load(&j->opened)) return NULL;
    for (int i = 0; i < j->top.count && g->shard >= 0 && hello->kind == BEL_HELLO_WORKER; i++)
        if (j->top.workers[i] == hello->index) *out_lane = j->servers[g->shard].lanes[i];
    for (int w = 0; w < j->assignment->worker_count && g->shard < 0; w++)
        for (int i = 0; i < j->players[w].relay_count; i++)
            bel_relay_find(j->players[w].relays[i], hello, false, out_lane);
    return NULL;
}

static bel_status *find_shm_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    const job *j = context;
    for (int w = 0; w < j->assignment->worker_count && atomic_load(&j->opened); w++)
        for (int i = 0; i < j->players[w].relay_count; i++)
            bel_relay_find(j->players[w].relays[i], hello, true, out_lane);
    return NULL;
}

static bel_status *accept_lane(void *context, const char *path, bel_stream *stream,
                               bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find_lane, context, out_events);
}

// --- Workers -------------------------------------------------------------------------------------

static float report_element(int replica, int64_t step, int64_t element)
{
    int64_t mixed = element * 7919 + step * 104729 + replica * 1299709;
    return (float)(mixed % 2003) / 1001.0f - 0.9f;
}

// Some replicas have fewer examples, and one has none.
static bel_weight weight_of(int replica)
{
    static const int64_t examples[] = {8, 8, 5, 8, 0, 8, 8};
    int64_t n = examples[replica % 7];
    return (bel_weight){n > 0, n};
}

static uint64_t hash_of(const player *p)
{
    const bel_layout *layout = p->job->layout;
    uint64_t hash = 0;
    for (int v = 0; v < layout->variable_count; v++)
        hash = bel_hash64_more(hash, bel_space_variable(p->space, v),
                               (size_t)layout->variables[v].elements * sizeof(float));
    return hash;
}

static bel_status *report_step(player *p, int64_t step, uint32_t decision)
{
    const job *j = p->job;
    const int *first = j->assignment->first_replica + p->index;
    uint64_t hash = (decision & BEL_DECIDE_CHECK) != 0 ? hash_of(p) : 0;
    if (j->liar == p->index && step == 1) hash++;
    bel_weight weights[MOST_REPLICAS];
    for (int r = first[0]; r < first[1]; r++) {
        weights[r - first[0]] = weight_of(r);
        for (int v = 0; v < j->layout->variable_count; v++) { // padding is zero
            int64_t offset = j->layout->variables[v].offset;
            for (int64_t i = offset; i < offset + j->layout->variables[v].elements; i++)
                p->ranges[r - first[0]][i] = report_element(r, step, i);
        }
    }
    const int *nodes = j->assignment->first_node + p->index;
    for (int k = nodes[0]; k < nodes[1]; k++) {
        const bel_assignment_node *node = &j->assignment->nodes[k];
        int at = node->first - first[0];
        static const double stats[BEL_STATS_COUNT]; // it stays until the next version
        for (int c = j->layout->chunk_count - 1; c >= 0; c--) {
            const bel_chunk *chunk = &j->layout->chunks[c];
            bool rounds = j->rounding != BEL_ROUNDING_NONE && chunk->kind == BEL_VARIABLE_TRAINABLE;
            if (!bel_chunk_changes(chunk, 0)) continue;
            bel_weight weight =
                rounds ? bel_assignment_sum_node_rounded(node, j->rounding, step, p->ranges + at,
                                                         weights + at, chunk->offset, chunk->count)
                       : bel_assignment_sum_node(node, p->ranges + at, weights + at, chunk->offset,
                                                 chunk->count);
            BEL_TRY(bel_client_report(p->client, step, decision, c, k, weight,
                                      p->ranges[at] + chunk->offset));
        }
        BEL_TRY(bel_client_stats(p->client, step, decision, k, hash, stats));
    }
    return NULL;
}

static bel_status *play_steps(player *p)
{
    BEL_TRY(bel_client_pull(p->client, 0));
    for (int64_t version = 0;; version++) {
        uint32_t decision;
        BEL_TRY(bel_client_wait(p->client, version, &decision));
        if ((decision & BEL_DECIDE_STOP) != 0) break;
        BEL_TRY(report_step(p, version, decision));
    }
    p->hash = hash_of(p);
    return NULL;
}

static void *play(void *argument)
{
    player *p = argument;
    p->status = play_steps(p);
    return NULL;
}

static bool is_over(void *context)
{
    return atomic_load(&((job *)context)->over);
}

static char *addresses[SHARDS + 1]; // the last: the relays'

static void find_buffers(const player *p, const bel_shm_region *region, float *out_buffers[2])
{
    char *memory = bel_shm_region_memory(region);
    for (size_t b = 0; b < 2; b++)
        out_buffers[b] = (float *)(void *)(memory + b * bel_space_bytes(p->job->layout));
}

static void make_relays(player *p)
{
    job *j = p->job;
    int levels[BEL_FAN_IN_LEVELS];
    float *buffers[2];
    int count = bel_fan_in_relays(j->tree, p->index, levels);
    if (count > 0) {
        BEL_ASSERT_OK(
            bel_shm_region_create("values", 2 * bel_space_bytes(j->layout), &p->relay_values));
        find_buffers(p, p->relay_values, buffers);
    }
    for (int i = count - 1; i >= 0; i--) {
        bel_fan_in_place up = bel_fan_in_place_of(j->tree, p->index, levels[i]);
        const bel_relay_config config = {.worker = p->index,
                                         .level = levels[i],
                                         .tree = j->tree,
                                         .layout = j->layout,
                                         .joined = j->joined,
                                         .rounding = j->rounding,
                                         .generation = 1,
                                         .incarnations = j->incarnations,
                                         .endpoint = j->endpoint,
                                         .above = i + 1 < count ? p->relays[i + 1] : NULL,
                                         .addresses =
                                             up.worker >= 0 ? addresses + SHARDS : addresses,
                                         .buffers = buffers,
                                         .hub = j->hub,
                                         .region = p->relay_values,
                                         .report_room = j->room,
                                         .stall_timeout_secs = PATIENCE_SECS};
        BEL_ASSERT_OK(bel_relay_create(&config, &p->relays[i]));
    }
    p->relay_count = count;
}

static bel_lane *connect_lane(player *p, int shard, const bel_layout *layout)
{
    const job *j = p->job;
    bool relayed = p->place.worker >= 0;
    if (p->relay_count > 0) return bel_relay_connect(p->relays[0], p->bell);
    const bel_lane_hello hello = {.kind = relayed ? BEL_HELLO_REPORTER : BEL_HELLO_WORKER,
                                  .index = p->index,
                                  .generation = 1};
    if (p->gradients != NULL) {
        const bel_shm_lane_config config = {
            .capacity = bel_lane_frames_of_worker(layout, p->reporters.assignment, p->place.index,
                                                  shard, true),
            .bell = p->bell,
            .region = p->gradients,
            .peer_bytes = 2 * bel_space_bytes(layout)};
        return bel_shm_lane_connect(j->hub, j->hub_path, &hello, &config);
    }
    p->peers[shard] = (bel_client_peer){p->client, shard};
    const bel_stream_lane_config config = {
        .capacity = bel_lane_frames_of_worker(layout, p->reporters.assignment, p->place.index,
                                              shard, false),
        .bell = p->bell,
        .quiet = 1u << BEL_FRAME_PARAMS | 1u << BEL_FRAME_ROOM,
        .urgent = 1u << BEL_FRAME_ROOM,
        .at_once = bel_client_take_at_once,
        .joined = BEL_FRAMES_OF_REPORT,
        .place = bel_client_place,
        .place_context = &p->peers[shard]};
    return bel_stream_lane_connect(j->endpoint, addresses[relayed ? SHARDS : shard], &hello,
                                   &config);
}

// The relay's values replace its memory.
static bel_status *attach(void *context)
{
    const player *p = context;
    float *buffers[2];
    const bel_shm_region *region = bel_shm_lane_peer(p->lanes[0]);
    if (region == NULL) return BEL_ERR(BEL_UNAVAILABLE, "the relay has gone");
    find_buffers(p, region, buffers);
    p->own->buffers[0] = buffers[0];
    p->own->buffers[1] = buffers[1];
    return NULL;
}

static void make_ranges(player *p)
{
    job *j = p->job;
    size_t bytes = bel_space_bytes(j->layout);
    int replicas = bel_assignment_replicas(j->assignment, p->index);
    bool read_in_place = p->relay_count == 0 && bel_fan_in_is_host(j->tree, p->place.level);
    if (!read_in_place) {
        BEL_ASSERT_OK(bel_space_arrays(j->layout, "gradients", replicas, &p->ranges));
        return;
    }
    BEL_ASSERT_OK(bel_shm_region_create("gradients", (size_t)replicas * bytes, &p->gradients));
    p->ranges = bel_xcalloc((size_t)replicas, sizeof *p->ranges);
    for (int r = 0; r < replicas; r++) {
        char *memory = bel_shm_region_memory(p->gradients);
        p->ranges[r] = (float *)(void *)(memory + (size_t)r * bytes);
    }
}

static void make_player(player *p)
{
    job *j = p->job;
    p->place = bel_fan_in_place_of(j->tree, p->index, 0);
    bool relayed = p->place.worker >= 0;
    p->reporters = bel_fan_in_beside(j->tree, &p->place);
    p->bell = bel_doorbell_create();
    make_relays(p);
    make_ranges(p);
    float *none[2] = {NULL, NULL};
    if (p->gradients != NULL) {
        p->own = bel_space_over(j->layout, none);
    } else if (p->relay_count == 0) {
        BEL_ASSERT_OK(bel_space_create(j->layout, 2, &p->own));
    }
    p->space = p->own != NULL ? p->own : bel_relay_space(p->relays[0]);
    const bel_client_relayed name = {p->index, p->place.worker,
                                     j->assignment->first_node[p->index]};
    const bel_layout *layout = relayed ? j->joined : j->layout;
    const int *nodes = j->assignment->first_node + p->index;
    p->rounded_bytes = bel_rounding_bytes(j->rounding, layout->size * (1 + nodes[1] - nodes[0]));
    if (j->rounding != BEL_ROUNDING_NONE && p->gradients == NULL)
        BEL_ASSERT_OK(bel_pages_create(p->rounded_bytes, false, "rounded sums", &p->rounded));
    const bel_client_config config = {.worker = p->place.index,
                                      .relayed = &name,
                                      .generation = 1,
                                      .layout = layout,
                                      .assignment = p->reporters.assignment,
                                      .lanes = p->lanes,
                                      .space = p->space,
                                      .attach = p->gradients != NULL ? attach : NULL,
                                      .attach_context = p,
                                      .rounded_room = p->rounded,
                                      .rounding = j->rounding,
                                      .bell = p->bell,
                                      .cancelled = is_over,
                                      .cancelled_context = j,
                                      .stall_timeout_secs = PATIENCE_SECS};
    p->client = bel_client_create(&config);
    p->lane_count = layout->shard_count;
    for (int k = 0; k < p->lane_count; k++)
        p->lanes[k] = connect_lane(p, k, layout);
}

static void free_player(player *p)
{
    bel_lane_close_all(p->lanes, p->lane_count);
    for (int i = 0; i < p->relay_count; i++)
        bel_relay_destroy(p->relays[i]);
    bel_client_destroy(p->client);
    bel_pages_destroy(p->rounded, p->rounded_bytes);
    if (p->gradients != NULL) {
        bel_free(p->ranges);
    } else {
        bel_space_free_arrays(p->job->layout, p->ranges,
                              bel_assignment_replicas(p->job->assignment, p->index));
    }
    bel_space_destroy(p->own);
    bel_reporters_deinit(&p->reporters);
    bel_doorbell_destroy(p->bell);
}

// --- A job ---------------------------------------------------------------------------------------

static bel_layout *make_layout(void)
{
    static char names[][8] = {"kernel", "bias", "frozen", "mean", "sum", "first", "last"};
    const bel_layout_variable variables[] = {
        {.name = names[0], .shape = BEL_SHAPE(70, 300)},
        {.name = names[1], .shape = BEL_SHAPE(300)},
        {.name = names[2], .shape = BEL_SHAPE(5001), .kind = BEL_VARIABLE_FROZEN},
        {.name = names[3], .shape = BEL_SHAPE(10), .kind = BEL_VARIABLE_STATE_MEAN},
        {.name = names[4], .shape = BEL_SHAPE(3), .kind = BEL_VARIABLE_STATE_SUM},
        {.name = names[5], .shape = BEL_SHAPE(3), .kind = BEL_VARIABLE_STATE_FIRST},
        {.name = names[6], .shape = BEL_SHAPE(330, 130)},
    };
    return bel_layout_create(variables, 7, SHARDS);
}

typedef struct gates {
    gate gates[SHARDS + 1];
    bel_endpoint *endpoints[SHARDS + 1];
    char *folder;
} gates;

static void open_gates(job *j, gates *g)
{
    g->folder = bel_test_folder();
    for (int e = 0; e <= SHARDS; e++) {
        g->gates[e] = (gate){j, e < SHARDS ? e : -1};
        addresses[e] = bel_strf("unix:%s/%d", g->folder, e);
        const bel_endpoint_config config = {.listen_address = addresses[e],
                                            .secret = "s",
                                            .silence_secs = PATIENCE_SECS,
                                            .accept = accept_lane,
                                            .context = &g->gates[e]};
        BEL_ASSERT_OK(bel_endpoint_create(&config, &g->endpoints[e]));
    }
    j->hub_path = bel_strf("%s/hub", g->folder);
    const bel_shm_hub_config hub = {
        .listen_path = j->hub_path, .secret = "s", .find = find_shm_lane, .context = j};
    BEL_ASSERT_OK(bel_shm_hub_create(&hub, &j->hub));
}

static void close_gates(job *j, gates *g)
{
    bel_shm_hub_destroy(j->hub);
    bel_free(j->hub_path);
    for (int w = 0; w < j->assignment->worker_count; w++) { // no other end reads them any more
        bel_shm_region_destroy(j->players[w].relay_values);
        bel_shm_region_destroy(j->players[w].gradients);
    }
    for (int e = 0; e <= SHARDS; e++) {
        bel_endpoint_destroy(g->endpoints[e]);
        bel_free(addresses[e]);
    }
    bel_test_remove_folder(g->folder);
}

static job *make_job(const int *replicas_of, int workers, const bel_fan_in_rule *rule, size_t room,
                     bel_rounding rounding)
{
    job *j = bel_xcalloc(1, sizeof *j);
    j->layout = make_layout();
    j->joined = bel_layout_join(j->layout);
    j->assignment = bel_assignment_create(replicas_of, workers);
    j->tree = bel_fan_in_create(j->assignment, rule);
    j->room = room;
    j->rounding = rounding;
    j->top = bel_fan_in_top(j->tree);
    j->optimizers.main = bel_optimizer_default();
    j->optimizers.main.kind = BEL_OPTIMIZER_SGD;
    j->optimizers.main.learning_rate = 0.1;
    BEL_ASSERT_OK(bel_optimizer_check(&j->optimizers.main));
    BEL_ASSERT_OK(bel_space_create(j->layout, 2, &j->space));
    for (int64_t i = 0; i < j->layout->size; i++)
        j->space->buffers[0][i] = (float)(i % 101) / 50.0f - 1.0f;
    return j;
}

static void free_job(job *j)
{
    for (int k = 0; k < SHARDS; k++) {
        server *s = &j->servers[k];
        bel_shard_destroy(s->shard);
        bel_doorbell_destroy(s->bell);
        bel_space_free_array(j->layout, s->snapshot);
        bel_free(s->lanes);
        bel_free(s->peers);
    }
    bel_space_destroy(j->space);
    bel_reporters_deinit(&j->top);
    bel_fan_in_destroy(j->tree);
    bel_assignment_destroy(j->assignment);
    bel_layout_destroy_joined(j->joined);
    bel_layout_destroy(j->layout);
    bel_free(j);
}

// Makes all ends of lanes, and then starts all threads.
static void start(job *j, const gates *g)
{
    for (int k = 0; k < SHARDS; k++) {
        j->endpoint = g->endpoints[k];
        make_server(j, k);
    }
    j->endpoint = g->endpoints[SHARDS];
    for (int w = 0; w < j->assignment->worker_count; w++) {
        j->players[w].job = j;
        j->players[w].index = w;
        make_player(&j->players[w]);
    }
    atomic_store(&j->opened, true);
    for (int k = 0; k < SHARDS; k++) {
        served *s = bel_xcalloc(1, sizeof *s);
        *s = (served){j, &j->servers[k]};
        BEL_ASSERT_OK(bel_thread_start(&j->servers[k].thread, serve, s));
    }
    for (int w = 0; w < j->assignment->worker_count; w++)
        for (int i = j->players[w].relay_count - 1; i >= 0; i--)
            BEL_ASSERT_OK(bel_relay_start(j->players[w].relays[i]));
    for (int w = 0; w < j->assignment->worker_count; w++)
        BEL_ASSERT_OK(bel_thread_start(&j->players[w].thread, play, &j->players[w]));
}

// Waits for the first error of a relay: no version follows it.
static void await_error(const job *j, bel_str *out_error)
{
    while (out_error->length == 0) {
        for (int w = 0; w < j->assignment->worker_count; w++)
            for (int i = 0; i < j->players[w].relay_count; i++) {
                bel_status *status = bel_relay_check(j->players[w].relays[i]);
                if (status != NULL) bel_str_puts(out_error, bel_status_message(status));
                bel_status_ignore(status); // it is in the text
            }
        sched_yield();
    }
}

static void end_servers(job *j)
{
    atomic_store(&j->over, true);
    for (int k = 0; k < SHARDS; k++)
        pthread_join(j->servers[k].thread, NULL);
}

static void close_lanes(job *j)
{
    for (int k = 0; k < SHARDS; k++)
        bel_lane_close_all(j->servers[k].lanes, j->top.count);
}

static void free_players(job *j)
{
    for (int w = 0; w < j->assignment->worker_count; w++)
        free_player(&j->players[w]);
}

static void end(job *j)
{
    end_servers(j);
    free_players(j);
    close_lanes(j);
}

static void check_relays(const job *j)
{
    for (int w = 0; w < j->assignment->worker_count; w++)
        for (int i = 0; i < j->players[w].relay_count; i++)
            BEL_ASSERT_OK(bel_relay_check(j->players[w].relays[i]));
}

// Returns the hash of the values that all workers see at the end.
static uint64_t run_rule(const int *replicas_of, int workers, const bel_fan_in_rule *rule,
                         size_t room, bel_rounding rounding)
{
    job *j = make_job(replicas_of, workers, rule, room, rounding);
    gates g;
    j->liar = -1;
    open_gates(j, &g);
    start(j, &g);
    for (int w = 0; w < workers; w++) {
        player *p = &j->players[w];
        pthread_join(p->thread, NULL);
        BEL_ASSERT_OK(p->status);
        assert_int_equal(p->hash, j->players[0].hash);
    }
    check_relays(j);
    uint64_t hash = j->players[0].hash;
    end(j);
    close_gates(j, &g);
    free_job(j);
    return hash;
}

static uint64_t run(const int *replicas_of, int workers, int fan_in, size_t room,
                    bel_rounding rounding)
{
    const bel_fan_in_rule rule = {.fan_in = fan_in};
    return run_rule(replicas_of, workers, &rule, room, rounding);
}

static const int uneven[] = {3, 1, 2, 1, 4, 1, 1, 2, 1, 3, 1}, alike[] = {1, 1, 1, 1, 1, 1, 1};

static void test_same_values(void **state)
{
    (void)state;
    const size_t few = 1; // as few slots as the tree needs
    uint64_t expected = run(uneven, 11, 0, 0, BEL_ROUNDING_NONE);
    assert_int_equal(run(uneven, 11, 0, few, BEL_ROUNDING_NONE), expected);
    for (int fan_in = 2; fan_in <= 6; fan_in++)
        for (int limited = 0; limited < 2; limited++)
            assert_int_equal(run(uneven, 11, fan_in, limited ? few : 0, BEL_ROUNDING_NONE),
                             expected);
    expected = run(alike, 7, 0, 0, BEL_ROUNDING_NONE);
    assert_int_equal(run(alike, 7, 2, few, BEL_ROUNDING_NONE), expected);
}

static void test_same_values_with_rounding(void **state)
{
    (void)state;
    const size_t few = 1;
    const bel_rounding kinds[] = {BEL_ROUNDING_BF16, BEL_ROUNDING_INT8};
    for (int i = 0; i < 2; i++) {
        uint64_t expected = run(uneven, 11, 0, 0, kinds[i]);
        assert_int_equal(run(uneven, 11, 0, few, kinds[i]), expected);
        assert_int_equal(run(uneven, 11, 2, 0, kinds[i]), expected);
        assert_int_equal(run(uneven, 11, 3, few, kinds[i]), expected);
        assert_int_not_equal(run(uneven, 11, 0, 0, BEL_ROUNDING_NONE), expected);
    }
}

// Groups of hosts, with and without levels above, and a host with one worker.
static void test_same_values_with_hosts(void **state)
{
    (void)state;
    static const int hosts[] = {4, 1, 3, 2, 1}, one[] = {11};
    const bel_rounding kinds[] = {BEL_ROUNDING_NONE, BEL_ROUNDING_BF16, BEL_ROUNDING_INT8};
    for (int i = 0; i < 3; i++) {
        uint64_t expected = run(uneven, 11, 0, 0, kinds[i]);
        const bel_fan_in_rule rules[] = {{0, hosts, 5}, {2, hosts, 5}, {3, hosts, 5}, {0, one, 1}};
        for (int k = 0; k < 4; k++)
            assert_int_equal(run_rule(uneven, 11, &rules[k], k == 1, kinds[i]), expected);
    }
}

// After the last version shards may close their lanes before a relay is told that the job is over.
// A relay notices within the nap, in which no error may come.
static void test_shards_end_first(void **state)
{
    (void)state;
    const struct timespec nap = {.tv_nsec = 300000000};
    job *j = make_job(alike, 7, &(bel_fan_in_rule){.fan_in = 2}, 0, BEL_ROUNDING_NONE);
    gates g;
    j->liar = -1;
    open_gates(j, &g);
    start(j, &g);
    for (int w = 0; w < 7; w++) {
        pthread_join(j->players[w].thread, NULL);
        BEL_ASSERT_OK(j->players[w].status);
    }
    end_servers(j);
    close_lanes(j);
    (void)nanosleep(&nap, NULL);
    check_relays(j);
    free_players(j);
    close_gates(j, &g);
    free_job(j);
}

// A relay names the worker of its group.
static void test_other_parameters(void **state)
{
    (void)state;
    job *j = make_job(alike, 7, &(bel_fan_in_rule){.fan_in = 4}, 0, BEL_ROUNDING_NONE);
    bel_str error = {0};
    gates g;
    j->liar = 2;
    open_gates(j, &g);
    start(j, &g);
    await_error(j, &error);
    assert_non_null(strstr(error.text, "worker 2 computes step 1 on other parameters"));
    atomic_store(&j->over, true);
    for (int w = 0; w < 7; w++) {
        pthread_join(j->players[w].thread, NULL);
        assert_int_equal(bel_status_code(j->players[w].status), BEL_CANCELLED);
        bel_status_ignore(j->players[w].status); // as expected
    }
    end(j);
    close_gates(j, &g);
    free_job(j);
    bel_str_deinit(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_values),
        cmocka_unit_test(test_same_values_with_rounding),
        cmocka_unit_test(test_same_values_with_hosts),
        cmocka_unit_test(test_shards_end_first),
        cmocka_unit_test(test_other_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
