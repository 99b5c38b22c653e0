// A shard where one report makes a step: shard 0 names its worker, leases blocks, and answers.
#include "model/cluster.h"

// Origin of a worker's report, and an entry of a history: its block, the versions that it was
// computed on, the worker.
static uint16_t content_of(const bel_model_frame *frame, int worker)
{
    return (uint16_t)(frame->block | frame->step << 4 | frame->other << 6 | worker << 8);
}

enum { ENTRY_BITS = 9, ENTRY = (1 << ENTRY_BITS) - 1 };

static bool is_stopping(const bel_model_shard *shard)
{
    return shard->decision_known && (shard->decision & STOP) != 0;
}

static void forget_report(bel_model_shard *shard, int worker)
{
    shard->reports &= (uint8_t) ~(1 << worker);
    shard->stats_list &= (uint8_t) ~(1 << worker);
    shard->report[worker] = 0;
    shard->report_incarnation[worker] = 0;
}

// --- Leases --------------------------------------------------------------------------------------

static uint8_t next_lease(bel_model_shard *shard)
{
    if (shard->returned_count == 0) return shard->next_block++;
    uint8_t first = shard->returned[0];
    shard->returned_count--;
    memmove(shard->returned, shard->returned + 1, shard->returned_count);
    shard->returned[shard->returned_count] = 0;
    return first;
}

static void lease(bel_cluster *s, int worker)
{
    bel_model_shard *shard = &s->shards[0];
    while (shard->lease_count[worker] < 2) {
        uint8_t block = next_lease(shard);
        shard->leases[worker][shard->lease_count[worker]++] = block;
        if (!bel_lane_is_open(s, worker, 0)) continue;
        bel_queue_frame(s, &s->down[worker][0], (bel_model_frame){.kind = LEASE, .block = block});
    }
}

static void use_up_lease(bel_model_shard *shard, int worker)
{
    if (shard->lease_count[worker] == 0) return;
    shard->leases[worker][0] = shard->leases[worker][1];
    shard->leases[worker][1] = 0;
    shard->lease_count[worker]--;
}

// --- Answers -------------------------------------------------------------------------------------

static void announce(bel_cluster *s, int k, int worker, uint8_t version, uint8_t copied)
{
    if (!bel_lane_is_open(s, worker, k)) return;
    bel_queue_frame(
        s, &s->down[worker][k],
        (bel_model_frame){
            .kind = VERSION, .step = version, .decision = s->shards[k].decision, .other = copied});
}

static void answer(bel_cluster *s, int k, int worker, uint8_t version)
{
    bel_model_shard *shard = &s->shards[k];
    forget_report(shard, worker);
    shard->sent[worker] = (uint8_t)(version + 1);
    shard->held &= (uint8_t) ~(1 << worker);
    if (k == 0) {
        bel_queue_frame(s, &s->ledger,
                        (bel_model_frame){.kind = ANSWER,
                                          .step = version,
                                          .decision = shard->decision,
                                          .block = shard->lane_incarnation[worker],
                                          .other = (uint8_t)worker});
    }
    if (is_stopping(shard)) {
        announce(s, k, worker, version, shard->step);
        return;
    }
    if (k == 0) lease(s, worker);
    shard->copying[worker] = 1;
    shard->answer[worker] = version;
}

static void copy(const bel_reporter *look, int k, int worker)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[k];
    uint8_t place = s.workers[worker].place, version = shard->answer[worker];
    bool computes = place == REPORTS_1 || place == REPORTS_0;
    if (computes && bel_lane_is_open(&s, worker, k)) bel_break(&s, COPY_WHILE_COMPUTING);
    bool whole = shard->buffers[bel_shard_buffer(shard, shard->step)] == shard->step;
    if (!whole || version != shard->step) bel_break(&s, SENDS_OTHER_VERSION);
    shard->copying[worker] = shard->answer[worker] = 0;
    announce(&s, k, worker, version, shard->step);
    bel_emit(look, &s, "shard", k, "has copied its values for worker", worker);
}

// --- The worker that counts ----------------------------------------------------------------------

bool bel_ledger_counts(const bel_model_shard *shard, int worker)
{
    int page = shard->step % PAGES;
    return shard->page_known[page] && (shard->page_worker[page] & 1) == worker;
}

bool bel_ledger_can_pass(const bel_model_shard *shard)
{
    for (int w = 0; w < WORKERS; w++)
        if (bel_ledger_counts(shard, w)) return (shard->reports >> w & 1) != 0;
    return false;
}

bool bel_ledger_step_done(const bel_reporter *look, const bel_model_shard *shard)
{
    bool done = false;
    for (int w = 0; w < WORKERS; w++) {
        bool waits = look->config->defect != ANSWERS_WHILE_PUBLISHING && shard->copying[w] > 0;
        if (waits) return false;
        if (bel_ledger_counts(shard, w)) done = (shard->stats_list >> w & 1) != 0;
    }
    return done;
}

static void page_known(bel_model_shard *shard)
{
    int page = shard->step % PAGES;
    if (shard->page_known[page]) bel_shard_learns(shard, shard->page_worker[page] >> 1);
}

static void close_page(const bel_reporter *look, bel_cluster *s)
{
    bel_model_shard *shard = &s->shards[0];
    int page = shard->step % PAGES;
    if (shard->page_known[page] || is_stopping(shard) || shard->queue_count == 0) return;
    uint8_t worker = shard->queue[0];
    shard->page_known[page] = 1;
    shard->page_worker[page] = (uint8_t)(worker | shard->decision << 1);
    shard->counted[worker] = (uint8_t)(shard->step + 1);
    bel_queue_frame(
        s, &s->ledger,
        (bel_model_frame){
            .kind = LEDGER, .step = shard->step, .decision = shard->decision, .other = worker});
    if (look->config->defect == NAMED_TWICE) return;
    shard->queue_count--;
    memmove(shard->queue, shard->queue + 1, shard->queue_count);
    shard->queue[shard->queue_count] = 0;
}

// The values become the list of their origins.
void bel_ledger_passed(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    const bel_model_shard *other = &s->shards[1 - k];
    uint32_t content = 0;
    for (int w = 0; w < WORKERS; w++)
        if (bel_ledger_counts(shard, w)) content = shard->report[w];
    uint8_t version = content >> 4 & 3, version_1 = content >> 6 & 3;
    bool newest = version == shard->step && version_1 == shard->step;
    if (!look->config->takes_stale && !newest) bel_break(s, STALE_COUNTED);
    for (int i = 0; i < shard->step; i++)
        if ((shard->history >> (ENTRY_BITS * i) & 15) == (content & 15))
            bel_break(s, BLOCK_USED_TWICE);
    shard->history |= content << (ENTRY_BITS * shard->step);
    bool same = other->generation == shard->generation && other->step + other->passed > shard->step;
    uint32_t others = other->history >> (ENTRY_BITS * shard->step) & ENTRY;
    if (same && others != content) bel_break(s, HISTORIES_DIFFER);
}

// --- After a step --------------------------------------------------------------------------------

static void answer_workers(const bel_reporter *look, bel_cluster *s, int counted)
{
    bel_model_shard *shard = &s->shards[0];
    const bel_cluster_config *config = look->config;
    shard->lead[counted]++;
    shard->held |= (uint8_t)(1 << counted);
    use_up_lease(shard, counted);
    for (int i = 0; i < shard->queue_count && !config->takes_stale; i++) {
        use_up_lease(shard, shard->queue[i]);
        shard->held |= (uint8_t)(1 << shard->queue[i]);
    }
    if (!config->takes_stale) {
        shard->queue_count = 0;
        memset(shard->queue, 0, sizeof shard->queue);
    }
    uint8_t slowest = shard->lead[0] < shard->lead[1] ? shard->lead[0] : shard->lead[1];
    for (int w = 0; w < WORKERS; w++) {
        bool may = config->max_lead < 0 || shard->lead[w] - slowest <= config->max_lead;
        bool due = (shard->held >> w & 1) != 0 && may;
        bool last = is_stopping(shard) && shard->sent[w] > 0;
        if (due || last) answer(s, 0, w, shard->step);
    }
    if (config->max_lead < 0) memset(shard->lead, 0, sizeof shard->lead); // unused
}

void bel_ledger_published(const bel_reporter *look, bel_cluster *s, int k)
{
    bel_model_shard *shard = &s->shards[k];
    int before = (shard->step - 1) % PAGES;
    for (int w = 0; w < WORKERS; w++)
        if (shard->copying[w] > 0) bel_break(s, PUBLISHED_WHILE_COPYING);
    if (k == 0) answer_workers(look, s, shard->page_worker[before] & 1);
    shard->page_known[before] = shard->page_worker[before] = 0;
    if (k == 0) close_page(look, s);
    page_known(shard);
}

// --- Frames --------------------------------------------------------------------------------------

static void owe(const bel_reporter *look, bel_cluster *s, int worker)
{
    bel_model_shard *shard = &s->shards[0];
    bool publishes = shard->publishing > 0 && look->config->defect != ANSWERS_WHILE_PUBLISHING;
    bool closed = shard->page_known[shard->step % PAGES] > 0 &&
                  look->config->defect != ANSWERS_BEHIND_LEDGER &&
                  look->config->defect != ANSWERS_WHILE_PUBLISHING;
    if (publishes || closed) {
        shard->held |= (uint8_t)(1 << worker);
    } else {
        answer(s, 0, worker, shard->step);
    }
}

static void take_complete(const bel_reporter *look, bel_cluster *s, int worker)
{
    bel_model_shard *shard = &s->shards[0];
    bool strict = !look->config->takes_stale && look->config->defect != STALE_REPORT_COUNTS;
    if (strict && shard->sent[worker] - 1 < shard->step) {
        use_up_lease(shard, worker);
        owe(look, s, worker);
        return;
    }
    if (shard->queue_count == sizeof shard->queue) {
        bel_break(s, QUEUE_OVERFLOWS);
        return;
    }
    shard->queue[shard->queue_count++] = (uint8_t)worker;
    close_page(look, s);
}

static void take_pull(const bel_reporter *look, bel_cluster *s, int worker)
{
    const bel_model_shard *shard = &s->shards[0];
    bool begins = shard->sent[worker] == 0 && (shard->held >> worker & 1) == 0;
    if (begins) owe(look, s, worker);
}

const char *bel_ledger_takes(const bel_reporter *look, bel_cluster *s, int k, int worker)
{
    bel_model_shard *shard = &s->shards[k];
    bel_model_frame frame = bel_take_frame(&s->up[worker][k]);
    uint8_t bit = (uint8_t)(1 << worker);
    if (frame.kind == PULL) {
        take_pull(look, s, worker);
        return "takes the pull of worker";
    }
    if (frame.step + 1 != shard->sent[worker] || is_stopping(shard)) {
        return "drops a late frame of worker";
    }
    if (frame.kind == REPORT) {
        if ((shard->reports & bit) != 0) return "drops a repeated report of worker";
        shard->reports |= bit;
        shard->report[worker] = content_of(&frame, worker);
        shard->report_incarnation[worker] = shard->lane_incarnation[worker];
        return "takes the report of worker";
    }
    shard->stats_list |= bit;
    if (k == 0) take_complete(look, s, worker);
    return "takes the step statistics of worker";
}

void bel_ledger_forgets(bel_cluster *s, int k, int worker, bool keeps)
{
    bel_model_shard *shard = &s->shards[k];
    if (!keeps) forget_report(shard, worker);
    int kept = 0;
    for (int i = 0; i < shard->queue_count && !keeps; i++)
        if (shard->queue[i] != worker) shard->queue[kept++] = shard->queue[i];
    for (int i = kept; i < shard->queue_count && !keeps; i++)
        shard->queue[i] = 0;
    if (!keeps) shard->queue_count = (uint8_t)kept;
    for (int i = 0; i < shard->lease_count[worker]; i++) {
        shard->returned[shard->returned_count++] = shard->leases[worker][i];
        shard->leases[worker][i] = 0;
    }
    shard->lease_count[worker] = 0;
    shard->held &= (uint8_t) ~(1 << worker);
    shard->sent[worker] = 0;
}

static void take_page(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[1];
    bel_model_frame frame = bel_take_frame(&s.ledger);
    int page = frame.step % PAGES;
    if (frame.step >= shard->step + PAGES - 1 || frame.step < shard->step) {
        bel_break(&s, PAGE_UNKNOWN);
    }
    shard->page_known[page] = 1;
    shard->page_worker[page] = (uint8_t)(frame.other | frame.decision << 1);
    if (frame.step == shard->step) page_known(shard);
    bel_emit(look, &s, "shard", 1, "hears who counts in step", frame.step);
}

// Shard 1 sends exactly the version that shard 0 has answered with.
static void take_answer(const bel_reporter *look)
{
    bel_cluster s = *look->now;
    bel_model_shard *shard = &s.shards[1];
    bel_model_frame frame = bel_take_frame(&s.ledger);
    if ((frame.decision & STOP) != 0) bel_shard_learns(shard, STOP);
    if (shard->lane_incarnation[frame.other] == frame.block) answer(&s, 1, frame.other, frame.step);
    bel_emit(look, &s, "shard", 1, "gives what shard 0 has answered to worker", frame.other);
}

static bool hears_page(const bel_cluster *now, int k)
{
    bool same = now->shards[0].generation == now->shards[1].generation;
    return k == 1 && same && now->processes[0].life == UP && now->ledger.count > 0;
}

// An answer waits until shard 1 has its version; so do the messages after it.
static void hear(const bel_reporter *look)
{
    const bel_model_shard *shard = &look->now->shards[1];
    bel_model_frame frame = bel_first_frame(&look->now->ledger);
    if (frame.kind == LEDGER) {
        take_page(look);
    } else if (frame.step == shard->step && shard->publishing == 0) {
        take_answer(look);
    }
}

void bel_ledger_moves(const bel_reporter *look, int k)
{
    const bel_model_shard *shard = &look->now->shards[k];
    for (int w = 0; w < WORKERS; w++)
        if (shard->copying[w] > 0) copy(look, k, w);
    if (hears_page(look->now, k)) hear(look);
}

bool bel_ledger_hurries(const bel_reporter *look, int k)
{
    const bel_model_shard *shard = &look->now->shards[k];
    bool waits = look->config->defect != ANSWERS_WHILE_PUBLISHING; // waits for copies
    for (int w = 0; w < WORKERS && waits; w++) {
        if (shard->copying[w] == 0) continue;
        copy(look, k, w);
        return true;
    }
    if (!hears_page(look->now, k)) return false;
    if (bel_first_frame(&look->now->ledger).kind == ANSWER) return false; // may forget a report
    take_page(look);
    return true;
}

// --- The worker's side ---------------------------------------------------------------------------

static bool is_answered(const bel_model_worker *worker)
{
    bool stops = (worker->decision & STOP) != 0;
    return worker->published[0] > worker->step && (stops || worker->lease_count > 0);
}

bool bel_ledger_worker_begins(bel_cluster *s, int w)
{
    bel_model_worker *worker = &s->workers[w];
    if (!is_answered(worker) || worker->published[1] < worker->published[0]) return false;
    worker->step = worker->published[0];
    if ((worker->decision & STOP) != 0) {
        worker->place = HAS_ENDED;
        return true;
    }
    if (worker->got != worker->step - 1) bel_break(s, READS_OTHER_VERSION);
    worker->block = worker->leases[0];
    worker->lease_count--;
    memmove(worker->leases, worker->leases + 1, worker->lease_count);
    worker->leases[worker->lease_count] = 0;
    worker->place = REPORTS_1;
    return true;
}
