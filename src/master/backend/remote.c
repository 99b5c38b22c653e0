// The master's side of a cluster, as the backend of train.c: the start, snapshots, the end. All of
// it is on the master's thread. Every wait loops over bel_remote_pump, which takes messages and
// detects losses. A wait ends with the answer, with an error, with lost state, or by the stall
// clock; for the evaluator only silence counts.
//
// Two outcomes are separate: `error`, of which the first ends the job, and `backend.lost`, after
// which train.c goes back to the newest checkpoint. The end is accepted if all workers have
// finished, shard 0 has reported a step as late as theirs and why it is the last, and no announced
// snapshot is left.
#include "master/backend/remote_inner.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/requests.h"
#include "master/backend/journal.h"
#include "ps/layout/mirror_place.h"
#include "ps/layout/space.h"

// --- The start -----------------------------------------------------------------------------------

static bel_status *read_saved(bel_backend *backend, const bel_ckpt_reader *reader)
{
    remote *r = (remote *)backend;
    const bel_layout *layout = r->config.trainable->layout;
    bool averaged = r->config.trainable->built->optimizers->main.moving_average_decay > 0;
    bel_status *(*read)(const bel_ckpt_reader *, const char *, bel_dtype, const bel_shape *,
                        int64_t, int64_t, void *) =
        averaged ? bel_ckpt_read_average : bel_ckpt_read;
    for (int v = 0; v < layout->variable_count; v++) { // refused before a member starts
        const bel_layout_variable *variable = &layout->variables[v];
        BEL_TRY_CTX(read(reader, variable->name, BEL_DTYPE_F32, &variable->shape, 0,
                         variable->elements, backend->values + variable->offset),
                    "loading %s", bel_ckpt_folder(reader));
    }
    r->values.step = bel_ckpt_reader_info(reader)->step;
    return NULL;
}

// Loads a checkpoint. The master reads the values too, to detect a bad checkpoint before members
// do, and for an evaluation when nothing is left to train. Shards load the folder themselves, when
// they are told to begin.
static bel_status *remote_load(bel_backend *backend, const bel_ckpt_reader *reader)
{
    remote *r = (remote *)backend;
    bel_free(r->plan.checkpoint);
    r->plan.checkpoint = bel_xstrdup(bel_ckpt_folder(reader));
    r->plan.begins_anew = backend->lost || backend->paused;
    backend->lost = backend->paused = backend->held = r->over = r->started = false;
    BEL_TRY(read_saved(backend, reader));
    r->state.step = r->values.step;
    backend->reached = r->state.step;
    bel_members_begin_at(r->config.members, r->state.step);
    return NULL;
}

// Waits for all seats that are not vacant; settings are compared as members join.
static bel_status *gather_members(remote *r)
{
    const bel_trainable *t = r->config.trainable;
    const bel_join_graph graph = {.names = t->settings.names,
                                  .values = t->settings.values,
                                  .setting_count = t->settings.count,
                                  .collectives =
                                      t->collectives.length > 0 ? t->collectives.text : ""};
    bel_watchdog_feed(r->config.watchdog, true); // the join timeout applies here
    return bel_members_gather(r->config.members, &graph, bel_remote_ends_early, r);
}

// Whether all shards hold the state of one generation, so that no load is needed.
static bool have_state(const remote *r)
{
    uint32_t generation = bel_members_get(r->config.members, r->shard_members[0])->generation;
    for (int k = 1; k < r->backend.shard_count; k++) {
        const bel_member_view *member = bel_members_get(r->config.members, r->shard_members[k]);
        if (member->generation != generation) return false;
    }
    return generation != 0;
}

// Takes over the running job unchanged.
static void take_over(remote *r)
{
    const bel_member_view *first = bel_members_get(r->config.members, r->shard_members[0]);
    r->backend.generation = r->plan.since = first->generation;
    r->state.step = first->step;
    r->progress.examples_before = -1;
    bel_log_write(BEL_LOG_INFO, "taking over a job that runs, at step %lld",
                  (long long)first->step);
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member_view *m = bel_members_get(r->config.members, i);
        if (m->role == BEL_ROLE_EVALUATOR) bel_remote_send_setup(r, i, 0);
        if (m->role != BEL_ROLE_WORKER || m->generation == r->backend.generation) continue;
        if (r->assignment.replicas[m->index] > 0 && m->here) bel_remote_admit(r, m->index);
    }
}

// Begins a generation with a number that is unused in the journal and at any member. It is on disk
// before any member is sent it.
static bel_status *begin_generation(remote *r)
{
    const char *model_dir = r->config.trainable->estimator->config.model_dir;
    uint32_t newest;
    BEL_TRY(bel_journal_generation(model_dir, &newest));
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member_view *m = bel_members_get(r->config.members, i);
        if (m->generation > newest) newest = m->generation;
        if (m->held_generation > newest) newest = m->held_generation;
        if (m->mirror_generation > newest) newest = m->mirror_generation;
    }
    bel_remote_plan_transfers(r);
    r->backend.generation = newest + 1;
    if (!r->backend.held) r->plan.since = r->backend.generation;
    r->state.step = r->plan.schedule.first_step;
    const bel_journal_line line = {.event = "generation",
                                   .generation = r->backend.generation,
                                   .step = r->state.step,
                                   .text = r->backend.held ? "held" : r->plan.checkpoint,
                                   .fan_in = r->relays.fan_in,
                                   .hosts = r->relays.hosts,
                                   .host_count = r->relays.host_count,
                                   .replicas = r->assignment.replicas,
                                   .worker_count = bel_remote_assigned(r)};
    BEL_TRY(bel_journal_write(model_dir, &line));
    bel_fault_point("master_new_generation");
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member_view *m = bel_members_get(r->config.members, i);
        bool plays = m->role != BEL_ROLE_WORKER || r->assignment.replicas[m->index] > 0;
        if (plays) bel_remote_send_setup(r, i, r->plan.schedule.first_step);
    }
    return NULL;
}

// Forgets members' reports; they repeat them.
static void remote_forget(remote *r)
{
    bel_remote_close_lanes(r);
    bel_remote_forget_evaluated(r);
    r->backend.leaves = false;
    r->backend.lost = r->backend.paused = r->over = r->sent.finish = r->sent.pause = false;
    r->state = (bel_control_state){.loss = NAN, .step = r->state.step};
    r->ended.count = 0;
    r->progress.heard = false;
    for (int w = 0; w < r->seats; w++)
        r->ended.workers[w] = r->admissions[w].under_way = false;
    for (int k = 0; k < r->backend.shard_count; k++)
        r->snapshots.newest[k] = -1;
    r->snapshots.announced = r->snapshots.released = -1;
    r->snapshots.at_end = false;
    r->rescue.stage = BEL_RESCUE_NONE;
    r->backend.rescued = r->backend.spoiled = r->rescue.lacks_worker = false;
    r->rescue.away_ns = 0;
    r->asked.what = BEL_ASKED_NOTHING;
    r->points.count = 0;
    r->points.step = -1;
    r->progress.examples_before = 0;
}

// Ends the processes of parameter servers that hold no shard, and waits for none there.
static void end_unused(const remote *r)
{
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        if (!bel_remote_is_unused(r, i)) continue;
        bel_members_set_vacant(r->config.members, i, true);
        if (bel_members_get(r->config.members, i)->here) bel_members_retire(r->config.members, i);
    }
}

// Starts without knowledge. When all shards are present, it shows whether the job continues
// unchanged.
static bel_status *remote_gather(bel_backend *backend)
{
    remote *r = (remote *)backend;
    remote_forget(r);
    if (bel_leave_stood()) r->leaving.own_ns = -1;
    bel_fault_point("master_gather");
    // A new job waits once for all its processes, so that none finds it over. Later the master
    // waits for none that holds no shard.
    bool anew = !r->config.replaces && !r->assignment.gathered;
    bel_remote_expect(r);
    bel_remote_let_go(r);
    if (!anew) end_unused(r);
    BEL_TRY(gather_members(r));
    if (r->backend.held && !bel_remote_holds(r)) { // one was lost meanwhile
        r->backend.lost = true;
        return BEL_ERR(BEL_UNAVAILABLE, "a shard that was to continue has lost its state");
    }
    end_unused(r);
    bel_remote_settle_snapshot(r);
    // The program's loop has the memory of a checkpoint, not of later steps.
    bool loops = r->config.trainable->loop;
    r->backend.runs = !r->plan.begins_anew && !loops && have_state(r);
    bool other = bel_remote_assign(r, r->backend.runs); // which may find that it does not run
    if (r->backend.held && other) { // its shard would be made anew, without its state
        r->backend.lost = true;
        return BEL_ERR(
            BEL_UNAVAILABLE,
            "the workers, or the groups of those that share memory, are others than in the "
            "step to repeat; hint: --lane grpc makes no such groups");
    }
    return NULL;
}

// Frees the values. They are only for evaluations, each of which reads its snapshot's. Between
// evaluations they would be one more copy of the parameters on the master's host.
static void forget_values(remote *r)
{
    size_t bytes = (size_t)r->config.trainable->layout->size * sizeof(float);
    bel_remote_close_lanes(r); // nothing writes to the array any more
    bel_pages_forget(r->backend.values, bytes);
    r->values.step = -1;
}

// A snapshot of the generation that continues is current again when all shards have announced it.
// Its checkpoint stands for one that is owed.
static void continue_snapshot(remote *r)
{
    const remote_plan *plan = &r->plan;
    if (plan->snapshot == 0) return;
    r->plan.schedule.snapshot = plan->snapshot;
    r->plan.schedule.snapshot_save = r->state.save = plan->snapshot_save;
    r->plan.schedule.snapshot_eval = r->state.eval = plan->snapshot_eval;
    if (plan->snapshot_save) r->plan.schedule.save_at = 0;
    r->snapshots.announced = plan->snapshot;
    r->snapshots.announced_ns = bel_clock_ns();
}

// Starts training. A stop requested while no one could receive it is sent now.
static bel_status *remote_start(bel_backend *backend, const bel_control_config *schedule,
                                const bel_input_segment *segment, int64_t block_end)
{
    remote *r = (remote *)backend;
    r->plan.schedule = *schedule;
    continue_snapshot(r);
    r->plan.segment = *segment;
    r->plan.block_end = block_end;
    if (!r->backend.held) r->snapshots.saved_ns = bel_clock_ns();
    if (r->backend.runs) {
        take_over(r);
    } else {
        BEL_TRY(begin_generation(r));
    }
    r->started = true;
    r->sent.stop_at = false; // the schedule has it
    pthread_mutex_lock(&r->requested.mutex);
    r->requested.sent = r->requested.end = schedule->first_step;
    pthread_mutex_unlock(&r->requested.mutex);
    forget_values(r);
    r->progress.last_ns = bel_clock_awake_ns();
    if (r->sent.stop) bel_remote_send_stop(r);
    return NULL;
}

// --- While it runs -------------------------------------------------------------------------------

// Whether the next step takes longer than earlier ones: a member starts, joins or compiles.
static bool waits_for_members(const remote *r)
{
    bool waits = r->progress.sets_up || r->progress.longest_step_ns == 0;
    for (int w = 0; w < r->seats; w++)
        waits = waits || r->admissions[w].under_way;
    for (int i = 0; i < bel_members_count(r->config.members); i++) {
        const bel_member_view *m = bel_members_get(r->config.members, i);
        bool plays = m->role == BEL_ROLE_PS ||
                     (m->role == BEL_ROLE_WORKER && r->assignment.replicas[m->index] > 0 &&
                      !r->ended.workers[m->index]);
        waits = waits || (plays && !m->here && !m->vacant);
    }
    return waits;
}

// How long the master waits for the next step. After a request to stop it waits at most for an
// observed long step of this job, unless it waits for members.
static double patience_secs(const remote *r)
{
    enum { STOP_SECS = 30, STEPS = 3 };
    double most = r->config.trainable->estimator->config.stall_timeout;
    double by_steps = STEPS * 1e-9 * (double)r->progress.longest_step_ns;
    double stop = by_steps > STOP_SECS ? by_steps : STOP_SECS;
    return r->sent.stop && stop < most && !waits_for_members(r) ? stop : most;
}

// Before the first step of a generation, states may come from other processes (remote_hold.c). The
// time of that depends on the network, so what has come counts as progress.
static void hear_transfers(remote *r)
{
    double received = 0;
    size_t states = r->plan.stateless_count + r->plan.mirrorless_count;
    if (states == 0 || r->state.step > r->plan.schedule.first_step) return;
    for (int k = 0; k < r->backend.shard_count; k++) {
        const bel_member_view *m = bel_members_get(r->config.members, r->shard_members[k]);
        if (m->number_count > BEL_NUMBER_RECEIVED) received += m->numbers[BEL_NUMBER_RECEIVED];
    }
    if (received > r->progress.received) r->progress.last_ns = bel_clock_awake_ns();
    r->progress.received = received;
}

// Checks the stall clock, which progress, a release or a request to stop resets.
static void check_stall(remote *r)
{
    hear_transfers(r);
    if (r->sent.stop && r->sent.stop_ns == 0) r->sent.stop_ns = bel_clock_awake_ns();
    if (r->sent.stop_ns > r->progress.last_ns) r->progress.last_ns = r->sent.stop_ns;
    if (bel_remote_is_idle(r))
        r->progress.last_ns = bel_clock_awake_ns(); // the loop has a separate clock
    double secs = (double)(bel_clock_awake_ns() - r->progress.last_ns) * 1e-9;
    bool waits = !r->state.has_snapshot && !bel_remote_is_broken(r); // otherwise the master is busy
    if (waits && secs >= patience_secs(r)) bel_remote_stalled(r, secs, "step");
}

// Makes one round of the master's wait; train.c repeats it while `running`.
static void wait_for_news(bel_backend *backend, double secs, bel_control_state *out_state)
{
    remote *r = (remote *)backend;
    bel_control_state *state = &r->state;
    bel_remote_pump(r, state->has_snapshot ? 0 : secs);
    if (bel_stop_requested()) bel_remote_ask_to_stop(r, "a signal");
    check_stall(r);
    bel_remote_rescue(r);
    // Shard 0 has sent why the last step is the last.
    bool why = backend->interrupted || backend->paused || r->over ||
               state->step >= r->plan.schedule.last_step;
    bool ended = r->ended.count == backend->worker_count && r->progress.heard && why &&
                 state->step >= r->ended.step && r->points.step >= state->step;
    bool snapshot = r->snapshots.announced >= 0; // announced by shard 0: others will have it, too
    state->running =
        (!ended || snapshot) && !bel_remote_is_broken(r) && r->rescue.stage == BEL_RESCUE_NONE;
    *out_state = *state;
}

// Stops at a step. If shard 0 has already made it, it ends after it: then the schedule's last step
// is past.
static void stop_at(bel_backend *backend, int64_t step)
{
    remote *r = (remote *)backend;
    r->sent.stop_step = step;
    r->sent.stop_at = true;
    if (step < r->plan.schedule.last_step) r->plan.schedule.last_step = step;
    bel_remote_send_stop_at(r);
}

// Stores a request that the master's thread sends, as only it knows shard 0's connection.
static void remote_ask(bel_backend *backend, int64_t version, int function, bool wanted)
{
    remote *r = (remote *)backend;
    remote_requested *requested = &r->requested;
    pthread_mutex_lock(&requested->mutex);
    if (version == requested->end) {
        requested->steps[version % BEL_CONTROL_MOST_ASKED].function = function;
        requested->steps[version % BEL_CONTROL_MOST_ASKED].waits = wanted;
        requested->end++;
    }
    pthread_mutex_unlock(&requested->mutex);
    bel_members_wake(r->config.members);
}

static int take_points(bel_backend *backend, bel_control_point *out_points, int capacity)
{
    remote_points *points = &((remote *)backend)->points;
    size_t count = 0;
    bool snapshot = false; // points after the snapshot's wait
    while (count < points->count && count < (size_t)capacity && !snapshot)
        snapshot = points->items[count++].snapshot;
    if (count == 0) return 0;
    memcpy(out_points, points->items, count * sizeof *out_points);
    points->count -= count;
    memmove(points->items, points->items + count, points->count * sizeof *points->items);
    return (int)count;
}

// Sends shard 0 that the snapshot may be overwritten. A lost release is repeated (take_snapshot).
static void release_snapshot(bel_backend *backend)
{
    remote *r = (remote *)backend;
    r->state.has_snapshot = false;
    if (r->state.save) r->snapshots.saved_ns = r->snapshots.announced_ns;
    r->snapshots.released = r->state.snapshot;
    r->snapshots.announced = -1;
    forget_values(r);
    r->progress.last_ns = bel_clock_awake_ns(); // shards may have waited for this
    bel_remote_release(r);
}

static void remote_cancel(bel_backend *backend)
{
    remote *r = (remote *)backend;
    bel_remote_fail(r, BEL_ERR(BEL_CANCELLED, "the master ended the job"));
}

static bel_status *remote_attend(bel_backend *backend, double secs)
{
    remote *r = (remote *)backend;
    bel_remote_pump(r, secs);
    return bel_remote_take_error(r);
}

static bel_status *remote_join(bel_backend *backend)
{
    return bel_remote_take_error((remote *)backend); // the processes end when they are dismissed
}

// --- The current snapshot ------------------------------------------------------------------------

// Makes shards write into `folder` in parallel; out_shards get their parts as the answers come.
static bel_status *write_shards(bel_backend *backend, const char *folder, int64_t step,
                                int64_t base, bel_ckpt_shard **out_shards)
{
    remote *r = (remote *)backend;
    char *text = bel_xstrdup(folder);
    r->saving.parts = out_shards;
    r->saving.saved = 0;
    r->saving.base = base;
    bel_remote_ask_shards(r, BEL_ASKED_SAVE, step, text);
    int64_t begun = bel_clock_awake_ns();
    while (r->saving.saved < backend->shard_count && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "shard of a checkpoint");
    bel_remote_end_pulls(r);
    r->saving.parts = NULL;
    r->asked.what = BEL_ASKED_NOTHING;
    bel_free(text);
    return bel_remote_take_error(r);
}

// Gathers members to dismiss them, as nothing is left to train. With --train_steps they know it
// themselves, and this process may be the only one, restarted by a launcher.
static bel_status *remote_meet(remote *r)
{
    enum { PATIENCE_SECS = 1 };
    int64_t max_steps = r->config.max_steps;
    bool is_known = max_steps > 0 && r->state.step >= max_steps;
    if (!bel_remote_began(r) && !is_known) return gather_members(r);
    bel_members_hear(r->config.members, PATIENCE_SECS);
    int evaluator = bel_members_find(r->config.members, BEL_ROLE_EVALUATOR, 0);
    if (evaluator >= 0 && bel_members_get(r->config.members, evaluator)->here) {
        bel_remote_send_setup(r, evaluator, r->state.step);
    }
    return NULL;
}

// Makes a snapshot at the end of training, or at a pause: shards copy the values, and slots stay as
// they are, as no step runs. If training was not begun there is nothing to copy.
static bel_status *snapshot_now(bel_backend *backend)
{
    remote *r = (remote *)backend;
    if (!r->started) return remote_meet(r);
    if (r->rescue.stage == BEL_RESCUE_DONE) { // already made
        r->state.has_snapshot = true;
        return bel_remote_take_error(r);
    }
    r->state.has_snapshot = false;
    r->snapshots.announced = r->points.step = r->state.step;
    r->snapshots.at_end = true;
    r->snapshots.released = -1; // training may have stopped at a version that had a snapshot
    for (int k = 0; k < backend->shard_count; k++)
        r->snapshots.newest[k] = -1;
    bel_remote_ask_shards(r, BEL_ASKED_FINISH, r->state.step, NULL);
    int64_t begun = bel_clock_awake_ns();
    while (!r->state.has_snapshot && !bel_remote_is_broken(r))
        bel_remote_await_answer(r, 1, begun, "snapshot of the end");
    r->asked.what = BEL_ASKED_NOTHING;
    return bel_remote_take_error(r);
}

// --- The end -------------------------------------------------------------------------------------

static void remote_dismiss(bel_backend *backend, const bel_status *status)
{
    enum { WAIT_SECS = 5 };
    remote *r = (remote *)backend;
    bel_members_dismiss(r->config.members, bel_status_code(status),
                        status != NULL ? bel_status_message(status) : "", WAIT_SECS);
}

static void remote_destroy(bel_backend *backend)
{
    remote *r = (remote *)backend;
    bel_remote_close_lanes(r);
    bel_remote_forget_evaluated(r);
    bel_remote_help_destroy(r->help);
    bel_doorbell_destroy(r->values.bell);
    bel_space_free_array(r->config.trainable->layout, backend->values);
    bel_status_ignore(r->error); // reported, or no longer relevant
    for (int w = 0; w < r->seats; w++)
        bel_free(r->admissions[w].answered);
    bel_free(r->assignment.replicas);
    bel_free(r->hosts);
    bel_free(r->admissions);
    bel_free(r->ended.workers);
    bel_free(r->snapshots.newest);
    bel_free(r->asked.whole);
    bel_free(r->values.lanes);
    bel_free(r->saving.pulls);
    bel_free(r->saving.apart);
    bel_free(r->shard_members);
    pthread_mutex_destroy(&r->requested.mutex);
    bel_free(r->plan.checkpoint);
    bel_free(r->plan.stateless);
    bel_free(r->plan.mirrorless);
    bel_free(r->points.items);
    bel_free(r->backend.damage);
    bel_free(r);
}

static const bel_backend_ops remote_ops = {
    .load = remote_load,
    .gather = remote_gather,
    .start = remote_start,
    .wait = wait_for_news,
    .take_points = take_points,
    .stop_at = stop_at,
    .ask = remote_ask,
    .hold = bel_remote_hold,
    .read_saved = read_saved,
    .begin_help = bel_remote_begin_help,
    .end_help = bel_remote_end_help,
    .read_values = bel_remote_read_values,
    .write_shards = write_shards,
    .release_snapshot = release_snapshot,
    .attend = remote_attend,
    .ask_evaluator = bel_remote_ask_evaluator,
    .take_evaluated = bel_remote_take_evaluated,
    .await_evaluator = bel_remote_await_evaluator,
    .cancel = remote_cancel,
    .join = remote_join,
    .snapshot_now = snapshot_now,
    .show = bel_remote_show,
    .dismiss = remote_dismiss,
    .destroy = remote_destroy,
};

bel_status *bel_remote_create(const bel_remote_config *config, bel_backend **out_backend)
{
    remote *r = bel_xcalloc(1, sizeof *r);
    r->backend.ops = &remote_ops;
    r->backend.shard_count = config->trainable->layout->shard_count;
    r->config = *config;
    if (config->task->copies > 0)
        r->mirrors = bel_mirror_distance(r->backend.shard_count, config->task->ps_hosts);
    r->values.step = r->backend.leased = r->backend.evaluating = -1;
    r->state.loss = NAN;
    r->values.bell = bel_doorbell_create();
    pthread_mutex_init(&r->requested.mutex, NULL);
    r->seats = bel_remote_seats_of(config->task, config->trainable->estimator);
    r->help = bel_remote_help_create(r);
    size_t shards = (size_t)r->backend.shard_count, workers = (size_t)r->seats;
    r->assignment.wanted = config->task->worker_count;
    r->assignment.replicas = bel_xcalloc(workers, sizeof *r->assignment.replicas);
    r->hosts = bel_xcalloc(workers, sizeof *r->hosts);
    r->relays.hosts = r->hosts;
    r->ended.workers = bel_xcalloc(workers, sizeof *r->ended.workers);
    r->admissions = bel_xcalloc(workers, sizeof *r->admissions);
    for (size_t w = 0; w < workers; w++)
        r->admissions[w].answered = bel_xcalloc(shards, sizeof(bool));
    r->snapshots.newest = bel_xcalloc(shards, sizeof *r->snapshots.newest);
    r->asked.whole = bel_xcalloc(shards, sizeof *r->asked.whole);
    r->plan.stateless = bel_xcalloc(shards, sizeof *r->plan.stateless);
    r->plan.mirrorless = bel_xcalloc(shards, sizeof *r->plan.mirrorless);
    r->values.lanes = bel_xcalloc(shards, sizeof *r->values.lanes);
    r->saving.pulls = bel_xcalloc(shards, sizeof(bel_fetch *));
    r->saving.apart = bel_xcalloc(shards, sizeof *r->saving.apart);
    r->leaving.notice_ns = bel_remote_notice_ns(config->task);
    r->shard_members = bel_xcalloc(shards, sizeof *r->shard_members);
    bel_role role = config->task->ps_count > 0 ? BEL_ROLE_PS : BEL_ROLE_WORKER;
    for (int k = 0; k < r->backend.shard_count; k++)
        r->shard_members[k] = bel_members_find(config->members, role, k);
    bel_status *status = bel_space_array(config->trainable->layout, "values", &r->backend.values);
    if (status != NULL) {
        remote_destroy(&r->backend);
        return status;
    }
    *out_backend = &r->backend;
    return NULL;
}
