// The shard of a member: its memory, its lanes, its thread, and what the master asks of it.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "job/member_inner.h"
#include "ps/layout/tally.h"

// --- Lanes ---------------------------------------------------------------------------------------

static bel_status *find_lane(void *context, const bel_lane_hello *hello, bel_lane **out_lane)
{
    member_shard *s = context;
    pthread_mutex_lock(&s->mutex);
    bool open = s->open;
    pthread_mutex_unlock(&s->mutex);
    if (!open) return NULL; // the peer asks again
    if (hello->kind == BEL_HELLO_MASTER) {
        *out_lane = s->master_lane;
    } else if (hello->kind == BEL_HELLO_WORKER && hello->index >= 0 &&
               hello->index < s->deal->worker_count) {
        *out_lane = s->worker_lanes[hello->index];
    } else if (hello->kind == BEL_HELLO_SHARD && s->index == 0 && hello->index > 0 &&
               hello->index < s->layout->shard_count) {
        *out_lane = s->shard_lanes[hello->index];
    } else {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "shard %d has no lane for such a peer", s->index);
    }
    return NULL;
}

bel_status *bel_member_shard_accept(void *context, const char *path, bel_stream *stream,
                                    bel_stream_events *out_events)
{
    member *m = context;
    (void)path;
    return bel_grpc_lane_accept(stream, find_lane, &m->shard, out_events);
}

static void *refuse_frame(void *context, const bel_frame *frame)
{
    (void)context, (void)frame;
    return NULL; // the master sends nothing
}

static bel_status *make_lanes(member *m, const bel_message *setup)
{
    member_shard *s = &m->shard;
    bel_grpc_lane_config config = {.capacity =
                                       bel_deal_lane_frames(s->deal, s->layout->chunk_count),
                                   .bell = s->bell,
                                   .place = bel_shard_place};
    for (int w = 0; w < s->deal->worker_count; w++) {
        if (s->worker_lanes[w] != NULL) continue; // of this process's own worker
        s->worker_peers[w] = (bel_shard_peer){s->shard, w, 0};
        config.place_context = &s->worker_peers[w];
        s->worker_lanes[w] = bel_grpc_lane_create(m->endpoint, &config);
        BEL_TRY(bel_shard_reserve(s->shard, w));
    }
    for (int k = 1; s->index == 0 && k < s->layout->shard_count; k++) {
        s->shard_peers[k] = (bel_shard_peer){s->shard, -1, k};
        config.place_context = &s->shard_peers[k];
        s->shard_lanes[k] = bel_grpc_lane_create(m->endpoint, &config);
    }
    if (s->index > 0) {
        const bel_lane_hello hello = {.kind = BEL_HELLO_SHARD,
                                      .index = s->index,
                                      .generation = setup->generation,
                                      .incarnation = m->task->incarnation};
        s->shard_peers[0] = (bel_shard_peer){s->shard, -1, 0};
        config.place_context = &s->shard_peers[0];
        s->shard_lanes[0] =
            bel_grpc_lane_connect(m->endpoint, setup->addresses[0], &hello, &config);
    }
    config.place = refuse_frame;
    config.bell = NULL;
    s->master_lane = bel_grpc_lane_create(m->endpoint, &config);
    return NULL;
}

// --- Events of the shard -------------------------------------------------------------------------

static void send_progress(member *m, const bel_control_state *state)
{
    enum { MOST = 64 };
    bel_control_point points[MOST];
    bel_message_point out[MOST];
    int count;
    do {
        count = bel_control_take_points(m->shard.control, points, MOST);
        for (int i = 0; i < count; i++) {
            out[i] =
                (bel_message_point){points[i].step, points[i].loss, points[i].examples_per_second};
        }
        bel_mailbox_send(
            m->mailbox, &(bel_message){.kind = BEL_MESSAGE_PROGRESS,
                                       .step = state->step,
                                       .loss = state->loss,
                                       .examples = state->examples,
                                       .interrupted = bel_control_was_interrupted(m->shard.control),
                                       .points = out,
                                       .point_count = (size_t)count});
    } while (count == MOST);
}

// Shard 0. At the end the master hears of the last step before any worker says that it has ended.
static uint32_t decide(void *context, int64_t version, const double *tally)
{
    member *m = context;
    uint32_t decision = bel_control_decide(m->shard.control, version, tally);
    if ((decision & BEL_DECIDE_STOP) != 0) {
        bel_control_state state;
        bel_control_wait(m->shard.control, 0, &state);
        send_progress(m, &state);
    }
    return decision;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)shard;
    member *m = context;
    bel_control_state state = {0};
    if (m->shard.control != NULL) bel_control_wait(m->shard.control, 0, &state);
    bel_mailbox_send(m->mailbox, &(bel_message){.kind = BEL_MESSAGE_SNAPSHOT,
                                                .step = version,
                                                .save = state.save,
                                                .eval = state.eval});
}

static void *engine_main(void *argument)
{
    enum { NAP_NS = 50000000 };
    member *m = argument;
    const bel_shard_events events = {
        .context = m, .decide = decide, .snapshot_ready = snapshot_ready};
    bel_shard_start(m->shard.shard, &events);
    while (!atomic_load(&m->shard.stop)) {
        if (bel_shard_work(m->shard.shard)) continue;
        (void)bel_doorbell_wait(m->shard.bell, bel_clock_ns() + NAP_NS);
    }
    return NULL;
}

// --- The start -----------------------------------------------------------------------------------

static bel_status *make_shard(member *m, const bel_message *setup)
{
    member_shard *s = &m->shard;
    BEL_TRY(bel_space_array(s->layout, "snapshot", &s->snapshot));
    bel_optimizer optimizer = setup->optimizer;
    BEL_TRY(bel_optimizer_check(&optimizer));
    const bel_shard_config config = {.layout = s->layout,
                                     .shard = s->index,
                                     .deal = s->deal,
                                     .space = s->space,
                                     .snapshot = s->snapshot,
                                     .optimizer = optimizer,
                                     .generation = setup->generation,
                                     .tally_width = BEL_TALLY_FIXED,
                                     .worker_lanes = s->worker_lanes,
                                     .shard_lanes = s->shard_lanes};
    return bel_shard_create(&config, &s->shard);
}

static bel_status *load_checkpoint(member_shard *s, const char *folder)
{
    bel_ckpt_reader *reader;
    BEL_TRY(bel_ckpt_open(folder, &reader));
    bel_status *status = bel_shard_load(s->shard, reader);
    bel_ckpt_close(reader);
    return status;
}

bel_status *bel_member_shard_start(member *m, const bel_message *setup)
{
    member_shard *s = &m->shard;
    size_t workers = (size_t)s->deal->worker_count, shards = (size_t)s->layout->shard_count;
    s->worker_peers = bel_xcalloc(workers, sizeof *s->worker_peers);
    s->shard_peers = bel_xcalloc(shards, sizeof *s->shard_peers);
    s->shard_lanes = bel_xcalloc(shards, sizeof(bel_lane *));
    BEL_TRY(make_shard(m, setup));
    BEL_TRY_CTX(load_checkpoint(s, setup->folder), "shard %d", s->index);
    BEL_TRY(make_lanes(m, setup));
    if (s->index == 0) {
        const bel_message_schedule *schedule = &setup->schedule;
        const bel_control_config control = {.shard_count = 1,
                                            .first_step = schedule->first_step,
                                            .last_step = schedule->last_step,
                                            .save_steps = schedule->save_steps,
                                            .save_secs = schedule->save_secs,
                                            .eval_steps = schedule->eval_steps,
                                            .series_steps = schedule->series_steps,
                                            .worker_count = s->deal->worker_count};
        s->control = bel_control_create(&control);
    }
    pthread_mutex_lock(&s->mutex);
    s->open = true;
    pthread_mutex_unlock(&s->mutex);
    BEL_TRY(bel_thread_start(&s->engine, engine_main, m));
    s->has_engine = true;
    return NULL;
}

// --- What the master asks ------------------------------------------------------------------------

static void save_and_answer(member *m, const bel_message *message)
{
    bel_ckpt_shard *shard = NULL;
    bel_status *status = bel_shard_write(m->shard.shard, message->folder, &shard);
    bel_message answer = {.kind = BEL_MESSAGE_SAVED, .step = message->step};
    if (status != NULL) {
        answer.code = (int32_t)bel_status_code(status);
        answer.text = bel_xstrdup(bel_status_message(status));
    } else {
        answer.data = bel_ckpt_shard_pack(shard, &answer.data_bytes);
    }
    bel_mailbox_send(m->mailbox, &answer);
    bel_free(answer.text);
    bel_free(answer.data);
    bel_ckpt_shard_destroy(shard);
    bel_status_destroy(status);
}

static void finish_and_answer(member *m, const bel_message *message)
{
    member_shard *s = &m->shard;
    bel_shard_snapshot_now(s->shard);
    bel_mailbox_send(m->mailbox,
                     &(bel_message){.kind = BEL_MESSAGE_SNAPSHOT, .step = message->step});
}

void bel_member_shard_message(member *m, const bel_message *message)
{
    member_shard *s = &m->shard;
    switch (message->kind) {
    case BEL_MESSAGE_SAVE: save_and_answer(m, message); break;
    case BEL_MESSAGE_FINISH: finish_and_answer(m, message); break;
    case BEL_MESSAGE_VALUES:
        bel_status_ignore(bel_shard_send_snapshot(s->shard, s->master_lane, message->step));
        break; // a lane that is cut means that the master is gone: its mailbox will say so
    case BEL_MESSAGE_RELEASE:
        if (s->control != NULL) bel_control_release_snapshot(s->control);
        bel_doorbell_ring(s->bell);
        break;
    case BEL_MESSAGE_STOP:
        if (s->control != NULL) bel_control_interrupt(s->control);
        break;
    default: break; // not for shards
    }
}

void bel_member_shard_progress(member *m)
{
    enum { EVERY_NS = 100000000 };
    if (m->shard.control == NULL || !m->shard.has_engine) return;
    int64_t now = bel_clock_ns();
    if (now - m->progress_ns < EVERY_NS) return;
    m->progress_ns = now;
    bel_control_state state;
    bel_control_wait(m->shard.control, 0, &state);
    if (state.step == m->progress_step) return;
    m->progress_step = state.step;
    send_progress(m, &state);
}

bel_status *bel_member_shard_check(member *m)
{
    BEL_TRY(bel_shard_check(m->shard.shard));
    return m->shard.control != NULL ? bel_control_take_error(m->shard.control) : NULL;
}

// --- The end -------------------------------------------------------------------------------------

void bel_member_shard_stop(member *m)
{
    member_shard *s = &m->shard;
    if (!s->here) return;
    atomic_store(&s->stop, true);
    bel_doorbell_ring(s->bell);
    if (s->has_engine) pthread_join(s->engine, NULL);
    for (int w = 0; s->worker_lanes != NULL && w < s->deal->worker_count; w++)
        bel_lane_close(s->worker_lanes[w]);
    for (int k = 0; s->shard_lanes != NULL && k < s->layout->shard_count; k++)
        bel_lane_close(s->shard_lanes[k]);
    bel_lane_close(s->master_lane);
}

void bel_member_shard_free(member *m)
{
    member_shard *s = &m->shard;
    if (!s->here) return;
    bel_shard_destroy(s->shard);
    bel_control_destroy(s->control);
    bel_doorbell_destroy(s->bell);
    if (s->snapshot != NULL) bel_space_free_array(s->layout, s->snapshot);
    if (!m->worker.here) bel_space_destroy(s->space);
    bel_free(s->worker_lanes);
    bel_free(s->shard_lanes);
    bel_free(s->worker_peers);
    bel_free(s->shard_peers);
    pthread_mutex_destroy(&s->mutex);
}
