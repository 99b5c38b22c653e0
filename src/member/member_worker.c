// The worker of a member: its model, its lanes and its thread. The main thread reads the result of
// the worker's thread only after `ended`. If a worker ended because a shard's lane is cut, it
// reports nothing in a job that recovers: the job begins again, or the master ends it. A worker
// whose GPU is lost reports nothing either: its process ends like a killed one, and another
// replaces it.
//
// Each wait has a bound. The client's is longer than the master's stall clock, as the master knows
// which member waits for which. A step that does not end within the patience ends the process: a
// thread that hangs in a user's code cannot be ended otherwise.
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "member/member_inner.h"
#include "ps/frames/frames.h"
#include "ps/layout/lane_frames.h"
#include "store/store.h"
#include "transport/inproc/inproc.h"

bel_status *bel_member_worker_build(member *m)
{
    return bel_trainable_init(&m->worker.trainable, m->estimator, m->program->train);
}

// The socket of a relay of this host exists before its process joins. So calls of it that nothing
// answers for this time show that the host's processes cannot reach each other, unless it died.
enum { HOST_LANE_SECS = 10 };

// Quiet kinds do not wake a shard: the step statistics after them do. A relay sends a chunk's sums
// over the network while workers compute others, so each report wakes it.
static void connect_shm_lane(member *m, char *path, int shard, const bel_lane_hello *hello,
                             size_t capacity)
{
    member_worker *w = &m->worker;
    const bel_shm_lane_config config = {
        .capacity = capacity,
        .bell = w->bell,
        .quiet = bel_member_is_on_one_host(m) ? BEL_FRAMES_OF_REPORT : 0,
        .region = m->shm.gradients,
        .patience_secs = bel_member_is_on_one_host(m) ? 0 : HOST_LANE_SECS,
        .peer_bytes = bel_member_parameter_bytes(m)};
    w->lanes[shard] = bel_shm_lane_connect(m->shm.hub, path, hello, &config);
    bel_free(path);
}

// A shard in this process is reached without copies; its end of the lane is kept for it.
static void connect_lane(member *m, const Bel__Setup *setup, int shard, size_t capacity)
{
    member_worker *w = &m->worker;
    if (m->shard.here && m->shard.index == shard) {
        bel_inproc_lane_create(capacity, w->bell, m->shard.bell, &w->lanes[shard],
                               &m->shard.lanes.own);
        return;
    }
    const member_relays *relays = &m->relays;
    bool relayed = w->lane_layout == relays->joined;
    if (relays->count > 0) {
        w->lanes[shard] = bel_relay_connect(relays->list[0], w->bell);
        return;
    }
    w->peers[shard] = (bel_client_peer){w->client, shard};
    const bel_lane_hello hello = {.kind = relayed ? BEL_HELLO_REPORTER : BEL_HELLO_WORKER,
                                  .index = m->task->index,
                                  .generation = m->generation,
                                  .incarnation = m->task->incarnation};
    if (bel_member_is_on_one_host(m)) {
        connect_shm_lane(m, bel_member_shm_path(setup->shards[shard]), shard, &hello, capacity);
        return;
    }
    if (bel_member_reports_in_place(m)) {
        int relay = relays->place.worker;
        connect_shm_lane(m, bel_member_relay_path(m, relay, setup->incarnations[relay]), shard,
                         &hello, capacity);
        return;
    }
    const bel_stream_lane_config config = {.capacity = capacity,
                                           .bell = w->bell,
                                           .quiet = 1u << BEL_FRAME_PARAMS |
                                                    1u << BEL_FRAME_ROOM, // a version follows
                                           .urgent = 1u << BEL_FRAME_ROOM,
                                           .at_once = bel_client_take_at_once,
                                           .joined = BEL_FRAMES_OF_REPORT,
                                           .place = bel_client_place,
                                           .place_context = &w->peers[shard]};
    const char *address = relayed ? setup->parent : setup->shards[shard];
    w->lanes[shard] = bel_stream_lane_connect(m->endpoint, address, &hello, &config);
}

static bool is_cancelled(void *context)
{
    member_worker *w = context;
    return atomic_load(&w->cancelled);
}

// Waits until the rows of a followed file that training has learned are here, and compared with the
// master's. A network file system may know them only a minute later.
static bel_status *await_followed(const member_worker *w)
{
    enum { SPARE_SECS = 60 };
    const bel_input *input = w->trainable.input;
    const struct timespec nap = {.tv_nsec = 20000000};
    const double patience = bel_input_follow_secs(input) + SPARE_SECS;
    int64_t begun = bel_clock_awake_ns();
    for (;;) {
        int64_t missing;
        bel_status *status = bel_input_look(input, w->first_block - 1, &missing);
        if (bel_input_reads(input)) begun = bel_clock_awake_ns();
        if (status == NULL && missing > 0)
            status = BEL_ERR(BEL_NOT_FOUND, "%s: %lld records that training has read are not here",
                             bel_input_followed(input), (long long)missing);
        bool is_over = (double)(bel_clock_awake_ns() - begun) * 1e-9 >= patience;
        if (status == NULL) return NULL;
        bel_status *error = NULL;
        if (is_over || bel_input_error_stays(bel_status_code(status)))
            error = BEL_ERR(bel_status_code(status),
                            "%s; hint: the hosts of a job share the files that it follows",
                            bel_status_message(status));
        bel_status_ignore(status); // it may pass, or is replaced
        if (error != NULL) return error;
        if (atomic_load(&w->cancelled)) return BEL_ERR(BEL_CANCELLED, "training is ending");
        (void)nanosleep(&nap, NULL);
    }
}

// The worker's thread. `status` is written before `ended`, whose default memory order makes it
// visible to the main thread.
static void *worker_main(void *argument)
{
    member *m = argument;
    const bel_input *input = m->worker.trainable.input;
    if (bel_input_follow_secs(input) > 0 && m->worker.first_block > 0)
        m->worker.status = await_followed(&m->worker);
    if (m->worker.status == NULL) m->worker.status = bel_worker_run(m->worker.worker);
    atomic_store(&m->worker.ended, true);
    bel_doorbell_ring(m->bell);
    return NULL;
}

// The values that the worker reads: in a process with relays those of the lowest.
static bel_space *space_of(const member *m)
{
    return m->relays.count > 0 ? bel_relay_space(m->relays.list[0]) : m->worker.space;
}

// Combines the program's settings with the setup of this generation.
static bel_status *create_worker(member *m, const Bel__Setup *setup)
{
    member_worker *w = &m->worker;
    const Bel__Segment *segment = setup->segment;
    bel_worker_config config = bel_trainable_worker_config(&w->trainable, m->task->index);
    config.assignment = m->assignment;
    config.space = space_of(m);
    config.client = w->client;
    config.ranges = w->ranges;
    config.ledger = bel_member_has_ledger(m); // from the master, which may have scaled the rates
    config.optimizers = m->settings.optimizers;
    config.leaves = &w->leaves;
    config.first_step = setup->step;
    config.segment = (bel_input_segment){.first_step = segment->first_step,
                                         .first_block = segment->first_block,
                                         .replica_count = segment->replica_count};
    int64_t batch_size = bel_input_batch_size(w->trainable.input);
    if (segment->origin < 0 || segment->origin >= batch_size) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed setup: an origin of %lld in batches of %lld",
                       (long long)segment->origin, (long long)batch_size);
    }
    bel_input_set_origin(w->trainable.input, segment->origin);
    w->first_block = bel_input_segment_block(&config.segment, config.first_step, 0);
    BEL_TRY(bel_input_begin(w->trainable.input, w->first_block, setup->followed));
    return bel_worker_create(&config, &w->worker);
}

// Maximum wait of a worker for a version. The master's clock comes first: it knows which member
// waits for which. If only some workers count, others may each make a step before it is this one's
// turn, and each step may take a loop's time and a step's.
static double patience_secs(const member *m)
{
    int turns = bel_member_has_ledger(m) ? m->assignment->worker_count + 1 : 1;
    return 2 * bel_trainable_patience_secs(&m->worker.trainable) * turns + 60;
}

// The buffer in which a shard of this process will have the first version: that of a load, or that
// of the state with which it continues.
static int first_buffer(const member *m, const Bel__Setup *setup)
{
    const member_shard *s = &m->shard;
    int64_t step = setup->schedule->first_step;
    if (!s->here || !setup->held) return 0;
    if (s->shard != NULL) return bel_shard_buffer_of(s->shard, step);
    return s->memory.kept != NULL ? (int)((step - bel_kept_loaded(s->memory.kept)) % 2) : 0;
}

// Runs before the start of this process's shard, which takes the other end of their lane.
bel_status *bel_member_worker_start(member *m, const Bel__Setup *setup)
{
    member_worker *w = &m->worker;
    BEL_TRY(bel_member_relays_make(m, setup));
    const member_relays *relays = &m->relays;
    const bel_layout *layout = w->lane_layout;
    size_t shards = (size_t)w->trainable.layout->shard_count; // the most lanes
    bool relays_there = relays->siblings.count > 0;
    const bel_assignment *assignment = relays_there ? relays->siblings.assignment : m->assignment;
    const bel_client_relayed name = {.worker = m->task->index,
                                     .parent = relays->place.worker,
                                     .first_node = m->assignment->first_node[m->task->index]};
    if (w->bell == NULL) w->bell = bel_doorbell_create();
    if (w->peers == NULL) w->peers = bel_xcalloc(shards, sizeof *w->peers);
    if (w->ranges == NULL) BEL_TRY(bel_member_make_ranges(m));
    w->lanes = bel_xcalloc(shards, sizeof(bel_lane *));
    w->told = false;
    atomic_store(&w->cancelled, false);
    atomic_store(&w->ended, false);
    atomic_store(&w->leaves, false);
    int number = relays_there ? relays->place.index : m->task->index;
    bel_client_config config = {.worker = number,
                                .relayed = relays_there ? &name : NULL,
                                .generation = m->generation,
                                .incarnation = m->task->incarnation,
                                .layout = layout,
                                .assignment = assignment,
                                .lanes = w->lanes,
                                .space = space_of(m),
                                .first_buffer = first_buffer(m, setup),
                                .attach = bel_member_reports_in_place(m) ? bel_member_attach : NULL,
                                .attach_context = m,
                                .row_buffer = w->row_buffer,
                                .answer_room = w->answer_room,
                                .rounded_room = w->rounded_room,
                                .rounding = m->settings.rounding,
                                .ledger = bel_member_has_ledger(m),
                                .stats = w->trainable.stats,
                                .bell = w->bell,
                                .cancelled = is_cancelled,
                                .cancelled_context = w,
                                .stall_timeout_secs = patience_secs(m)};
    w->client = bel_client_create(&config);
    for (int k = 0; k < layout->shard_count; k++)
        connect_lane(m, setup, k,
                     bel_lane_frames_of_worker(layout, assignment, number, k,
                                               bel_member_reports_in_place(m)));
    bel_status *status = create_worker(m, setup);
    bel_member_leave_if_lost(m, status);
    return status;
}

bel_status *bel_member_worker_run(member *m)
{
    member_worker *w = &m->worker;
    BEL_TRY(bel_member_relays_run(m));
    BEL_TRY(bel_thread_start(&w->thread, worker_main, m));
    w->has_thread = true;
    return NULL;
}

// True if the worker ended because a shard ended: then the job begins again, or the master ends it.
// A send fails while frames of the shard are still unread, so only the lane's closed state is
// checked.
static bool was_left(const member *m)
{
    const member_worker *w = &m->worker;
    if (!bel_task_recovers(m->task) || bel_status_code(w->status) != BEL_UNAVAILABLE) return false;
    bool closed = false;
    for (int k = 0; k < w->lane_layout->shard_count; k++)
        closed = closed || bel_lane_is_closed(w->lanes[k]);
    return closed;
}

bel_status *bel_member_worker_check_lanes(const member *m)
{
    const member_worker *w = &m->worker;
    bool relayed = w->lanes != NULL && w->lane_layout == m->relays.joined;
    for (int k = 0; w->lanes != NULL && k < w->lane_layout->shard_count; k++)
        BEL_TRY_CTX(bel_lane_fault(w->lanes[k]), "lane of %s %d",
                    relayed ? "the relay of worker" : "shard",
                    relayed ? m->relays.place.worker : k);
    return NULL;
}

// The way back to gRPC: without a place the next generation has no group of this worker.
bel_status *bel_member_worker_check_place(member *m)
{
    const member_worker *w = &m->worker;
    bool unheard = m->shm.place != NULL && w->lanes != NULL && bel_member_reports_in_place(m) &&
                   bel_shm_lane_is_unheard(w->lanes[0]);
    if (!unheard || !bel_task_recovers(m->task)) return NULL;
    bel_log_write(
        BEL_LOG_WARN,
        "the relay of this host, worker %d, cannot be reached in %s, or passes no memory, "
        "since %d s: this worker shares no memory with others any more",
        m->relays.place.worker, m->shm.folder, HOST_LANE_SECS);
    bel_free(m->shm.place);
    m->shm.place = NULL;
    return bel_member_join_again(m);
}

// A lost GPU is the job's error if no other process would replace this one and the job could not
// continue without it. A request for absent GPUs is an error as well, except in a replacement of a
// worker that the job can spare: after the loss of a GPU there may be fewer.
void bel_member_leave_if_lost(const member *m, const bel_status *failure)
{
    const bel_task *task = m->task;
    bool spared = task->min_workers > 0 && task->role == BEL_ROLE_WORKER;
    if (m->program->master_over == NULL && (spared || bel_task_recovers(task)))
        bel_estimator_leave_if_lost(failure, spared && task->incarnation > 0);
}

// Main thread: reports the worker's end and its last numbers, once to each master.
void bel_member_worker_check(member *m)
{
    member_worker *w = &m->worker;
    if (!w->here || w->told || w->worker == NULL || !atomic_load(&w->ended)) return;
    w->told = true;
    if (was_left(m)) return;
    bel_member_leave_if_lost(m, m->worker.status);
    bel_str words = {0};
    char *text = bel_xstrdup(w->status != NULL ? bel_status_message(w->status) : "");
    size_t count;
    double *numbers = bel_member_numbers(m, &count);
    Bel__Ended ended;
    bel__ended__init(&ended);
    ended.step = bel_worker_doing(w->worker, &words);
    ended.code = (int32_t)bel_status_code(w->status);
    ended.text = text;
    ended.numbers = numbers;
    ended.n_numbers = count;
    char *damage = w->status != NULL ? bel_input_damage(w->trainable.input) : NULL;
    if (damage != NULL) ended.damage = damage;
    bel_member_send(m, &ended.base);
    bel_free(damage);
    bel_free(numbers);
    bel_free(text);
    bel_str_deinit(&words);
}

// A master in this process has separate clocks, and must report how the job ended.
static bool goes_on_waiting(const member *m, int64_t deadline)
{
    const atomic_bool *over = m->program->master_over;
    return over != NULL ? !atomic_load(over) : bel_clock_awake_ns() < deadline;
}

void bel_member_join_thread(const member *m, pthread_t thread, const atomic_bool *ended,
                            double patience_secs, const char *what, int code)
{
    enum { NAP_NS = 50000000 };
    int64_t deadline = bel_clock_awake_ns() + (int64_t)(patience_secs * 1e9);
    while (!atomic_load(ended) && goes_on_waiting(m, deadline))
        (void)bel_doorbell_wait(m->bell, bel_clock_ns() + NAP_NS);
    if (atomic_load(ended)) {
        pthread_join(thread, NULL);
        return;
    }
    bel_log_write(BEL_LOG_WARN,
                  "the job continues or is over, but %s does not end: leaving without it", what);
    if (m->program->leave != NULL) m->program->leave(m->program->leave_context);
    _exit(code);
}

// The master has released it. It waits for the answer to its reported step before it ends, so that
// a replacement repeats nothing; that may take as long as the others' steps. The wait is short: the
// others may return to a checkpoint meanwhile, and need the replacement.
void bel_member_worker_leave(member *m)
{
    enum { ANSWER_MS = 3000, WAIT_NS = 50000000, PATIENCE_SECS = 30, LEFT = 143 };
    member_worker *w = &m->worker;
    int64_t until = bel_clock_ns() + ANSWER_MS * INT64_C(1000000);
    if (!w->here || !w->has_thread) return;
    atomic_store(&w->leaves, true);
    while (!atomic_load(&w->ended) && bel_clock_ns() < until)
        (void)bel_doorbell_wait(m->bell, bel_clock_ns() + WAIT_NS);
    atomic_store(&w->cancelled, true); // takes effect at its next wait
    bel_doorbell_ring(w->bell);
    bel_member_join_thread(m, w->thread, &w->ended, PATIENCE_SECS, "a step", LEFT);
    w->has_thread = false;
}

// The worker sees `cancelled` at its next wait at the latest.
void bel_member_worker_end(member *m, double patience_secs)
{
    member_worker *w = &m->worker;
    if (!w->here) return;
    atomic_store(&w->cancelled, true);
    if (w->bell != NULL) bel_doorbell_ring(w->bell);
    if (!w->has_thread) return;
    bel_member_join_thread(m, w->thread, &w->ended, patience_secs, "a step", 1);
    w->has_thread = false;
}

void bel_member_worker_stop(member *m)
{
    member_worker *w = &m->worker;
    if (!w->here) return;
    if (w->lanes != NULL) bel_lane_close_all(w->lanes, w->lane_layout->shard_count);
    bel_worker_destroy(w->worker);
    bel_client_destroy(w->client);
    bel_status_ignore(w->status); // the master has received it, or it is irrelevant
    bel_free(w->lanes);
    w->worker = NULL;
    w->client = NULL;
    w->status = NULL;
    w->lanes = NULL;
}

void bel_member_worker_free(member *m)
{
    member_worker *w = &m->worker;
    if (!w->here) return;
    bel_doorbell_destroy(w->bell);
    bel_free(w->peers);
    bel_space_destroy(w->space);
    bel_space_free_array(w->trainable.layout, w->values);
    bel_trainable_deinit(&w->trainable);
}
