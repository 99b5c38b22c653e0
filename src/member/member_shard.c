// The shard of a member: its memory, its thread, and the master's messages to it. The engine's
// thread and its team do the shard's work. The main thread answers the master, also during steps.
// Threads of the endpoint and the hub look for lanes; the mutex guards their search. A lane is
// closed in three steps: remove it from the search, wait for calls under way (settle), close it.
//
// Events of the shard only set an atomic and ring the main thread, which sends all messages. It
// reports a snapshot before it reports a later step. A file is written from the snapshot, so
// training continues meanwhile.

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "member/member_inner.h"
#include "ps/frames/frames.h"

// --- Events of the shard -------------------------------------------------------------------------

// Shard 0, on the engine's thread. The last step is reported without delay.
static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    member *m = context;
    bel_fault_point("shard_decides");
    uint32_t decision = bel_control_decide(m->shard.control, version, stats, left);
    if (stats != NULL && atomic_exchange(&m->shard.engine.resuming, false)) {
        bel_log_write(BEL_LOG_DEBUG, "published version %lld, the first after a start or a loss",
                      (long long)version);
    }
    if ((decision & BEL_DECIDE_STOP) != 0) {
        atomic_store(&m->shard.reports.progress_due, true);
        bel_doorbell_ring(m->bell);
    }
    return decision;
}

static int function_of(void *context, int64_t version)
{
    return bel_control_function_of(((member *)context)->shard.control, version);
}

// Runs on the engine's thread, or one of its team's: the main thread reports to the master.
static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)shard;
    member *m = context;
    bel_fault_point("shard_snapshot");
    if (m->shard.control != NULL) bel_control_snapshot_ready(m->shard.control, shard, version);
    atomic_store(&m->shard.reports.snapshot_ready, version);
    bel_doorbell_ring(m->bell);
}

// The engine's thread. The nap bounds the delay for `stop`; frames ring the bell.
static void *engine_main(void *argument)
{
    enum { NAP_NS = 50000000 };
    member *m = argument;
    const bel_shard_events events = {.context = m,
                                     .decide = decide,
                                     .function_of = function_of,
                                     .snapshot_ready = snapshot_ready};
    bel_linux_give_way();
    if (!bel_member_mirror_enter(m)) return NULL;
    bel_shard_start(m->shard.shard, &events);
    while (!atomic_load(&m->shard.engine.stop)) {
        bool worked = bel_shard_work_together(m->shard.shard, m->shard.engine.team);
        if (bel_member_mirror_work(m) || worked) continue;
        (void)bel_doorbell_wait(m->shard.bell, bel_clock_ns() + NAP_NS);
    }
    return NULL;
}

// --- The start -----------------------------------------------------------------------------------

// More threads than chunks have work only in updates of tables: few, as all wake for each job, and
// several shards may share a host.
static bel_status *make_team(const bel_layout *layout, int shard, bel_team **out_team)
{
    enum { FOR_TABLES = 8 };
    int chunks = 0, cores = bel_available_cores();
    for (int c = 0; c < layout->chunk_count; c++)
        chunks += layout->chunks[c].shard == shard;
    int size = layout->table_count > 0 && chunks < FOR_TABLES ? FOR_TABLES : chunks;
    if (size > cores) size = cores;
    return bel_team_create(size > 0 ? size : 1, out_team);
}

// Once in the life of a process.
static bel_status *make_buffers(member_shard *s, const bel_optimizer *optimizer)
{
    BEL_TRY(make_team(s->layout, s->index, &s->engine.team));
    bool averages = optimizer->moving_average_decay > 0;
    if (s->memory.kept != NULL) {
        s->memory.snapshot = bel_kept_snapshot_values(s->memory.kept);
        if (averages) s->memory.averages = bel_kept_snapshot_averages(s->memory.kept);
        return NULL;
    }
    BEL_TRY(bel_space_array(s->layout, "snapshot", &s->memory.snapshot));
    if (!averages) return NULL;
    return bel_space_array(s->layout, "snapshot of averages", &s->memory.averages);
}

// For this assignment.
static bel_status *make_shard(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    size_t workers = (size_t)s->assignment->worker_count, shards = (size_t)s->layout->shard_count;
    s->lanes.worker_peers = bel_xcalloc(workers, sizeof *s->lanes.worker_peers);
    s->lanes.shard_peers = bel_xcalloc(shards, sizeof *s->lanes.shard_peers);
    s->lanes.workers = bel_xcalloc(workers, sizeof(bel_lane *));
    s->lanes.shards = bel_xcalloc(shards, sizeof(bel_lane *));
    s->search.incarnations = bel_xcalloc(workers, sizeof *s->search.incarnations);
    s->search.replacing = bel_xcalloc(workers, sizeof *s->search.replacing);
    if (s->engine.team == NULL) BEL_TRY(make_buffers(s, &m->optimizers->main));
    BEL_TRY(bel_member_mirror_make(m, setup));
    const bel_shard_config config = {.layout = s->layout,
                                     .shard = s->index,
                                     .assignment = s->assignment,
                                     .names = s->reporters.workers,
                                     .mirror_lane = s->mirror.there ? &s->mirror.out : NULL,
                                     .space = s->memory.space,
                                     .kept = s->memory.kept,
                                     .snapshot = s->memory.snapshot,
                                     .snapshot_averages = s->memory.averages,
                                     .settings = m->settings,
                                     .worker_lanes = s->lanes.workers,
                                     .shard_lanes = s->lanes.shards,
                                     .outboxes = s->memory.outboxes,
                                     .table_memory = m->estimator->config.table_memory,
                                     .table_disk = m->estimator->config.table_disk,
                                     .answer_rooms = s->memory.answer_rooms};
    BEL_TRY(bel_shard_create(&config, &s->shard));
    for (int w = 0; w < s->assignment->worker_count; w++) {
        bool own = m->worker.here && s->reporters.workers[w] == m->task->index;
        if (!own && !s->shares_memory) BEL_TRY(bel_shard_reserve(s->shard, w));
    }
    return NULL;
}

// A shard reads only the files that have its parameters, which is one if the checkpoint has as many
// shards.
static bel_status *load_checkpoint(member *m, const Bel__Setup *setup, bel_shard *shard)
{
    bel_ckpt_reader *reader;
    BEL_TRY(setup->fetches ? bel_member_files_open(m, setup->schedule->first_step, &reader)
                           : bel_ckpt_open_lazily(setup->checkpoint, &reader));
    bel_fault_point("shard_loads");
    bel_status *status = bel_shard_load(shard, reader);
    bel_ckpt_close(reader);
    return status;
}

// For this one shard: the master combines the snapshots of all shards. If shards continue, points
// of the last generation stay available, as a new master may need them.
static bel_control *make_control(member *m, const Bel__Setup *setup)
{
    const Bel__Schedule *schedule = setup->schedule;
    const member_shard *s = &m->shard;
    const bel_control_config config = {.shard_count = 1,
                                       .first_step = schedule->first_step,
                                       .last_step = schedule->last_step,
                                       .save_steps = schedule->save_steps,
                                       .save_secs = schedule->save_secs,
                                       .eval_steps = schedule->eval_steps,
                                       .series_steps = schedule->series_steps,
                                       .hook_steps = schedule->hook_steps,
                                       .stats = m->settings.stats,
                                       .asks = schedule->asks,
                                       .made = bel_member_shard_step_made,
                                       .made_context = m,
                                       .worker_count = s->assignment->worker_count,
                                       .continues = setup->held,
                                       .saved_secs = schedule->saved_secs,
                                       .kept = s->memory.kept,
                                       .snapshot = schedule->snapshot,
                                       .snapshot_save = schedule->snapshot_save,
                                       .snapshot_eval = schedule->snapshot_eval,
                                       .save_at = schedule->save_at};
    bel_control *control = bel_control_create(&config);
    if (setup->held && s->memory.kept == NULL)
        bel_control_add_points(control, s->points.list, s->points.count);
    return control;
}

// Lanes can be found only after all their data is ready: search.generation is set last, before the
// engine starts.
bel_status *bel_member_shard_start(member *m, const Bel__Setup *setup)
{
    member_shard *s = &m->shard;
    if (s->shard == NULL) BEL_TRY(make_shard(m, setup));
    bel_shard_restart(s->shard, m->generation);
    BEL_TRY_CTX(bel_member_mirror_begin(m, setup, load_checkpoint), "shard %d", s->index);
    bel_member_make_lanes(m, setup);
    bel_member_mirror_make_lanes(m, setup);
    bel_member_shard_forget_made(&s->made);
    if (s->index == 0) s->control = make_control(m, setup);
    bel_shard_lease_from(s->shard, setup->segment->first_block, setup->counting->block_end);
    int64_t snapshot = setup->schedule->snapshot; // the last generation's
    atomic_store(&s->reports.snapshot_ready, snapshot > 0 ? snapshot : -1);
    atomic_store(&s->engine.resuming, true);
    bel_member_shard_forget_told(&s->reports);
    pthread_mutex_lock(&s->search.mutex);
    s->search.generation = m->generation;
    pthread_mutex_unlock(&s->search.mutex);
    atomic_store(&s->engine.stop, false);
    BEL_TRY(bel_thread_start(&s->engine.thread, engine_main, m));
    s->engine.runs = true;
    return NULL;
}

// --- The master's messages -----------------------------------------------------------------------

// Writes to the master's folder, or to the private one, from which the master requests the file.
static bel_status *write_part(member *m, const Bel__Save *save, bel_ckpt_shard **out_shard)
{
    char *own = NULL;
    if (save->folder[0] != '\0')
        return bel_shard_write(m->shard.shard, save->folder, save->step, save->since, out_shard);
    BEL_TRY(bel_member_files_make(m, save->step, save->since, &own));
    bel_status *status = bel_shard_write(m->shard.shard, own, save->step, save->since, out_shard);
    bel_free(own);
    return status;
}

// Runs on the main thread, from the snapshot; the engine continues with steps. The master handles
// an error.
static void save_and_answer(member *m, const Bel__Save *save)
{
    bel_ckpt_shard *shard = NULL;
    bel_member_send_status(m, true); // the job's numbers are reported after the last checkpoint
    bel_status *status = write_part(m, save, &shard);
    Bel__Saved saved;
    bel__saved__init(&saved);
    saved.step = save->step;
    saved.code = (int32_t)bel_status_code(status);
    char *why = status != NULL ? bel_xstrdup(bel_status_message(status)) : NULL;
    if (status != NULL) {
        saved.why = why;
    } else {
        saved.part.data = bel_ckpt_shard_pack(shard, &saved.part.len);
    }
    bel_member_send(m, &saved.base);
    bel_free(why);
    bel_free(saved.part.data);
    bel_ckpt_shard_destroy(shard);
    bel_status_destroy(status);
}

// At the end of training no decision has requested this snapshot. During training (`whole`) there
// may be no snapshot; the master receives all steps before the answer.
static bel_status *finish_and_answer(member *m, const Bel__Finish *finish)
{
    member_shard *s = &m->shard;
    int64_t step = finish->step;
    if (finish->whole) {
        BEL_TRY(bel_shard_snapshot_whole(s->shard, &step));
        atomic_store(&s->reports.progress_due, true);
        bel_member_shard_progress(m);
    } else {
        BEL_TRY(bel_shard_snapshot_now(s->shard));
    }
    Bel__Snapshot snapshot;
    bel__snapshot__init(&snapshot);
    snapshot.step = step;
    snapshot.next_block = bel_shard_leased(s->shard);
    snapshot.whole = finish->whole;
    bel_member_send(m, &snapshot.base);
    return NULL;
}

static void end_engine(member_shard *s)
{
    atomic_store(&s->engine.stop, true);
    bel_doorbell_ring(s->bell);
    if (s->engine.runs) pthread_join(s->engine.thread, NULL);
    s->engine.runs = false;
}

// A state that has not come as a whole counts as missing.
static bel_kept_state state_of(const member *m, bel_shard *shard, bool there)
{
    if (!there) return (bel_kept_state){.step = -1};
    bel_str words = {0};
    int64_t step = bel_shard_doing(shard, &words);
    bel_str_deinit(&words);
    return (bel_kept_state){
        .generation = m->generation, .step = step, .snapshot = bel_shard_snapshot_of(shard)};
}

// The work stops, so the state no longer changes. All steps are reported before the answer. From
// then on this process has no running state, whatever master it meets, until the next setup.
void bel_member_shard_hold(member *m)
{
    member_shard *s = &m->shard;
    end_engine(s);
    bel_member_shard_report(m);
    s->held = state_of(m, s->shard, atomic_load(&s->mirror.has_state));
    s->mirror.held = state_of(m, s->mirror.shard, atomic_load(&s->mirror.has_mirror));
    bool failed = s->mirror.control != NULL && bel_control_has_failed(s->mirror.control);
    if (failed && s->mirror.held.step > 0)
        s->mirror.held.step--; // shard 0, or a successor, repeats the step and ends the job
    Bel__Held held;
    bel__held__init(&held);
    held.step = s->held.step;
    held.mirror_step = s->mirror.held.step;
    held.snapshot = s->held.snapshot;
    bel_member_send(m, &held.base);
    m->generation = 0;
}

// Ends a shard's pause, or releases a snapshot.
static void take_release(member *m, const Bel__Release *release)
{
    member_shard *s = &m->shard;
    if (release->whole) {
        bel_shard_go_on(s->shard);
    } else if (s->control != NULL) {
        bel_control_release_snapshot(s->control);
    }
    bel_doorbell_ring(s->bell);
}

// Each reading has a separate lane, with a number. A master that asks again on the same lane,
// because its connection broke, receives the values sent before: lanes lose nothing.
static void send_values(member *m, const Bel__Values *values)
{
    member_shard *s = &m->shard;
    if (s->search.reading == values->lane) return;
    pthread_mutex_lock(&s->search.mutex);
    bel_lane *before = s->lanes.master;
    s->lanes.master = NULL;
    pthread_mutex_unlock(&s->search.mutex);
    bel_endpoint_settle(m->endpoint);
    bel_lane_close(before);
    const bel_stream_lane_config config = {.capacity = bel_layout_snapshot_frames(s->layout),
                                           .place = bel_member_refuse_frame};
    bel_lane *lane = bel_stream_lane_create(m->endpoint, &config);
    pthread_mutex_lock(&s->search.mutex);
    s->lanes.master = lane;
    s->search.reading = values->lane;
    pthread_mutex_unlock(&s->search.mutex);
    s->sending.step = values->step;
    s->sending.sent = 0;
    bel_member_shard_go_on_sending(m);
}

// Replaces a worker: its predecessor's lane must be closed before the new one can be found. Returns
// the shard's step.
static int64_t replace_worker(member *m, int worker, uint32_t incarnation)
{
    member_shard *s = &m->shard;
    pthread_mutex_lock(&s->search.mutex);
    s->search.replacing[worker] = true;
    pthread_mutex_unlock(&s->search.mutex);
    bel_endpoint_settle(m->endpoint);
    int64_t step;
    atomic_store(&s->engine.resuming, true);
    bel_lane *before = bel_shard_admit(s->shard, worker, incarnation,
                                       bel_member_make_worker_lane(m, worker), &step);
    bel_lane_close(before);
    pthread_mutex_lock(&s->search.mutex);
    s->search.incarnations[worker] = incarnation;
    s->search.replacing[worker] = false;
    pthread_mutex_unlock(&s->search.mutex);
    bel_doorbell_ring(s->bell); // reports have waited meanwhile
    return step;
}

// The master asks again if a connection broke meanwhile. A worker that is already admitted may have
// begun on the first answer: its lane stays.
static bel_status *admit_and_answer(member *m, const Bel__Admit *admit)
{
    member_shard *s = &m->shard;
    int worker = admit->worker;
    if (worker < 0 || worker >= s->assignment->worker_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed admit: worker %d of %d", worker,
                       s->assignment->worker_count);
    }
    if (s->reporters.count != m->assignment->worker_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed admit: worker %d, but relays take the workers' reports", worker);
    }
    Bel__Admitted admitted;
    bel__admitted__init(&admitted);
    admitted.worker = worker;
    admitted.incarnation = admit->incarnation;
    if (s->search.incarnations[worker] == admit->incarnation) {
        bel_str words = {0};
        admitted.step = bel_shard_doing(s->shard, &words);
        bel_str_deinit(&words);
    } else {
        admitted.step = replace_worker(m, worker, admit->incarnation);
    }
    admitted.counted_step = bel_shard_counted_step(s->shard, worker);
    bel_member_send(m, &admitted.base);
    return NULL;
}

// Skips steps that were requested before, over a broken connection.
static bel_status *take_asks(member *m, const Bel__Ask *ask)
{
    member_shard *s = &m->shard;
    bool good = ask->n_functions == ask->n_waits && ask->n_functions <= BEL_CONTROL_MOST_ASKED;
    for (size_t i = 0; i < ask->n_functions && good; i++)
        good = ask->functions[i] >= 0 && ask->functions[i] < m->settings.function_count;
    if (!good) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed message: steps of functions that are not there");
    }
    for (size_t i = 0; i < ask->n_functions && s->control != NULL; i++)
        (void)bel_control_ask(s->control, ask->version + (int64_t)i, ask->functions[i],
                              ask->waits[i]);
    bel_doorbell_ring(s->bell);
    return NULL;
}

bel_status *bel_member_shard_message(member *m, const Bel__Message *message)
{
    member_shard *s = &m->shard;
    switch (message->kind_case) {
    case BEL__MESSAGE__KIND_SAVE: save_and_answer(m, message->save); break;
    case BEL__MESSAGE__KIND_FETCH: bel_member_files_answer(m, message->fetch); break;
    case BEL__MESSAGE__KIND_FINISH: return finish_and_answer(m, message->finish);
    case BEL__MESSAGE__KIND_VALUES: send_values(m, message->values); break;
    case BEL__MESSAGE__KIND_ADMIT: return admit_and_answer(m, message->admit);
    case BEL__MESSAGE__KIND_RELEASE: take_release(m, message->release); break;
    case BEL__MESSAGE__KIND_STOP:
        if (s->control != NULL) bel_control_interrupt(s->control);
        break;
    case BEL__MESSAGE__KIND_STOP_AT:
        if (s->control != NULL) bel_control_stop_at(s->control, message->stop_at->step);
        break;
    case BEL__MESSAGE__KIND_ASK: return take_asks(m, message->ask);
    case BEL__MESSAGE__KIND_PAUSE:
        if (s->control != NULL) bel_control_pause(s->control);
        break;
    default: break; // not for shards
    }
    return NULL;
}

// A lost peer returns; one that sends malformed frames would do so again.
static bel_status *check_lanes(const member_shard *s)
{
    for (int w = 0; w < s->assignment->worker_count; w++)
        BEL_TRY_CTX(bel_lane_fault(s->lanes.workers[w]), "shard %d, lane of worker %d", s->index,
                    s->reporters.workers[w]);
    for (int k = 0; k < s->layout->shard_count; k++)
        BEL_TRY_CTX(bel_lane_fault(s->lanes.shards[k]), "shard %d, lane of shard %d", s->index, k);
    return NULL;
}

bel_status *bel_member_shard_check(member *m)
{
    BEL_TRY(bel_shard_check(m->shard.shard));
    BEL_TRY(check_lanes(&m->shard));
    BEL_TRY(bel_member_mirror_check(m));
    return m->shard.control != NULL ? bel_control_take_error(m->shard.control) : NULL;
}

// --- The end -------------------------------------------------------------------------------------

// First no lane can be found, then the engine ends, then lanes are closed: no thread uses them.
void bel_member_shard_stop(member *m)
{
    member_shard *s = &m->shard;
    if (!s->here || s->shard == NULL) return;
    pthread_mutex_lock(&s->search.mutex);
    s->search.generation = 0;
    pthread_mutex_unlock(&s->search.mutex);
    bel_endpoint_settle(m->endpoint);
    end_engine(s);
    bel_lane_close_all(s->lanes.workers, s->assignment->worker_count);
    bel_lane_close_all(s->lanes.shards, s->layout->shard_count);
    bel_member_mirror_stop(m);
    bel_lane_close(s->lanes.master);
    bel_lane_close(s->lanes.own);
    bel_member_read_points(s->control, &s->points);
    bel_control_destroy(s->control);
    s->lanes.master = s->lanes.own = NULL;
    s->control = NULL;
    s->search.reading = 0;
    s->sending.step = -1;
}

void bel_member_shard_forget_assignment(member *m)
{
    member_shard *s = &m->shard;
    bel_shard_destroy(s->shard);
    bel_member_mirror_free(m);
    bel_reporters_deinit(&s->reporters);
    bel_free(s->lanes.workers);
    bel_free(s->lanes.shards);
    bel_free(s->lanes.worker_peers);
    bel_free(s->lanes.shard_peers);
    bel_free(s->search.incarnations);
    bel_free(s->search.replacing);
    s->shard = NULL;
    s->assignment = NULL;
    s->lanes.workers = s->lanes.shards = NULL;
    s->lanes.worker_peers = s->lanes.shard_peers = NULL;
    s->search.incarnations = NULL;
    s->search.replacing = NULL;
}

void bel_member_shard_free(member *m)
{
    member_shard *s = &m->shard;
    if (!s->here) return;
    bel_member_shard_forget_assignment(m);
    bel_team_destroy(s->engine.team);
    bel_doorbell_destroy(s->bell);
    bel_free(s->points.list);
    bool own = s->memory.kept == NULL;
    if (own && s->memory.snapshot != NULL) bel_space_free_array(s->layout, s->memory.snapshot);
    if (own && s->memory.averages != NULL) bel_space_free_array(s->layout, s->memory.averages);
    if (s->memory.space != m->worker.space) bel_space_destroy(s->memory.space);
    bel_member_shard_forget_made(&s->made);
    pthread_mutex_destroy(&s->made.mutex);
    pthread_mutex_destroy(&s->search.mutex);
}
