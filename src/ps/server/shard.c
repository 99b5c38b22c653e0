// Steps of a shard. bel_shard_work is the only engine: it takes frames, advances the step, and runs
// one job, so any number of threads may call it. One mutex guards the state (shard_parts.h);
// passes, decisions and other callbacks run outside it. A job is run once, by its taker.
#include "ps/server/shard_inner.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"

// --- A step --------------------------------------------------------------------------------------

// Forgets the state of a step; the policy decides which reports stay.
static void begin_step_locked(bel_shard *shard)
{
    shard->decision.known = false;
    shard->decision.now = 0;
    shard->work.summed = shard->work.passed = shard->norms.count = 0;
    shard->work.ready_count = 0;
    bel_shard_begin_tables_locked(shard);
    shard->norms.sent = shard->norms.factors_known = shard->pause.snapshot_told = false;
    bel_shard_begin_numbers(shard);
    for (int i = 0; i < shard->chunk_count; i++)
        shard->chunks[i].queued = shard->chunks[i].passed = shard->chunks[i].summed = false;
    bel_shard_begin_mirror_locked(shard);
    memset(shard->norms.squares, 0,
           (size_t)shard->config.layout->shard_count * sizeof *shard->norms.squares);
    shard->policy->begin(shard);
    bel_shard_begin_room_locked(shard);
}

// True if all work of this shard for the step is done, and all its reports have arrived.
static bool step_done_locked(const bel_shard *shard)
{
    if (!shard->started || shard->error != NULL || shard->work.passed < shard->chunk_count)
        return false;
    if (!shard->decision.known || (shard->decision.now & BEL_DECIDE_STOP) != 0) return false;
    if (shard->work.tables_done < shard->config.layout->table_count) return false;
    return bel_shard_has_mirrored_locked(shard) && shard->policy->is_done(shard);
}

// --- Traces --------------------------------------------------------------------------------------

static bel_trace_event event_of(const bel_shard *shard, bel_trace_span span, int64_t step)
{
    return (bel_trace_event){.role = BEL_TRACE_SHARD,
                             .index = (int16_t)shard->config.shard,
                             .step = step,
                             .span = (uint8_t)span};
}

// Workers whose reports are in this step: bit w is worker w's, up to 64 bits.
static uint64_t workers_of_step(const bel_shard *shard)
{
    if (shard->policy->lockstep) return BEL_TRACE_EVERYBODY;
    uint64_t bits = 0;
    for (int w = 0; w < shard->config.assignment->worker_count && w < 64; w++)
        if (shard->policy->counts(shard, w)) bits |= (uint64_t)1 << w;
    return bits;
}

// The first chunk that workers report.
static int first_reported(const bel_shard *shard)
{
    int local = 0;
    while (local < shard->chunk_count - 1 && !bel_shard_changes(shard, local))
        local++;
    return local;
}

// A span's part is a table for rows, a chunk for other work; a pass over all chunks has the first
// reported chunk.
static void trace_job(const bel_shard *shard, bel_shard_job job, int64_t begun, int64_t done)
{
    static const bel_trace_span spans[] = {
        [BEL_JOB_PASS] = BEL_TRACE_PASS,     [BEL_JOB_SUM] = BEL_TRACE_SUM,
        [BEL_JOB_UPDATE] = BEL_TRACE_UPDATE, [BEL_JOB_COPY] = BEL_TRACE_COPY,
        [BEL_JOB_ROWS] = BEL_TRACE_ROWS,     [BEL_JOB_TABLE] = BEL_TRACE_TABLE,
        [BEL_JOB_MERGE] = BEL_TRACE_SUM,     [BEL_JOB_MIRROR] = BEL_TRACE_SUM};
    bel_trace_event event = event_of(shard, spans[job.kind], shard->step);
    bool of_table = job.kind == BEL_JOB_ROWS || job.kind == BEL_JOB_TABLE;
    int local = job.local == BEL_ALL_CHUNKS ? first_reported(shard) : job.local;
    event.part = of_table ? job.local : shard->chunks[local].chunk;
    bool sums = job.kind == BEL_JOB_PASS || job.kind == BEL_JOB_SUM || job.kind == BEL_JOB_TABLE;
    if (sums) event.workers = workers_of_step(shard);
    bel_trace_add(event, begun, done);
}

// --- Publication ---------------------------------------------------------------------------------

// A report that was complete before the step began has waited for the step, not for its last one.
static void count_times_locked(bel_shard *shard)
{
    const bel_assignment *assignment = shard->config.assignment;
    int64_t last = shard->published_ns, waited = 0;
    int count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int w = 0; w < assignment->worker_count; w++) {
            bool plays = assignment->first_node[w] < assignment->first_node[w + 1];
            if (!plays || !shard->policy->counts(shard, w)) continue;
            int64_t complete_ns = shard->workers[w].complete_ns;
            if (pass == 0 && complete_ns > last) last = complete_ns;
            if (pass == 0) continue;
            waited += last - complete_ns;
            count++;
        }
    }
    shard->counters.gather_ns += count > 0 ? waited / count : 0;
    shard->counters.apply_ns += bel_clock_ns() - last;
}

// Sets the shard to a new version: begins its step, and notifies workers as the policy decides.
// Other shards learn the decision later, from reports or from the ledger.
static void publish_locked(bel_shard *shard, uint32_t decision)
{
    uint32_t last = shard->decision.now;
    begin_step_locked(shard);
    shard->stats.told = false;
    shard->decision.last = last;
    shard->published_ns = bel_clock_ns();
    shard->counters.versions++;
    shard->progress++;
    if (shard->config.shard == 0) {
        decision = bel_shard_ask_for_hashes_locked(shard, decision);
        bel_shard_decision_known_locked(shard, decision);
        bel_shard_function_known_locked(shard);
    }
    shard->policy->published(shard);
    bel_shard_answer_waiting_locked(shard);
}

// Publishes the version that the finished step made, unless another thread is doing so. Releases
// and retakes the mutex around callbacks. Returns true when it did something.
static bool try_publish_locked(bel_shard *shard)
{
    if (shard->work.publishing || !step_done_locked(shard)) return false;
    int64_t begun = bel_trace_begin();
    shard->work.publishing = true;
    int64_t version = shard->step + 1;
    bool saved = (shard->decision.now & BEL_DECIDE_SAVE) != 0 && !shard->pause.snapshot_told;
    bool first = shard->config.shard == 0, relays = bel_shard_relays(shard);
    shard->pause.snapshot_told = true; // once, however often the decision comes later
    if (saved) {
        shard->ledger.leased = shard->ledger.next_block;
        bel_shard_set_snapshot(shard, version); // before the step is: a successor needs both
    }
    for (int k = 0; k < shard->config.assignment->node_count; k++)
        shard->stats.counting[k] = bel_shard_counts(shard, k) ? shard->stats.list[k] : NULL;
    bel_steps_left left = first ? shard->policy->steps_left(shard) : BEL_STEPS_FOLLOW;
    pthread_mutex_unlock(&shard->mutex);
    uint32_t decision = 0;
    const bel_shard_events *events = &shard->events;
    if (first && !relays) {
        bel_assignment_sum_f64(shard->config.assignment, shard->stats.counting,
                               bel_stats_size(shard->config.settings.stats), shard->stats.sum);
    }
    bool good = !first || relays ||
                shard->stats.sum[BEL_STATS_NONFINITE] == 0; // a diverged step is not kept
    if (saved && good) events->snapshot_ready(events->context, shard->config.shard, version);
    if (first) decision = events->decide(events->context, version, shard->stats.sum, left);
    bool later = (decision & BEL_DECIDE_LATER) != 0;
    pthread_mutex_lock(&shard->mutex);
    shard->work.publishing = false;
    if (later) {
        bel_shard_answer_waiting_locked(shard);
        return false;
    }
    count_times_locked(shard);
    shard->rules.runs[bel_shard_function(shard)]++;
    shard->step = version;
    if (shard->config.kept != NULL) bel_kept_set_step(shard->config.kept, version);
    publish_locked(shard, decision);
    if (!relays && !shard->config.mirrors)
        bel_trace_end(event_of(shard, BEL_TRACE_PUBLISH, version), begun);
    return true;
}

// --- Replacement of members ----------------------------------------------------------------------

// True while a thread may be reading reports.
static bool is_reading_locked(const bel_shard *shard)
{
    return shard->work.running > 0 || shard->work.publishing ||
           (shard->work.ready_count > 0 && shard->error == NULL);
}

// Passes complete chunks, and then stops all work until `paused` is reset. It takes no frames
// meanwhile: with many workers that report as they please, there would be no end.
static void pause_locked(bel_shard *shard)
{
    enum { NAP_NS = 100000 };
    shard->pause.calls++;
    while (is_reading_locked(shard)) {
        pthread_mutex_unlock(&shard->mutex);
        if (!bel_shard_work(shard)) (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        pthread_mutex_lock(&shard->mutex);
    }
}

bel_lane *bel_shard_admit(bel_shard *shard, int worker, uint32_t incarnation, bel_lane *lane,
                          int64_t *out_step)
{
    pthread_mutex_lock(&shard->mutex);
    pause_locked(shard);
    bel_lane *before = shard->config.worker_lanes[worker];
    shard->config.worker_lanes[worker] = lane;
    bel_shard_forget_report_locked(shard, worker);
    bel_shard_forget_pulls_locked(shard, worker);
    bel_shard_forget_voice_locked(shard, worker);
    shard->policy->forget(shard, worker);
    bel_shard_reset_worker(&shard->workers[worker]);
    shard->workers[worker].incarnation = incarnation;
    *out_step = shard->step;
    shard->has_newcomer = true;
    shard->pause.calls--;
    shard->policy->admitted(shard);
    pthread_mutex_unlock(&shard->mutex);
    return before;
}

// True if no part of the next version is made: no chunk that the step changes has all its reports.
// The first of two passes counts as well, as a rule may write its slots in it (LAMB).
static bool is_whole_locked(const bel_shard *shard)
{
    bool whole =
        shard->error == NULL && !step_done_locked(shard) && !atomic_load(&shard->transfer.expects);
    for (int i = 0; i < shard->chunk_count; i++) {
        bool made = shard->chunks[i].queued || shard->chunks[i].version > shard->step;
        whole = whole && !(made && bel_shard_changes(shard, i));
    }
    if (bel_shard_on_devices(shard))
        whole = whole && shard->work.summed == 0 && shard->work.passed == 0;
    for (int t = 0; t < shard->config.layout->table_count; t++)
        whole = whole && !shard->tables[t].queued;
    return whole;
}

bel_status *bel_shard_snapshot_whole(bel_shard *shard, int64_t *out_version)
{
    pthread_mutex_lock(&shard->mutex);
    pause_locked(shard);
    bool whole = is_whole_locked(shard);
    *out_version = whole ? shard->step : -1;
    if (!whole || shard->pause.stands) shard->pause.calls--; // it pauses once
    shard->pause.stands = shard->pause.stands || whole;
    pthread_mutex_unlock(&shard->mutex);
    return whole ? bel_shard_snapshot_copied(shard) : NULL;
}

void bel_shard_go_on(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    shard->pause.calls -= shard->pause.stands;
    shard->pause.stands = false;
    pthread_mutex_unlock(&shard->mutex);
}

// The policy's reset and the start of a step do the rest; memory stays unchanged.
void bel_shard_restart(bel_shard *shard, uint32_t generation)
{
    bel_shard_go_on(shard);
    bel_shard_void_snapshot(shard);
    pthread_mutex_lock(&shard->mutex);
    shard->config.generation = generation;
    shard->started = shard->starting = false;
    shard->counters.versions = shard->counters.gather_ns = shard->counters.apply_ns = 0;
    bel_status_ignore(shard->error); // its state is void
    shard->error = NULL;
    bel_shard_forget_exchanges_locked(shard);
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bel_shard_forget_report_locked(shard, w);
        uint32_t incarnation = shard->workers[w].incarnation;
        shard->workers[w] =
            (bel_shard_worker){.incarnation = incarnation, .version = -1, .counted_step = -1};
    }
    shard->work.copies = 0;
    shard->mirror.version = -1;
    atomic_store(&shard->transfer.expects, false);
    shard->policy->reset(shard);
    begin_step_locked(shard);
    shard->work.values_sent = 0;
    pthread_mutex_unlock(&shard->mutex);
}

// --- The engine ----------------------------------------------------------------------------------

// Begins the shard's step, once its decision is known. As for all callbacks, the call is made
// without the lock.
static bool try_start_locked(bel_shard *shard)
{
    uint32_t decision = 0;
    if (shard->work.publishing) return false;
    shard->work.publishing = true;
    bool first = shard->config.shard == 0;
    bel_steps_left left = first ? shard->policy->steps_left(shard) : BEL_STEPS_FOLLOW;
    int64_t step = shard->step;
    pthread_mutex_unlock(&shard->mutex);
    if (first) decision = shard->events.decide(shard->events.context, step, NULL, left);
    pthread_mutex_lock(&shard->mutex);
    shard->work.publishing = false;
    if ((decision & BEL_DECIDE_LATER) != 0) return false;
    shard->starting = false;
    shard->started = true;
    publish_locked(shard, decision);
    return true;
}

void bel_shard_start(bel_shard *shard, const bel_shard_events *events)
{
    pthread_mutex_lock(&shard->mutex);
    shard->events = *events;
    shard->starting = true;
    bel_shard_ask_mirror_locked(shard);
    (void)try_start_locked(shard); // or with the following work
    pthread_mutex_unlock(&shard->mutex);
}

static void keep_error_locked(bel_shard *shard, bel_status *status)
{
    if (shard->error == NULL) {
        shard->error = status;
    } else {
        bel_status_ignore(status); // the first error matters
    }
}

// A chunk counts as passed after its only or second pass.
static void finish_chunk_locked(bel_shard *shard, bel_job_kind kind, int local)
{
    bel_shard_free_room_locked(shard, local); // the second of two passes reads no reports
    if (kind == BEL_JOB_SUM) {
        shard->work.summed++;
        shard->chunks[local].summed = true;
        if (bel_shard_relays(shard)) bel_shard_stats_up_locked(shard);
        return;
    }
    shard->work.passed++;
    shard->chunks[local].passed = true;
    const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[local].chunk];
    if (chunk->kind != BEL_VARIABLE_FROZEN) shard->policy->chunk_passed(shard, local);
}

// Continues after a finished job.
static void finish_job_locked(bel_shard *shard, bel_shard_job job, int64_t spent_ns)
{
    if (job.kind == BEL_JOB_ROWS) {
        bel_shard_rows_answered_locked(shard, job.local, job.worker);
        return;
    }
    if (job.kind == BEL_JOB_TABLE) {
        bel_shard_table_updated_locked(shard, job.local);
        return;
    }
    if (job.kind == BEL_JOB_COPY) {
        shard->policy->copied(shard, job.worker);
        return;
    }
    shard->counters.pass_ns += spent_ns;
    if (job.kind == BEL_JOB_MERGE) {
        bel_shard_merged_locked(shard, job);
        return;
    }
    if (job.kind == BEL_JOB_MIRROR) {
        bel_shard_send_sum_locked(shard, job.local);
        return;
    }
    shard->counters.passes++;
    if (job.local != BEL_ALL_CHUNKS) {
        finish_chunk_locked(shard, job.kind, job.local);
        return;
    }
    for (int i = 0; i < shard->chunk_count; i++)
        finish_chunk_locked(shard, job.kind, i);
}

// Runs one job, and publishes if it was the last. A table's update runs on all threads of `team`,
// if there is one. Returns false if there is no job.
static bool run_job_locked(bel_shard *shard, bel_team *team)
{
    if (shard->work.ready_count == 0 || shard->error != NULL) return false;
    bel_shard_job job = shard->work.ready[--shard->work.ready_count];
    shard->work.running++;
    pthread_mutex_unlock(&shard->mutex);
    int64_t begun = bel_clock_ns();
    bel_fault_point("shard_passes");
    bel_status *status = bel_shard_run_job(shard, job, team);
    bel_fault_point("shard_passed");
    int64_t done = bel_clock_ns();
    bool traced = !bel_shard_relays(shard) && !shard->config.mirrors;
    if (bel_trace_is_on() && traced) trace_job(shard, job, begun, done);
    pthread_mutex_lock(&shard->mutex);
    shard->work.running--;
    if (status == NULL) finish_job_locked(shard, job, done - begun);
    if (status != NULL) keep_error_locked(shard, status);
    bel_shard_move_norms_locked(shard);
    try_publish_locked(shard);
    return true;
}

// Takes frames and publishes a finished step. Returns true if it published.
static bool poll_locked(bel_shard *shard)
{
    if (shard->starting && bel_shard_relays(shard)) bel_shard_poll_parent_locked(shard);
    if (shard->starting) return try_start_locked(shard);
    bel_shard_drain_locked(shard);
    if (bel_shard_relays(shard)) bel_shard_poll_parent_locked(shard);
    bel_shard_move_norms_locked(shard);
    return try_publish_locked(shard);
}

// One turn: frames and a publication, then one job. The caller repeats it while it is true, and
// waits for the bell otherwise.
bool bel_shard_work(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    bool published = poll_locked(shard);
    bool ran = run_job_locked(shard, NULL);
    pthread_mutex_unlock(&shard->mutex);
    return published || ran;
}

// A team thread's share. It takes no frames: a thread that found the next step's frames here would
// continue with it, and leave the thread that calls the team waiting.
static void run_what_is_ready(void *context, int64_t tile)
{
    (void)tile;
    bel_shard *shard = context;
    pthread_mutex_lock(&shard->mutex);
    while (run_job_locked(shard, NULL)) {
    }
    pthread_mutex_unlock(&shard->mutex);
}

// Lets the update of many rows be the next job, if there is one that is ready, but fewer than there
// are threads: more keep all threads busy side by side.
static bool raise_table_locked(bel_shard *shard, int threads)
{
    bel_shard_job *ready = shard->work.ready;
    int last = shard->work.ready_count - 1, found = -1, count = 0;
    for (int i = 0; i <= last; i++) {
        if (ready[i].kind != BEL_JOB_TABLE || !bel_shard_has_many_rows(shard, ready[i].local))
            continue;
        found = i;
        count++;
    }
    if (found < 0 || (count >= threads && threads > 1)) return false;
    bel_shard_job job = ready[found];
    ready[found] = ready[last];
    ready[last] = job;
    return true;
}

// This thread runs a single job itself: waking the team would cost more than it gains. An update of
// many rows has the whole team, unless there are enough of them for all threads: the jobs beside it
// would leave threads idle, as it takes longest.
bool bel_shard_work_together(bel_shard *shard, bel_team *team)
{
    pthread_mutex_lock(&shard->mutex);
    bool published = poll_locked(shard);
    int ready = shard->error == NULL ? shard->work.ready_count : 0;
    bool updated =
        ready > 0 && raise_table_locked(shard, bel_team_size(team)) && run_job_locked(shard, team);
    pthread_mutex_unlock(&shard->mutex);
    if (updated) return true;
    int tiles = ready < bel_team_size(team) ? ready : bel_team_size(team);
    if (ready > 1) bel_team_run(team, run_what_is_ready, shard, tiles);
    return ready > 1 || bel_shard_work(shard) || published;
}

bel_status *bel_shard_check(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    bel_status *status = NULL;
    if (shard->error != NULL) {
        status = BEL_ERR(bel_status_code(shard->error), "%s", bel_status_message(shard->error));
    }
    pthread_mutex_unlock(&shard->mutex);
    return status;
}

int64_t bel_shard_progress(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t progress = shard->progress;
    pthread_mutex_unlock(&shard->mutex);
    return progress;
}

int64_t bel_shard_snapshot_of(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t version = shard->snapshot;
    pthread_mutex_unlock(&shard->mutex);
    return version;
}

bel_shard_counters bel_shard_count(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    bel_shard_counters counters = shard->counters;
    counters.queue = shard->work.ready_count + shard->work.running + shard->ledger.queue_count;
    pthread_mutex_unlock(&shard->mutex);
    return counters;
}

bel_shard_reports bel_shard_count_reports(bel_shard *shard, int worker)
{
    pthread_mutex_lock(&shard->mutex);
    const bel_shard_worker *w = &shard->workers[worker];
    bel_shard_reports reports = {.counted = w->counted, .stale = w->stale, .dropped = w->dropped};
    pthread_mutex_unlock(&shard->mutex);
    return reports;
}

// Workers whose step statistics are missing; these follow a worker's last report.
static int name_missing_locked(const bel_shard *shard, bel_str *out_words)
{
    const bel_assignment *assignment = shard->config.assignment;
    int missing = 0;
    for (int w = 0; w < assignment->worker_count; w++) {
        bool plays = assignment->first_node[w] < assignment->first_node[w + 1];
        if (!plays || shard->workers[w].complete) continue;
        if (bel_shard_waits_for_room(shard, w)) continue;
        bel_str_printf(out_words, "%s%d", missing++ > 0 ? ", " : "waits for reports of worker ",
                       bel_shard_name(shard, w));
    }
    return missing;
}

int64_t bel_shard_doing(bel_shard *shard, bel_str *out_words)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t step = shard->step;
    size_t before = out_words->length;
    bel_shard_exchange_missing(shard, out_words);
    bool exchanges = out_words->length > before;
    if (atomic_load(&shard->transfer.expects)) {
        bel_str_puts(out_words, shard->config.mirrors ? "waits for its state, from its shard"
                                                      : "waits for its state, from its mirror");
    } else if (bel_shard_relays(shard) && !shard->started) {
        bel_str_puts(out_words, "waits for the first version");
    } else if (!exchanges && name_missing_locked(shard, out_words) == 0) {
        bool idle = shard->work.ready_count == 0;
        bool norms = shard->rules.needs_norm && !shard->norms.factors_known && idle;
        bool unnamed = !shard->policy->is_known(shard);
        bool above = bel_shard_relays(shard) && shard->stats.told;
        bool mirror = bel_shard_is_mirrored(shard) && shard->work.passed == shard->chunk_count &&
                      idle && !bel_shard_has_mirrored_locked(shard);
        bel_str_puts(out_words, above             ? "waits for the sums of others"
                                : unnamed && idle ? "waits for shard 0 to say who counts"
                                : norms           ? "waits for norms of other shards"
                                : mirror          ? "waits for its mirror"
                                                  : "updates");
    }
    pthread_mutex_unlock(&shard->mutex);
    return step;
}
