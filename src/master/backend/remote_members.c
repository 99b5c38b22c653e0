// The master's messages to members, its handling of theirs, and members that come back. Messages of
// another generation are dropped in one place, take_message, except a request to stop and the end
// of a member that could not begin. Others may come twice, since members repeat messages that may
// be lost: each shard's snapshot, part of a checkpoint and answer to an admission counts once, and
// so does each worker's end.
//
// A request of the master is kept until it is answered, and repeated to a shard that comes back
// over another connection. A saved part is not requested again: it would be written once more while
// the checkpoint becomes visible.
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/str.h"
#include "master/backend/remote_inner.h"
#include "optim/settings.h"

// --- Requests ------------------------------------------------------------------------------------

static void send_to_shards(remote *r, const ProtobufCMessage *kind)
{
    for (int k = 0; k < r->backend.shard_count; k++)
        bel_remote_send_to_shard(r, k, kind);
}

// --- Beginning anew ------------------------------------------------------------------------------

// A setup and the data that it points to; free_setup frees those that are not borrowed.
typedef struct setup {
    Bel__Setup message;
    Bel__Schedule schedule;
    Bel__Segment segment;
    Bel__Counting counting;
    Bel__Variable *variables;
    Bel__Table *tables;
    Bel__Setting *settings;
    size_t setting_capacity;
    bel_str followed;
} setup;

// Describes the model to a shard: names, shapes, kinds; it runs no user code.
static void describe_variables(const bel_layout *layout, setup *s)
{
    size_t count = (size_t)layout->variable_count;
    s->variables = bel_xcalloc(count + 1, sizeof *s->variables);
    s->message.variables = bel_xcalloc(count + 1, sizeof *s->message.variables);
    for (size_t v = 0; v < count; v++) {
        bel_layout_variable *from = &layout->variables[v];
        Bel__Variable *to = s->message.variables[s->message.n_variables++] = &s->variables[v];
        bel__variable__init(to);
        to->name = from->name;
        to->kind = (int32_t)from->kind;
        to->dims = from->shape.dims;
        to->n_dims = (size_t)from->shape.rank;
        to->kept_by = from->kept_by;
    }
}

static void describe_tables(const bel_layout *layout, setup *s)
{
    size_t count = (size_t)layout->table_count;
    s->tables = bel_xcalloc(count + 1, sizeof *s->tables);
    s->message.tables = bel_xcalloc(count + 1, sizeof *s->message.tables);
    for (size_t t = 0; t < count; t++) {
        bel_layout_table *from = &layout->tables[t];
        Bel__Table *to = s->message.tables[s->message.n_tables++] = &s->tables[t];
        bel__table__init(to);
        to->name = from->name;
        to->width = from->width;
        to->start = (int32_t)from->initializer.kind;
        to->start_value = from->initializer.value;
        to->ids = from->ids;
        to->kept_by = from->kept_by;
    }
}

// Adds a setting of the optimizer.
static void add_setting(void *context, const char *name, const char *text)
{
    setup *s = context;
    size_t count = s->message.n_optimizer++;
    s->settings = bel_xgrow(s->settings, &s->setting_capacity, count + 1, sizeof *s->settings);
    Bel__Setting *setting = &s->settings[count];
    bel__setting__init(setting);
    setting->name = bel_xstrdup(name);
    setting->value = bel_xstrdup(text);
}

// The list grows while it is filled, so pointers to its entries are taken afterwards.
static void describe_optimizers(const bel_shard_settings *settings, setup *s)
{
    for (int f = 0; f < settings->function_count; f++) {
        if (f > 0) add_setting(s, BEL_FUNCTION_SETTING, "");
        bel_optimizers_list(&settings->optimizers[f], add_setting, s);
    }
    size_t count = s->message.n_optimizer;
    s->message.optimizer = bel_xcalloc(count + 1, sizeof *s->message.optimizer);
    for (size_t i = 0; i < count; i++) // the list no longer moves
        s->message.optimizer[i] = &s->settings[i];
}

// Describes the settings of which every member knows some.
static void describe_settings(const bel_shard_settings *from, int64_t block_end, setup *s)
{
    bel__counting__init(&s->counting);
    s->counting.kind = (int32_t)from->counting.kind;
    s->counting.workers = from->counting.workers;
    s->counting.max_lead = from->counting.max_lead;
    s->counting.local_steps = from->counting.local_steps;
    s->counting.block_end = block_end;
    s->message.counting = &s->counting;
    s->message.seed = from->seed;
    s->message.series = from->stats.series;
    s->message.returned = from->stats.returned;
    s->message.sums = from->sums;
    s->message.rounding = (int32_t)from->rounding;
    s->message.check_steps = from->check_steps;
    s->message.table_admit_after = from->table_admit_after;
    s->message.table_expire_after = from->table_expire_after;
    s->message.table_expire_below = from->table_expire_below;
    s->message.tracks_changes = from->tracks_changes;
}

// Describes when shard 0 saves and stops, and the blocks of the input that the generation reads.
static void describe_schedule(const remote *r, setup *s)
{
    const remote_plan *plan = &r->plan;
    const bel_control_config *from = &plan->schedule;
    bel__schedule__init(&s->schedule);
    s->schedule.first_step = from->first_step;
    s->schedule.last_step = from->last_step;
    s->schedule.save_steps = from->save_steps;
    s->schedule.save_secs = from->save_secs;
    s->schedule.eval_steps = from->eval_steps;
    s->schedule.series_steps = from->series_steps;
    s->schedule.hook_steps = from->hook_steps;
    s->schedule.asks = from->asks;
    s->schedule.saved_secs = 1e-9 * (double)(bel_clock_ns() - r->snapshots.saved_ns);
    s->schedule.snapshot = from->snapshot;
    s->schedule.snapshot_save = from->snapshot_save;
    s->schedule.snapshot_eval = from->snapshot_eval;
    s->schedule.save_at = from->save_at;
    s->message.schedule = &s->schedule;
    bel__segment__init(&s->segment);
    s->segment.first_step = plan->segment.first_step;
    s->segment.first_block = plan->segment.first_block;
    s->segment.replica_count = plan->segment.replica_count;
    s->segment.origin = plan->segment.origin;
    s->message.segment = &s->segment;
}

// Tells a worker which rows of a followed file were learned, so that it learns no others. It
// refuses to begin without that. An error that may pass is tried again for a short time, as
// members wait.
static void describe_followed(const remote *r, int64_t step, setup *s)
{
    const int64_t patience_ns = INT64_C(3000000000);
    const struct timespec nap = {.tv_nsec = 50000000};
    const bel_input *input = r->config.trainable->input;
    if (input == NULL || bel_input_follow_secs(input) == 0) return;
    const int64_t deadline = bel_clock_awake_ns() + patience_ns;
    const int64_t block = bel_input_segment_block(&r->plan.segment, step, 0);
    bel_status *status = bel_input_mark(input, block, &s->followed);
    while (status != NULL && !bel_input_error_stays(bel_status_code(status)) &&
           bel_clock_awake_ns() < deadline) {
        bel_status_ignore(status); // tried again
        (void)nanosleep(&nap, NULL);
        status = bel_input_mark(input, block, &s->followed);
    }
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "a worker gets no mark of the rows that were learned: %s",
                      bel_status_message(status));
    bel_status_ignore(status); // logged; the worker refuses to begin
    if (s->followed.length > 0) s->message.followed = s->followed.text;
}

// Describes replicas and incarnations by worker, up to the last with replicas; addresses by shard.
static void describe_members(const remote *r, Bel__Setup *message)
{
    const bel_members *members = r->config.members;
    size_t workers = (size_t)bel_remote_assigned(r), shards = (size_t)r->backend.shard_count;
    message->replicas = bel_xcalloc(workers + 1, sizeof *message->replicas);
    message->incarnations = bel_xcalloc(workers + 1, sizeof *message->incarnations);
    for (size_t w = 0; w < workers; w++) {
        message->replicas[w] = r->assignment.replicas[w];
        int member = bel_remote_worker(r, (int)w);
        message->incarnations[w] = bel_members_get(members, member)->incarnation;
    }
    message->n_replicas = message->n_incarnations = workers;
    message->shards = bel_xcalloc(shards, sizeof *message->shards);
    for (size_t k = 0; k < shards; k++)
        message->shards[k] = bel_members_get(members, r->shard_members[k])->address;
    message->n_shards = shards;
}

static void free_setup(setup *s)
{
    for (size_t i = 0; i < s->message.n_optimizer; i++) {
        bel_free(s->settings[i].name);
        bel_free(s->settings[i].value);
    }
    bel_free(s->message.variables);
    bel_free(s->message.tables);
    bel_free(s->message.optimizer);
    bel_free(s->message.replicas);
    bel_free(s->message.incarnations);
    bel_free(s->message.shards);
    bel_free(s->variables);
    bel_free(s->tables);
    bel_free(s->settings);
    bel_str_deinit(&s->followed);
}

// Sends a member its setup, to begin anew; a worker also `step`, and an evaluator the present
// request. Only a member with a shard gets
// the model's variables, whose list may be long. With local steps workers update, too, and need the
// rates as the master has scaled them.
void bel_remote_send_setup(remote *r, int member, int64_t step)
{
    const bel_layout *layout = r->config.trainable->layout;
    bel_shard_settings settings = bel_trainable_shard_settings(r->config.trainable);
    const bel_member_view *view = bel_members_get(r->config.members, member);
    if (view->role == BEL_ROLE_WORKER) r->progress.sets_up = true;
    setup s = {0};
    bel__setup__init(&s.message);
    s.message.checkpoint = r->plan.checkpoint;
    s.message.step = step;
    s.message.clock_lead = view->clock_lead_ns;
    bool has_shard = bel_remote_shard_of(r, member) >= 0;
    s.message.held = r->backend.held && has_shard;
    s.message.fetches =
        view->blind && !s.message.held && (has_shard || view->role == BEL_ROLE_EVALUATOR);
    s.message.mirrors = has_shard ? r->mirrors : 0;
    s.message.stateless = r->plan.stateless;
    s.message.n_stateless = has_shard ? r->plan.stateless_count : 0;
    s.message.mirrorless = r->plan.mirrorless;
    s.message.n_mirrorless = has_shard ? r->plan.mirrorless_count : 0;
    describe_schedule(r, &s);
    if (view->role == BEL_ROLE_WORKER) describe_followed(r, step, &s);
    describe_members(r, &s.message);
    bel_remote_describe_relays(r, member, &s.message);
    describe_settings(&settings, r->plan.block_end, &s);
    s.message.exchanges = layout->exchanges;
    if (has_shard) {
        describe_variables(layout, &s);
        describe_tables(layout, &s);
    }
    if (has_shard || bel_counting_is_local(&settings.counting)) describe_optimizers(&settings, &s);
    bel_members_set_generation(r->config.members, member, r->backend.generation);
    s.message.clock = bel_clock_ns();
    bel_members_send(r->config.members, member, r->backend.generation, &s.message.base);
    free_setup(&s);
    if (view->role == BEL_ROLE_EVALUATOR) bel_remote_send_evaluate(r); // the setup ended its work
}

// --- Taking messages -----------------------------------------------------------------------------

static void take_staleness(remote *r, const Bel__Progress *m)
{
    if (m->n_lateness != BEL_STALENESS_BINS) return;
    bel_shard_staleness *staleness = &r->backend.staleness;
    memcpy(staleness->counted, m->lateness, sizeof staleness->counted);
    staleness->dropped = m->dropped;
}

// Completes a snapshot when every shard has it, and the points up to its version have come: they
// are saved with it.
static void see_snapshot(remote *r)
{
    int64_t step = r->snapshots.announced;
    if (step < 0 || r->state.has_snapshot || r->points.step < step) return;
    for (int k = 0; k < r->backend.shard_count; k++)
        if (r->snapshots.newest[k] != step) return;
    r->state.has_snapshot = true;
    r->state.snapshot = step;
    if (r->values.step != step) r->values.step = -1;
}

// Notifies the program's loop of its steps: snapshots before later versions.
static void tell_loop(const bel_control_config *to, const Bel__Progress *m)
{
    size_t stats = (size_t)bel_stats_size(to->stats);
    for (size_t i = 0; i < m->n_points; i++) {
        const Bel__Point *p = m->points[i];
        if (p->snapshot)
            to->made(to->made_context, &(bel_control_made){.version = p->step, .snapshot = true});
    }
    if (m->made != NULL && m->made->n_stats == stats) {
        to->made(to->made_context, &(bel_control_made){.version = m->made->version,
                                                       .wanted = true,
                                                       .stats = m->made->stats});
    }
    to->made(to->made_context, &(bel_control_made){.version = m->step});
}

// Adds the points of a progress message. A full message is followed by another one.
static void add_points(remote_points *points, const Bel__Progress *m)
{
    size_t count = points->count + m->n_points;
    points->items = bel_xgrow(points->items, &points->capacity, count, sizeof *points->items);
    for (size_t i = 0; i < m->n_points; i++) {
        const Bel__Point *p = m->points[i];
        bel_control_point *point = &points->items[points->count++];
        *point = (bel_control_point){.step = p->step,
                                     .loss = p->loss,
                                     .examples_per_second = p->examples_per_second,
                                     .steps_per_second = p->steps_per_second,
                                     .for_hooks_alone = p->for_hooks_alone,
                                     .snapshot = p->snapshot};
        for (size_t k = 0; k < p->n_series && k < 2 * BEL_MAX_SERIES; k++)
            point->series[k] = p->series[k];
    }
    if (m->n_points < BEL_PROGRESS_POINTS) points->step = m->step;
}

// Notes when steps are made, for the stall clock and its patience.
static void note_step(remote_progress *progress)
{
    int64_t now = bel_clock_awake_ns(), took = now - progress->last_ns;
    if (took > progress->longest_step_ns) progress->longest_step_ns = took;
    progress->last_ns = now;
    progress->sets_up = false;
}

// Takes shard 0's progress. The longest step is measured between two of these messages.
static void take_progress(remote *r, const Bel__Progress *m)
{
    if (m->step != r->state.step) note_step(&r->progress);
    r->state.step = m->step;
    r->progress.heard = true;
    bel_members_note_step(r->config.members, m->step);
    r->state.loss = m->loss;
    if (r->progress.examples_before < 0) r->progress.examples_before = m->examples;
    r->state.examples = m->examples - r->progress.examples_before;
    if (r->rescue.stage == BEL_RESCUE_DONE) return; // the reason of its end is known
    r->backend.interrupted = m->interrupted;
    r->backend.paused = m->paused;
    r->over = m->over;
    take_staleness(r, m);
    add_points(&r->points, m);
    if (r->plan.schedule.asks) tell_loop(&r->plan.schedule, m);
    see_snapshot(r);
}

// Takes a snapshot; shard 0 sends its purpose.
static void take_snapshot(remote *r, int member, const Bel__Snapshot *m)
{
    int shard = bel_remote_shard_of(r, member);
    if (m->whole) {
        bel_remote_take_whole(r, shard, m);
        return;
    }
    if (m->step < r->snapshots.newest[shard]) return; // a repeated old one
    r->snapshots.newest[shard] = m->step;
    if (shard == 0 && m->step == r->snapshots.released) { // the release was lost
        bel_remote_release(r);
        return;
    }
    if (shard == 0) {
        r->backend.leased = m->next_block;
        r->state.save = m->save;
        r->state.eval = m->eval;
        if (r->snapshots.announced != m->step) r->snapshots.announced_ns = bel_clock_ns();
        r->snapshots.announced = m->step;
    }
    see_snapshot(r);
}

// Takes a part of the current checkpoint; one of an earlier checkpoint is too late.
static void take_saved(remote *r, int member, const Bel__Saved *m)
{
    int shard = bel_remote_shard_of(r, member);
    bool awaited = r->asked.what == BEL_ASKED_SAVE && m->step == r->asked.step;
    if (!awaited || r->saving.parts == NULL || r->saving.parts[shard] != NULL) return;
    if (m->code != BEL_OK) {
        bel_remote_fail(r, BEL_ERR((bel_code)m->code, "shard %d: %s", shard, m->why));
        return;
    }
    bel_status *status = bel_ckpt_shard_unpack(m->part.data, m->part.len, &r->saving.parts[shard]);
    if (status != NULL) {
        bel_remote_fail(r, status);
    } else if (r->saving.apart[shard]) {
        bel_remote_pull(r, shard);
    } else {
        r->saving.saved++;
    }
}

// Takes a worker's end, which counts once, even if repeated.
static void take_ended(remote *r, int member, const Bel__Ended *m)
{
    const bel_member_view *sender = bel_members_get(r->config.members, member);
    if (m->code != BEL_OK) {
        if (m->damage[0] != '\0' && r->backend.damage == NULL)
            r->backend.damage = bel_xstrdup(m->damage);
        bel_members_note_failure(r->config.members, member);
        r->rescue.lacks_worker = r->rescue.lacks_worker || sender->role == BEL_ROLE_WORKER;
        bel_remote_fail(r, BEL_ERR((bel_code)m->code, "%s", m->text));
        return;
    }
    if (sender->role != BEL_ROLE_WORKER || r->ended.workers[sender->index]) return;
    r->ended.workers[sender->index] = true;
    r->ended.count++;
    r->ended.step = m->step;
}

// --- Members that come back ----------------------------------------------------------------------

// Admits a worker. Every shard lets the newcomer replace its predecessor and sends its position.
// The setup follows when all have answered (take_admitted). With relays a new generation begins.
void bel_remote_admit(remote *r, int worker)
{
    if (r->backend.relay_levels > 0) {
        r->backend.lost = true;
        return;
    }
    int member = bel_remote_worker(r, worker);
    admission *a = &r->admissions[worker];
    a->under_way = true;
    a->answers = 0;
    a->step = INT64_MAX;
    memset(a->answered, 0, (size_t)r->backend.shard_count * sizeof *a->answered);
    Bel__Admit admit;
    bel__admit__init(&admit);
    admit.worker = worker;
    admit.incarnation = bel_members_get(r->config.members, member)->incarnation;
    send_to_shards(r, &admit.base);
}

// Takes an answer. The newcomer begins with the lowest step of all shards; if all workers count, a
// shard that has finished that step still has its version.
static void take_admitted(remote *r, int member, const Bel__Admitted *m)
{
    int shard = bel_remote_shard_of(r, member);
    if (m->worker < 0 || m->worker >= r->seats) return;
    admission *a = &r->admissions[m->worker];
    int worker = bel_remote_worker(r, m->worker);
    bool current = m->incarnation == bel_members_get(r->config.members, worker)->incarnation;
    if (!a->under_way || !current || a->answered[shard]) return;
    a->answered[shard] = true;
    if (m->step < a->step) a->step = m->step;
    if (shard == 0) a->counted = m->counted_step;
    if (++a->answers < r->backend.shard_count) return;
    a->under_way = false;
    // Its report belongs to an update that some shard cannot finish without it.
    if (bel_counting_has_ledger(&r->config.trainable->counting) && a->step <= a->counted) {
        bel_log_write(BEL_LOG_INFO, "worker %d was lost in the middle of step %lld", m->worker,
                      (long long)a->counted);
        r->backend.lost = true;
        return;
    }
    bel_log_write(BEL_LOG_INFO, "worker %d is back and continues with step %lld", m->worker,
                  (long long)a->step);
    bel_remote_send_setup(r, worker, a->step);
}

// Handles a member that has come back. A shard without the running state means that state is lost.
static void take_join(remote *r, int member)
{
    const bel_member_view *m = bel_members_get(r->config.members, member);
    int shard = bel_remote_shard_of(r, member);
    bool holds = m->generation == r->backend.generation;
    if (bel_remote_is_unused(r, member)) {
        bel_members_retire(r->config.members, member);
        return;
    }
    if (!r->started && !r->sent.finish) return; // the next start checks all members
    if (m->role == BEL_ROLE_EVALUATOR) {
        bel_remote_send_setup(r, member, 0);
    } else if (r->sent.finish) {
        bel_members_set_vacant(r->config.members, member, true); // only the evaluator is awaited
    } else if (bel_remote_joins_whole(r, member)) {
        return;
    } else if (shard >= 0 && !holds) {
        r->backend.lost = true;
    } else if (shard >= 0) {
        bel_remote_ask_again(r, shard);
        for (int w = 0; w < r->seats; w++)
            if (r->admissions[w].under_way) bel_remote_admit(r, w);
    } else if (r->assignment.replicas[m->index] == 0) {
        bel_remote_take_idle(r, m->index);
    } else if (bel_remote_lacks_place(r, m->index)) {
        bel_log_write(BEL_LOG_WARN,
                      "worker %d shares no memory with others of its host any more: workers are "
                      "grouped anew; hint: --lane grpc makes no such groups",
                      m->index);
        r->backend.lost = true;
    } else if (!holds) {
        bel_remote_admit(r, m->index);
    }
}

// Whether a member of that role may send this kind (docs/protocol.md, "from"). Any member may send
// a stop, if its process was told to end the job, and an end, as any may fail.
static bool may_say(const remote *r, int member, Bel__Message__KindCase kind)
{
    bel_role role = bel_members_get(r->config.members, member)->role;
    int shard = bel_remote_shard_of(r, member);
    switch (kind) {
    case BEL__MESSAGE__KIND_PROGRESS: return shard == 0;
    case BEL__MESSAGE__KIND_SNAPSHOT:
    case BEL__MESSAGE__KIND_SAVED:
    case BEL__MESSAGE__KIND_HELD:
    case BEL__MESSAGE__KIND_ADMITTED:
    case BEL__MESSAGE__KIND_PIECE: return shard >= 0;
    case BEL__MESSAGE__KIND_FETCH: return shard >= 0 || role == BEL_ROLE_EVALUATOR;
    case BEL__MESSAGE__KIND_BATCH: return role == BEL_ROLE_WORKER;
    case BEL__MESSAGE__KIND_EVALUATED: return role == BEL_ROLE_EVALUATOR;
    case BEL__MESSAGE__KIND_ENDED:
    case BEL__MESSAGE__KIND_STOP: return true;
    default: return false;
    }
}

static bel_status *remote_refuse(const remote *r, int member, const Bel__Message *m)
{
    const bel_member_view *sender = bel_members_get(r->config.members, member);
    char name[32];
    return BEL_ERR(BEL_INTERNAL, "%s sent the master a message of kind %s, which it may not send",
                   bel_role_text(sender->role, sender->index, name), bel_message_kind_name(m));
}

// Takes a message. A stop holds in any generation; an end without one comes from a member that
// could not begin.
static void take_message(remote *r, int member, const Bel__Message *m)
{
    bool of_now = m->generation == r->backend.generation;
    bool stops = m->kind_case == BEL__MESSAGE__KIND_STOP;
    bool asks = m->kind_case == BEL__MESSAGE__KIND_FETCH; // before it holds a state
    bool early = m->kind_case == BEL__MESSAGE__KIND_ENDED && m->generation == 0; // could not begin
    if (!of_now && !early && !stops && !asks) return; // its state is void
    if (!may_say(r, member, m->kind_case)) {
        bel_remote_fail(r, remote_refuse(r, member, m));
        return;
    }
    switch (m->kind_case) {
    case BEL__MESSAGE__KIND_PROGRESS: take_progress(r, m->progress); break;
    case BEL__MESSAGE__KIND_SNAPSHOT: take_snapshot(r, member, m->snapshot); break;
    case BEL__MESSAGE__KIND_SAVED: take_saved(r, member, m->saved); break;
    case BEL__MESSAGE__KIND_HELD: bel_remote_take_held(r, member, m->held); break;
    case BEL__MESSAGE__KIND_ENDED: take_ended(r, member, m->ended); break;
    case BEL__MESSAGE__KIND_FETCH: bel_remote_answer_fetch(r, member, m->fetch); break;
    case BEL__MESSAGE__KIND_PIECE: bel_remote_take_piece(r, member, m->piece); break;
    case BEL__MESSAGE__KIND_BATCH: bel_remote_take_batch(r, member, m->batch); break;
    case BEL__MESSAGE__KIND_EVALUATED: bel_remote_hear_evaluated(r, m->evaluated); break;
    case BEL__MESSAGE__KIND_STOP: bel_remote_ask_to_stop(r, m->stop->why); break;
    case BEL__MESSAGE__KIND_ADMITTED: take_admitted(r, member, m->admitted); break;
    default: break; // no member may send it
    }
}

// `message` is NULL if the member has joined anew.
static void take_news(remote *r, int member, const Bel__Message *message)
{
    if (bel_members_get(r->config.members, member)->vacant) return; // it was retired
    if (message == NULL) {
        take_join(r, member);
    } else {
        take_message(r, member, message);
    }
}

// Takes messages for up to `secs`, or at least one; detects lost members. Feeds the watchdog, as
// every wait of the master comes here.
void bel_remote_pump(remote *r, double secs)
{
    bel_watchdog_feed(r->config.watchdog, false);
    int member;
    Bel__Message *message;
    bool got = bel_members_take(r->config.members, secs, &member, &message);
    while (got) {
        take_news(r, member, message);
        bel_message_destroy(message);
        got = bel_members_take(r->config.members, 0, &member, &message);
    }
    if (r->started) bel_remote_send_asks(r);
    if (!bel_task_recovers(r->config.task)) bel_members_give_up_recovery(r->config.members);
    bel_status *lost = bel_members_check(r->config.members);
    if (lost != NULL) {
        r->rescue.lacks_worker = r->rescue.lacks_worker || bel_remote_is_away(r);
        bel_remote_fail(r, lost);
    }
    r->backend.reached = bel_members_reached(r->config.members);
    if (r->rescue.stage != BEL_RESCUE_NONE) return;
    bel_remote_check_leaving(r);
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

// Waits for an answer of the shards to a request made at begun_ns, under the stall clock.
void bel_remote_await_answer(remote *r, double secs, int64_t begun_ns, const char *what)
{
    bel_remote_pump(r, secs);
    int64_t since_ns = r->saving.piece_ns > begun_ns ? r->saving.piece_ns : begun_ns;
    double waited = (double)(bel_clock_awake_ns() - since_ns) * 1e-9;
    if (waited >= r->config.trainable->estimator->config.stall_timeout)
        bel_remote_stalled(r, waited, what);
}
