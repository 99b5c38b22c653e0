// The hollow workers. The main thread has their mailboxes; each worker has a thread with the real
// client and real lanes, which reports zeros from one array that all share. Values that gRPC brings
// go into one space that all share, on the endpoint's only thread; through shared memory no worker
// maps them. So a worker costs this process what the protocol costs it, and no more. Relays have a
// separate endpoint. Threads inherit the name of the thread that starts them, by which hollow.c
// tells the workers' from the relays'.
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread.h"
#include "hollow.h"
#include "hollow_lane.h"
#include "monitoring/numbers.h"
#include "ps/client/client.h"
#include "ps/frames/frames.h"
#include "ps/layout/lane_frames.h"
#include "ps/relay/relay.h"
#include "transport/shm/shm_lane.h"
#include "transport/streams/mailbox.h"
#include "transport/streams/stream_lane.h"

enum {
    SECOND_NS = 1000000000,
    NAP_NS = 20000000,
    PATIENCE_SECS = 300,
    CALL_SECS = 60,
    LINGER_MS = 1000
};

typedef struct hollow_crowd hollow_crowd;

typedef struct hollow_worker {
    hollow_crowd *crowd;
    int index;
    bel_mailbox *mailbox;
    bel_doorbell *bell; // the lanes'
    bel_client *client;
    bel_client_peer *peers;
    counted_lane *lanes; // by shard
    bel_lane **lane_list;
    bel_space *space;
    void *rounded_room;       // as in bel_client_config
    const bel_layout *layout; // its lanes': joined if a relay takes its reports
    bel_reporters reporters;  // itself, as number place.index, among those that report there
    bel_fan_in_place place;
    bel_space *relay_values;              // its process's relays':
    bel_relay *relays[BEL_FAN_IN_LEVELS]; // from the lowest level up
    int relay_count;
    pthread_t thread;
    bool joined, runs, told;
    bel_backoff backoff; // between calls to the master
    int64_t call_ns;     // the next one
    int64_t calls;
    bool dropped;       // its connection to the master is broken, and it has not joined again
    int64_t drop_calls; // since then
    atomic_bool ended;
    atomic_llong step; // its newest version
    bel_status *status;
} hollow_worker;

struct hollow_crowd {
    const hollow_job *job;
    const bel_task *task;
    const bel_trainable *trainable;
    hollow_look *look;
    void *context;
    bel_endpoint *endpoint;
    bel_endpoint *relay_endpoint; // NULL: no relays
    bel_shm_hub *hub;             // NULL: lanes over gRPC
    bel_doorbell *bell;
    char *token, *host;
    hollow_worker *workers;
    // From the first setup:
    uint32_t generation;
    bel_assignment *assignment;
    bel_fan_in *tree;
    bel_layout *joined;
    uint32_t *incarnations; // all 0
    pthread_mutex_t mutex;  // guards the workers' relays, which peers look for
    pthread_mutex_t last;   // worker 0's until it has looked: no thread ends before, with its time
    char **addresses;
    bel_shm_region *region; // zeros
    bel_space *values;      // its buffers are all workers'
    const float *zeros;
    double stats[BEL_STATS_COUNT]; // a step's: one example
    hollow_counts counts;
    int64_t deadline_ns; // the last call to the master
    atomic_int drop;     // hollow_drop
    int64_t drop_version;
    bool over;
};

// Worker 0 asks for a drop, the main thread breaks all connections, and when all workers have
// joined again worker 0 continues.
typedef enum hollow_drop { NO_DROP, DROP_ASKED, DROPPED } hollow_drop;

// --- Lanes ---------------------------------------------------------------------------------------

static bel_lane *connect_lane(hollow_worker *w, int shard)
{
    hollow_crowd *crowd = w->crowd;
    const bel_layout *layout = w->layout;
    bool relayed = w->place.worker >= 0;
    size_t capacity = bel_lane_frames_of_worker(layout, w->reporters.assignment, w->place.index,
                                                shard, !crowd->job->grpc);
    const bel_lane_hello hello = {.kind = relayed ? BEL_HELLO_REPORTER : BEL_HELLO_WORKER,
                                  .index = w->index,
                                  .generation = crowd->generation};
    if (w->relay_count > 0) return bel_relay_connect(w->relays[0], w->bell);
    w->peers[shard] = (bel_client_peer){w->client, shard};
    if (crowd->hub != NULL) {
        const bel_shm_lane_config config = {.capacity = capacity,
                                            .bell = w->bell,
                                            .quiet = BEL_FRAMES_OF_REPORT,
                                            .region = crowd->region,
                                            .peer_bytes = 2 * bel_space_bytes(layout)};
        char *path = bel_strf("%s.shm", crowd->addresses[shard] + strlen("unix:"));
        bel_lane *lane = bel_shm_lane_connect(crowd->hub, path, &hello, &config);
        bel_free(path);
        return lane;
    }
    const bel_stream_lane_config config = {.capacity = capacity,
                                           .bell = w->bell,
                                           .quiet = 1u << BEL_FRAME_PARAMS | 1u << BEL_FRAME_ROOM,
                                           .urgent = 1u << BEL_FRAME_ROOM,
                                           .at_once = bel_client_take_at_once,
                                           .joined = BEL_FRAMES_OF_REPORT,
                                           .place = bel_client_place,
                                           .place_context = &w->peers[shard]};
    const char *address =
        relayed ? bel_endpoint_address(crowd->relay_endpoint) : crowd->addresses[shard];
    return bel_stream_lane_connect(crowd->endpoint, address, &hello, &config);
}

static void open_lane(hollow_worker *w, int shard)
{
    counted_lane *c = &w->lanes[shard];
    counted_lane_init(c, connect_lane(w, shard));
    w->lane_list[shard] = &c->base;
}

// --- A worker's thread ---------------------------------------------------------------------------

static bel_status *report_step(hollow_worker *w, int64_t step, uint32_t decision)
{
    const hollow_crowd *crowd = w->crowd;
    const bel_layout *layout = crowd->trainable->layout;
    const int *first = w->reporters.assignment->first_node + w->place.index;
    for (int k = first[0]; k < first[1]; k++) {
        const bel_weight once = {1, 1};
        for (int c = 0; c < layout->chunk_count; c++) {
            BEL_TRY(bel_client_report(w->client, step, decision, c, k, once,
                                      crowd->zeros + layout->chunks[c].offset));
        }
        BEL_TRY(
            bel_client_stats(w->client, step, decision, k, 0, crowd->stats)); // one hash for all
    }
    return NULL;
}

// --- Drops ---------------------------------------------------------------------------------------

static bool has_streams(const hollow_worker *w)
{
    return !w->crowd->over && w->relay_count == 0 && w->lanes != NULL;
}

static int64_t streams_of(const counted_lane *lane)
{
    return (int64_t)bel_stream_lane_streams(lane->inner);
}

// On the main thread. No worker reports meanwhile: worker 0 has not.
static void drop_all(hollow_crowd *crowd)
{
    for (int i = 0; i < crowd->job->worker_count; i++) {
        hollow_worker *w = &crowd->workers[i];
        w->dropped = true;
        w->drop_calls = 0;
        w->backoff.tries = 0;
        w->call_ns = 0;
        for (int k = 0; has_streams(w) && k < w->layout->shard_count; k++)
            w->lanes[k].streams = streams_of(&w->lanes[k]);
    }
    crowd->deadline_ns = bel_clock_ns() + CALL_SECS * (int64_t)SECOND_NS;
    crowd->look(crowd->context, HOLLOW_DROP);
    atomic_store(&crowd->drop, DROPPED);
}

static bool all_are_back(const hollow_crowd *crowd)
{
    for (int i = 0; i < crowd->job->worker_count; i++)
        if (crowd->workers[i].dropped) return false;
    return true;
}

// On worker 0's thread, at the version after the drop: each lane has brought a report since.
static void count_drop(hollow_crowd *crowd)
{
    hollow_counts *counts = &crowd->counts;
    crowd->look(crowd->context, HOLLOW_BACK);
    for (int i = 0; i < crowd->job->worker_count; i++) {
        const hollow_worker *w = &crowd->workers[i];
        if (w->drop_calls > counts->most_drop_calls) counts->most_drop_calls = w->drop_calls;
        for (int k = 0; has_streams(w) && k < w->layout->shard_count; k++) {
            int64_t opened = streams_of(&w->lanes[k]) - w->lanes[k].streams;
            if (opened > counts->most_drop_streams) counts->most_drop_streams = opened;
        }
    }
}

// Drops are evenly spread over the measured steps.
static void drop_at(hollow_crowd *crowd, int64_t version)
{
    int64_t warm = crowd->job->steps / 10, drops = crowd->job->drops;
    if (crowd->drop_version > 0 && version == crowd->drop_version + 1) count_drop(crowd);
    bool due = false;
    for (int64_t i = 1; i <= drops; i++)
        due = due || version == warm + i * crowd->job->steps / (drops + 1);
    if (!due) return;
    crowd->drop_version = version;
    atomic_store(&crowd->drop, DROP_ASKED);
    bel_doorbell_ring(crowd->bell);
    while (atomic_load(&crowd->drop) != NO_DROP)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// Worker 0 looks at the processes, for all.
static void look_at(hollow_worker *w, int64_t version, bool last)
{
    hollow_crowd *crowd = w->crowd;
    if (w->index != 0) return;
    if (!last) drop_at(crowd, version);
    int64_t warm = crowd->job->steps / 10;
    if (version == warm) crowd->look(crowd->context, HOLLOW_WARM);
    if (last) crowd->look(crowd->context, HOLLOW_LAST);
}

static bel_status *run_steps(hollow_worker *w)
{
    BEL_TRY(bel_client_pull(w->client, 0));
    for (int64_t version = 0;; version++) {
        uint32_t decision;
        BEL_TRY(bel_client_wait(w->client, version, &decision));
        atomic_store_explicit(&w->step, version, memory_order_relaxed);
        bool last = (decision & BEL_DECIDE_STOP) != 0;
        look_at(w, version, last);
        if (last) return NULL;
        BEL_TRY(report_step(w, version, decision));
    }
}

static void *worker_main(void *argument)
{
    hollow_worker *w = argument;
    pthread_mutex_t *last = &w->crowd->last;
    if (w->index == 0) pthread_mutex_lock(last);
    w->status = run_steps(w);
    bool waits = w->index != 0 && w->status == NULL; // an error is the master's to hear at once
    if (waits) pthread_mutex_lock(last);
    if (waits || w->index == 0) pthread_mutex_unlock(last);
    atomic_store(&w->ended, true);
    bel_doorbell_ring(w->crowd->bell);
    return NULL;
}

static size_t rounded_bytes(const hollow_worker *w)
{
    const int *first = w->reporters.assignment->first_node + w->place.index;
    size_t arrays = 1 + (size_t)(first[1] - first[0]);
    return bel_rounding_bytes(bel_trainable_rounding(w->crowd->trainable),
                              (int64_t)arrays * w->crowd->trainable->layout->size);
}

// Names this thread, and those that it starts from now on.
static void name_threads(const char *name)
{
    (void)prctl(PR_SET_NAME, (unsigned long)(uintptr_t)name, 0ul, 0ul, 0ul);
}

// Its relays have values that no other process has.
static bel_status *make_relays(hollow_worker *w)
{
    hollow_crowd *crowd = w->crowd;
    const bel_layout *layout = crowd->trainable->layout;
    int levels[BEL_FAN_IN_LEVELS];
    int count = bel_fan_in_relays(crowd->tree, w->index, levels);
    bel_status *status = count > 0 ? bel_space_create(layout, 2, &w->relay_values) : NULL;
    char *own = count > 0 ? bel_xstrdup(bel_endpoint_address(crowd->relay_endpoint)) : NULL;
    bel_relay *above = NULL;
    name_threads(HOLLOW_RELAYS);
    w->relay_count = count; // those that were not made are NULL
    for (int i = count - 1; i >= 0 && status == NULL; i--) {
        bool up = bel_fan_in_place_of(crowd->tree, w->index, levels[i]).worker >= 0;
        const bel_relay_config config = {.worker = w->index,
                                         .level = levels[i],
                                         .tree = crowd->tree,
                                         .layout = layout,
                                         .joined = crowd->joined,
                                         .stats = crowd->trainable->stats,
                                         .rounding = bel_trainable_rounding(crowd->trainable),
                                         .generation = crowd->generation,
                                         .incarnations = crowd->incarnations,
                                         .endpoint = crowd->relay_endpoint,
                                         .above = above,
                                         .addresses = up ? &own : crowd->addresses,
                                         .buffers = w->relay_values->buffers,
                                         .stall_timeout_secs = PATIENCE_SECS};
        status = bel_relay_create(&config, &w->relays[i]);
        above = w->relays[i];
    }
    bel_free(own);
    name_threads(HOLLOW_WORKERS);
    if (status == NULL) crowd->counts.relays += count;
    for (int i = 0; i < count && status == NULL; i++) {
        bel_reporters below = bel_fan_in_members(crowd->tree, w->index, levels[i]);
        crowd->counts.reporters += below.count - 1;
        bel_reporters_deinit(&below);
    }
    return status;
}

// After its worker's client was made, which sets the buffers.
static bel_status *start_relays(hollow_worker *w)
{
    bel_status *status = NULL;
    name_threads(HOLLOW_RELAYS);
    for (int i = w->relay_count - 1; i >= 0 && status == NULL; i--)
        status = bel_relay_start(w->relays[i]);
    name_threads(HOLLOW_WORKERS);
    return status;
}

static void find_place(hollow_worker *w)
{
    const hollow_crowd *crowd = w->crowd;
    w->place = bel_fan_in_place_of(crowd->tree, w->index, 0);
    w->reporters = bel_fan_in_beside(crowd->tree, &w->place);
    w->layout = w->place.worker >= 0 ? crowd->joined : crowd->trainable->layout;
}

static bel_status *start_worker(hollow_worker *w)
{
    hollow_crowd *crowd = w->crowd;
    find_place(w);
    pthread_mutex_lock(&crowd->mutex);
    bel_status *made = make_relays(w);
    pthread_mutex_unlock(&crowd->mutex);
    if (made != NULL) return made;
    const bel_layout *layout = w->layout;
    size_t shards = (size_t)layout->shard_count;
    if (crowd->job->precision != BEL_EXCHANGE_F32 && crowd->job->grpc)
        BEL_TRY(bel_pages_create(rounded_bytes(w), false, "rounded sums", &w->rounded_room));
    w->bell = bel_doorbell_create();
    w->peers = bel_xcalloc(shards, sizeof *w->peers);
    w->lanes = bel_xcalloc(shards, sizeof *w->lanes);
    w->lane_list = bel_xcalloc(shards, sizeof(bel_lane *));
    w->space = bel_space_over(layout, crowd->values->buffers);
    const bel_client_config config = {.worker = w->place.index,
                                      .generation = crowd->generation,
                                      .layout = layout,
                                      .assignment = w->reporters.assignment,
                                      .lanes = w->lane_list,
                                      .space = w->relay_count > 0 ? bel_relay_space(w->relays[0])
                                                                  : w->space,
                                      .rounded_room = w->rounded_room,
                                      .rounding = bel_trainable_rounding(crowd->trainable),
                                      .stats = crowd->trainable->stats,
                                      .bell = w->bell,
                                      .stall_timeout_secs = PATIENCE_SECS};
    w->client = bel_client_create(&config);
    for (int k = 0; k < layout->shard_count; k++)
        open_lane(w, k);
    BEL_TRY(start_relays(w));
    BEL_TRY(bel_thread_start(&w->thread, worker_main, w));
    w->runs = true;
    return NULL;
}

static void end_worker(hollow_worker *w)
{
    hollow_counts *counts = &w->crowd->counts;
    int shards = w->layout != NULL ? w->layout->shard_count : 0;
    if (w->runs) pthread_join(w->thread, NULL);
    counts->calls += w->calls;
    if (w->calls > counts->most_calls) counts->most_calls = w->calls;
    for (int k = 0; w->lanes != NULL && k < shards; k++) {
        const counted_lane *c = &w->lanes[k];
        counts->sent += c->sent;
        counts->sent_bytes += c->sent_bytes;
        counts->received += c->received;
        counts->received_bytes += c->received_bytes;
    }
    if (w->lane_list != NULL) bel_lane_close_all(w->lane_list, shards);
    bel_client_destroy(w->client);
    bel_space_destroy(w->space);
    if (w->rounded_room != NULL) bel_pages_destroy(w->rounded_room, rounded_bytes(w));
    bel_reporters_deinit(&w->reporters);
    bel_doorbell_destroy(w->bell);
    bel_free(w->peers);
    bel_free(w->lanes);
    bel_free(w->lane_list);
}

// --- Control messages ----------------------------------------------------------------------------

static void send_join(const hollow_worker *w)
{
    const bel_trainable *t = w->crowd->trainable;
    size_t count = (size_t)t->settings.count;
    Bel__Setting *list = bel_xcalloc(count + 1, sizeof *list);
    Bel__Setting **pointers = bel_xcalloc(count + 1, sizeof *pointers);
    for (size_t i = 0; i < count; i++) {
        bel__setting__init(pointers[i] = &list[i]);
        list[i].name = t->settings.names[i];
        list[i].value = t->settings.values[i];
    }
    char *version = bel_xstrdup(bel_version());
    Bel__Join join;
    bel__join__init(&join);
    join.protocol = BEL_PROTOCOL_VERSION;
    join.version = version;
    join.role = BEL_ROLE_WORKER;
    join.index = w->index;
    const bel_endpoint *relays = w->crowd->relay_endpoint;
    char *address = bel_xstrdup(relays != NULL ? bel_endpoint_address(relays) : "");
    join.host = w->crowd->host;
    join.address = address;
    join.pid = (int64_t)getpid();
    join.token = w->crowd->token;
    join.settings = pointers;
    join.n_settings = count;
    join.clock = bel_clock_ns();
    join.records = bel_input_records(t->input);
    join.epoch_records = bel_input_epoch_records(t->input);
    join.step = atomic_load_explicit(&w->step, memory_order_relaxed);
    bel_mailbox_send(w->mailbox, w->runs ? w->crowd->generation : 0, &join.base);
    bel_free(version);
    bel_free(address);
    bel_free(list);
    bel_free(pointers);
}

static void send_status(const hollow_worker *w, char *doing)
{
    double numbers[BEL_NUMBER_COUNT] = {0};
    Bel__Status status;
    bel__status__init(&status);
    status.step = atomic_load_explicit(&w->step, memory_order_relaxed);
    status.doing = doing;
    status.numbers = numbers;
    status.n_numbers = BEL_NUMBER_COUNT;
    bel_mailbox_send(w->mailbox, w->crowd->generation, &status.base);
}

static void send_ended(hollow_worker *w)
{
    char *text = bel_xstrdup(w->status != NULL ? bel_status_message(w->status) : "");
    Bel__Ended ended;
    bel__ended__init(&ended);
    ended.step = atomic_load_explicit(&w->step, memory_order_relaxed);
    ended.code = (int32_t)bel_status_code(w->status);
    ended.text = text;
    bel_mailbox_send(w->mailbox, w->crowd->generation, &ended.base);
    bel_status_ignore(w->status); // the master has it, and ends the job with it
    bel_free(text);
    w->status = NULL;
    w->told = true;
}

// All workers share what the first setup says.
static bel_status *take_first_setup(hollow_crowd *crowd, uint32_t generation,
                                    const Bel__Setup *setup)
{
    const bel_layout *layout = crowd->trainable->layout;
    if (setup->n_shards != (size_t)layout->shard_count || setup->step != 0)
        return BEL_ERR(BEL_INTERNAL, "unexpected setup: %zu shards, step %lld", setup->n_shards,
                       (long long)setup->step);
    crowd->generation = generation;
    crowd->assignment = bel_assignment_create(setup->replicas, (int)setup->n_replicas);
    crowd->tree = bel_fan_in_create(crowd->assignment, &(bel_fan_in_rule){.fan_in = setup->fan_in});
    crowd->joined = bel_layout_join(layout);
    crowd->incarnations = bel_xcalloc(setup->n_replicas, sizeof *crowd->incarnations);
    crowd->addresses = bel_xcalloc(setup->n_shards, sizeof *crowd->addresses);
    for (size_t k = 0; k < setup->n_shards; k++)
        crowd->addresses[k] = bel_xstrdup(setup->shards[k]);
    BEL_TRY(bel_shm_region_create("hollow-zeros", bel_space_bytes(layout), &crowd->region));
    crowd->zeros = bel_shm_region_memory(crowd->region);
    return bel_space_create(layout, 2, &crowd->values);
}

static bel_status *take_setup(hollow_worker *w, const Bel__Message *message)
{
    hollow_crowd *crowd = w->crowd;
    int64_t bytes = (int64_t)bel__message__get_packed_size(message);
    if (bytes > crowd->counts.setup_bytes) crowd->counts.setup_bytes = bytes;
    if (crowd->assignment == NULL)
        BEL_TRY(take_first_setup(crowd, message->generation, message->setup));
    if (w->runs) return BEL_ERR(BEL_UNAVAILABLE, "the job began again: a process was lost");
    return start_worker(w);
}

static bel_status *take_messages(hollow_worker *w)
{
    Bel__Message *message;
    bel_status *status = NULL;
    while (status == NULL && (message = bel_mailbox_take(w->mailbox)) != NULL) {
        if (message->kind_case == BEL__MESSAGE__KIND_SETUP) status = take_setup(w, message);
        if (message->kind_case == BEL__MESSAGE__KIND_END) {
            w->crowd->over = true;
            if (message->end->code != BEL_OK)
                status = BEL_ERR(BEL_CANCELLED, "the job ended: %s", message->end->text);
        }
        bel_message_destroy(message);
    }
    if (status == NULL && !w->crowd->over && bel_mailbox_is_over(w->mailbox)) {
        w->joined = !w->dropped;
        if (w->dropped) return NULL; // called again
        status = bel_mailbox_why(w->mailbox);
        if (status == NULL) status = BEL_ERR(BEL_UNAVAILABLE, "the master ended a stream");
    }
    return status;
}

// --- All of them ---------------------------------------------------------------------------------

static bel_status *find_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    hollow_crowd *crowd = context;
    pthread_mutex_lock(&crowd->mutex);
    for (int w = 0; w < crowd->job->worker_count && hello->kind == BEL_HELLO_REPORTER; w++)
        for (int i = 0; i < crowd->workers[w].relay_count; i++)
            if (crowd->workers[w].relays[i] != NULL)
                bel_relay_find(crowd->workers[w].relays[i], hello, false, out_lane);
    pthread_mutex_unlock(&crowd->mutex);
    return NULL;
}

static bel_status *accept_lane(void *context, const char *path, bel_stream *stream,
                               bel_stream_events *out_events)
{
    (void)path;
    return bel_stream_lane_accept(stream, find_lane, context, out_events);
}

static bel_status *open_crowd(hollow_crowd *crowd)
{
    const bel_task *task = crowd->task;
    const bel_endpoint_config endpoint = {.secret = task->secret,
                                          .silence_secs = task->silence_timeout_secs};
    bel_endpoint_config relays = endpoint;
    relays.listen_address = task->listen_address;
    relays.accept = accept_lane;
    relays.context = crowd;
    pthread_mutex_init(&crowd->mutex, NULL);
    pthread_mutex_init(&crowd->last, NULL);
    const bel_shm_hub_config hub = {.secret = task->secret};
    crowd->bell = bel_doorbell_create();
    name_threads(HOLLOW_RELAYS);
    if (crowd->job->fan_in > 0) BEL_TRY(bel_endpoint_create(&relays, &crowd->relay_endpoint));
    name_threads(HOLLOW_WORKERS);
    BEL_TRY(bel_endpoint_create(&endpoint, &crowd->endpoint));
    return crowd->job->grpc ? NULL : bel_shm_hub_create(&hub, &crowd->hub);
}

// All workers call at once, and again with the pauses of a member until the master listens.
static bel_status *call_master(hollow_worker *w)
{
    hollow_crowd *crowd = w->crowd;
    if (w->mailbox == NULL) {
        if (bel_clock_ns() < w->call_ns) return NULL;
        (*(w->dropped ? &w->drop_calls : &w->calls))++;
        w->mailbox = bel_mailbox_open(crowd->endpoint, crowd->task->master_address, crowd->bell);
    }
    if (!bel_mailbox_is_over(w->mailbox)) {
        if (!bel_mailbox_was_open(w->mailbox)) return NULL;
        char *path = bel_path_join(crowd->job->folder, BEL_TOKEN_FILE);
        size_t size;
        bel_status *status =
            crowd->token == NULL ? bel_file_read(path, &crowd->token, &size) : NULL;
        bel_free(path);
        if (status == NULL) send_join(w);
        w->joined = true;
        w->dropped = false;
        return status;
    }
    bel_status *why = bel_mailbox_why(w->mailbox);
    if (bel_clock_ns() > crowd->deadline_ns) return why;
    bel_status_ignore(why); // called again
    bel_mailbox_close(w->mailbox, 0);
    w->mailbox = NULL;
    w->call_ns = bel_clock_ns() + bel_backoff_next(&w->backoff);
    return NULL;
}

static bel_status *obey(hollow_crowd *crowd)
{
    char doing[] = "is hollow";
    int64_t told_ns = bel_clock_ns();
    while (!crowd->over) {
        if (atomic_load(&crowd->drop) == DROP_ASKED) drop_all(crowd);
        if (atomic_load(&crowd->drop) == DROPPED && all_are_back(crowd))
            atomic_store(&crowd->drop, NO_DROP);
        bool tells = bel_clock_ns() - told_ns >= SECOND_NS;
        if (tells) told_ns = bel_clock_ns();
        for (int i = 0; i < crowd->job->worker_count && !crowd->over; i++) {
            hollow_worker *w = &crowd->workers[i];
            if (!w->joined) {
                BEL_TRY(call_master(w));
                continue;
            }
            BEL_TRY(take_messages(w));
            if (tells) send_status(w, doing);
            if (atomic_load(&w->ended) && !w->told) send_ended(w);
        }
        (void)bel_doorbell_wait(crowd->bell, bel_clock_ns() + NAP_NS);
    }
    return NULL;
}

// No peer opens a lane any more: the job is over.
static void end_relays(hollow_worker *w)
{
    for (int i = 0; i < w->relay_count; i++)
        bel_relay_destroy(w->relays[i]);
    bel_space_destroy(w->relay_values);
    w->relay_count = 0;
}

static void close_crowd(hollow_crowd *crowd)
{
    for (int i = 0; i < crowd->job->worker_count; i++)
        end_worker(&crowd->workers[i]);
    for (int i = 0; i < crowd->job->worker_count; i++)
        end_relays(&crowd->workers[i]);
    for (int i = 0; i < crowd->job->worker_count; i++)
        bel_mailbox_close(crowd->workers[i].mailbox, LINGER_MS);
    bel_shm_hub_destroy(crowd->hub);
    bel_endpoint_destroy(crowd->endpoint);
    bel_endpoint_destroy(crowd->relay_endpoint);
    for (int k = 0; crowd->addresses != NULL && k < crowd->trainable->layout->shard_count; k++)
        bel_free(crowd->addresses[k]);
    bel_free(crowd->addresses);
    bel_space_destroy(crowd->values);
    bel_shm_region_destroy(crowd->region);
    bel_layout_destroy_joined(crowd->joined);
    bel_free(crowd->incarnations);
    bel_fan_in_destroy(crowd->tree);
    bel_assignment_destroy(crowd->assignment);
    bel_doorbell_destroy(crowd->bell);
    bel_free(crowd->workers);
    bel_free(crowd->token);
}

bel_status *hollow_play(const hollow_job *job, const bel_task *task, const bel_trainable *trainable,
                        hollow_look *look, void *context, hollow_counts *out_counts)
{
    enum { HOST_TEXT = 256 };
    char host[HOST_TEXT] = "?";
    (void)gethostname(host, sizeof host - 1);
    hollow_crowd crowd = {.job = job,
                          .task = task,
                          .trainable = trainable,
                          .look = look,
                          .context = context,
                          .host = host,
                          .stats = {[BEL_STATS_EXAMPLES] = 1},
                          .deadline_ns = bel_clock_ns() + CALL_SECS * (int64_t)SECOND_NS,
                          .workers = bel_xcalloc((size_t)job->worker_count, sizeof(hollow_worker))};
    bel_status *status = open_crowd(&crowd);
    for (int i = 0; i < job->worker_count; i++)
        crowd.workers[i] =
            (hollow_worker){.crowd = &crowd, .index = i, .backoff = {SECOND_NS / 50, SECOND_NS, 0}};
    if (status == NULL) status = obey(&crowd);
    if (status != NULL) return status; // threads wait for shards that may be gone: none is freed
    crowd.counts.versions = atomic_load(&crowd.workers[0].step) + 1;
    close_crowd(&crowd);
    *out_counts = crowd.counts;
    return NULL;
}
