// Steps of some workers' reports: who counts, who is answered, and with what.
//
// A worker's report stays where it is until the worker is answered; then all that is kept of it is
// forgotten, as it computes anew. Shard 0 answers those whose reports were used or dropped. The
// other shards are told of each answer and give the worker the same version, when they stand at it:
// a step is not closed before all answers with its version are known, so none is passed by.
#include <string.h>

#include "base/alloc.h"
#include "ps/server/shard_inner.h"

// --- Life ----------------------------------------------------------------------------------------

static void reset_worker(bel_shard_worker *worker)
{
    *worker = (bel_shard_worker){.incarnation = worker->incarnation,
                                 .version = -1,
                                 .counted_step = worker->counted_step,
                                 .lead = worker->lead,
                                 .dropped = worker->dropped,
                                 .stale = worker->stale,
                                 .leased = 0};
}

void bel_ledger_create(bel_shard *shard)
{
    if (!bel_shard_has_ledger(shard)) return;
    bel_ledger *ledger = &shard->ledger;
    size_t workers = (size_t)shard->config.assignment->worker_count;
    size_t nodes = (size_t)shard->config.assignment->node_count;
    // Each page of a step that is not finished everywhere names a worker who still waits for it.
    ledger->page_count = (int)workers + 2;
    ledger->pages = bel_xcalloc((size_t)ledger->page_count, sizeof *ledger->pages);
    for (int i = 0; i < ledger->page_count; i++)
        ledger->pages[i].counts = bel_xcalloc(workers, sizeof(bool));
    size_t shards = (size_t)shard->config.layout->shard_count;
    ledger->mail = bel_xcalloc(shards, sizeof *ledger->mail);
    ledger->queue = bel_xcalloc(workers, sizeof *ledger->queue);
    ledger->returned = bel_xcalloc(2 * workers, sizeof *ledger->returned);
    ledger->stats_list = bel_xcalloc(nodes * (size_t)shard->config.stats_width, sizeof(double));
    ledger->counting = bel_xcalloc(nodes, sizeof *ledger->counting);
    bel_ledger_reset_locked(shard);
}

void bel_ledger_destroy(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < ledger->page_count; i++)
        bel_free(ledger->pages[i].counts);
    bel_free(ledger->pages);
    for (int k = 0; ledger->mail != NULL && k < shard->config.layout->shard_count; k++)
        bel_free(ledger->mail[k].frames);
    bel_free(ledger->mail);
    bel_free(ledger->waiting);
    bel_free(ledger->queue);
    bel_free(ledger->returned);
    bel_free(ledger->stats_list);
    bel_free(ledger->counting);
}

static void clear_page(const bel_shard *shard, bel_ledger_page *page)
{
    memset(page->counts, 0, (size_t)shard->config.assignment->worker_count * sizeof *page->counts);
    page->known = false;
    page->named = page->needed = 0;
}

// What is known of a worker's report and not of use any more.
static void forget_report_locked(bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        shard->stats_list[k] = NULL;
        for (int i = 0; i < shard->chunk_count; i++)
            shard->chunks[i].nodes[k] = NULL;
        for (int t = 0; shard->tables != NULL && t < shard->config.layout->table_count; t++)
            shard->tables[t].reported[k] = false;
    }
    shard->workers[worker].complete = false;
}

void bel_ledger_reset_locked(bel_shard *shard)
{
    if (!bel_shard_has_ledger(shard)) return;
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < ledger->page_count; i++)
        clear_page(shard, &ledger->pages[i]);
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        forget_report_locked(shard, w);
        reset_worker(&shard->workers[w]);
        shard->workers[w].counted_step = -1;
        shard->workers[w].lead = shard->workers[w].dropped = shard->workers[w].stale = 0;
    }
    for (int k = 0; k < shard->config.layout->shard_count; k++)
        ledger->mail[k].count = 0;
    memset(ledger->stale, 0, sizeof ledger->stale);
    ledger->queue_count = ledger->returned_count = ledger->copies = 0;
    ledger->answers = 0;
    ledger->waiting_count = 0;
}

void bel_shard_lease_from(bel_shard *shard, int64_t first_block, int64_t block_end)
{
    shard->ledger.next_block = shard->ledger.leased = first_block;
    shard->ledger.block_end = block_end;
}

// --- Leases --------------------------------------------------------------------------------------

static bool has_blocks(const bel_ledger *ledger)
{
    return ledger->returned_count > 0 || ledger->next_block < ledger->block_end;
}

// Blocks for one more step of a worker, while there are any: those that came back first.
static int64_t next_lease(bel_shard *shard, int worker)
{
    bel_ledger *ledger = &shard->ledger;
    if (ledger->returned_count > 0) {
        int64_t first = ledger->returned[0];
        ledger->returned_count--;
        memmove(ledger->returned, ledger->returned + 1,
                (size_t)ledger->returned_count * sizeof *ledger->returned);
        return first;
    }
    int64_t first = ledger->next_block;
    ledger->next_block += bel_assignment_replicas(shard->config.assignment, worker);
    return first;
}

static void send_lease_locked(bel_shard *shard, int worker, int64_t first_block)
{
    bel_shard_worker *w = &shard->workers[worker];
    bel_shard_send_locked(
        shard, shard->config.worker_lanes[worker],
        (bel_frame){.kind = BEL_FRAME_LEASE, .step = first_block, .count = w->leased++});
}

// Two in hand: those of the next step, and those after it, which are read meanwhile. A worker for
// which there are none at all is told so, and waits for the end.
static void lease_locked(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    while (w->lease_count < 2 && has_blocks(&shard->ledger)) {
        int64_t first = next_lease(shard, worker);
        w->leases[w->lease_count++] = first;
        send_lease_locked(shard, worker, first);
    }
    if (w->lease_count == 0) send_lease_locked(shard, worker, BEL_LEASE_NONE);
}

static void use_up_lease(bel_shard_worker *worker)
{
    if (worker->lease_count == 0) return;
    worker->leases[0] = worker->leases[1];
    worker->lease_count--;
}

static void return_leases_locked(bel_shard *shard, bel_shard_worker *worker)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < worker->lease_count; i++)
        ledger->returned[ledger->returned_count++] = worker->leases[i];
    worker->lease_count = 0;
}

// --- Answers -------------------------------------------------------------------------------------

static bool is_stopping(const bel_shard *shard)
{
    return shard->decision_known && (shard->decision & BEL_DECIDE_STOP) != 0;
}

static void announce_locked(bel_shard *shard, int worker, int64_t version)
{
    bel_lane *lane = shard->config.worker_lanes[worker];
    bool reads = bel_shard_reads_in_place(shard, worker);
    int sent = 0;
    for (int i = 0; i < shard->chunk_count && !reads && !is_stopping(shard); i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        bool frozen = chunk->kind == BEL_VARIABLE_FROZEN;
        if (frozen && shard->workers[worker].reader != BEL_READER_NONE) continue;
        bel_shard_send_locked(shard, lane,
                              (bel_frame){.kind = BEL_FRAME_PARAMS,
                                          .step = version,
                                          .chunk = shard->chunks[i].chunk,
                                          .payload = shard->config.outboxes[worker] + chunk->offset,
                                          .payload_bytes = (size_t)chunk->count * sizeof(float)});
        sent++;
    }
    shard->workers[worker].reader = BEL_READER_BEHIND;
    bel_shard_send_locked(shard, lane,
                          (bel_frame){.kind = BEL_FRAME_VERSION,
                                      .step = version,
                                      .decision = shard->decision,
                                      .chunk = sent});
}

// What shard k has still to be told.
static void put_mail(bel_shard *shard, int k, bel_frame frame)
{
    bel_ledger_mail *mail = &shard->ledger.mail[k];
    mail->frames = bel_xgrow(mail->frames, &mail->capacity, mail->count + 1, sizeof *mail->frames);
    mail->frames[mail->count++] = frame;
}

// Shard 0: the other shards give the worker the same version.
static void tell_answer_locked(bel_shard *shard, int worker, int64_t version)
{
    for (int k = 1; k < shard->config.layout->shard_count; k++) {
        put_mail(shard, k,
                 (bel_frame){.kind = BEL_FRAME_ANSWER,
                             .incarnation = shard->workers[worker].incarnation,
                             .step = version,
                             .decision = shard->decision,
                             .node = worker,
                             .count = shard->ledger.answers});
    }
    shard->ledger.answers++;
    bel_ledger_send_mail_locked(shard);
}

// The worker has nothing under way and gets the values of this step, which is `version`. Where
// training stops it needs none, and may still be computing.
static void answer_locked(bel_shard *shard, int worker, int64_t version)
{
    bel_shard_worker *w = &shard->workers[worker];
    forget_report_locked(shard, worker);
    w->version = w->answer = version;
    w->held = false;
    if (shard->config.shard == 0) tell_answer_locked(shard, worker, version);
    if (shard->config.shard == 0 && !is_stopping(shard)) lease_locked(shard, worker);
    for (int i = 0; i < shard->chunk_count && !is_stopping(shard); i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        if (chunk->kind == BEL_VARIABLE_FROZEN && w->reader != BEL_READER_NONE) continue;
        bel_shard_push_locked(shard,
                              (bel_shard_job){.kind = BEL_JOB_COPY, .local = i, .worker = worker});
        w->copies++;
        shard->ledger.copies++;
    }
    if (w->copies == 0) announce_locked(shard, worker, version);
}

void bel_ledger_copied_locked(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    shard->ledger.copies--;
    if (--w->copies == 0) announce_locked(shard, worker, w->answer);
}

// --- Who counts ----------------------------------------------------------------------------------

// A chunk is passed when the reports of all that count are in; `arrived` says that it is.
static void look_at_chunk_locked(bel_shard *shard, int local)
{
    const bel_assignment *assignment = shard->config.assignment;
    bel_shard_chunk *chunk = &shard->chunks[local];
    if (shard->config.layout->chunks[chunk->chunk].kind == BEL_VARIABLE_FROZEN) return;
    if (chunk->arrived > 0) return;
    for (int k = 0; k < assignment->node_count; k++)
        if (bel_ledger_counts(shard, assignment->nodes[k].worker) && chunk->nodes[k] == NULL)
            return;
    chunk->arrived = assignment->node_count;
    bel_shard_push_locked(shard,
                          (bel_shard_job){.kind = bel_shard_first_job(shard), .local = local});
}

static void page_known_locked(bel_shard *shard)
{
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    if (!page->known) return;
    bel_shard_decision_known_locked(shard, page->decision);
    for (int i = 0; i < shard->chunk_count; i++)
        look_at_chunk_locked(shard, i);
    for (int t = 0; t < shard->config.layout->table_count; t++)
        bel_shard_look_at_table_locked(shard, t);
}

static void note_staleness(bel_shard *shard, int64_t versions)
{
    int64_t last = BEL_STALENESS_BINS - 1;
    shard->ledger.stale[versions < last ? versions : last]++;
}

void bel_ledger_send_mail_locked(bel_shard *shard)
{
    for (int k = 1; shard->config.shard == 0 && k < shard->config.layout->shard_count; k++) {
        bel_ledger_mail *mail = &shard->ledger.mail[k];
        size_t sent = 0;
        bel_status *status = NULL;
        while (sent < mail->count && status == NULL) {
            status =
                bel_shard_try_send_locked(shard, shard->config.shard_lanes[k], mail->frames[sent]);
            if (status == NULL) sent++;
        }
        bel_status_ignore(
            status); // a full lane has room soon; that a shard is gone, the master notices
        if (sent == 0) continue; // and where none waits, frames may be NULL
        mail->count -= sent;
        memmove(mail->frames, mail->frames + sent, mail->count * sizeof *mail->frames);
    }
}

// So many reports make this step. When all blocks are leased, no more than there are workers that
// still have some.
static int needed_reports(const bel_shard *shard)
{
    int needed = shard->config.counting.workers, able = 0;
    if (has_blocks(&shard->ledger)) return needed;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        able += shard->workers[w].lease_count > 0;
    return able > 0 && able < needed ? able : needed;
}

// A report on an older version counts where all do, and when nothing could follow it.
static bool takes_stale(const bel_shard *shard)
{
    return shard->config.counting.takes_stale || !has_blocks(&shard->ledger);
}

// Shard 0: names the workers of this step as soon as there are enough.
static void close_page_locked(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    int needed = needed_reports(shard);
    bool waits = !shard->started || shard->admitting > 0 || page->known || is_stopping(shard);
    if (waits || ledger->queue_count < needed) return;
    for (int i = 0; i < needed; i++) {
        int worker = ledger->queue[i];
        page->counts[worker] = true;
        shard->workers[worker].counted_step = shard->step;
        note_staleness(shard, shard->step - shard->workers[worker].version);
        shard->workers[worker].stale += shard->workers[worker].version < shard->step;
        for (int k = 1; k < shard->config.layout->shard_count; k++) {
            put_mail(shard, k,
                     (bel_frame){.kind = BEL_FRAME_LEDGER,
                                 .step = shard->step,
                                 .decision = shard->decision,
                                 .chunk = needed,
                                 .node = worker,
                                 .count = ledger->answers});
        }
    }
    ledger->queue_count -= needed;
    memmove(ledger->queue, ledger->queue + needed,
            (size_t)ledger->queue_count * sizeof *ledger->queue);
    bel_ledger_send_mail_locked(shard);
    page->named = needed;
    page->decision = shard->decision;
    page->known = true;
    page_known_locked(shard);
}

void bel_ledger_admitted_locked(bel_shard *shard)
{
    if (shard->config.shard == 0) close_page_locked(shard);
}

bool bel_ledger_step_done_locked(const bel_shard *shard)
{
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    if (!page->known || shard->ledger.copies > 0) return false;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        if (page->counts[w] && !shard->workers[w].complete) return false;
    return true;
}

const double *const *bel_ledger_stats_list_locked(bel_shard *shard)
{
    const bel_assignment *assignment = shard->config.assignment;
    for (int k = 0; k < assignment->node_count; k++) {
        bool counts = bel_ledger_counts(shard, assignment->nodes[k].worker);
        shard->ledger.counting[k] = counts ? shard->stats_list[k] : NULL;
    }
    return shard->ledger.counting;
}

// --- After a step --------------------------------------------------------------------------------

static void drop_report(bel_shard_worker *worker)
{
    worker->dropped++;
    use_up_lease(worker);
}

// Who was told that no blocks are left waits for the end, also when some have come back since.
static bool may_report(const bel_shard *shard, const bel_shard_worker *worker)
{
    bool asks = worker->held || worker->version < 0;
    return worker->lease_count > 0 || (asks && has_blocks(&shard->ledger));
}

// Of those who have something left to do.
static int64_t slowest_lead(const bel_shard *shard)
{
    int64_t slowest = INT64_MAX;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        const bel_shard_worker *worker = &shard->workers[w];
        if (may_report(shard, worker) && worker->lead < slowest) slowest = worker->lead;
    }
    return slowest;
}

bool bel_ledger_is_over_locked(const bel_shard *shard)
{
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    if (has_blocks(&shard->ledger)) return false;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bool used_up = page->known && page->counts[w];
        if (shard->workers[w].lease_count > (used_up ? 1 : 0)) return false;
    }
    return true;
}

static bool may_go_on(const bel_shard *shard, const bel_shard_worker *worker, int64_t slowest)
{
    int64_t most = shard->config.counting.max_lead;
    return most < 0 || worker->lead - slowest <= most;
}

// Shard 0: `page` is that of the step before.
static void answer_workers_locked(bel_shard *shard, const bel_ledger_page *page)
{
    bel_ledger *ledger = &shard->ledger;
    int workers = shard->config.assignment->worker_count;
    for (int w = 0; w < workers; w++) {
        if (page->counts[w]) {
            shard->workers[w].lead++;
            shard->workers[w].held = true; // until it is answered
            use_up_lease(&shard->workers[w]);
        }
    }
    bool drops = !takes_stale(shard);
    for (int i = 0; i < ledger->queue_count && drops; i++) {
        drop_report(&shard->workers[ledger->queue[i]]);
        shard->workers[ledger->queue[i]].held = true;
    }
    if (drops) ledger->queue_count = 0;
    int64_t slowest = slowest_lead(shard);
    for (int w = 0; w < workers; w++) {
        bel_shard_worker *worker = &shard->workers[w];
        bool due = worker->held && may_go_on(shard, worker, slowest);
        bool last = is_stopping(shard) && (worker->held || worker->version >= 0);
        if (due || last) answer_locked(shard, w, shard->step);
    }
}

// Other shards: true when the next answer is known; it is taken out.
static bool next_answer(bel_ledger *ledger, int64_t step, bel_ledger_answer *out_answer)
{
    for (size_t i = 0; i < ledger->waiting_count; i++) {
        if (ledger->waiting[i].number != ledger->answers) continue;
        if (ledger->waiting[i].version > step) return false;
        *out_answer = ledger->waiting[i];
        ledger->waiting[i] = ledger->waiting[--ledger->waiting_count];
        ledger->answers++;
        return true;
    }
    return false;
}

// Other shards: gives workers the version of this step that shard 0 has answered with, one answer
// after another. A worker that was replaced meanwhile has nothing to be given.
static void give_answers_locked(bel_shard *shard)
{
    bel_ledger_answer answer;
    while (!shard->publishing && next_answer(&shard->ledger, shard->step, &answer)) {
        if ((answer.decision & BEL_DECIDE_STOP) != 0)
            bel_shard_decision_known_locked(shard, answer.decision);
        if (answer.incarnation == shard->workers[answer.worker].incarnation)
            answer_locked(shard, answer.worker, answer.version);
    }
    bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    bool named = page->needed > 0 && page->named == page->needed;
    page->known = page->known || (named && shard->ledger.answers >= page->answers);
}

void bel_ledger_published_locked(bel_shard *shard)
{
    if (shard->step > 0) {
        bel_ledger_page *page = bel_ledger_page_of(shard, shard->step - 1);
        if (shard->config.shard == 0 && page->known) answer_workers_locked(shard, page);
        clear_page(shard, page);
    }
    if (shard->config.shard == 0) {
        close_page_locked(shard);
    } else {
        give_answers_locked(shard);
    }
    page_known_locked(shard);
}

// --- Frames --------------------------------------------------------------------------------------

static void take_report_locked(bel_shard *shard, const bel_frame *frame)
{
    if (!bel_shard_check_report_locked(shard, frame)) return;
    int local = bel_shard_local_chunk(shard, frame->chunk);
    if (shard->chunks[local].nodes[frame->node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    bel_weight *weight = &shard->chunks[local].weights[frame->node];
    if (!bel_shard_take_weight_locked(shard, frame, weight)) return;
    shard->chunks[local].nodes[frame->node] = frame->payload;
    if (bel_ledger_counts(shard, frame->sender)) look_at_chunk_locked(shard, local);
}

// Shard 0 owes a worker the newest version: now, or the next one when this step is closed, since
// the other shards may have made it by then.
static void owe_locked(bel_shard *shard, int worker)
{
    if (shard->publishing || bel_ledger_page_of(shard, shard->step)->known) {
        shard->workers[worker].held = true;
    } else {
        answer_locked(shard, worker, shard->step);
        close_page_locked(shard); // it may have taken the last blocks
    }
}

// Shard 0: a worker's report is all there.
static void take_complete_locked(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    if (!takes_stale(shard) && w->version < shard->step) {
        drop_report(w);
        owe_locked(shard, worker);
        return;
    }
    shard->ledger.queue[shard->ledger.queue_count++] = worker;
    close_page_locked(shard);
}

static void take_stats_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    if (!bel_shard_check_stats_locked(shard, frame)) return;
    if (shard->stats_list[frame->node] != NULL) {
        shard->counters.repeated++;
        return;
    }
    size_t width = (size_t)shard->config.stats_width;
    double *copy = shard->ledger.stats_list + (size_t)frame->node * width;
    memcpy(copy, frame->payload, width * sizeof *copy);
    shard->stats_list[frame->node] = copy;
    const bel_assignment *assignment = shard->config.assignment;
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++)
        if (shard->stats_list[k] == NULL) return;
    shard->workers[worker].complete = true;
    if (shard->config.shard == 0) take_complete_locked(shard, worker);
}

// Shard 0: a worker begins.
static void take_pull_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    bool begins = w->version < 0 && !w->held;
    if (shard->config.shard != 0) {
        bel_shard_fail_locked(shard, frame, "only shard 0 is asked for a version");
    } else if (begins) {
        owe_locked(shard, worker);
    } else {
        shard->counters.repeated++;
    }
}

static void take_answer_locked(bel_shard *shard, const bel_frame *frame)
{
    bel_ledger *ledger = &shard->ledger;
    bool fits = frame->node >= 0 && frame->node < shard->config.assignment->worker_count &&
                shard->config.shard != 0;
    bool known = frame->count < ledger->answers;
    for (size_t i = 0; i < ledger->waiting_count; i++)
        known = known || ledger->waiting[i].number == frame->count;
    if (known) {
        shard->counters.repeated++;
        return;
    }
    if (!fits || frame->step < shard->step) {
        bel_shard_fail_locked(shard, frame, "no such answer");
        return;
    }
    ledger->waiting = bel_xgrow(ledger->waiting, &ledger->waiting_capacity,
                                ledger->waiting_count + 1, sizeof *ledger->waiting);
    ledger->waiting[ledger->waiting_count++] =
        (bel_ledger_answer){.number = frame->count,
                            .version = frame->step,
                            .worker = frame->node,
                            .incarnation = frame->incarnation,
                            .decision = frame->decision};
    if (shard->publishing) return; // soon
    give_answers_locked(shard);
    page_known_locked(shard);
}

static void take_page_locked(bel_shard *shard, const bel_frame *frame)
{
    if (frame->step < shard->step) {
        shard->counters.late++;
        return;
    }
    bool fits = frame->node >= 0 && frame->node < shard->config.assignment->worker_count &&
                frame->chunk > 0 && frame->chunk <= shard->config.counting.workers &&
                shard->config.shard != 0 &&
                frame->step < shard->step + shard->ledger.page_count - 1;
    if (!fits) {
        bel_shard_fail_locked(shard, frame, "no such page of the ledger");
        return;
    }
    bel_ledger_page *page = bel_ledger_page_of(shard, frame->step);
    if (page->counts[frame->node]) {
        shard->counters.repeated++;
        return;
    }
    page->counts[frame->node] = true;
    page->decision = frame->decision;
    page->needed = frame->chunk;
    page->answers = frame->count;
    page->named++;
    if (frame->step != shard->step || shard->publishing) return;
    give_answers_locked(shard);
    page_known_locked(shard);
}

void bel_ledger_take_frame_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    if (frame->kind == BEL_FRAME_LEDGER && worker < 0) {
        take_page_locked(shard, frame);
        return;
    }
    if (frame->kind == BEL_FRAME_ANSWER && worker < 0) {
        take_answer_locked(shard, frame);
        return;
    }
    bool reports = frame->kind == BEL_FRAME_REPORT || frame->kind == BEL_FRAME_ROW_REPORT ||
                   frame->kind == BEL_FRAME_STATS;
    bool pulls = frame->kind == BEL_FRAME_PULL || frame->kind == BEL_FRAME_ROW_PULL;
    if (worker < 0 || (!reports && !pulls)) {
        bel_shard_fail_locked(shard, frame, "a kind that shards do not take");
        return;
    }
    if (frame->kind == BEL_FRAME_PULL) {
        take_pull_locked(shard, frame, worker);
        return;
    }
    if (frame->kind == BEL_FRAME_ROW_PULL) {
        bel_shard_take_row_pull_locked(shard, frame, worker);
        return;
    }
    bool its_own = frame->node >= assignment->first_node[worker] &&
                   frame->node < assignment->first_node[worker + 1];
    if (!its_own) {
        bel_shard_fail_locked(shard, frame, "no such node of this worker");
    } else if (frame->step != shard->workers[worker].version || is_stopping(shard)) {
        shard->counters.late++;
    } else if (frame->kind == BEL_FRAME_REPORT) {
        take_report_locked(shard, frame);
    } else if (frame->kind == BEL_FRAME_ROW_REPORT) {
        bel_shard_take_rows_locked(shard, frame, worker);
    } else {
        take_stats_locked(shard, frame, worker);
    }
}

// --- Workers that are replaced -------------------------------------------------------------------

void bel_ledger_forget_locked(bel_shard *shard, int worker)
{
    bel_ledger *ledger = &shard->ledger;
    bel_shard_worker *w = &shard->workers[worker];
    forget_report_locked(shard, worker);
    bel_shard_forget_rows_locked(shard, worker);
    int kept = 0;
    for (int i = 0; i < ledger->queue_count; i++)
        if (ledger->queue[i] != worker) ledger->queue[kept++] = ledger->queue[i];
    ledger->queue_count = kept;
    if (shard->config.shard == 0) return_leases_locked(shard, w);
    reset_worker(w);
}

// --- Looking in ----------------------------------------------------------------------------------

bel_shard_staleness bel_shard_stale(bel_shard *shard, int64_t *out_dropped)
{
    bel_shard_staleness staleness = {.dropped = 0};
    pthread_mutex_lock(&shard->mutex);
    memcpy(staleness.counted, shard->ledger.stale, sizeof staleness.counted);
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        staleness.dropped += shard->workers[w].dropped;
        if (out_dropped != NULL) out_dropped[w] = shard->workers[w].dropped;
    }
    pthread_mutex_unlock(&shard->mutex);
    return staleness;
}

int64_t bel_shard_leased(bel_shard *shard)
{
    if (!bel_shard_has_ledger(shard)) return -1;
    pthread_mutex_lock(&shard->mutex);
    int64_t leased = shard->ledger.leased;
    pthread_mutex_unlock(&shard->mutex);
    return leased;
}

int64_t bel_shard_counted_step(bel_shard *shard, int worker)
{
    if (!bel_shard_has_ledger(shard)) return -1;
    pthread_mutex_lock(&shard->mutex);
    int64_t step = shard->workers[worker].counted_step;
    pthread_mutex_unlock(&shard->mutex);
    return step;
}
