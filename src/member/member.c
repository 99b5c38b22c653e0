// Main loop of a member: messages, clocks, the end. Training itself runs on the threads of
// member_worker.c and member_shard.c; member_join.c joins. They ring the main thread's bell. The
// main thread also polls: ten times a second with a shard, whose progress it reports, else twice.
// The loss of a master does not end training: it is called again and receives all reports that it
// may have missed.
#include "member/member.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_shared.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/trace.h"
#include "checkpoint/checkpoint.h"
#include "member/member_inner.h"

enum { SHARD_NAP_NS = 100000000, NAP_NS = 500000000, SECOND_NS = 1000000000 };

// --- Files ---------------------------------------------------------------------------------------

// An evaluator reports files that do not come, or cannot be written, and continues: the master may
// ask for others.
static bel_status *end_fetching(member *m, int64_t step, bel_status *status)
{
    if (status == NULL) return NULL;
    bel_member_files_drop(m);
    return bel_member_evaluated(m, step, status);
}

static bel_status *take_file_of_evaluation(member *m, const Bel__Piece *piece)
{
    int64_t step = bel_member_files_awaited(m);
    bel_status *status = bel_member_files_take(m, piece);
    const Bel__Message *message = bel_member_files_ready(m);
    if (status != NULL || message == NULL) return end_fetching(m, step, status);
    return bel_member_files_begun(m, bel_member_evaluate(m, message->evaluate));
}

static bel_status *take_piece(member *m, const Bel__Piece *piece)
{
    if (bel_member_is_evaluator(m)) return take_file_of_evaluation(m, piece);
    BEL_TRY(bel_member_files_take(m, piece));
    const Bel__Message *setup = bel_member_files_ready(m);
    if (setup == NULL) return NULL;
    return bel_member_files_begun(m, bel_member_start_parts(m, setup->generation, setup->setup));
}

// True for a message whose checkpoint is not visible here. Kept results need no files.
static bool needs_files(const member *m, const Bel__Message *message)
{
    if (!m->fetches) return false;
    if (!bel_member_is_evaluator(m)) return message->kind_case == BEL__MESSAGE__KIND_SETUP;
    return message->kind_case == BEL__MESSAGE__KIND_EVALUATE &&
           message->generation == m->generation && message->evaluate->step >= 0 &&
           message->evaluate->step != m->evaluator.newest.step;
}

// Fetches the checkpoint of such a message, which is handled when its files have arrived. A setup
// stops the work before.
static bel_status *fetch_and_begin(member *m, Bel__Message *message)
{
    m->master.answered = true;
    if (bel_member_is_evaluator(m)) {
        m->evaluator.asked = message->evaluate->step;
        return end_fetching(m, message->evaluate->step, bel_member_files_ask(m, message));
    }
    bel_member_stop_parts(m, m->estimator->config.stall_timeout);
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
        return bel_member_start_parts(m, message->generation, message->setup);
    if (message->kind_case == BEL__MESSAGE__KIND_PIECE) return take_piece(m, message->piece);
    if (message->kind_case == BEL__MESSAGE__KIND_END) {
        const Bel__End *end = message->end;
        m->end.over = true;
        m->end.leaves = end->leaves;
        if (end->code != BEL_OK)
            m->end.status = BEL_ERR(BEL_CANCELLED, "the job ended: %s", end->text);
    } else if (message->kind_case == BEL__MESSAGE__KIND_EVALUATE) {
        if (message->generation != m->generation) return NULL;
        return bel_member_is_evaluator(m) ? bel_member_evaluate(m, message->evaluate)
                                          : bel_member_help_take(m, message->evaluate);
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
    if (m->told.leave_ns == 0) m->told.leave_ns = bel_clock_awake_ns();
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
            if (needs_files(m, message)) {
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
        BEL_TRY(bel_member_worker_check_place(m));
        if (m->end.over) break;
        bel_member_join_with_new_token(m);
        bel_member_worker_check(m);
        bel_member_shard_progress(m);
        bel_member_help_send(m);
        bel_member_send_status(m, false);
        pass_requests_on(m);
        int64_t nap = m->shard.here ? SHARD_NAP_NS : NAP_NS;
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
    if (m->worker.here || m->shard.here) BEL_TRY(bel_member_open_hub(m, bel_member_find_shm));
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
    m->shard.shares_memory = bel_member_is_on_one_host(m);
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
    bel_member_stop_parts(m, PATIENCE_SECS);
    bel_member_help_end(m, PATIENCE_SECS);
    if (m->traces) bel_trace_stop(); // before the master receives this process's end
    bel_mailbox_close(m->master.mailbox, LINGER_MS);
    bel_member_close_hub(m);
    bel_endpoint_destroy(m->endpoint);
    bel_member_files_free(m);
    bel_member_shard_free(m); // first: a worker's model is also the shard's layout
    bel_member_free_memory(m);
    bel_member_worker_free(m);
    bel_layout_destroy_joined(m->relays.joined);
    bel_member_relays_forget(m);
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
    member m = {.master.backoff = {.least_ns = SECOND_NS / 50, .most_ns = SECOND_NS},
                .task = task,
                .program = program,
                .estimator = program->estimator,
                .bell = bel_doorbell_create(),
                .evaluator = {.asked = -1, .newest = {.step = -1}}};
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
