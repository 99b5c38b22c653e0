// A worker: it pulls, waits for versions, computes and reports, step after step.
#include "model/cluster.h"

// --- Frames of shards ----------------------------------------------------------------------------

static void take_version(const bel_reporter *look, bel_cluster *s, int w, int k,
                         const bel_model_frame *frame)
{
    bel_model_worker *worker = &s->workers[w];
    const bel_cluster_config *config = look->config;
    worker->published[k] = (uint8_t)(frame->step + 1);
    if (k == 0) worker->decision = frame->decision;
    bool copied = (frame->decision & STOP) == 0; // else the frame has no version
    if (k == 1 && config->ledger && copied) worker->got = frame->other;
    if (!config->in_place || config->ledger) return;
    bool masters = config->defect == PLACE_BY_MASTERS_WORD;
    worker->buffer[k] = masters ? (uint8_t)(frame->step - worker->loaded) & 1 : frame->other;
}

static const char *take_frame(const bel_reporter *look, bel_cluster *s, int w, int k)
{
    bel_model_worker *worker = &s->workers[w];
    bel_model_frame frame = bel_take_frame(&s->down[w][k]);
    if (frame.kind == ROWS) {
        bel_break(s, ROWS_OF_OTHER_VERSION); // after the report
        return "takes rows of shard";
    }
    if (frame.kind == LEASE) {
        if (worker->lease_count == sizeof worker->leases) bel_break(s, QUEUE_OVERFLOWS);
        if (s->broken == ALL_HOLD) worker->leases[worker->lease_count++] = frame.block;
        return "takes a lease of shard";
    }
    if (frame.step < worker->published[k]) return "drops a late frame of shard";
    if (frame.kind == PARAMS) {
        if (frame.first != (worker->published[k] == 0)) bel_break(s, VALUES_OVERWRITTEN);
        worker->buffer[k] = frame.step;
        return "takes values of shard";
    }
    if (frame.first && worker->buffer[k] != frame.step) bel_break(s, VALUES_OVERWRITTEN);
    take_version(look, s, w, k, &frame);
    return "takes a version of shard";
}

static bool wants_frames(const bel_reporter *look, const bel_model_worker *worker, int k)
{
    return worker->place == WAITS && (look->config->ledger || worker->published[k] <= worker->step);
}

// --- Computing -----------------------------------------------------------------------------------

// If a shard is gone or has restarted, its lane drops the frame.
void bel_worker_send(bel_cluster *s, int w, int k, bel_model_frame frame)
{
    const bel_model_shard *shard = &s->shards[k];
    bool waits = s->processes[k].life == UP && shard->generation < s->workers[w].generation;
    if (waits || bel_lane_is_open(s, w, k)) bel_queue_frame(s, &s->up[w][k], frame);
}

static void report(const bel_reporter *look, bel_cluster *s, int w, int k, uint8_t kind)
{
    const bel_model_worker *worker = &s->workers[w];
    bool ledger = look->config->ledger;
    bel_worker_send(s, w, k,
                    (bel_model_frame){.kind = kind,
                                      .step = (uint8_t)(worker->step - (ledger ? 1 : 0)),
                                      .decision = worker->decision,
                                      .block = worker->block,
                                      .other = worker->got});
}

// In place, each chunk's gradient is computed from the buffers of all shards.
static void check_reads(const bel_reporter *look, bel_cluster *s, int w)
{
    const bel_model_worker *worker = &s->workers[w];
    if (look->config->ledger || !look->config->in_place) return;
    for (int k = 0; k < SHARDS; k++) {
        uint8_t version = s->shards[k].buffers[worker->buffer[k]];
        if (bel_lane_is_open(s, w, k) && version != worker->step) {
            bel_break(s, READS_OTHER_VERSION);
        }
    }
}

static bool begins_step(const bel_reporter *look, bel_cluster *s, int w)
{
    bel_model_worker *worker = &s->workers[w];
    if (look->config->ledger) return bel_ledger_worker_begins(s, w);
    for (int k = 0; k < SHARDS; k++)
        if (worker->published[k] <= worker->step) return false;
    uint8_t next = look->config->tables ? PULLS_ROWS : REPORTS_1;
    worker->place = (worker->decision & STOP) != 0 ? HAS_ENDED : next;
    return true;
}

static const char *compute(const bel_reporter *look, bel_cluster *s, int w)
{
    bel_model_worker *worker = &s->workers[w];
    switch ((bel_worker_place)worker->place) {
    case PULLS:
        for (int k = 0; k < (look->config->ledger ? 1 : SHARDS); k++)
            bel_worker_send(s, w, k, (bel_model_frame){.kind = PULL, .step = worker->step});
        worker->place = WAITS;
        return "pulls";
    case WAITS: return begins_step(look, s, w) ? "begins its step" : NULL;
    case PULLS_ROWS:
    case WAITS_FOR_ROWS: return bel_rows_compute(look, s, w);
    case REPORTS_1:
    case REPORTS_0:
        check_reads(look, s, w);
        report(look, s, w, worker->place == REPORTS_1 ? 1 : 0, REPORT);
        if (look->config->tables)
            report(look, s, w, worker->place == REPORTS_1 ? 1 : 0, ROW_REPORT);
        worker->place++;
        return "reports to a shard";
    case STATS_LIST_0:
        report(look, s, w, 0, STATS);
        worker->place++;
        return "sends its step statistics to shard 0";
    case STATS_LIST_1:
        report(look, s, w, 1, STATS);
        worker->place = WAITS;
        worker->block = 0;
        if (!look->config->ledger) worker->step++;
        return "sends its step statistics to shard 1, and waits";
    case HAS_ENDED:
        if (worker->told || !s->processes[SHARDS + w].connected) return NULL;
        worker->told = 1;
        bel_send_master(s, SHARDS + w,
                        (bel_model_message){.kind = ENDED, .generation = worker->generation});
        return "tells that it ended";
    default: return NULL;
    }
}

// --- Messages of the master ----------------------------------------------------------------------

static const char *obey(bel_cluster *s, int w)
{
    bel_model_worker *worker = &s->workers[w];
    bel_model_message message = bel_take_message(&s->from_master[SHARDS + w]);
    if (message.kind == END && message.flag) {
        worker->may_go = 1;
        return "hears that it may leave";
    }
    if (message.kind == END) {
        s->processes[SHARDS + w].life = OVER;
        memset(worker, 0, sizeof *worker);
        s->processes[SHARDS + w].connected = 0;
        memset(&s->from_master[SHARDS + w], 0, sizeof s->from_master[0]);
        return "hears that the job is over, for it";
    }
    memset(worker, 0, sizeof *worker);
    worker->generation = message.generation;
    worker->loaded = message.first;
    worker->step = message.step;
    worker->place = PULLS;
    for (int k = 0; k < SHARDS; k++)
        memset(&s->up[w][k], 0, sizeof s->up[w][k]);
    return "begins anew";
}

static bool take_from(const bel_reporter *look, int w, int k)
{
    bool open = bel_lane_is_open(look->now, w, k) && look->now->down[w][k].count > 0;
    if (!open || !wants_frames(look, &look->now->workers[w], k)) return false;
    bel_cluster s = *look->now;
    const char *what = take_frame(look, &s, w, k);
    bel_emit(look, &s, "worker", w, what, k);
    return true;
}

static void go_on(const bel_reporter *look, int w)
{
    bel_cluster s = *look->now;
    const char *what = compute(look, &s, w);
    if (what != NULL) bel_emit(look, &s, "worker", w, what, -1);
}

// A process that may go exits after its step, when its frames have arrived.
static void leave(const bel_reporter *look, int w)
{
    uint8_t place = look->now->workers[w].place;
    bool in_step = place >= PULLS_ROWS && place <= STATS_LIST_1;
    for (int k = 0; k < SHARDS; k++)
        in_step = in_step || (bel_lane_is_open(look->now, w, k) && look->now->up[w][k].count > 0);
    if (in_step) return;
    bel_cluster s = *look->now;
    bel_process_ends(&s, SHARDS + w, false);
    bel_emit(look, &s, "worker", w, "leaves", -1);
}

// With a ledger a worker with an answer may learn of the end before it begins.
static bool may_take(const bel_reporter *look, const bel_model_worker *worker, int k)
{
    if (!look->config->ledger) return look->config->in_place;
    return k == 1 || worker->published[0] <= worker->step;
}

bool bel_worker_hurries(const bel_reporter *look, int w)
{
    const bel_model_worker *worker = &look->now->workers[w];
    if (worker->generation == 0) return false;
    bool ledger_sends = look->config->ledger && worker->place == REPORTS_0;
    bool sends = worker->place == PULLS || worker->place == STATS_LIST_0 ||
                 worker->place == STATS_LIST_1 || worker->place == PULLS_ROWS || ledger_sends;
    if (sends && bel_worker_stays(look, w)) {
        go_on(look, w);
        return true;
    }
    for (int k = 0; k < SHARDS; k++) {
        if (worker->place == WAITS_FOR_ROWS && bel_rows_take(look, w, k)) return true;
        if (may_take(look, worker, k) && take_from(look, w, k)) return true;
    }
    return false;
}

void bel_worker_moves(const bel_reporter *look, int w)
{
    if (look->now->from_master[SHARDS + w].count > 0) {
        bel_cluster s = *look->now;
        const char *what = obey(&s, w);
        if (look->config->ledger) s.workers[w].step = 0;
        bel_emit(look, &s, "worker", w, what, -1);
    }
    if (look->now->workers[w].may_go) leave(look, w);
    if (look->now->workers[w].generation == 0) return;
    for (int k = 0; k < SHARDS; k++)
        (void)take_from(look, w, k);
    go_on(look, w);
}
