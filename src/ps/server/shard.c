// Frames and steps of a shard. One mutex guards the state; passes, decisions and other calls out
// run outside it. bel_shard_work is the only engine: it takes frames, moves the step forward, and
// runs one job.
#include "ps/server/shard_inner.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"

// --- A step --------------------------------------------------------------------------------------

static void begin_step_locked(bel_shard *shard)
{
    shard->decision_known = false;
    shard->decision = 0;
    shard->summed = shard->passed = shard->stats_count = shard->norm_count = 0;
    shard->ready_count = 0;
    bel_shard_begin_tables_locked(shard);
    bool ledger = bel_shard_has_ledger(shard); // then reports stay until their workers are answered
    shard->norms_sent = shard->factors_known = shard->snapshot_told = false;
    bel_shard_begin_numbers(shard);
    size_t nodes = (size_t)shard->config.assignment->node_count;
    for (int i = 0; i < shard->chunk_count; i++) {
        shard->chunks[i].arrived = 0;
        shard->chunks[i].passed = false;
        if (!ledger) memset(shard->chunks[i].nodes, 0, nodes * sizeof *shard->chunks[i].nodes);
    }
    if (!ledger) memset(shard->stats_list, 0, nodes * sizeof *shard->stats_list);
    memset(shard->norms, 0, (size_t)shard->config.layout->shard_count * sizeof *shard->norms);
}

// True when all that this shard has to do for the step is done. It waits for every worker even if
// it has no chunks: a version is not passed by before all have read it.
static bool step_done_locked(const bel_shard *shard)
{
    if (!shard->started || shard->error != NULL || shard->passed < shard->chunk_count) return false;
    if (!shard->decision_known || (shard->decision & BEL_DECIDE_STOP) != 0) return false;
    if (shard->tables_done < shard->config.layout->table_count) return false;
    if (bel_shard_has_ledger(shard)) return bel_ledger_step_done_locked(shard);
    return shard->stats_count == shard->config.assignment->node_count;
}

// --- Traces --------------------------------------------------------------------------------------

static bel_trace_event event_of(const bel_shard *shard, bel_trace_span span, int64_t step)
{
    return (bel_trace_event){.role = BEL_TRACE_SHARD,
                             .index = (int16_t)shard->config.shard,
                             .step = step,
                             .span = (uint8_t)span};
}

// Whose reports are in this step, as far as 64 bits hold them.
static uint64_t workers_of_step(const bel_shard *shard)
{
    if (!bel_shard_has_ledger(shard)) return BEL_TRACE_EVERYBODY;
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    uint64_t bits = 0;
    for (int w = 0; w < shard->config.assignment->worker_count && w < 64; w++)
        if (page->counts[w]) bits |= (uint64_t)1 << w;
    return bits;
}

static void trace_job(const bel_shard *shard, bel_shard_job job, int64_t begun, int64_t done)
{
    static const bel_trace_span spans[] = {
        [BEL_JOB_PASS] = BEL_TRACE_PASS,     [BEL_JOB_SUM] = BEL_TRACE_SUM,
        [BEL_JOB_UPDATE] = BEL_TRACE_UPDATE, [BEL_JOB_COPY] = BEL_TRACE_COPY,
        [BEL_JOB_ROWS] = BEL_TRACE_ROWS,     [BEL_JOB_TABLE] = BEL_TRACE_TABLE};
    bel_trace_event event = event_of(shard, spans[job.kind], shard->step);
    bool of_table = job.kind == BEL_JOB_ROWS || job.kind == BEL_JOB_TABLE;
    event.part = of_table ? job.local : shard->chunks[job.local].chunk;
    bool sums = job.kind == BEL_JOB_PASS || job.kind == BEL_JOB_SUM || job.kind == BEL_JOB_TABLE;
    if (sums) event.workers = workers_of_step(shard);
    bel_trace_add(event, begun, done);
}

// --- Publication ---------------------------------------------------------------------------------

static void publish_locked(bel_shard *shard, uint32_t decision)
{
    uint32_t last = shard->decision;
    begin_step_locked(shard);
    shard->last_decision = last;
    shard->counters.versions++;
    if (shard->config.shard == 0) bel_shard_decision_known_locked(shard, decision);
    if (bel_shard_has_ledger(shard)) bel_ledger_published_locked(shard);
    bel_shard_answer_waiting_locked(shard);
    for (int w = 0; w < shard->config.assignment->worker_count && !bel_shard_has_ledger(shard);
         w++) {
        const bel_shard_worker *worker = &shard->workers[w];
        if (worker->reader == BEL_READER_FOLLOWS) {
            bel_shard_send_version_locked(shard, w, shard->step, shard->values_sent);
        } else if (worker->reader == BEL_READER_BEHIND && worker->version == shard->step - 1) {
            bel_shard_send_whole_locked(shard, w, shard->step);
        }
    }
    shard->values_sent = 0;
}

// Publishes the version that the finished step made, if it is finished and nobody else is doing it.
// Leaves and re-takes the mutex around the calls out. True when it did something.
static bool try_publish_locked(bel_shard *shard)
{
    if (shard->publishing || !step_done_locked(shard)) return false;
    int64_t begun = bel_trace_begin();
    shard->publishing = true;
    int64_t version = shard->step + 1;
    bool saved = (shard->decision & BEL_DECIDE_SAVE) != 0 && !shard->snapshot_told;
    bool first = shard->config.shard == 0;
    shard->snapshot_told = true; // once, however often the decision comes later
    if (saved) shard->ledger.leased = shard->ledger.next_block;
    bool ledger = bel_shard_has_ledger(shard);
    const double *const *stats_list =
        ledger ? bel_ledger_stats_list_locked(shard) : shard->stats_list;
    bool over = first && ledger && bel_ledger_is_over_locked(shard);
    pthread_mutex_unlock(&shard->mutex);
    uint32_t decision = 0;
    const bel_shard_events *events = &shard->events;
    if (first) {
        bel_assignment_sum_f64(shard->config.assignment, stats_list, shard->config.stats_width,
                               shard->stats_sum);
    }
    bool good = !first || shard->stats_sum[BEL_STATS_NONFINITE] == 0; // a diverged step is not kept
    if (saved && good) events->snapshot_ready(events->context, shard->config.shard, version);
    if (first) decision = events->decide(events->context, version, shard->stats_sum, over);
    bool later = (decision & BEL_DECIDE_LATER) != 0;
    pthread_mutex_lock(&shard->mutex);
    shard->publishing = false;
    if (later) {
        bel_shard_answer_waiting_locked(shard);
        return false;
    }
    shard->step = version;
    publish_locked(shard, decision);
    bel_trace_end(event_of(shard, BEL_TRACE_PUBLISH, version), begun);
    return true;
}

// --- Frames --------------------------------------------------------------------------------------

static void take_report_locked(bel_shard *shard, const bel_frame *frame)
{
    if (!bel_shard_check_report_locked(shard, frame)) return;
    int local = bel_shard_local_chunk(shard, frame->chunk);
    bel_shard_chunk *chunk = &shard->chunks[local];
    if (chunk->nodes[frame->node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    if (!bel_shard_take_weight_locked(shard, frame, &chunk->weights[frame->node])) return;
    bel_shard_decision_known_locked(shard, frame->decision);
    chunk->nodes[frame->node] = frame->payload;
    if (++chunk->arrived == shard->config.assignment->node_count) {
        bel_shard_push_locked(shard,
                              (bel_shard_job){.kind = bel_shard_first_job(shard), .local = local});
    }
}

static void take_stats_locked(bel_shard *shard, const bel_frame *frame)
{
    if (!bel_shard_check_stats_locked(shard, frame)) return;
    bel_shard_decision_known_locked(shard, frame->decision);
    if (shard->stats_list[frame->node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    shard->stats_list[frame->node] = frame->payload;
    shard->stats_count++;
}

// A worker that repeats a step which is finished here is through with it: its last step statistics
// is here.
static bool catches_up(const bel_shard *shard, const bel_frame *frame, int worker)
{
    return worker >= 0 && frame->kind == BEL_FRAME_STATS && frame->step == shard->step - 1 &&
           frame->node == shard->config.assignment->first_node[worker + 1] - 1 &&
           shard->workers[worker].reader == BEL_READER_BEHIND &&
           shard->workers[worker].version == frame->step;
}

// `worker` is the lane's, -1: another shard's.
static void take_frame_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bool ours = worker < 0 || (frame->sender == worker &&
                               frame->incarnation == shard->workers[worker].incarnation);
    if (frame->generation != shard->config.generation || !ours) {
        shard->counters.foreign++;
        return;
    }
    shard->counters.received_bytes += (int64_t)frame->payload_bytes;
    bool norms = frame->kind == BEL_FRAME_NORMS || frame->kind == BEL_FRAME_FACTORS;
    if (bel_shard_has_ledger(shard) && !norms) {
        bel_ledger_take_frame_locked(shard, frame, worker);
        return;
    }
    if (frame->kind == BEL_FRAME_PULL && worker >= 0) {
        bel_shard_take_pull_locked(shard, worker, frame->step);
        return;
    }
    if (frame->kind == BEL_FRAME_ROW_PULL && worker >= 0) {
        bel_shard_take_row_pull_locked(shard, frame, worker);
        return;
    }
    if (frame->step > shard->step) { // nobody can report on a version that is not published
        bel_shard_fail_locked(shard, frame, "its step has not begun");
        return;
    }
    if (frame->step != shard->step || (shard->decision & BEL_DECIDE_STOP) != 0) {
        shard->counters.late++;
        if (catches_up(shard, frame, worker))
            bel_shard_send_whole_locked(shard, worker, shard->step);
        return;
    }
    switch (frame->kind) {
    case BEL_FRAME_REPORT: take_report_locked(shard, frame); break;
    case BEL_FRAME_STATS: take_stats_locked(shard, frame); break;
    case BEL_FRAME_NORMS:
    case BEL_FRAME_FACTORS:
        if (worker < 0) {
            bel_shard_take_norms_locked(shard, frame);
        } else {
            bel_shard_fail_locked(shard, frame, "a kind that workers do not send");
        }
        break;
    case BEL_FRAME_ROW_REPORT: bel_shard_take_rows_locked(shard, frame, worker); break;
    case BEL_FRAME_VERSION:
    case BEL_FRAME_PARAMS:
    case BEL_FRAME_PULL:
    case BEL_FRAME_LEDGER:
    case BEL_FRAME_ANSWER:
    case BEL_FRAME_LEASE:
    case BEL_FRAME_ROWS:
    case BEL_FRAME_ROW_PULL:
    case BEL_FRAME_KIND_COUNT:
        bel_shard_fail_locked(shard, frame, "a kind that shards do not take");
        break;
    }
}

static void drain_lane_locked(bel_shard *shard, bel_lane *lane, int worker)
{
    bel_frame frame;
    while (lane != NULL && shard->error == NULL && bel_lane_receive(lane, &frame))
        take_frame_locked(shard, &frame, worker);
}

static void drain_locked(bel_shard *shard)
{
    if (!shard->started || shard->admitting > 0) return;
    if (bel_shard_has_ledger(shard)) bel_ledger_send_mail_locked(shard);
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        drain_lane_locked(shard, shard->config.worker_lanes[w], w);
    int shards = shard->config.shard == 0 ? shard->config.layout->shard_count : 1;
    for (int k = 0; shard->config.layout->shard_count > 1 && k < shards; k++)
        drain_lane_locked(shard, shard->config.shard_lanes[k], -1);
}

// --- Members that are replaced -------------------------------------------------------------------

// True while something that was reported may be read.
static bool is_reading_locked(const bel_shard *shard)
{
    return shard->running > 0 || shard->publishing ||
           (shard->ready_count > 0 && shard->error == NULL);
}

static void forget_worker_locked(bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        for (int i = 0; i < shard->chunk_count; i++) {
            bel_shard_chunk *chunk = &shard->chunks[i];
            if (chunk->nodes[k] == NULL || chunk->arrived == assignment->node_count) continue;
            chunk->nodes[k] = NULL;
            chunk->arrived--;
        }
        if (shard->stats_list[k] == NULL) continue;
        shard->stats_list[k] = NULL;
        shard->stats_count--;
    }
    bel_shard_forget_rows_locked(shard, worker);
}

bel_lane *bel_shard_admit(bel_shard *shard, int worker, uint32_t incarnation, bel_lane *lane,
                          int64_t *out_step)
{
    enum { NAP_NS = 100000 };
    pthread_mutex_lock(&shard->mutex);
    // Chunks that are complete are passed first. Nothing is taken in meanwhile: where many workers
    // report as they come, there would be no end.
    shard->admitting++;
    while (is_reading_locked(shard)) {
        pthread_mutex_unlock(&shard->mutex);
        if (!bel_shard_work(shard)) (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        pthread_mutex_lock(&shard->mutex);
    }
    bel_lane *before = shard->config.worker_lanes[worker];
    shard->config.worker_lanes[worker] = lane;
    if (bel_shard_has_ledger(shard)) {
        bel_ledger_forget_locked(shard, worker);
        shard->workers[worker].incarnation = incarnation;
    } else {
        forget_worker_locked(shard, worker);
        shard->workers[worker] = (bel_shard_worker){.incarnation = incarnation};
    }
    *out_step = shard->step;
    shard->admitting--;
    if (bel_shard_has_ledger(shard)) bel_ledger_admitted_locked(shard);
    pthread_mutex_unlock(&shard->mutex);
    return before;
}

void bel_shard_restart(bel_shard *shard, uint32_t generation)
{
    pthread_mutex_lock(&shard->mutex);
    shard->config.generation = generation;
    shard->started = false;
    shard->counters.versions = 0;
    bel_status_ignore(shard->error); // of a state that is void
    shard->error = NULL;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        shard->workers[w] = (bel_shard_worker){.incarnation = shard->workers[w].incarnation};
    bel_ledger_reset_locked(shard);
    begin_step_locked(shard);
    shard->values_sent = 0;
    pthread_mutex_unlock(&shard->mutex);
}

// --- The engine ----------------------------------------------------------------------------------

void bel_shard_start(bel_shard *shard, const bel_shard_events *events)
{
    uint32_t decision = 0;
    shard->events = *events;
    if (shard->config.shard == 0) {
        pthread_mutex_lock(&shard->mutex);
        bool over = bel_shard_has_ledger(shard) && bel_ledger_is_over_locked(shard);
        pthread_mutex_unlock(&shard->mutex);
        decision = events->decide(events->context, shard->step, NULL, over);
    }
    pthread_mutex_lock(&shard->mutex);
    shard->started = true;
    publish_locked(shard, decision);
    pthread_mutex_unlock(&shard->mutex);
}

static void keep_error_locked(bel_shard *shard, bel_status *status)
{
    if (shard->error == NULL) {
        shard->error = status;
    } else {
        bel_status_ignore(status); // the first error is the story
    }
}

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
        bel_ledger_copied_locked(shard, job.worker);
        return;
    }
    shard->counters.passes++;
    shard->counters.pass_ns += spent_ns;
    if (job.kind == BEL_JOB_SUM) {
        shard->summed++;
        return;
    }
    shard->passed++;
    shard->chunks[job.local].passed = true;
    const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[job.local].chunk];
    bool sent = chunk->kind != BEL_VARIABLE_FROZEN && !bel_shard_has_ledger(shard);
    if (sent) bel_shard_send_passed_locked(shard, job.local);
}

// Runs one job, and publishes if it was the last. False: there is none.
static bool run_job_locked(bel_shard *shard)
{
    if (shard->ready_count == 0 || shard->error != NULL) return false;
    bel_shard_job job = shard->ready[--shard->ready_count];
    shard->running++;
    pthread_mutex_unlock(&shard->mutex);
    int64_t begun = bel_clock_ns();
    bel_fault_point("shard_passes");
    bel_status *status = bel_shard_run_job(shard, job);
    bel_fault_point("shard_passed");
    int64_t done = bel_clock_ns();
    if (bel_trace_is_on()) trace_job(shard, job, begun, done);
    pthread_mutex_lock(&shard->mutex);
    shard->running--;
    if (status == NULL) finish_job_locked(shard, job, done - begun);
    if (status != NULL) keep_error_locked(shard, status);
    bel_shard_move_norms_locked(shard);
    try_publish_locked(shard);
    return true;
}

// Takes frames and publishes what is finished; true when it did publish.
static bool poll_locked(bel_shard *shard)
{
    drain_locked(shard);
    bel_shard_move_norms_locked(shard);
    return try_publish_locked(shard);
}

bool bel_shard_work(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    bool published = poll_locked(shard);
    bool ran = run_job_locked(shard);
    pthread_mutex_unlock(&shard->mutex);
    return published || ran;
}

// Takes no frames: who found the next step's here would go on with it, and leave the thread that
// calls the team waiting.
static void run_what_is_ready(void *context, int64_t tile)
{
    (void)tile;
    bel_shard *shard = context;
    pthread_mutex_lock(&shard->mutex);
    while (run_job_locked(shard)) {
    }
    pthread_mutex_unlock(&shard->mutex);
}

bool bel_shard_work_together(bel_shard *shard, bel_team *team)
{
    pthread_mutex_lock(&shard->mutex);
    bool published = poll_locked(shard);
    int ready = shard->error == NULL ? shard->ready_count : 0;
    pthread_mutex_unlock(&shard->mutex);
    if (ready > 1) bel_team_run(team, run_what_is_ready, shard, bel_team_size(team));
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

bel_shard_counters bel_shard_count(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    bel_shard_counters counters = shard->counters;
    counters.queue = shard->ready_count + shard->running + shard->ledger.queue_count;
    pthread_mutex_unlock(&shard->mutex);
    return counters;
}

// Where everybody counts, each version but the first was made of a report of each.
bel_shard_reports bel_shard_count_reports(bel_shard *shard, int worker)
{
    pthread_mutex_lock(&shard->mutex);
    const bel_shard_worker *w = &shard->workers[worker];
    int64_t made = shard->counters.versions > 0 ? shard->counters.versions - 1 : 0;
    bel_shard_reports reports = {.counted = bel_shard_has_ledger(shard) ? w->lead : made,
                                 .stale = w->stale,
                                 .dropped = w->dropped};
    pthread_mutex_unlock(&shard->mutex);
    return reports;
}

// Workers whose step statistics are missing; they follow a worker's last report.
static int name_missing_locked(const bel_shard *shard, bel_str *out_words)
{
    const bel_assignment *assignment = shard->config.assignment;
    int missing = 0;
    for (int w = 0; w < assignment->worker_count; w++) {
        bool here = !bel_shard_has_ledger(shard) || shard->workers[w].complete;
        for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++)
            here = here && (bel_shard_has_ledger(shard) || shard->stats_list[k] != NULL);
        if (here) continue;
        bel_str_printf(out_words, "%s%d", missing++ > 0 ? ", " : "waits for reports of worker ", w);
    }
    return missing;
}

int64_t bel_shard_doing(bel_shard *shard, bel_str *out_words)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t step = shard->step;
    if (name_missing_locked(shard, out_words) == 0) {
        bool idle = shard->ready_count == 0;
        bool norms = shard->needs_norm && !shard->factors_known && idle;
        bool unnamed =
            bel_shard_has_ledger(shard) && !bel_ledger_page_of(shard, shard->step)->known;
        bel_str_puts(out_words, unnamed && idle ? "waits for shard 0 to say who counts"
                                : norms         ? "waits for norms of other shards"
                                                : "updates");
    }
    pthread_mutex_unlock(&shard->mutex);
    return step;
}
