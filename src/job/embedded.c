// Wiring. Lanes: one per worker and shard, and one between shard 0 and each other shard.
#include "job/embedded.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "ps/layout/tally.h"
#include "transport/inproc/inproc.h"

typedef struct member { // a worker and its thread
    bel_embedded *embedded;
    bel_client *client;
    bel_worker *worker;
    bel_doorbell *bell;
    bel_lane **lanes; // by shard
    pthread_t thread;
    bool started;
} member;

typedef struct server { // a shard and its ends of the lanes
    bel_shard *shard;
    bel_doorbell *bell;
    bel_lane **worker_lanes; // by worker
    bel_lane **shard_lanes;  // shard 0: by shard; others: [0]
} server;

struct bel_embedded {
    bel_embedded_config config;
    bel_deal *deal;
    bel_space *space;
    float *snapshot;
    server *servers;
    member *members;
    int server_count, member_count;
    bel_control *control;
};

// --- Life ----------------------------------------------------------------------------------------

// Room for two reports in flight on every lane.
static size_t lane_capacity(const bel_embedded *embedded)
{
    size_t frames = (size_t)embedded->config.layout->chunk_count + 2;
    return 2 * frames * (size_t)embedded->deal->node_count + 16;
}

static void make_lanes(bel_embedded *embedded)
{
    size_t capacity = lane_capacity(embedded);
    for (int k = 0; k < embedded->server_count; k++) {
        server *s = &embedded->servers[k];
        s->bell = bel_doorbell_create();
        s->worker_lanes = bel_xcalloc((size_t)embedded->member_count, sizeof(bel_lane *));
        s->shard_lanes = bel_xcalloc((size_t)embedded->server_count, sizeof(bel_lane *));
    }
    for (int w = 0; w < embedded->member_count; w++) {
        member *m = &embedded->members[w];
        m->embedded = embedded;
        m->bell = bel_doorbell_create();
        m->lanes = bel_xcalloc((size_t)embedded->server_count, sizeof(bel_lane *));
        for (int k = 0; k < embedded->server_count; k++) {
            server *s = &embedded->servers[k];
            bel_inproc_lane_create(capacity, m->bell, s->bell, &m->lanes[k], &s->worker_lanes[w]);
        }
    }
    for (int k = 1; k < embedded->server_count; k++) {
        server *first = &embedded->servers[0], *s = &embedded->servers[k];
        bel_inproc_lane_create(capacity, first->bell, s->bell, &first->shard_lanes[k],
                               &s->shard_lanes[0]);
    }
}

static bel_status *make_shards(bel_embedded *embedded)
{
    for (int k = 0; k < embedded->server_count; k++) {
        server *s = &embedded->servers[k];
        bel_shard_config config = {.layout = embedded->config.layout,
                                   .shard = k,
                                   .deal = embedded->deal,
                                   .space = embedded->space,
                                   .snapshot = embedded->snapshot,
                                   .optimizer = embedded->config.built->spec.optimizer,
                                   .generation = embedded->config.generation,
                                   .tally_width = BEL_TALLY_FIXED,
                                   .worker_lanes = s->worker_lanes,
                                   .shard_lanes = s->shard_lanes};
        BEL_TRY(bel_shard_create(&config, &s->shard));
    }
    return NULL;
}

bel_status *bel_embedded_create(const bel_embedded_config *config, bel_embedded **out_embedded)
{
    bel_embedded *embedded = bel_xcalloc(1, sizeof *embedded);
    embedded->config = *config;
    embedded->server_count = config->layout->shard_count;
    embedded->member_count = config->estimator->config.worker_count;
    embedded->deal = bel_deal_create(config->estimator->towers_of, embedded->member_count);
    embedded->servers = bel_xcalloc((size_t)embedded->server_count, sizeof *embedded->servers);
    embedded->members = bel_xcalloc((size_t)embedded->member_count, sizeof *embedded->members);
    make_lanes(embedded);
    bel_status *status = bel_space_create(config->layout, &embedded->space);
    if (status == NULL) status = bel_space_array(config->layout, "snapshot", &embedded->snapshot);
    if (status == NULL) status = make_shards(embedded);
    if (status != NULL) {
        bel_embedded_destroy(embedded);
        return status;
    }
    *out_embedded = embedded;
    return NULL;
}

static void close_server(bel_embedded *embedded, server *s)
{
    for (int w = 0; w < embedded->member_count; w++)
        bel_lane_close(s->worker_lanes[w]);
    for (int k = 0; k < embedded->server_count; k++)
        bel_lane_close(s->shard_lanes[k]);
    bel_shard_destroy(s->shard);
    bel_free(s->worker_lanes);
    bel_free(s->shard_lanes);
}

void bel_embedded_destroy(bel_embedded *embedded)
{
    if (embedded == NULL) return;
    bel_embedded_join(embedded);
    for (int w = 0; w < embedded->member_count; w++) {
        member *m = &embedded->members[w];
        bel_worker_destroy(m->worker);
        bel_client_destroy(m->client);
        for (int k = 0; k < embedded->server_count; k++)
            bel_lane_close(m->lanes[k]);
        bel_free(m->lanes);
    }
    for (int k = 0; k < embedded->server_count; k++)
        close_server(embedded, &embedded->servers[k]);
    for (int w = 0; w < embedded->member_count; w++) // doorbells outlive all lanes
        bel_doorbell_destroy(embedded->members[w].bell);
    for (int k = 0; k < embedded->server_count; k++)
        bel_doorbell_destroy(embedded->servers[k].bell);
    bel_space_free_array(embedded->config.layout, embedded->snapshot);
    bel_space_destroy(embedded->space);
    bel_deal_destroy(embedded->deal);
    bel_free(embedded->servers);
    bel_free(embedded->members);
    bel_free(embedded);
}

bel_status *bel_embedded_load(bel_embedded *embedded, const bel_ckpt_reader *reader)
{
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_load(embedded->servers[k].shard, reader));
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

typedef struct help {
    bel_embedded *embedded;
    atomic_bool worked;
} help;

static void help_on_thread(void *context)
{
    help *h = context;
    for (int k = 0; k < h->embedded->server_count; k++)
        while (bel_shard_work(h->embedded->servers[k].shard))
            atomic_store(&h->worked, true);
}

// A waiting worker works for the shards, with all its threads.
static bool help_shards(void *context)
{
    member *m = context;
    help h = {.embedded = m->embedded};
    bel_worker_on_all_threads(m->worker, help_on_thread, &h);
    return atomic_load(&h.worked);
}

static void *member_main(void *argument)
{
    member *m = argument;
    bel_status *status = bel_worker_run(m->worker);
    bel_control_worker_ended(m->embedded->control, status);
    return NULL;
}

static bel_status *make_member(bel_embedded *embedded, int w, const bel_input_segment *segment,
                               int64_t first_step)
{
    member *m = &embedded->members[w];
    const bel_embedded_config *config = &embedded->config;
    const bel_estimator *estimator = config->estimator;
    bel_client_config client = {.worker = w,
                                .generation = config->generation,
                                .layout = config->layout,
                                .deal = embedded->deal,
                                .lanes = m->lanes,
                                .bell = m->bell,
                                .help = help_shards,
                                .help_context = m,
                                .cancelled = bel_control_is_cancelled,
                                .cancelled_context = embedded->control,
                                .stall_timeout_secs = estimator->config.stall_timeout_secs};
    m->client = bel_client_create(&client);
    bel_worker_config worker = {.worker = w,
                                .deal = embedded->deal,
                                .layout = config->layout,
                                .space = embedded->space,
                                .model = config->model,
                                .input = config->input,
                                .client = m->client,
                                .tower_count = estimator->towers_of[w],
                                .thread_count = estimator->thread_count,
                                .seed = estimator->config.seed,
                                .first_step = first_step,
                                .segment = *segment,
                                .tally_width = BEL_TALLY_FIXED};
    return bel_worker_create(&worker, &m->worker);
}

bel_status *bel_embedded_start(bel_embedded *embedded, bel_control *control,
                               const bel_input_segment *segment, int64_t first_step)
{
    embedded->control = control;
    for (int w = 0; w < embedded->member_count; w++)
        BEL_TRY(make_member(embedded, w, segment, first_step));
    const bel_shard_events events = {.context = control,
                                     .decide = bel_control_decide,
                                     .snapshot_ready = bel_control_snapshot_ready};
    for (int k = 0; k < embedded->server_count; k++)
        bel_shard_start(embedded->servers[k].shard, &events);
    for (int w = 0; w < embedded->member_count; w++) {
        member *m = &embedded->members[w];
        bel_status *status = bel_thread_start(&m->thread, member_main, m);
        m->started = status == NULL;
        if (status != NULL) bel_control_worker_ended(control, status);
    }
    return NULL;
}

void bel_embedded_join(bel_embedded *embedded)
{
    for (int w = 0; w < embedded->member_count; w++) {
        member *m = &embedded->members[w];
        if (m->started) pthread_join(m->thread, NULL);
        m->started = false;
    }
}

int bel_embedded_shard_count(const bel_embedded *embedded)
{
    return embedded->server_count;
}

bel_shard *bel_embedded_shard(bel_embedded *embedded, int shard)
{
    return embedded->servers[shard].shard;
}

float *bel_embedded_snapshot(bel_embedded *embedded)
{
    return embedded->snapshot;
}

bel_worker_times bel_embedded_times(const bel_embedded *embedded)
{
    bel_worker_times mean = {0};
    int count = embedded->member_count;
    for (int w = 0; w < count; w++) {
        if (embedded->members[w].worker == NULL) continue;
        bel_worker_times times = bel_worker_time(embedded->members[w].worker);
        mean.input_ns += times.input_ns / count;
        mean.compute_ns += times.compute_ns / count;
        mean.exchange_ns += times.exchange_ns / count;
        mean.total_ns += times.total_ns / count;
        mean.steps = times.steps;
    }
    return mean;
}
