// What the master says to members, what their messages mean, and members that come back. What
// belongs to another generation is dropped in one place, take_message, save a request to stop
// and the word of a member that could not begin. The rest may come twice, since members repeat
// what may not have been heard: each shard's snapshot, part of a checkpoint and answer to an
// admission counts once, and so does each worker's end.
//
// What the master has asked for is kept until it is answered, and asked again of a shard that
// comes back over another connection. A part that is saved is not asked for again: it would be
// written once more while the checkpoint becomes visible.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "master/remote_inner.h"

// --- Asking ------------------------------------------------------------------------------------

static void send_to_shards(remote *r, const bel_message *message)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        bel_remote_send_to_shard(r, k, message);
}

static int shard_of(const remote *r, int member)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        if (r->shard_members[k] == member) return k;
    return -1;
}

void bel_remote_fail(remote *r, bel_status *status)
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
    int32_t *replicas;
    uint32_t *incarnations;
    bel_message_variable *variables;
    bel_message_table *tables;
} setup;

// What a shard must know of the model: names, shapes, kinds; it runs no user code.
static void describe_model(const remote *r, setup *s)
{
    const bel_layout *layout = r->config.trainable->layout;
    size_t count = (size_t)layout->variable_count;
    s->variables = bel_xcalloc(count, sizeof *s->variables);
    for (size_t v = 0; v < count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        s->variables[v] =
            (bel_message_variable){variable->name, (int32_t)variable->kind, variable->shape};
    }
    s->message.variables = s->variables;
    s->message.variable_count = count;
    s->tables = bel_xcalloc((size_t)layout->table_count, sizeof *s->tables);
    for (int t = 0; t < layout->table_count; t++) {
        const bel_layout_table *table = &layout->tables[t];
        s->tables[t] = (bel_message_table){.name = table->name,
                                           .width = table->width,
                                           .start = (int32_t)table->initializer.kind,
                                           .start_value = table->initializer.value,
                                           .ids = table->ids};
    }
    s->message.tables = s->tables;
    s->message.table_count = (size_t)layout->table_count;
    s->message.optimizer = r->config.trainable->built->spec.optimizer;
    s->message.seed = r->config.trainable->estimator->config.seed;
}

static bel_message_schedule describe_schedule(const remote *r)
{
    const bel_control_config *schedule = &r->schedule;
    const bel_input_segment *segment = &r->segment;
    const bel_counting *counting = &r->config.trainable->counting;
    return (bel_message_schedule){.first_step = schedule->first_step,
                                  .last_step = schedule->last_step,
                                  .save_steps = schedule->save_steps,
                                  .save_secs = schedule->save_secs,
                                  .eval_steps = schedule->eval_steps,
                                  .series_steps = schedule->series_steps,
                                  .segment_first_step = segment->first_step,
                                  .segment_first_block = segment->first_block,
                                  .segment_replica_count = segment->replica_count,
                                  .counting_workers = counting->workers,
                                  .takes_stale = counting->takes_stale,
                                  .max_lead = counting->max_lead,
                                  .block_end = r->block_end};
}

static void describe_members(const remote *r, setup *s)
{
    const bel_members *members = r->config.members;
    size_t workers = (size_t)bel_remote_assigned(r);
    s->replicas = bel_xcalloc(workers, sizeof *s->replicas);
    s->incarnations = bel_xcalloc(workers, sizeof *s->incarnations);
    for (size_t w = 0; w < workers; w++) {
        s->replicas[w] = r->replicas[w];
        int member = bel_remote_worker(r, (int)w);
        s->incarnations[w] = bel_members_get(members, member)->incarnation;
    }
    s->message.replicas = s->replicas;
    s->message.incarnations = s->incarnations;
    s->message.replica_count = s->message.incarnation_count = workers;
    s->addresses = bel_xcalloc((size_t)r->backend.shard_count, sizeof *s->addresses);
    for (int k = 0; k < r->backend.shard_count; k++)
        s->addresses[k] = bel_members_get(members, r->shard_members[k])->address;
    s->message.addresses = s->addresses;
    s->message.address_count = (size_t)r->backend.shard_count;
}

// Tells a member to begin anew; a worker with `step`.
void bel_remote_send_setup(remote *r, int member, int64_t step)
{
    if (bel_members_get(r->config.members, member)->role == BEL_ROLE_WORKER) r->sets_up = true;
    setup s = {
        .message = {.kind = BEL_MESSAGE_SETUP,
                    .generation = r->backend.generation,
                    .step = step,
                    .folder = r->checkpoint,
                    .schedule = describe_schedule(r),
                    .clock_lead_ns = bel_members_get(r->config.members, member)->clock_lead_ns}};
    describe_members(r, &s);
    describe_model(r, &s);
    bel_members_set_generation(r->config.members, member, r->backend.generation);
    s.message.clock_ns = bel_clock_ns();
    bel_members_send(r->config.members, member, &s.message);
    bel_free(s.addresses);
    bel_free(s.replicas);
    bel_free(s.incarnations);
    bel_free(s.variables);
    bel_free(s.tables);
}

// --- Taking messages -----------------------------------------------------------------------------

static void take_staleness(remote *r, const bel_message *m)
{
    if (m->stale_count != BEL_STALENESS_BINS + 1) return;
    bel_shard_staleness *staleness = &r->backend.staleness;
    memcpy(staleness->counted, m->stale, sizeof staleness->counted);
    staleness->dropped = m->stale[BEL_STALENESS_BINS];
}

static void take_progress(remote *r, const bel_message *m)
{
    if (m->step != r->state.step) {
        int64_t now = bel_clock_ns(), took = now - r->progress_ns;
        if (took > r->longest_step_ns) r->longest_step_ns = took;
        r->progress_ns = now;
        r->sets_up = false;
    }
    r->state.step = m->step;
    r->heard_progress = true;
    bel_members_note_step(r->config.members, m->step);
    r->state.loss = m->loss;
    if (r->examples_before < 0) r->examples_before = m->examples;
    r->state.examples = m->examples - r->examples_before;
    r->backend.interrupted = m->interrupted;
    r->backend.paused = m->paused;
    r->over = m->over;
    take_staleness(r, m);
    size_t count = r->point_count + m->point_count;
    r->points = bel_xgrow(r->points, &r->point_capacity, count, sizeof *r->points);
    for (size_t i = 0; i < m->point_count; i++) {
        const bel_message_point *p = &m->points[i];
        r->points[r->point_count++] = (bel_control_point){p->step, p->loss, p->examples_per_second};
    }
}

// Shard 0 says what the snapshot is for; it is there when every shard has it.
static void take_snapshot(remote *r, int member, const bel_message *m)
{
    int shard = shard_of(r, member);
    if (shard < 0 || m->step < r->snapshots[shard]) return; // said once more, and over
    r->snapshots[shard] = m->step;
    if (shard == 0 && m->step == r->released) { // the word of that was lost
        bel_remote_send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_RELEASE});
        return;
    }
    if (shard == 0) {
        r->backend.leased = m->leased;
        r->state.save = m->save;
        r->state.eval = m->eval;
        r->saved_snapshot = m->step;
    }
    for (int k = 0; k < r->backend.shard_count; k++)
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
        bel_remote_fail(r, BEL_ERR((bel_code)m->code, "shard %d: %s", shard, m->text));
        return;
    }
    bel_status *status = bel_ckpt_shard_unpack(m->data, m->data_bytes, &r->saved[shard]);
    if (status != NULL) {
        bel_remote_fail(r, status);
    } else {
        r->saved_shards++;
    }
}

// Its settings are the mean loss of the batches, and then the metrics.
static void read_evaluation(const bel_message *m, bel_result *result)
{
    result->global_step = m->step;
    result->loss = m->loss;
    result->examples = m->examples;
    result->metric_count = 0;
    for (size_t i = 0; i < m->setting_count && i <= BEL_MAX_METRICS; i++) {
        double value = bel_strtod(m->settings[i].value, NULL);
        if (i == 0) {
            result->batch_mean_loss = value;
            continue;
        }
        int metric = result->metric_count++;
        bel_snprintf(result->metrics[metric].name, sizeof result->metrics[metric].name, "%s",
                     m->settings[i].name);
        result->metrics[metric].value = value;
    }
}

static void take_evaluation(remote *r, const bel_message *m)
{
    bel_result result = {0};
    read_evaluation(m, &result);
    if (m->index == 0) r->backend.evaluation = result;
    bool known = m->index >= 0 && m->index < r->config.eval_count;
    if (known && r->config.evals[m->index].out_result != NULL)
        *r->config.evals[m->index].out_result = result;
}

static void take_ended(remote *r, int member, const bel_message *m)
{
    const bel_member_view *sender = bel_members_get(r->config.members, member);
    if (m->code != BEL_OK) {
        bel_remote_fail(r, BEL_ERR((bel_code)m->code, "%s", m->text));
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

void bel_remote_ask_to_stop(remote *r, const char *why)
{
    if (r->stop_sent) return;
    r->stop_sent = true;
    bel_log_write(BEL_LOG_DEBUG, "asking for the end of training: %s", why);
    bel_remote_send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_STOP});
}

// --- Members that come back ----------------------------------------------------------------------

void bel_remote_admit(remote *r, int worker)
{
    int member = bel_remote_worker(r, worker);
    admission *a = &r->admissions[worker];
    a->under_way = true;
    a->answers = 0;
    a->step = INT64_MAX;
    memset(a->answered, 0, (size_t)r->backend.shard_count * sizeof *a->answered);
    uint32_t incarnation = bel_members_get(r->config.members, member)->incarnation;
    send_to_shards(
        r, &(bel_message){.kind = BEL_MESSAGE_ADMIT, .index = worker, .incarnation = incarnation});
}

static void take_admitted(remote *r, int member, const bel_message *m)
{
    int shard = shard_of(r, member);
    if (shard < 0 || m->index < 0 || m->index >= r->seats) return;
    admission *a = &r->admissions[m->index];
    int worker = bel_remote_worker(r, m->index);
    bool current = m->incarnation == bel_members_get(r->config.members, worker)->incarnation;
    if (!a->under_way || !current || a->answered[shard]) return;
    a->answered[shard] = true;
    if (m->step < a->step) a->step = m->step;
    if (shard == 0) a->counted = m->counted;
    if (++a->answers < r->backend.shard_count) return;
    a->under_way = false;
    // Its report is part of an update that some shard cannot finish without it.
    if (r->config.trainable->counting.workers > 0 && a->step <= a->counted) {
        bel_log_write(BEL_LOG_INFO, "worker %d was lost in the middle of step %lld", m->index,
                      (long long)a->counted);
        r->backend.lost = true;
        return;
    }
    bel_log_write(BEL_LOG_INFO, "worker %d is back and goes on with step %lld", m->index,
                  (long long)a->step);
    bel_remote_send_setup(r, worker, a->step);
}

// A shard's connection was broken: what it was asked for may be lost. One that has saved its part
// must not write it once more while the checkpoint becomes visible.
static void ask_again(remote *r, int shard)
{
    bool has_saved = r->saved != NULL && r->saved[shard] != NULL;
    if (r->asked.kind != 0 && !has_saved) bel_remote_send_to_shard(r, shard, &r->asked);
    if (shard == 0 && r->stop_sent) {
        bel_remote_send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_STOP});
    }
    if (shard == 0 && r->pause_sent) {
        bel_remote_send_to_shard(r, 0, &(bel_message){.kind = BEL_MESSAGE_PAUSE});
    }
    for (int w = 0; w < r->seats; w++)
        if (r->admissions[w].under_way) bel_remote_admit(r, w);
}

static void take_join(remote *r, int member)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    int shard = shard_of(r, member);
    bool holds = m->generation == r->backend.generation;
    if (!r->started) return; // the next start looks at everybody
    if (m->role == BEL_ROLE_EVALUATOR) {
        bel_remote_send_setup(r, member, 0);
        if (r->finishing)
            bel_members_send(r->config.members, member, &(bel_message){.kind = BEL_MESSAGE_FINISH});
    } else if (shard >= 0 && !holds) {
        r->backend.lost = true;
    } else if (shard >= 0) {
        ask_again(r, shard);
    } else if (r->replicas[m->index] == 0) {
        bel_remote_take_newcomer(r, m->index);
    } else if (!holds) {
        bel_remote_admit(r, m->index);
    }
}

static void take_message(remote *r, int member, const bel_message *m)
{
    if (bel_members_get(r->config.members, member)->vacant) return; // it was retired
    bool of_now = m->generation == r->backend.generation;
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
    case BEL_MESSAGE_EVALUATED: take_evaluation(r, m); break;
    case BEL_MESSAGE_STOP: bel_remote_ask_to_stop(r, m->text); break;
    case BEL_MESSAGE_ADMITTED: take_admitted(r, member, m); break;
    default:
        bel_remote_fail(r, BEL_ERR(BEL_INTERNAL, "a member sent the master a %s message",
                                   bel_message_kind_name(m->kind)));
    }
}

// Takes messages for up to `secs`, or one at least; notes who is lost.
void bel_remote_pump(remote *r, double secs)
{
    bel_watchdog_feed(r->config.watchdog, false);
    int member;
    bel_message message;
    bool got = bel_members_take(r->config.members, secs, &member, &message);
    while (got) {
        take_message(r, member, &message);
        bel_message_deinit(&message);
        got = bel_members_take(r->config.members, 0, &member, &message);
    }
    if (!bel_task_recovers(r->config.task)) bel_members_give_up_recovery(r->config.members);
    bel_status *lost = bel_members_check(r->config.members);
    if (lost != NULL) bel_remote_fail(r, lost);
    bel_remote_check_assignment(r);
}

void bel_remote_stalled(remote *r, double secs, const char *what)
{
    bel_str who = {0};
    bel_members_describe(r->config.members, &who);
    bel_remote_fail(r, BEL_ERR(BEL_DEADLINE_EXCEEDED, "no %s for %.1f s, at step %lld: %s", what,
                               secs, (long long)r->state.step, who.text));
    bel_str_deinit(&who);
}

// Goes on waiting for an answer of the shards that was asked for at begun_ns, under the stall
// clock.
void bel_remote_await_answer(remote *r, double secs, int64_t begun_ns, const char *what)
{
    bel_remote_pump(r, secs);
    double waited = (double)(bel_clock_ns() - begun_ns) * 1e-9;
    if (waited >= r->config.trainable->estimator->config.stall_timeout_secs)
        bel_remote_stalled(r, waited, what);
}

// Asks all shards for something; it is asked again of one whose connection breaks meanwhile.
void bel_remote_ask_shards(remote *r, bel_message_kind kind, int64_t step, char *folder)
{
    r->asked = (bel_message){.kind = kind, .step = step, .folder = folder, .index = r->reading};
    send_to_shards(r, &r->asked);
}

// Why the master cannot go on; NULL: it can.
bel_status *bel_remote_take_error(remote *r)
{
    bel_status *error = r->error;
    r->error = NULL;
    if (error != NULL || !r->backend.lost) return error;
    return BEL_ERR(BEL_UNAVAILABLE, "a member was lost");
}
