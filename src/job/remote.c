// The master's side of a cluster: messages of members become the state that train.c waits for.
#include "job/remote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "master/journal.h"
#include "ps/layout/deal.h"
#include "ps/layout/space.h"
#include "transport/grpc/grpc_lane.h"

// A worker that comes anew while the job runs: the shards are told, and say where they stand.
typedef struct admission {
    bool under_way;
    int answers;
    bool *answered; // by shard
    int64_t step;   // the lowest of them
} admission;

typedef struct remote {
    bel_crew crew; // first: a bel_crew * is a remote *
    bel_remote_config config;
    bel_control_state state;
    bel_status *error;
    int *shard_members; // by shard: its number among the members
    char *checkpoint;   // folder that shards load
    bel_control_config schedule;
    bel_input_segment segment;
    bool started, stop_sent;
    int64_t progress_ns;
    int64_t examples_before; // this master took over; -1: not yet known

    bool *ended; // by worker
    int ended_workers;
    int64_t end_step;       // the version at which they ended
    bel_worker_times times; // sums over the workers that have ended
    admission *admissions;  // by worker

    int64_t *snapshots;     // by shard: the version of its newest snapshot, -1: none
    int64_t saved_snapshot; // the version that shard 0 has announced last, -1: none
    int64_t released;       // the version that was released last
    int64_t values_step;    // of crew.values; -1: none
    bel_message asked;      // of the shards, until they have answered; kind 0: nothing
    uint32_t reading_count;
    int32_t reading;  // number of the lanes for values
    bel_lane **lanes; // by shard, for values
    bel_doorbell *bell;
    int saved_shards;
    bel_ckpt_shard **saved; // by shard, while a checkpoint is written
    bool finishing;         // the evaluator was told that training is over

    bel_control_point *points; // not yet taken
    size_t point_count, point_capacity;
} remote;

// --- Listening -----------------------------------------------------------------------------------

static bel_status *refuse_lane(void *context, const char *path, bel_stream *stream,
                               bel_stream_events *out_events)
{
    (void)context, (void)stream, (void)out_events;
    return BEL_ERR(BEL_UNIMPLEMENTED, "the master has no %s", path);
}

bel_status *bel_remote_listen(const bel_task *task, const bel_run_config *config,
                              bel_members **out_members)
{
    char *path = bel_path_join(config->model_dir, BEL_TOKEN_FILE);
    char *token = bel_strf("%016llx%016llx", (unsigned long long)bel_clock_ns(),
                           (unsigned long long)(bel_clock_wall() * 1e6));
    bel_status *status = bel_file_write_atomic(path, token, strlen(token));
    bel_free(path);
    if (status == NULL) {
        const bel_members_config members = {
            .endpoint = {.listen_address = task->listen_address,
                         .secret = task->secret,
                         .tls_ca = task->tls_ca,
                         .tls_certificate = task->tls_certificate,
                         .tls_key = task->tls_key,
                         .accept = refuse_lane},
            .counts = {[BEL_ROLE_WORKER] = task->worker_count,
                       [BEL_ROLE_PS] = task->ps_count,
                       [BEL_ROLE_EVALUATOR] = task->evaluator_count},
            .token = token,
            .join_timeout_secs = task->join_timeout_secs,
            .silence_timeout_secs = task->silence_timeout_secs,
            .recovers = task->recovers};
        status = bel_members_create(&members, out_members);
    }
    bel_free(token);
    return status;
}

void bel_remote_unlisten(const bel_run_config *config)
{
    char *path = bel_path_join(config->model_dir, BEL_TOKEN_FILE);
    (void)remove(path); // one that stays does no harm: the next job writes its own
    bel_free(path);
}

// --- Messages ------------------------------------------------------------------------------------

static void send_to_shard(remote *r, int shard, const bel_message *message)
{
    bel_message of_now = *message;
    of_now.generation = r->crew.generation;
    bel_members_send(r->config.members, r->shard_members[shard], &of_now);
}

static void send_to_shards(remote *r, const bel_message *message)
{
    for (int k = 0; k < r->crew.shard_count; k++)
        send_to_shard(r, k, message);
}

static int shard_of(const remote *r, int member)
{
    for (int k = 0; k < r->crew.shard_count; k++)
        if (r->shard_members[k] == member) return k;
    return -1;
}

static void fail(remote *r, bel_status *status)
{
    if (r->error == NULL) {
        r->error = status;
    } else {
        bel_status_ignore(status); // the first error is the story
    }
}

// --- Beginning anew ------------------------------------------------------------------------------

typedef struct setup {
    bel_message message;
    char **addresses;
    int32_t *towers;
    uint32_t *incarnations;
    bel_message_variable *variables;
} setup;

// What a shard must know of the model: names, shapes, kinds; it runs no user code.
static void describe_model(const remote *r, setup *s)
{
    const bel_layout *layout = r->config.layout;
    size_t count = (size_t)layout->variable_count;
    s->variables = bel_xcalloc(count, sizeof *s->variables);
    for (size_t v = 0; v < count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        s->variables[v] =
            (bel_message_variable){variable->name, (int32_t)variable->kind, variable->shape};
    }
    s->message.variables = s->variables;
    s->message.variable_count = count;
    s->message.optimizer = r->config.built->spec.optimizer;
}

static bel_message_schedule describe_schedule(const remote *r)
{
    const bel_control_config *schedule = &r->schedule;
    const bel_input_segment *segment = &r->segment;
    return (bel_message_schedule){.first_step = schedule->first_step,
                                  .last_step = schedule->last_step,
                                  .save_steps = schedule->save_steps,
                                  .save_secs = schedule->save_secs,
                                  .eval_steps = schedule->eval_steps,
                                  .series_steps = schedule->series_steps,
                                  .segment_first_step = segment->first_step,
                                  .segment_first_block = segment->first_block,
                                  .segment_replica_count = segment->replica_count};
}

static void describe_members(const remote *r, setup *s)
{
    const bel_estimator *estimator = r->config.estimator;
    const bel_members *members = r->config.members;
    size_t workers = (size_t)estimator->config.worker_count;
    s->towers = bel_xcalloc(workers, sizeof *s->towers);
    s->incarnations = bel_xcalloc(workers, sizeof *s->incarnations);
    for (size_t w = 0; w < workers; w++) {
        s->towers[w] = estimator->towers_of[w];
        int member = bel_members_find(members, BEL_ROLE_WORKER, (int)w);
        s->incarnations[w] = bel_members_get(members, member)->incarnation;
    }
    s->message.towers = s->towers;
    s->message.incarnations = s->incarnations;
    s->message.tower_count = s->message.incarnation_count = workers;
    s->addresses = bel_xcalloc((size_t)r->crew.shard_count, sizeof *s->addresses);
    for (int k = 0; k < r->crew.shard_count; k++)
        s->addresses[k] = bel_members_get(members, r->shard_members[k])->address;
    s->message.addresses = s->addresses;
    s->message.address_count = (size_t)r->crew.shard_count;
}

// Tells a member to begin anew; a worker with `step`.
static void send_setup(remote *r, int member, int64_t step)
{
    setup s = {.message = {.kind = BEL_MESSAGE_SETUP,
                           .generation = r->crew.generation,
                           .step = step,
                           .folder = r->checkpoint,
                           .schedule = describe_schedule(r)}};
    describe_members(r, &s);
    describe_model(r, &s);
    bel_members_set_generation(r->config.members, member, r->crew.generation);
    bel_members_send(r->config.members, member, &s.message);
    bel_free(s.addresses);
    bel_free(s.towers);
    bel_free(s.incarnations);
    bel_free(s.variables);
}

// --- Taking messages -----------------------------------------------------------------------------

static void take_progress(remote *r, const bel_message *m)
{
    if (m->step != r->state.step) r->progress_ns = bel_clock_ns();
    r->state.step = m->step;
    bel_members_note_step(r->config.members, m->step);
    r->state.loss = m->loss;
    if (r->examples_before < 0) r->examples_before = m->examples;
    r->state.examples = m->examples - r->examples_before;
    r->crew.interrupted = m->interrupted;
    size_t count = r->point_count + m->point_count;
    r->points = bel_xgrow(r->points, &r->point_capacity, count, sizeof *r->points);
    for (size_t i = 0; i < m->point_count; i++) {
        const bel_message_point *p = &m->points[i];
        r->points[r->point_count++] = (bel_control_point){p->step, p->loss, p->examples_per_second};
    }
}

// Nothing more can come of what the master does now.
static bool is_broken(const remote *r)
{
    return r->error != NULL || r->crew.lost;
}

// Shard 0 says what the snapshot is for; it is there when every shard has it.
static void take_snapshot(remote *r, int member, const bel_message *m)
{
    int shard = shard_of(r, member);
    if (shard < 0) return;
    r->snapshots[shard] = m->step;
    if (shard == 0 && m->step == r->released) { // the word of that was lost
        send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_RELEASE});
        return;
    }
    if (shard == 0) {
        r->state.save = m->save;
        r->state.eval = m->eval;
        r->saved_snapshot = m->step;
    }
    for (int k = 0; k < r->crew.shard_count; k++)
        if (r->snapshots[k] != r->saved_snapshot || r->saved_snapshot < 0) return;
    r->state.has_snapshot = true;
    r->state.snapshot = r->saved_snapshot;
    if (r->values_step != r->saved_snapshot) r->values_step = -1;
}

static void take_saved(remote *r, int member, const bel_message *m)
{
    int shard = shard_of(r, member);
    if (shard < 0 || r->saved == NULL || r->saved[shard] != NULL) return;
    if (m->code != BEL_OK) {
        fail(r, BEL_ERR((bel_code)m->code, "shard %d: %s", shard, m->text));
        return;
    }
    bel_status *status = bel_ckpt_shard_unpack(m->data, m->data_bytes, &r->saved[shard]);
    if (status != NULL) {
        fail(r, status);
    } else {
        r->saved_shards++;
    }
}

static void take_ended(remote *r, int member, const bel_message *m)
{
    const bel_member *sender = bel_members_get(r->config.members, member);
    if (m->code != BEL_OK) {
        fail(r, BEL_ERR((bel_code)m->code, "%s", m->text));
        return;
    }
    if (sender->role == BEL_ROLE_EVALUATOR) {
        if (m->text[0] != '\0') bel_log_write(BEL_LOG_INFO, "%s", m->text);
        return;
    }
    if (sender->role != BEL_ROLE_WORKER || r->ended[sender->index]) return;
    r->ended[sender->index] = true;
    r->ended_workers++;
    r->end_step = m->step;
    r->times.input_ns += m->times.input_ns;
    r->times.compute_ns += m->times.compute_ns;
    r->times.exchange_ns += m->times.exchange_ns;
    r->times.total_ns += m->times.total_ns;
    r->times.steps = m->times.steps;
}

static void ask_to_stop(remote *r, const char *why)
{
    if (r->stop_sent) return;
    r->stop_sent = true;
    bel_log_write(BEL_LOG_DEBUG, "asking for the end of training: %s", why);
    send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_STOP});
}

// --- Members that come back ----------------------------------------------------------------------

static void admit(remote *r, int worker)
{
    int member = bel_members_find(r->config.members, BEL_ROLE_WORKER, worker);
    admission *a = &r->admissions[worker];
    a->under_way = true;
    a->answers = 0;
    a->step = INT64_MAX;
    memset(a->answered, 0, (size_t)r->crew.shard_count * sizeof *a->answered);
    uint32_t incarnation = bel_members_get(r->config.members, member)->incarnation;
    send_to_shards(
        r, &(bel_message){.kind = BEL_MESSAGE_ADMIT, .index = worker, .incarnation = incarnation});
}

static void take_admitted(remote *r, int member, const bel_message *m)
{
    int shard = shard_of(r, member);
    if (shard < 0 || m->index < 0 || m->index >= r->config.task->worker_count) return;
    admission *a = &r->admissions[m->index];
    int worker = bel_members_find(r->config.members, BEL_ROLE_WORKER, m->index);
    bool current = m->incarnation == bel_members_get(r->config.members, worker)->incarnation;
    if (!a->under_way || !current || a->answered[shard]) return;
    a->answered[shard] = true;
    if (m->step < a->step) a->step = m->step;
    if (++a->answers < r->crew.shard_count) return;
    a->under_way = false;
    bel_log_write(BEL_LOG_INFO, "worker %d is back and goes on with step %lld", m->index,
                  (long long)a->step);
    send_setup(r, worker, a->step);
}

// A shard's connection was broken: what it was asked for may be lost.
static void ask_again(remote *r, int shard)
{
    if (r->asked.kind != 0) send_to_shard(r, shard, &r->asked);
    if (shard == 0 && r->stop_sent) {
        send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_STOP});
    }
    for (int w = 0; w < r->config.task->worker_count; w++)
        if (r->admissions[w].under_way) admit(r, w);
}

static void take_join(remote *r, int member)
{
    const bel_member *m = bel_members_get(r->config.members, member);
    int shard = shard_of(r, member);
    bool holds = m->generation == r->crew.generation;
    if (!r->started) return; // the next start looks at everybody
    if (m->role == BEL_ROLE_EVALUATOR) {
        send_setup(r, member, 0);
        if (r->finishing)
            bel_members_send(r->config.members, member, &(bel_message){.kind = BEL_MESSAGE_FINISH});
    } else if (shard >= 0 && !holds) {
        r->crew.lost = true;
    } else if (shard >= 0) {
        ask_again(r, shard);
    } else if (!holds) {
        admit(r, m->index);
    }
}

static void take_message(remote *r, int member, const bel_message *m)
{
    bool of_now = m->generation == r->crew.generation;
    bool early = m->kind == BEL_MESSAGE_ENDED && m->generation == 0; // it could not begin
    if (m->kind == BEL_MESSAGE_JOIN) {
        take_join(r, member);
        return;
    }
    if (!of_now && !early && m->kind != BEL_MESSAGE_STOP) return; // of a state that is void
    switch (m->kind) {
    case BEL_MESSAGE_PROGRESS: take_progress(r, m); break;
    case BEL_MESSAGE_SNAPSHOT: take_snapshot(r, member, m); break;
    case BEL_MESSAGE_SAVED: take_saved(r, member, m); break;
    case BEL_MESSAGE_ENDED: take_ended(r, member, m); break;
    case BEL_MESSAGE_STOP: ask_to_stop(r, m->text); break;
    case BEL_MESSAGE_ADMITTED: take_admitted(r, member, m); break;
    default:
        fail(r, BEL_ERR(BEL_INTERNAL, "a member sent the master a %s message",
                        bel_message_kind_name(m->kind)));
    }
}

// Takes messages for up to `secs`, or one at least; notes who is lost.
static void pump(remote *r, double secs)
{
    int member;
    bel_message message;
    bool got = bel_members_take(r->config.members, secs, &member, &message);
    while (got) {
        take_message(r, member, &message);
        bel_message_deinit(&message);
        got = bel_members_take(r->config.members, 0, &member, &message);
    }
    bel_status *lost = bel_members_check(r->config.members);
    if (lost != NULL) fail(r, lost);
}

static void stalled(remote *r, double secs, const char *what)
{
    bel_str who = {0};
    bel_members_describe(r->config.members, &who);
    fail(r, BEL_ERR(BEL_DEADLINE_EXCEEDED, "no %s for %.1f s, at step %lld: %s", what, secs,
                    (long long)r->state.step, who.text));
    bel_str_deinit(&who);
}

// Goes on waiting for an answer of the shards that was asked for at begun_ns, under the stall
// clock.
static void await_answer(remote *r, double secs, int64_t begun_ns, const char *what)
{
    pump(r, secs);
    double waited = (double)(bel_clock_ns() - begun_ns) * 1e-9;
    if (waited >= r->config.estimator->config.stall_timeout_secs) stalled(r, waited, what);
}

// --- The start -----------------------------------------------------------------------------------

static bel_status *load(bel_crew *crew, const bel_ckpt_reader *reader)
{
    remote *r = (remote *)crew;
    const bel_layout *layout = r->config.layout;
    bel_free(r->checkpoint);
    r->checkpoint = bel_xstrdup(bel_ckpt_folder(reader));
    crew->lost = r->started = false;
    for (int v = 0; v < layout->variable_count; v++) { // refused here, before anybody starts
        const bel_layout_variable *variable = &layout->variables[v];
        BEL_TRY_CTX(bel_ckpt_read(reader, variable->name, BEL_DTYPE_F32, &variable->shape, 0,
                                  variable->elements, crew->values + variable->offset),
                    "loading %s", r->checkpoint);
    }
    r->state.step = bel_ckpt_reader_info(reader)->step;
    r->values_step = r->state.step;
    return NULL;
}

static bel_status *gather(remote *r)
{
    const bel_settings *settings = r->config.settings;
    return bel_members_gather(r->config.members, settings->names, settings->values, settings->count,
                              bel_control_stop_requested);
}

// Values come into the master's array; shards send nothing else on these lanes.
static void *place_values(void *context, const bel_frame *frame)
{
    const remote *r = context;
    const bel_layout *layout = r->config.layout;
    bool known =
        frame->kind == BEL_FRAME_PARAMS && frame->chunk >= 0 && frame->chunk < layout->chunk_count;
    if (!known) return NULL;
    const bel_chunk *chunk = &layout->chunks[frame->chunk];
    bool fits = frame->payload_bytes == (size_t)chunk->count * sizeof(float) &&
                frame->sender == chunk->shard;
    return fits ? r->crew.values + chunk->offset : NULL;
}

static void close_lanes(remote *r)
{
    for (int k = 0; k < r->crew.shard_count; k++) {
        bel_lane_close(r->lanes[k]);
        r->lanes[k] = NULL;
    }
}

// A number that no other lanes to these shards had, of this master or one before.
static void number_lanes(remote *r)
{
    enum { LANES_OF_ONE = 4096 };
    r->reading_count++;
    uint32_t number = r->config.task->incarnation * LANES_OF_ONE + r->reading_count;
    r->reading = (int32_t)(number & INT32_MAX);
}

static void connect_lanes(remote *r)
{
    const bel_grpc_lane_config config = {.capacity = (size_t)r->config.layout->chunk_count + 2,
                                         .bell = r->bell,
                                         .quiet = 1u << BEL_FRAME_PARAMS,
                                         .place = place_values,
                                         .place_context = r};
    const bel_lane_hello hello = {.kind = BEL_HELLO_MASTER,
                                  .index = r->reading,
                                  .generation = r->crew.generation,
                                  .incarnation = r->config.task->incarnation};
    for (int k = 0; k < r->crew.shard_count; k++) {
        const char *address = bel_members_get(r->config.members, r->shard_members[k])->address;
        r->lanes[k] = bel_grpc_lane_connect(bel_members_endpoint(r->config.members), address,
                                            &hello, &config);
    }
}

// True when all shards hold the state of one generation: nothing has to be loaded.
static bool have_state(const remote *r)
{
    uint32_t generation = bel_members_get(r->config.members, r->shard_members[0])->generation;
    for (int k = 1; k < r->crew.shard_count; k++) {
        const bel_member *member = bel_members_get(r->config.members, r->shard_members[k]);
        if (member->generation != generation) return false;
    }
    return generation != 0;
}

// The job goes on as it is under this master.
static void take_over(remote *r)
{
    const bel_member *first = bel_members_get(r->config.members, r->shard_members[0]);
    r->crew.generation = first->generation;
    r->state.step = first->step;
    r->examples_before = -1;
    bel_log_write(BEL_LOG_INFO, "taking over a job that runs, at step %lld",
                  (long long)first->step);
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member *m = bel_members_get(r->config.members, i);
        if (m->role == BEL_ROLE_EVALUATOR) send_setup(r, i, 0);
        if (m->role != BEL_ROLE_WORKER || m->generation == r->crew.generation) continue;
        admit(r, m->index);
    }
}

static bel_status *begin_generation(remote *r)
{
    const char *model_dir = r->config.estimator->config.model_dir;
    uint32_t newest;
    BEL_TRY(bel_journal_generation(model_dir, &newest));
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        uint32_t generation = bel_members_get(r->config.members, i)->generation;
        if (generation > newest) newest = generation;
    }
    r->crew.generation = newest + 1;
    r->state.step = r->schedule.first_step;
    BEL_TRY(bel_journal_write(model_dir, "generation", r->crew.generation, r->state.step,
                              r->checkpoint));
    bel_fault_point("master_new_generation");
    for (int i = 0; i < bel_members_count(r->config.members); i++)
        send_setup(r, i, r->schedule.first_step);
    return NULL;
}

// Forgets what members have said; they say it again.
static void forget(remote *r)
{
    int workers = r->config.task->worker_count;
    close_lanes(r);
    r->crew.lost = r->finishing = false;
    r->state = (bel_control_state){.loss = NAN, .step = r->state.step};
    r->ended_workers = 0;
    r->times = (bel_worker_times){0};
    for (int w = 0; w < workers; w++)
        r->ended[w] = r->admissions[w].under_way = false;
    for (int k = 0; k < r->crew.shard_count; k++)
        r->snapshots[k] = -1;
    r->saved_snapshot = r->released = -1;
    r->asked = (bel_message){0};
    r->point_count = 0;
    r->examples_before = 0;
}

static bel_status *start(bel_crew *crew, const bel_control_config *schedule,
                         const bel_input_segment *segment)
{
    remote *r = (remote *)crew;
    r->schedule = *schedule;
    r->segment = *segment;
    forget(r);
    bel_fault_point("master_gather");
    BEL_TRY(gather(r));
    if (have_state(r)) {
        take_over(r);
    } else {
        BEL_TRY(begin_generation(r));
    }
    r->started = true;
    r->progress_ns = bel_clock_ns();
    if (r->stop_sent) send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_STOP});
    return NULL;
}

// --- While it runs -------------------------------------------------------------------------------

static void check_stall(remote *r)
{
    double secs = (double)(bel_clock_ns() - r->progress_ns) * 1e-9;
    bool waits = !r->state.has_snapshot && !is_broken(r); // else it is the master who works
    if (waits && secs >= r->config.estimator->config.stall_timeout_secs) stalled(r, secs, "step");
}

static void wait_for_news(bel_crew *crew, double secs, bel_control_state *out_state)
{
    remote *r = (remote *)crew;
    bel_control_state *state = &r->state;
    int workers = r->config.estimator->config.worker_count;
    pump(r, state->has_snapshot ? 0 : secs);
    if (bel_control_stop_requested()) ask_to_stop(r, "a signal");
    check_stall(r);
    bool ended = r->ended_workers == workers && state->step >= r->end_step; // with its loss known
    state->running = !ended && !is_broken(r);
    *out_state = *state;
}

static int take_points(bel_crew *crew, bel_control_point *out_points, int capacity)
{
    remote *r = (remote *)crew;
    size_t count = r->point_count < (size_t)capacity ? r->point_count : (size_t)capacity;
    if (count == 0) return 0;
    memcpy(out_points, r->points, count * sizeof *out_points);
    r->point_count -= count;
    memmove(r->points, r->points + count, r->point_count * sizeof *r->points);
    return (int)count;
}

static void release_snapshot(bel_crew *crew)
{
    remote *r = (remote *)crew;
    r->state.has_snapshot = false;
    r->released = r->state.snapshot;
    r->saved_snapshot = -1;
    r->progress_ns = bel_clock_ns(); // shards may have waited for this
    send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_RELEASE});
}

static void cancel(bel_crew *crew)
{
    remote *r = (remote *)crew;
    fail(r, BEL_ERR(BEL_CANCELLED, "the master has ended the job"));
}

// Why the master cannot go on; NULL: it can.
static bel_status *take_error(remote *r)
{
    bel_status *error = r->error;
    r->error = NULL;
    if (error != NULL || !r->crew.lost) return error;
    return BEL_ERR(BEL_UNAVAILABLE, "a shard was lost");
}

static bel_status *attend(bel_crew *crew)
{
    remote *r = (remote *)crew;
    pump(r, 0);
    return take_error(r);
}

static bel_status *join(bel_crew *crew)
{
    return take_error((remote *)crew); // the processes end when they are dismissed
}

// Asks all shards for something; it is asked again of one whose connection breaks meanwhile.
static void ask_shards(remote *r, bel_message_kind kind, int64_t step, char *folder)
{
    r->asked = (bel_message){.kind = kind, .step = step, .folder = folder, .index = r->reading};
    send_to_shards(r, &r->asked);
}

// --- The snapshot in hand ------------------------------------------------------------------------

// Takes what has come on the values' lanes; true when all shards have sent all.
static bool drain_values(remote *r, int *arrived, int *expected)
{
    int complete = 0;
    for (int k = 0; k < r->crew.shard_count; k++) {
        bel_frame frame;
        while (bel_lane_receive(r->lanes[k], &frame)) {
            if (frame.step != r->state.snapshot) continue;
            if (frame.kind == BEL_FRAME_VERSION) expected[k] = frame.chunk;
            if (frame.kind == BEL_FRAME_PARAMS) arrived[k]++;
        }
        complete += expected[k] >= 0 && arrived[k] >= expected[k];
    }
    return complete == r->crew.shard_count;
}

static bel_status *read_values(bel_crew *crew)
{
    enum { NAP_NS = 50000000 };
    remote *r = (remote *)crew;
    if (!r->started || r->values_step == r->state.snapshot) return NULL;
    bool connected = r->lanes[0] != NULL;
    if (!connected) number_lanes(r);
    ask_shards(r, BEL_MESSAGE_VALUES, r->state.snapshot, NULL); // which makes their ends
    if (!connected) connect_lanes(r);
    size_t shards = (size_t)crew->shard_count;
    int *arrived = bel_xcalloc(shards, sizeof *arrived);
    int *expected = bel_xcalloc(shards, sizeof *expected);
    for (size_t k = 0; k < shards; k++)
        expected[k] = -1;
    int64_t begun = bel_clock_ns();
    while (!is_broken(r) && !drain_values(r, arrived, expected)) {
        (void)bel_doorbell_wait(r->bell, bel_clock_ns() + NAP_NS);
        await_answer(r, 0, begun, "values of a snapshot");
    }
    bel_free(arrived);
    bel_free(expected);
    r->asked.kind = 0;
    if (is_broken(r)) return take_error(r);
    r->values_step = r->state.snapshot;
    return NULL;
}

static bel_status *write_shards(bel_crew *crew, const char *folder, bel_ckpt_shard **out_shards)
{
    remote *r = (remote *)crew;
    char *text = bel_xstrdup(folder);
    r->saved = out_shards;
    r->saved_shards = 0;
    ask_shards(r, BEL_MESSAGE_SAVE, r->state.snapshot, text);
    int64_t begun = bel_clock_ns();
    while (r->saved_shards < crew->shard_count && !is_broken(r))
        await_answer(r, 1, begun, "shard of a checkpoint");
    r->saved = NULL;
    r->asked.kind = 0;
    bel_free(text);
    return take_error(r);
}

// Nothing is left to train: members are only told to go. A master that replaces one may have been
// told by it before.
static bel_status *meet(remote *r)
{
    enum { PATIENCE_SECS = 1 };
    if (r->config.task->incarnation == 0) return gather(r);
    bel_members_hear(r->config.members, PATIENCE_SECS);
    int evaluator = bel_members_find(r->config.members, BEL_ROLE_EVALUATOR, 0);
    if (evaluator >= 0 && bel_members_get(r->config.members, evaluator)->here) {
        send_setup(r, evaluator, r->state.step);
    }
    return NULL;
}

static bel_status *snapshot_now(bel_crew *crew)
{
    remote *r = (remote *)crew;
    if (!r->started) return meet(r);
    r->state.has_snapshot = false;
    r->saved_snapshot = r->state.step;
    for (int k = 0; k < crew->shard_count; k++)
        r->snapshots[k] = -1;
    ask_shards(r, BEL_MESSAGE_FINISH, r->state.step, NULL);
    int64_t begun = bel_clock_ns();
    while (!r->state.has_snapshot && !is_broken(r))
        await_answer(r, 1, begun, "snapshot of the end");
    r->asked.kind = 0;
    return take_error(r);
}

// --- The end -------------------------------------------------------------------------------------

// The evaluator looks at the last checkpoint, when there is an evaluator. How long that takes is
// the data's business: only the silence clock counts.
static bel_status *wait_for_evaluator(remote *r)
{
    int member = bel_members_find(r->config.members, BEL_ROLE_EVALUATOR, 0);
    if (member < 0) return NULL;
    bool met = r->config.task->incarnation > 0 && bel_members_get(r->config.members, member)->here;
    if (!r->started && !met) return NULL;
    r->finishing = true;
    bel_members_send(r->config.members, member, &(bel_message){.kind = BEL_MESSAGE_FINISH});
    while (!bel_members_get(r->config.members, member)->ended && !is_broken(r))
        pump(r, 1);
    return take_error(r);
}

static bel_status *finish(bel_crew *crew)
{
    return wait_for_evaluator((remote *)crew);
}

static bel_worker_times times(const bel_crew *crew)
{
    const remote *r = (const remote *)crew;
    bel_worker_times mean = r->times;
    int count = r->ended_workers > 0 ? r->ended_workers : 1;
    mean.input_ns /= count;
    mean.compute_ns /= count;
    mean.exchange_ns /= count;
    mean.total_ns /= count;
    return mean;
}

static void dismiss(bel_crew *crew, const bel_status *status)
{
    enum { WAIT_SECS = 5 };
    remote *r = (remote *)crew;
    bel_members_dismiss(r->config.members, bel_status_code(status),
                        status != NULL ? bel_status_message(status) : "", WAIT_SECS);
}

static void destroy(bel_crew *crew)
{
    remote *r = (remote *)crew;
    close_lanes(r);
    bel_doorbell_destroy(r->bell);
    bel_space_free_array(r->config.layout, crew->values);
    bel_status_ignore(r->error); // reported, or of no interest any more
    for (int w = 0; w < r->config.task->worker_count; w++)
        bel_free(r->admissions[w].answered);
    bel_free(r->admissions);
    bel_free(r->ended);
    bel_free(r->snapshots);
    bel_free(r->lanes);
    bel_free(r->shard_members);
    bel_free(r->checkpoint);
    bel_free(r->points);
    bel_free(r);
}

static const bel_crew_ops remote_ops = {
    .load = load,
    .start = start,
    .wait = wait_for_news,
    .take_points = take_points,
    .read_values = read_values,
    .write_shards = write_shards,
    .release_snapshot = release_snapshot,
    .attend = attend,
    .cancel = cancel,
    .join = join,
    .snapshot_now = snapshot_now,
    .finish = finish,
    .times = times,
    .dismiss = dismiss,
    .destroy = destroy,
};

bel_status *bel_remote_create(const bel_remote_config *config, bel_crew **out_crew)
{
    remote *r = bel_xcalloc(1, sizeof *r);
    r->crew.ops = &remote_ops;
    r->crew.shard_count = config->layout->shard_count;
    r->config = *config;
    r->values_step = -1;
    r->state.loss = NAN;
    r->bell = bel_doorbell_create();
    size_t shards = (size_t)r->crew.shard_count, workers = (size_t)config->task->worker_count;
    r->ended = bel_xcalloc(workers, sizeof *r->ended);
    r->admissions = bel_xcalloc(workers, sizeof *r->admissions);
    for (size_t w = 0; w < workers; w++)
        r->admissions[w].answered = bel_xcalloc(shards, sizeof(bool));
    r->snapshots = bel_xcalloc(shards, sizeof *r->snapshots);
    r->lanes = bel_xcalloc(shards, sizeof *r->lanes);
    r->shard_members = bel_xcalloc(shards, sizeof *r->shard_members);
    bel_role role = config->task->ps_count > 0 ? BEL_ROLE_PS : BEL_ROLE_WORKER;
    for (int k = 0; k < r->crew.shard_count; k++)
        r->shard_members[k] = bel_members_find(config->members, role, k);
    bel_status *status = bel_space_array(config->layout, "values", &r->crew.values);
    if (status != NULL) {
        destroy(&r->crew);
        return status;
    }
    *out_crew = &r->crew;
    return NULL;
}
