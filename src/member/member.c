// Main loop of a member: the start of its parts, messages, clocks, the end. Training itself runs on
// the threads of member_worker.c and member_shard.c; member_join.c joins. They ring the main
// thread's bell. The main thread also polls: ten times a second with a shard, whose progress it
// reports, else twice, in an evaluator once.
//
// A setup always ends the running parts: first the worker's thread, then the shard, which reads the
// worker's reports in place, then the worker's memory. Memory is allocated once, parts that depend
// on the assignment with each new one, lanes and threads with each generation. The loss of a master
// does not end training: it is called again and receives all reports that it may have missed.
#include "member/member.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/linux_shared.h"
#include "base/log.h"
#include "base/long_wait.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/checkpoint.h"
#include "launch/task/job_trace.h"
#include "member/member_inner.h"
#include "optim/settings.h"
#include "ps/layout/row_buffer.h"

enum { SHARD_NAP_NS = 100000000, NAP_NS = 500000000, SECOND_NS = 1000000000 };

// --- The start -----------------------------------------------------------------------------------

static bool is_assignment(const member *m, const Bel__Setup *setup)
{
    const bel_assignment *assignment = m->assignment;
    bool same = assignment != NULL && setup->n_replicas == (size_t)assignment->worker_count &&
                setup->fan_in == m->relays.fan_in;
    for (int w = 0; same && w < assignment->worker_count; w++)
        same = setup->replicas[w] == bel_assignment_replicas(assignment, w);
    return same;
}

// True if the numbers of replicas make an assignment in which this process has replicas.
static bool check_assignment(const member *m, const Bel__Setup *setup)
{
    enum { MOST_WORKERS = 1024, MOST_REPLICAS = 1 << 20 };
    size_t workers = setup->n_replicas;
    int64_t replicas = 0;
    for (size_t w = 0; w < workers && workers <= MOST_WORKERS; w++) {
        if (setup->replicas[w] < 0) return false;
        replicas += setup->replicas[w];
    }
    if (workers > MOST_WORKERS || replicas < 1 || replicas > MOST_REPLICAS) return false;
    size_t index = (size_t)m->task->index;
    return !m->worker.here || (index < workers && setup->replicas[index] > 0);
}

// Takes the assignment of this generation. A changed assignment replaces the parts that depend on
// it; with a ledger there is only one.
static bel_status *take_assignment(member *m, const Bel__Setup *setup)
{
    if (is_assignment(m, setup)) return NULL;
    bool fits = check_assignment(m, setup) && (m->assignment == NULL || !bel_member_has_ledger(m));
    bool relays = setup->fan_in >= 0 && setup->fan_in != 1 && setup->fan_in <= BEL_FAN_IN_MOST &&
                  (setup->fan_in == 0 || m->shm.hub == NULL);
    if (!fits || !relays) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: %s",
                       fits ? "fan_in" : "replicas of the workers");
    }
    bel_member_shard_forget_assignment(m);
    bel_member_forget_answers(m);
    bel_member_free_ranges(m);
    bel_assignment_destroy(m->assignment);
    m->assignment = bel_assignment_create(setup->replicas, (int)setup->n_replicas);
    m->relays.fan_in = setup->fan_in;
    if (!m->shard.here) return NULL;
    m->shard.reporters = bel_fan_in_top(m->assignment, setup->fan_in);
    m->shard.assignment = m->shard.reporters.assignment;
    return NULL;
}

// Adds tables to a parameter server's layout, from the master's description, which is checked here.
static bel_status *add_tables(member *m, const Bel__Setup *setup)
{
    for (size_t t = 0; t < setup->n_tables; t++) {
        const Bel__Table *from = setup->tables[t];
        bool good = from->width > 0 && from->ids > 0 && from->start >= 0 &&
                    from->start <= BEL_INIT_NORMAL && isfinite(from->start_value);
        if (!good) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: table \"%s\"", from->name);
        }
        bel_layout_add_table(
            m->layout,
            &(bel_layout_table){
                .name = from->name,
                .width = from->width,
                .ids = from->ids,
                .kept_by = from->kept_by,
                .counts_replicas = m->optimizers->main.mean_by_contributors,
                .initializer = {.kind = (bel_init_kind)from->start, .value = from->start_value}});
    }
    return NULL;
}

// Returns false for an invalid shape, or one with too many elements to count.
static bool read_shape(const Bel__Variable *from, bel_shape *out_shape)
{
    int64_t elements = 1;
    if (from->n_dims > BEL_MAX_RANK) return false;
    *out_shape = (bel_shape){.rank = (int32_t)from->n_dims};
    for (size_t d = 0; d < from->n_dims; d++) {
        int64_t dim = from->dims[d];
        if (dim < 0 || (elements > 0 && dim > INT64_MAX / elements)) return false;
        elements *= dim;
        out_shape->dims[d] = dim;
    }
    return true;
}

// Creates a parameter server's layout: the same function of names, shapes and kinds as the
// master's.
static bel_status *make_layout(member *m, const Bel__Setup *setup)
{
    const int64_t most = (int64_t)1 << 40; // parameters
    size_t count = setup->n_variables;
    int64_t all = 0;
    if (setup->n_shards == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: no shards");
    }
    bel_layout_variable *variables = bel_xcalloc(count, sizeof *variables);
    bel_status *status = NULL;
    for (size_t v = 0; v < count && status == NULL; v++) {
        const Bel__Variable *from = setup->variables[v];
        bel_shape shape;
        bool good = from->kind >= 0 && from->kind <= BEL_VARIABLE_REPLICA_FIRST &&
                    read_shape(from, &shape) && bel_shape_elements(&shape) <= most - all;
        // one value by replica, in the first dimension
        bool of_replicas = good && from->kind >= BEL_VARIABLE_REPLICA;
        if (!good || (of_replicas && (shape.rank == 0 || shape.dims[0] == 0))) {
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: variable \"%s\"", from->name);
            break;
        }
        all += bel_shape_elements(&shape);
        variables[v] = (bel_layout_variable){.name = from->name,
                                             .shape = shape,
                                             .kind = (bel_variable_kind)from->kind,
                                             .kept_by = from->kept_by};
    }
    if (status == NULL) {
        m->layout = bel_layout_create(variables, (int)count, (int)setup->n_shards);
        m->layout->exchanges = setup->exchanges;
        m->layout->stats_bytes = bel_stats_room(m->settings.stats);
        status = add_tables(m, setup);
    }
    bel_free(variables);
    return status;
}

// Allocates the memory that is made once in the life of a process.
static bel_status *make_memory(member *m)
{
    member_shard *s = &m->shard;
    const bel_layout *layout = m->worker.here ? m->worker.trainable.layout : m->layout;
    BEL_TRY(bel_member_make_parameters(m, layout, s->here ? &s->memory.space : &m->worker.space));
    if (!s->here) return NULL;
    s->layout = layout;
    m->worker.space = m->worker.here ? s->memory.space : NULL;
    if (m->worker.here && bel_member_has_ledger(m)) {
        member_worker *w = &m->worker;
        BEL_TRY(bel_space_array(layout, "parameters of a worker", &w->values));
        w->space = bel_space_over(layout, (float *const[2]){w->values, w->values});
    }
    return bel_member_make_outboxes(m);
}

// Checks a setup against the layout, which a worker has from its model.
static bel_status *check_setup(const member *m, const Bel__Setup *setup)
{
    const bel_layout *layout = m->worker.here ? m->worker.trainable.layout : m->layout;
    if (setup->n_shards != (size_t)layout->shard_count) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "the master's model is on %zu shards and this process's on %d; hint: the same "
            "--min_shard_bytes everywhere",
            setup->n_shards, layout->shard_count);
    }
    if (setup->n_incarnations != (size_t)m->assignment->worker_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: incarnations of the workers");
    }
    return bel_row_buffer_check(layout, m->assignment->replica_count);
}

// A shard of this process reads its worker's reports in place, so it ends before they are freed.
static void stop_parts(member *m, double patience_secs)
{
    bel_member_worker_end(m, patience_secs);
    bel_member_relays_stop(m);
    bel_member_shard_stop(m);
    bel_member_worker_stop(m);
    bel_member_relays_free(m);
}

// Records from the first setup on. On the master's host the clocks are the same: then the master's
// last message cannot come from the future, nor the join from the past. On another host the setup
// gives the lead of the master's clock, minus the message's delay.
static bel_status *start_trace(member *m, const Bel__Setup *setup)
{
    if (m->traces || bel_trace_is_on()) return NULL;
    BEL_TRY(
        bel_job_trace_start(m->estimator->config.trace, m->estimator->config.model_dir, m->task));
    m->traces = bel_trace_is_on();
    int64_t least = setup->clock - bel_clock_ns(), most = setup->clock_lead;
    if (m->traces && (least > 0 || most < 0)) bel_trace_set_lead(least);
    return NULL;
}

// Reads the common part of every setup, and its settings; optimizers go into an array of
// BEL_MAX_STEP_FUNCTIONS.
static bel_status *read_settings(const Bel__Setup *setup, bel_optimizers *optimizers,
                                 bel_shard_settings *out_settings)
{
    const Bel__Counting *counting = setup->counting;
    bool good = setup->schedule != NULL && setup->segment != NULL && counting != NULL &&
                counting->kind >= 0 && counting->kind < BEL_COUNTING_KIND_COUNT &&
                counting->workers > 0 && counting->local_steps > 0 && setup->series >= 0 &&
                setup->series <= BEL_MAX_SERIES && setup->returned >= 0 &&
                setup->returned <= BEL_MAX_RETURNED && setup->check_steps >= 0 &&
                setup->table_admit_after >= 0 && setup->table_expire_after >= 0 &&
                setup->rounding >= 0 && setup->rounding < BEL_ROUNDING_COUNT;
    // Only if all workers count may there be more reports than workers, which then take turns.
    if (good && counting->kind != BEL_COUNTING_ALL)
        good = (size_t)counting->workers <= setup->n_replicas;
    if (!good)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: schedule, segment, counting, "
                                             "series, check_steps, rounding or tables");
    optimizers[0] = (bel_optimizers){.main = bel_optimizer_default()};
    *out_settings = (bel_shard_settings){
        .optimizers = optimizers,
        .function_count = 1,
        .counting = {.kind = (bel_counting_kind)counting->kind,
                     .workers = counting->workers,
                     .max_lead = counting->max_lead,
                     .local_steps = counting->local_steps},
        .seed = setup->seed,
        .stats = {.series = setup->series, .returned = setup->returned},
        .sums = setup->sums,
        .rounding = (bel_rounding)setup->rounding,
        .check_steps = setup->check_steps,
        .table_admit_after = setup->table_admit_after,
        .table_expire_after = setup->table_expire_after,
        .tracks_changes = setup->tracks_changes,
    };
    for (size_t i = 0; i < setup->n_optimizer; i++) {
        const Bel__Setting *setting = setup->optimizer[i];
        int function = out_settings->function_count - 1;
        if (strcmp(setting->name, BEL_FUNCTION_SETTING) == 0) {
            if (function + 1 == BEL_MAX_STEP_FUNCTIONS) {
                return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed setup: more than %d step functions",
                               BEL_MAX_STEP_FUNCTIONS);
            }
            optimizers[++function] = (bel_optimizers){.main = bel_optimizer_default()};
            out_settings->function_count++;
            continue;
        }
        BEL_TRY_CTX(bel_optimizers_set(&optimizers[function], setting->name, setting->value),
                    "malformed setup: optimizer");
    }
    for (int f = 0; f < out_settings->function_count; f++)
        BEL_TRY(bel_optimizers_check(&optimizers[f]));
    return NULL;
}

// Begins, or begins again with another generation.
static bel_status *start_parts(member *m, uint32_t generation, const Bel__Setup *setup)
{
    bel_long_wait_note_training(true); // from here on requests work during any read
    stop_parts(m, m->estimator->config.stall_timeout);
    m->generation = generation;
    m->told.status_ns = 0; // the new activity is reported at once
    bel_fault_point("member_begins");
    BEL_TRY(start_trace(m, setup));
    m->evaluator.follows = m->task->role == BEL_ROLE_EVALUATOR;
    if (m->evaluator.follows) return NULL;
    bool first = m->assignment == NULL;
    if (m->optimizers == NULL)
        m->optimizers = bel_xcalloc(BEL_MAX_STEP_FUNCTIONS, sizeof *m->optimizers);
    BEL_TRY(read_settings(setup, m->optimizers, &m->settings));
    BEL_TRY(take_assignment(m, setup));
    if (first && !m->worker.here) BEL_TRY(make_layout(m, setup));
    BEL_TRY(check_setup(m, setup));
    if (first) BEL_TRY(make_memory(m));
    member_shard *s = &m->shard;
    if (s->here && s->memory.space == NULL) {
        BEL_TRY(bel_member_make_parameters(m, s->layout, &s->memory.space));
    }
    if (m->worker.here) BEL_TRY(bel_member_worker_start(m, setup));
    if (m->shard.here) BEL_TRY(bel_member_shard_start(m, setup));
    m->shard.held = (bel_kept_state){0};
    return m->worker.here ? bel_member_worker_run(m) : NULL;
}

static bel_status *take_piece(member *m, const Bel__Piece *piece)
{
    BEL_TRY(bel_member_files_take(m, piece));
    const Bel__Message *setup = bel_member_files_ready(m);
    if (setup == NULL) return NULL;
    return bel_member_files_begun(m, start_parts(m, setup->generation, setup->setup));
}

// For a setup whose checkpoint is not visible here: stops, and begins again when its files have
// arrived.
static bel_status *fetch_and_begin(member *m, Bel__Message *message)
{
    stop_parts(m, m->estimator->config.stall_timeout);
    m->generation = 0;
    return bel_member_files_ask(m, message);
}

// --- The loop ------------------------------------------------------------------------------------

// Once: a failure ends this member, and the master ends the job or continues without it.
static void tell_failure(member *m, const bel_status *status)
{
    if (m->told.failure) return;
    m->told.failure = true;
    char name[32];
    char *text = bel_strf("%s: %s", bel_role_text(m->task->role, m->task->index, name),
                          bel_status_message(status));
    Bel__Ended ended;
    bel__ended__init(&ended);
    ended.code = (int32_t)bel_status_code(status);
    ended.text = text;
    bel_member_send(m, &ended.base);
    bel_free(text);
}

// A shard handles only messages of its generation; a setup and the end are always handled.
static bel_status *take_message(member *m, const Bel__Message *message)
{
    m->master.answered = true;
    if (message->kind_case == BEL__MESSAGE__KIND_SETUP)
        return start_parts(m, message->generation, message->setup);
    if (message->kind_case == BEL__MESSAGE__KIND_PIECE) return take_piece(m, message->piece);
    if (message->kind_case == BEL__MESSAGE__KIND_END) {
        const Bel__End *end = message->end;
        m->end.over = true;
        m->end.leaves = end->leaves;
        if (end->code != BEL_OK)
            m->end.status = BEL_ERR(BEL_CANCELLED, "the job ended: %s", end->text);
    } else if (m->evaluator.follows && message->kind_case == BEL__MESSAGE__KIND_FINISH) {
        m->evaluator.follows = false;
        return bel_member_evaluate(m, true, !message->finish->interrupted);
    } else if (message->kind_case == BEL__MESSAGE__KIND_EVALUATE) {
        return message->generation == m->generation ? bel_member_help_take(m, message->evaluate)
                                                    : NULL;
    } else if (m->shard.engine.runs && message->generation == m->generation) {
        if (message->kind_case != BEL__MESSAGE__KIND_HOLD)
            return bel_member_shard_message(m, message);
        bel_member_shard_hold(m);
    }
    return NULL;
}

static bel_status *check_master(member *m)
{
    if (bel_mailbox_is_over(m->master.mailbox))
        return bel_member_find_master_again(m, bel_mailbox_why(m->master.mailbox));
    double silence = (double)bel_mailbox_silence_ns(m->master.mailbox) * 1e-9;
    if (silence < m->task->silence_timeout_secs) return NULL;
    return bel_member_find_master_again(
        m, BEL_ERR(BEL_UNAVAILABLE, "nothing heard of it for %.1f s", silence));
}

static void send_stop(member *m)
{
    char name[32];
    Bel__Stop stop;
    bel__stop__init(&stop);
    stop.why = bel_strf("%s was asked to stop", bel_role_text(m->task->role, m->task->index, name));
    bel_member_send(m, &stop.base);
    bel_free(stop.why);
}

// Passes this process's requests to the master, once for each. A worker in the master's process
// leaves without one.
static void pass_requests_on(member *m)
{
    if (bel_stop_requested() && !m->told.stop) {
        m->told.stop = true;
        send_stop(m);
    }
    bool told = m->told.leave || bel_leave_stood(); // a join also reports the request
    if (!bel_leave_requested() || told || m->program->master_over != NULL) return;
    m->told.leave = true;
    if (m->told.leave_ns == 0) m->told.leave_ns = bel_clock_ns();
    Bel__Leave leave;
    bel__leave__init(&leave);
    bel_member_send(m, &leave.base);
}

static Bel__Message *next_message(member *m)
{
    Bel__Message *kept = bel_member_files_next(m);
    return kept != NULL ? kept : bel_mailbox_take(m->master.mailbox);
}

// The main thread's loop, until the master ends the job. The naps bound the delay for events that
// do not ring.
static bel_status *member_obey(member *m)
{
    while (!m->end.over) {
        Bel__Message *message;
        bel_status *status = NULL;
        while (status == NULL && !m->end.over && (message = next_message(m)) != NULL) {
            bool is_setup = message->kind_case == BEL__MESSAGE__KIND_SETUP;
            if (is_setup) bel_member_files_drop(m); // an earlier setup's
            m->fetches = is_setup ? message->setup->fetches : m->fetches;
            if (is_setup && m->fetches) {
                m->master.answered = true;
                status = fetch_and_begin(m, message);
                continue; // it is kept
            }
            if (bel_member_files_keep(m, message)) continue;
            status = take_message(m, message);
            bel_message_destroy(message);
        }
        if (m->end.over) break;
        if (status == NULL && m->shard.engine.runs) status = bel_member_shard_check(m);
        if (status == NULL) status = bel_member_worker_check_lanes(m);
        if (status == NULL) status = bel_member_relays_check(m);
        if (status != NULL) return status;
        BEL_TRY(check_master(m));
        if (m->end.over) break;
        bel_member_join_with_new_token(m);
        if (m->evaluator.follows) BEL_TRY(bel_member_evaluate(m, false, false));
        bel_member_worker_check(m);
        bel_member_shard_progress(m);
        bel_member_help_send(m);
        bel_member_send_status(m, false);
        pass_requests_on(m);
        int64_t nap = m->shard.here ? SHARD_NAP_NS : m->evaluator.follows ? SECOND_NS : NAP_NS;
        (void)bel_doorbell_wait(m->bell, bel_clock_ns() + nap);
    }
    bel_status *end = m->end.status;
    m->end.status = NULL;
    return end;
}

// --- Life ----------------------------------------------------------------------------------------

// A worker without a shard listens only for reports that its relays would take: if it cannot, the
// master chooses no relays.
static bel_status *create_endpoint(member *m, bel_endpoint_config config)
{
    bel_status *status = bel_endpoint_create(&config, &m->endpoint);
    if (status == NULL || m->shard.here || config.listen_address == NULL) return status;
    bel_log_write(BEL_LOG_WARN, "this process can add no reports of others: %s",
                  bel_status_message(status));
    bel_status_ignore(status); // reported
    config.listen_address = NULL;
    return bel_endpoint_create(&config, &m->endpoint);
}

// Steps that may fail for this process's reasons come before it joins.
static bel_status *member_run(member *m)
{
    const bel_task *task = m->task;
    m->worker.here = task->role == BEL_ROLE_WORKER;
    if (m->worker.here) BEL_TRY(bel_member_worker_build(m));
    m->shard.here =
        task->role == BEL_ROLE_PS || (m->worker.here && task->ps_count == 0 &&
                                      task->index < m->worker.trainable.layout->shard_count);
    m->shard.index = task->index;
    if (m->shard.here) {
        pthread_mutex_init(&m->shard.search.mutex, NULL);
        pthread_mutex_init(&m->shard.made.mutex, NULL);
        m->shard.bell = bel_doorbell_create();
        m->shard.sending.step = -1;
    }
    pthread_mutex_init(&m->relays.mutex, NULL);
    if (m->worker.here || m->shard.here) BEL_TRY(bel_member_open_hub(m, bel_member_shard_find_shm));
    bool listens = m->shard.here || bel_member_may_relay(m);
    const bel_endpoint_config endpoint = {.listen_address = listens ? task->listen_address : NULL,
                                          .secret = task->secret,
                                          .silence_secs = task->silence_timeout_secs,
                                          .tls_ca = task->tls_ca,
                                          .tls_certificate = task->tls_certificate,
                                          .tls_key = task->tls_key,
                                          .accept = bel_member_accept,
                                          .context = m};
    BEL_TRY(create_endpoint(m, endpoint));
    if (m->shard.here) bel_member_look_at_memory(m);
    m->shard.shares_memory = m->shm.hub != NULL;
    if (task->role == BEL_ROLE_EVALUATOR) BEL_TRY(bel_member_check_evals(m));
    BEL_TRY(bel_member_join(m));
    bel_status *status = member_obey(m);
    if (m->end.leaves) {
        bel_member_worker_leave(m);
        return bel_member_leave(m);
    }
    bool mine = status != NULL && bel_status_code(status) != BEL_CANCELLED &&
                m->master.mailbox != NULL && !bel_mailbox_is_over(m->master.mailbox);
    if (mine) tell_failure(m, status);
    return status;
}

// Ends threads first, then sends the last messages to the master, then ends the lanes' transports,
// then frees the memory that they read.
static void member_release(member *m)
{
    enum { LINGER_MS = 1000, PATIENCE_SECS = 5 };
    stop_parts(m, PATIENCE_SECS);
    bel_member_help_end(m, PATIENCE_SECS);
    if (m->traces) bel_trace_stop(); // before the master receives this process's end
    bel_mailbox_close(m->master.mailbox, LINGER_MS);
    bel_shm_hub_destroy(m->shm.hub);
    bel_endpoint_destroy(m->endpoint);
    bel_member_files_free(m);
    bel_member_shard_free(m); // first: a worker's model is also the shard's layout
    bel_member_free_memory(m);
    bel_member_worker_free(m);
    bel_layout_destroy_joined(m->relays.joined);
    pthread_mutex_destroy(&m->relays.mutex);
    bel_assignment_destroy(m->assignment);
    bel_layout_destroy(m->layout);
    bel_doorbell_destroy(m->bell);
    bel_free(m->optimizers);
    bel_free(m->master.token);
    bel_member_evaluator_deinit(&m->evaluator);
}

// True if training and its master have already finished. Some launchers restart every exited
// process, so this one may be the only one. Only --train_steps shows it; if the data ends training,
// the master decides.
static bool is_job_over(const bel_member_program *program)
{
    int64_t *steps = NULL, last = program->train->max_steps;
    size_t count = 0;
    const char *model_dir = program->estimator->config.model_dir;
    if (last <= 0 || program->master_over != NULL) return false;
    char *token = bel_path_join(model_dir, BEL_TOKEN_FILE);
    bool runs = bel_file_exists(token);
    bel_free(token);
    bel_status *status = runs ? NULL : bel_ckpt_list(model_dir, &steps, &count);
    bool over = status == NULL && count > 0 && steps[count - 1] >= last;
    bel_status_ignore(status); // joining reports the folder's error
    bel_free(steps);
    if (over)
        bel_log_write(BEL_LOG_INFO, "training in %s is over, at step %lld: nothing to do",
                      model_dir, (long long)last);
    return over;
}

bel_status *bel_member_run(const bel_task *task, const bel_member_program *program,
                           bel_result *out_result)
{
    if (task->memory > 0) bel_linux_shared_close_on_exec(task->memory);
    bool late = task->foreign || task->incarnation > 0; // a supervisor first starts all at once
    if (late && is_job_over(program)) {
        if (out_result != NULL)
            *out_result = (bel_result){.size = sizeof *out_result, .evaluation_step = -1};
        return NULL;
    }
    member m = {
        .master.backoff = {.least_ns = SECOND_NS / 50, .most_ns = SECOND_NS},
        .task = task,
        .program = program,
        .estimator = program->estimator,
        .bell = bel_doorbell_create(),
        .evaluator = {.step = -1,
                      .looked_step = -1,
                      .pace = {.begun_ns = bel_clock_ns()},
                      .results = bel_xcalloc((size_t)program->eval_count + 1, sizeof(bel_result))}};
    bel_status *status = member_run(&m);
    bel_result result = {.size = sizeof result, .evaluation_step = -1};
    if (m.worker.worker != NULL) {
        bel_str words = {0};
        result.global_step = bel_worker_doing(m.worker.worker, &words);
        bel_str_deinit(&words);
    }
    member_release(&m);
    if (status == NULL && out_result != NULL) *out_result = result;
    return status;
}
