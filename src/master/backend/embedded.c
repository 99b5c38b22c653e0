// Wiring. Lanes: one per worker and shard, and one between shard 0 and each other shard. Shards
// have no threads here: a waiting worker does their work with all threads of its towers, and a
// tower that has finished computing does it while others compute.
//
// A failed shard publishes nothing more and notifies no one, so the master reads its error whenever
// it looks for news. The workers' threads are joined before anything is freed, and doorbells
// outlive all lanes. No member can be lost: gather, attend and dismiss do nothing.
#include "master/backend/embedded.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "ps/layout/lane_frames.h"
#include "ps/server/numbers.h"
#include "transport/inproc/inproc.h"
#include "worker/numbers.h"

typedef struct thread_worker { // a worker and its thread
    struct bel_embedded *embedded;
    bel_client *client;
    bel_worker *worker;
    bel_doorbell *bell;
    bel_lane **lanes; // by shard
    float **ranges;
    void *row_buffer; // with tables: keys and reports
    float *values;    // with a ledger: target of the shards' copies of its values …
    bel_space *space; // … and a space over it; else the common one
    int64_t progress; // progress of shard 0 that its thread saw last …
    int64_t rests;    // … and rests of the loop
    pthread_t thread;
    bool started;
} thread_worker;

typedef struct server { // a shard and its ends of the lanes
    bel_shard *shard;
    bel_doorbell *bell;
    bel_lane **worker_lanes; // by worker
    bel_lane **shard_lanes;  // shard 0: by shard; others: [0]
} server;

typedef struct bel_embedded {
    bel_backend backend; // first: a bel_backend * is a bel_embedded *
    const bel_trainable *trainable;
    bel_assignment *assignment;
    bel_space *space;
    bel_updater *updater; // NULL: parameters are in `space`
    server *servers;
    thread_worker *workers;
    float **outboxes;     // with a ledger: the workers' values
    float *copied_values; // a snapshot's; `backend.values` may be the space instead
    int server_count, worker_count;
    bel_control *control;
} bel_embedded;

// --- Creation and destruction -------------------------------------------------------------------

// Makes the lanes. Each has an end in the worker's row and one in the shard's; its owner closes it.
static void make_lanes(bel_embedded *embedded)
{
    const bel_layout *layout = embedded->trainable->layout;
    const bel_assignment *assignment = embedded->assignment;
    for (int k = 0; k < embedded->server_count; k++) {
        server *s = &embedded->servers[k];
        s->bell = bel_doorbell_create();
        s->worker_lanes = bel_xcalloc((size_t)embedded->worker_count, sizeof(bel_lane *));
        s->shard_lanes = bel_xcalloc((size_t)embedded->server_count, sizeof(bel_lane *));
    }
    for (int w = 0; w < embedded->worker_count; w++) {
        thread_worker *m = &embedded->workers[w];
        m->embedded = embedded;
        m->bell = bel_doorbell_create();
        m->lanes = bel_xcalloc((size_t)embedded->server_count, sizeof(bel_lane *));
        for (int k = 0; k < embedded->server_count; k++) {
            server *s = &embedded->servers[k];
            size_t capacity = bel_lane_frames_of_worker(layout, assignment, w, k, true);
            bel_inproc_lane_create(capacity, m->bell, s->bell, &m->lanes[k], &s->worker_lanes[w]);
        }
    }
    for (int k = 1; k < embedded->server_count; k++) {
        server *first = &embedded->servers[0], *s = &embedded->servers[k];
        bel_inproc_lane_create(bel_lane_frames_of_shards(assignment), first->bell, s->bell,
                               &first->shard_lanes[k], &s->shard_lanes[0]);
    }
}

// Makes the workers' values: the shards' memory, or with a ledger a copy each.
static bel_status *make_values(bel_embedded *embedded)
{
    const bel_layout *layout = embedded->trainable->layout;
    embedded->outboxes = bel_xcalloc((size_t)embedded->worker_count, sizeof(float *));
    for (int w = 0; w < embedded->worker_count; w++) {
        thread_worker *m = &embedded->workers[w];
        m->space = embedded->space;
        if (!bel_counting_has_ledger(&embedded->trainable->counting)) continue;
        BEL_TRY(bel_space_array(layout, "parameters of a worker", &m->values));
        m->space = bel_space_over(layout, (float *const[2]){m->values, m->values});
        embedded->outboxes[w] = m->values;
    }
    return NULL;
}

// Places gradients where they are summed. Their pages come when training starts (touch_ranges): the
// backend with which a cluster's master writes the first checkpoint never trains.
static bel_status *make_ranges(bel_embedded *embedded)
{
    const bel_updater *updater = embedded->updater;
    for (int w = 0; w < embedded->worker_count; w++) {
        float ***ranges = &embedded->workers[w].ranges;
        int replicas = bel_assignment_replicas(embedded->assignment, w);
        *ranges = bel_xcalloc((size_t)replicas, sizeof **ranges);
        for (int r = 0; r < replicas; r++) {
            if (updater != NULL) {
                (*ranges)[r] = updater->ops->gradients(updater, r);
            } else {
                BEL_TRY(bel_space_array(embedded->trainable->layout, "gradients", &(*ranges)[r]));
            }
        }
    }
    return NULL;
}

// All shards share the space and the snapshot; each writes its chunks.
static bel_status *make_shards(bel_embedded *embedded)
{
    bool one_node = embedded->assignment->node_count == 1;
    for (int k = 0; k < embedded->server_count; k++) {
        server *s = &embedded->servers[k];
        bel_shard_config config = {.layout = embedded->trainable->layout,
                                   .shard = k,
                                   .assignment = embedded->assignment,
                                   .space = embedded->space,
                                   .updater = embedded->updater,
                                   .snapshot = embedded->copied_values,
                                   .reads_space = true,
                                   .snapshot_averages = embedded->backend.averages,
                                   .settings = bel_trainable_shard_settings(embedded->trainable),
                                   .generation = embedded->backend.generation,
                                   .table_memory =
                                       embedded->trainable->estimator->config.table_memory,
                                   .table_disk = embedded->trainable->estimator->config.table_disk,
                                   .worker_lanes = s->worker_lanes,
                                   .shard_lanes = s->shard_lanes,
                                   .gradients = one_node ? embedded->workers[0].ranges[0] : NULL,
                                   .outboxes = embedded->outboxes};
        BEL_TRY(bel_shard_create(&config, &s->shard));
    }
    return NULL;
}

static void close_server(bel_embedded *embedded, server *s)
{
    for (int w = 0; w < embedded->worker_count; w++)
        bel_lane_close(s->worker_lanes[w]);
    for (int k = 0; k < embedded->server_count; k++)
        bel_lane_close(s->shard_lanes[k]);
    bel_shard_destroy(s->shard);
    bel_free(s->worker_lanes);
    bel_free(s->shard_lanes);
}

static void join_workers(bel_embedded *embedded)
{
    for (int w = 0; w < embedded->worker_count; w++) {
        thread_worker *m = &embedded->workers[w];
        if (m->started) pthread_join(m->thread, NULL);
        m->started = false;
    }
}

static size_t row_buffer_bytes(const bel_embedded *embedded, int worker)
{
    return bel_row_buffer_bytes(embedded->trainable->layout, embedded->assignment, worker);
}

static void free_ranges(bel_embedded *embedded, int w)
{
    thread_worker *m = &embedded->workers[w];
    if (embedded->updater != NULL) {
        bel_free(m->ranges); // the updater owns the contents
    } else {
        bel_space_free_arrays(embedded->trainable->layout, m->ranges,
                              bel_assignment_replicas(embedded->assignment, w));
    }
}

// Workers finish first, and nothing runs any more; lanes are destroyed before the doorbells that
// they ring.
static void embedded_destroy(bel_backend *backend)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    join_workers(embedded);
    for (int w = 0; w < embedded->worker_count; w++) {
        thread_worker *m = &embedded->workers[w];
        bel_worker_destroy(m->worker);
        bel_client_destroy(m->client);
        bel_pages_destroy(m->row_buffer, row_buffer_bytes(embedded, w));
        free_ranges(embedded, w);
        for (int k = 0; k < embedded->server_count; k++)
            bel_lane_close(m->lanes[k]);
        bel_free(m->lanes);
        if (m->space != embedded->space) bel_space_destroy(m->space);
        bel_space_free_array(embedded->trainable->layout, m->values);
    }
    for (int k = 0; k < embedded->server_count; k++)
        close_server(embedded, &embedded->servers[k]);
    for (int w = 0; w < embedded->worker_count; w++) // doorbells outlive all lanes
        bel_doorbell_destroy(embedded->workers[w].bell);
    for (int k = 0; k < embedded->server_count; k++)
        bel_doorbell_destroy(embedded->servers[k].bell);
    bel_control_destroy(embedded->control);
    if (embedded->updater != NULL) embedded->updater->ops->destroy(embedded->updater);
    bel_space_free_array(embedded->trainable->layout, embedded->copied_values);
    bel_space_free_array(embedded->trainable->layout, embedded->backend.averages);
    bel_space_destroy(embedded->space);
    bel_assignment_destroy(embedded->assignment);
    bel_free(embedded->outboxes);
    bel_free(embedded->servers);
    bel_free(embedded->workers);
    bel_free(embedded);
}

static bel_status *embedded_load(bel_backend *backend, const bel_ckpt_reader *reader)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_load(embedded->servers[k].shard, reader));
    return NULL;
}

// --- Running -------------------------------------------------------------------------------------

typedef struct help {
    bel_embedded *embedded;
    atomic_bool worked;
} help;

// Runs on every thread of the worker's towers. `worked` only tells the worker to keep helping.
static void help_on_thread(void *context)
{
    help *h = context;
    for (int k = 0; k < h->embedded->server_count; k++)
        while (bel_shard_work(h->embedded->servers[k].shard))
            atomic_store(&h->worked, true);
}

// A waiting worker works for the shards, with all its threads. Progress by others also counts, and
// so does a loop that waits for rows. With
// a loop that requests each step and only some workers counting, a worker may wait for its turn
// after all others, nearly as long as the stall timeout.
static bool help_shards(void *context)
{
    thread_worker *m = context;
    help h = {.embedded = m->embedded};
    bel_worker_on_all_threads(m->worker, help_on_thread, &h);
    int64_t progress = bel_shard_progress(m->embedded->servers[0].shard);
    bool moved = progress != m->progress;
    m->progress = progress;
    int64_t rests = atomic_load(&m->embedded->trainable->rests);
    moved = moved || rests != m->rests;
    m->rests = rests;
    return atomic_load(&h.worked) || moved;
}

// Does a little work: one job of each shard.
static bool work_for_shards(void *context)
{
    const bel_embedded *embedded = context;
    bool worked = false;
    for (int k = 0; k < embedded->server_count; k++)
        worked = bel_shard_work(embedded->servers[k].shard) || worked;
    return worked;
}

// Main function of a worker's thread.
static void *worker_main(void *argument)
{
    thread_worker *m = argument;
    bel_status *status = bel_worker_run(m->worker);
    bel_control_worker_ended(m->embedded->control, status);
    return NULL;
}

// Makes a worker with its client and row buffers; its thread is started later.
static bel_status *make_worker(bel_embedded *embedded, int w, const bel_input_segment *segment,
                               int64_t first_step)
{
    thread_worker *m = &embedded->workers[w];
    const bel_trainable *trainable = embedded->trainable;
    size_t rows = row_buffer_bytes(embedded, w);
    if (rows > 0) BEL_TRY(bel_pages_create(rows, false, "rows", &m->row_buffer));
    bel_client_config client = {.worker = w,
                                .generation = embedded->backend.generation,
                                .layout = trainable->layout,
                                .assignment = embedded->assignment,
                                .lanes = m->lanes,
                                .row_buffer = m->row_buffer,
                                .ledger = bel_counting_has_ledger(&trainable->counting),
                                .stats = trainable->stats,
                                .bell = m->bell,
                                .help = help_shards,
                                .help_context = m,
                                .cancelled = bel_control_is_cancelled,
                                .cancelled_context = embedded->control,
                                .stall_timeout_secs = trainable->estimator->config.stall_timeout};
    m->client = bel_client_create(&client);
    bel_worker_config worker = bel_trainable_worker_config(trainable, w);
    worker.assignment = embedded->assignment;
    worker.space = m->space;
    worker.updater = embedded->updater;
    worker.client = m->client;
    worker.ranges = m->ranges;
    worker.first_step = first_step;
    worker.segment = *segment;
    if (w > 0) worker.finish_secs = 0; // they have the same input
    worker.meanwhile = work_for_shards;
    worker.meanwhile_context = embedded;
    return bel_worker_create(&worker, &m->worker);
}

static bel_status *embedded_gather(bel_backend *backend)
{
    (void)backend;
    return NULL; // all members are here
}

// Frees the snapshot's values, which are not read until the next one is made. Else they would be
// one more copy of the parameters during all steps. With GPUs they are the space.
static void forget_values(bel_embedded *embedded)
{
    if (embedded->updater != NULL) return;
    bel_pages_forget(embedded->copied_values,
                     (size_t)embedded->trainable->layout->size * sizeof(float));
}

// Whether the space itself has the values when no step runs. Averages are in another array.
static bool reads_space(const bel_embedded *embedded)
{
    return embedded->updater == NULL && bel_space_is_in_place(embedded->space) &&
           embedded->backend.averages == NULL;
}

// Makes the pages of the gradients, so that no step is slower for them.
static void touch_ranges(const bel_embedded *embedded)
{
    size_t bytes = (size_t)embedded->trainable->layout->size * sizeof(float);
    for (int w = 0; w < embedded->worker_count && embedded->updater == NULL; w++)
        for (int r = 0; r < bel_assignment_replicas(embedded->assignment, w); r++)
            memset(embedded->workers[w].ranges[r], 0, bytes);
}

// Starts shards before workers, which may pull at once.
static bel_status *embedded_start(bel_backend *backend, const bel_control_config *schedule,
                                  const bel_input_segment *segment, int64_t block_end)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    bel_control *control = embedded->control = bel_control_create(schedule);
    embedded->backend.values = embedded->copied_values;
    forget_values(embedded);
    touch_ranges(embedded);
    for (int w = 0; w < embedded->worker_count; w++)
        BEL_TRY(make_worker(embedded, w, segment, schedule->first_step));
    const bel_shard_events events = {.context = control,
                                     .decide = bel_control_decide,
                                     .function_of = bel_control_function_of,
                                     .snapshot_ready = bel_control_snapshot_ready};
    bel_shard_lease_from(embedded->servers[0].shard, segment->first_block, block_end);
    for (int k = 0; k < embedded->server_count; k++) {
        bel_shard_void_snapshot(embedded->servers[k].shard);
        bel_shard_start(embedded->servers[k].shard, &events);
    }
    for (int w = 0; w < embedded->worker_count; w++) {
        thread_worker *m = &embedded->workers[w];
        bel_status *status = bel_thread_start(&m->thread, worker_main, m);
        m->started = status == NULL;
        if (status != NULL) bel_control_worker_ended(control, status);
    }
    return NULL;
}

// --- The master's side ---------------------------------------------------------------------------

// Runs on the master's thread.
static void wait_for_news(bel_backend *backend, double secs, bel_control_state *out_state)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    bel_control_wait(embedded->control, secs, out_state);
    for (int k = 0; k < embedded->server_count; k++) { // a failed one publishes nothing more
        bel_status *failure = bel_shard_check(embedded->servers[k].shard);
        if (failure != NULL) bel_control_cancel(embedded->control, failure);
    }
    backend->interrupted = bel_control_was_interrupted(embedded->control);
    if (out_state->has_snapshot) backend->leased = bel_shard_leased(embedded->servers[0].shard);
    backend->staleness = bel_shard_stale(embedded->servers[0].shard, NULL);
}

static void stop_at(bel_backend *backend, int64_t step)
{
    bel_control_stop_at(((bel_embedded *)backend)->control, step);
}

// A waiting worker finds the step when it next works for the shards.
static void embedded_ask(bel_backend *backend, int64_t version, int function, bool wanted)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    (void)bel_control_ask(embedded->control, version, function, wanted); // there is always room
    for (int w = 0; w < embedded->worker_count; w++)
        bel_doorbell_ring(embedded->workers[w].bell);
}

static int take_points(bel_backend *backend, bel_control_point *out_points, int capacity)
{
    return bel_control_take_points(((bel_embedded *)backend)->control, out_points, capacity);
}

static bel_status *read_values(bel_backend *backend)
{
    (void)backend; // `values` is the shards' snapshot, or the space itself
    return NULL;
}

static bel_status *write_shards(bel_backend *backend, const char *folder, int64_t step,
                                int64_t base, bel_ckpt_shard **out_shards)
{
    const bel_embedded *embedded = (const bel_embedded *)backend;
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_write(embedded->servers[k].shard, folder, step, base, &out_shards[k]));
    return NULL;
}

static bel_status *read_rows(bel_backend *backend, int table, bel_table *into)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    BEL_TRY(bel_table_clear(into));
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_read_rows(embedded->servers[k].shard, table, bel_rows_add, into));
    return NULL;
}

bel_status *bel_embedded_warm_up_rows(bel_backend *backend, int table,
                                      const bel_ckpt_reader *reader, const char *there)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_warm_up_rows(embedded->servers[k].shard, table, reader, there));
    return NULL;
}

static void release_snapshot(bel_backend *backend)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    forget_values(embedded);
    for (int k = 0; k < embedded->server_count; k++)
        bel_shard_forget_slots(embedded->servers[k].shard);
    bel_control_release_snapshot(embedded->control);
}

static bel_status *embedded_attend(bel_backend *backend, double secs)
{
    (void)backend, (void)secs; // no member can be lost
    return NULL;
}

static void embedded_cancel(bel_backend *backend)
{
    bel_control_cancel(((bel_embedded *)backend)->control, NULL);
}

static bel_status *embedded_join(bel_backend *backend)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    join_workers(embedded);
    bel_status *error = bel_control_take_error(embedded->control);
    for (int k = 0; k < embedded->server_count && error == NULL; k++)
        error = bel_shard_check(embedded->servers[k].shard);
    return error;
}

static bel_status *snapshot_now(bel_backend *backend)
{
    bel_embedded *embedded = (bel_embedded *)backend;
    if (reads_space(embedded)) backend->values = embedded->space->buffers[0];
    for (int k = 0; k < embedded->server_count; k++)
        BEL_TRY(bel_shard_snapshot_now(embedded->servers[k].shard));
    backend->leased = bel_shard_leased(embedded->servers[0].shard);
    return NULL;
}

// Reads only thread-safe values: the worker's thread keeps running.
static void show_worker(const bel_embedded *embedded, int w, int64_t now, bel_board *board)
{
    bel_board_row *row = bel_board_find(board, BEL_BOARD_WORKER, w);
    bel_worker *worker = embedded->workers[w].worker;
    double values[BEL_NUMBER_COUNT] = {0}, reports[BEL_NUMBERS_BY_WORKER];
    bel_device_numbers devices[BEL_MOST_DEVICES];
    if (worker == NULL) return;
    bel_str words = {0};
    int64_t step = bel_worker_doing(worker, &words);
    bel_board_set_doing(row, step, words.text);
    bel_numbers_of_worker(worker, values);
    bel_board_note(row, values, now);
    bel_numbers_of_reports(embedded->servers[0].shard, w, reports);
    bel_board_note_reports(row, reports);
    bel_board_note_devices(row, devices, bel_devices_of_worker(worker, devices));
    bel_str_deinit(&words);
}

static void show_shard(const bel_embedded *embedded, int k, int64_t now, bel_board *board)
{
    bel_board_row *row = bel_board_find(board, BEL_BOARD_SHARD, k);
    double values[BEL_NUMBER_COUNT] = {0};
    bel_str words = {0};
    int64_t step = bel_shard_doing(embedded->servers[k].shard, &words);
    bel_board_set_doing(row, step, words.text);
    bel_numbers_of_shard(embedded->servers[k].shard, values);
    bel_board_note(row, values, now);
    bel_str_deinit(&words);
}

static void embedded_show(bel_backend *backend, bel_board *board)
{
    const bel_embedded *embedded = (const bel_embedded *)backend;
    int64_t now = bel_clock_ns();
    for (int w = 0; w < embedded->worker_count; w++)
        show_worker(embedded, w, now, board);
    for (int k = 0; k < embedded->server_count; k++)
        show_shard(embedded, k, now, board);
    if (embedded->control == NULL) return;
    bel_control_state state;
    bel_control_wait(embedded->control, 0, &state);
    bel_board_set_step(board, state.step, state.loss, state.examples, now);
}

static void embedded_dismiss(bel_backend *backend, const bel_status *status)
{
    (void)backend, (void)status; // finished threads need no message
}

static const bel_backend_ops embedded_ops = {
    .load = embedded_load,
    .gather = embedded_gather,
    .start = embedded_start,
    .wait = wait_for_news,
    .take_points = take_points,
    .stop_at = stop_at,
    .ask = embedded_ask,
    .read_values = read_values,
    .read_rows = read_rows,
    .write_shards = write_shards,
    .release_snapshot = release_snapshot,
    .attend = embedded_attend,
    .cancel = embedded_cancel,
    .join = embedded_join,
    .snapshot_now = snapshot_now,
    .show = embedded_show,
    .dismiss = embedded_dismiss,
    .destroy = embedded_destroy,
};

// Makes the memory of parameters. With GPUs it is theirs, and the process has only the snapshot.
// For a single tower one buffer is enough, as it works for the shards only after computing.
static bel_status *make_space(bel_embedded *embedded)
{
    const bel_trainable *trainable = embedded->trainable;
    const bel_layout *layout = trainable->layout;
    bool alone = embedded->worker_count == 1 && bel_estimator_towers(trainable->estimator, 0) == 1;
    BEL_TRY(bel_space_array(layout, "snapshot", &embedded->copied_values));
    embedded->backend.values = embedded->copied_values;
    if (trainable->built->optimizers->main.moving_average_decay > 0)
        BEL_TRY(bel_space_array(layout, "snapshot of averages", &embedded->backend.averages));
    if (embedded->updater == NULL) return bel_space_create(layout, alone ? 1 : 2, &embedded->space);
    float *values = embedded->backend.values;
    embedded->space = bel_space_over(layout, (float *const[2]){values, values});
    return NULL;
}

// Takes ownership of the updater, also on failure.
static bel_status *embedded_create(const bel_trainable *trainable, bel_updater *updater,
                                   bel_backend **out_backend)
{
    bel_embedded *embedded = bel_xcalloc(1, sizeof *embedded);
    embedded->backend.evaluating = -1;
    embedded->trainable = trainable;
    embedded->updater = updater;
    embedded->backend.ops = &embedded_ops;
    embedded->backend.shard_count = trainable->layout->shard_count;
    embedded->backend.leased = -1;
    embedded->backend.worker_count = trainable->estimator->config.num_workers;
    embedded->backend.replica_count = trainable->estimator->replica_count;
    embedded->server_count = trainable->layout->shard_count;
    embedded->worker_count = trainable->estimator->config.num_workers;
    // Workers merge rows of tables better, all at once.
    embedded->assignment =
        (trainable->layout->table_count > 0 ? bel_assignment_create : bel_assignment_create_apart)(
            trainable->estimator->replicas_of, embedded->worker_count);
    embedded->servers = bel_xcalloc((size_t)embedded->server_count, sizeof *embedded->servers);
    embedded->workers = bel_xcalloc((size_t)embedded->worker_count, sizeof *embedded->workers);
    make_lanes(embedded);
    bel_status *status = make_space(embedded);
    if (status == NULL) status = make_values(embedded);
    if (status == NULL) status = make_ranges(embedded);
    if (status == NULL) status = make_shards(embedded);
    if (status != NULL) {
        embedded_destroy(&embedded->backend);
        return status;
    }
    *out_backend = &embedded->backend;
    return NULL;
}

// If GPUs lack room for the parameters, and the user did not request them, the process's memory is
// used.
bel_status *bel_embedded_create(const bel_trainable *trainable, bel_backend **out_backend)
{
    bool asked = trainable->estimator->config.update_device == BEL_DEVICE_CUDA;
    bel_updater *updater = NULL;
    bel_status *status = bel_trainable_create_updater(trainable, &updater);
    if (status == NULL && updater == NULL) return embedded_create(trainable, NULL, out_backend);
    int devices = updater != NULL ? updater->device_count : 0;
    if (status == NULL) status = embedded_create(trainable, updater, out_backend);
    if (status == NULL && !asked) {
        status = bel_trainable_check_room(trainable);
        if (status != NULL) {
            embedded_destroy(*out_backend);
            *out_backend = NULL;
        }
    }
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "parameters are on %d GPU%s and are updated there", devices,
                      devices == 1 ? "" : "s");
        return NULL;
    }
    if (asked || bel_status_code(status) != BEL_RESOURCE_EXHAUSTED) return status;
    bel_log_write(BEL_LOG_WARN, "parameters stay in the memory of the process: %s",
                  bel_status_message(status));
    bel_status_ignore(status); // reported
    return embedded_create(trainable, NULL, out_backend);
}
