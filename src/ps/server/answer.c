// Answers: versions for workers, where shard 0 keeps a ledger. Shard 0 answers the workers whose
// reports were used or dropped, and numbers its answers. It sends each answer to the other shards,
// which give the worker the same version, in the order of the numbers, when they have reached it.
//
// An answer is a copy of the values, made by jobs outside the lock. The worker is notified of the
// version when its last copy is complete. The next version is not published before.
#include "base/alloc.h"
#include "ps/server/shard_inner.h"

// The worker's copy is complete: sends it if memory is not shared, then the version. Frozen chunks
// are sent only with the first version, as nothing changes them.
static void announce_locked(bel_shard *shard, int worker, int64_t version)
{
    bel_lane *lane = shard->config.worker_lanes[worker];
    bool reads = bel_shard_reads_in_place(shard, worker);
    bool stopping = bel_shard_is_stopping(shard);
    int sent = 0;
    for (int i = 0; i < shard->chunk_count && !reads && !stopping; i++) {
        int c = shard->chunks[i].chunk;
        const bel_chunk *chunk = &shard->config.layout->chunks[c];
        bool frozen = chunk->kind == BEL_VARIABLE_FROZEN;
        if (frozen && shard->workers[worker].reader != BEL_READER_NONE) continue;
        bel_params_frame params = {.version = version, .chunk = c};
        bel_shard_send_locked(shard, lane,
                              bel_params_frame_write(params,
                                                     shard->config.outboxes[worker] + chunk->offset,
                                                     (size_t)chunk->count * sizeof(float)));
        sent++;
    }
    shard->workers[worker].reader = BEL_READER_BEHIND;
    bel_version_frame announced = {
        .version = version,
        .decision = bel_decision_with(shard->decision.now, shard->workers[worker].function),
        .chunks = sent};
    bel_shard_send_locked(shard, lane, bel_version_frame_write(announced, NULL, 0));
}

// Shard 0: the other shards give the worker the same version.
static void tell_others_locked(bel_shard *shard, int worker, int64_t version)
{
    bel_answer_frame answer = {
        .number = shard->ledger.answers++,
        .version = version,
        .decision = bel_decision_with(shard->decision.now, shard->workers[worker].function),
        .worker = worker,
        .worker_incarnation = shard->workers[worker].incarnation};
    for (int k = 1; k < shard->config.layout->shard_count; k++)
        bel_ledger_put_mail(shard, k, bel_answer_frame_write(answer, NULL, 0));
    bel_ledger_send_mail_locked(shard);
}

// When training stops, a worker needs no values, and may still be computing.
void bel_ledger_answer_locked(bel_shard *shard, int worker, int64_t version, int function)
{
    bel_shard_worker *w = &shard->workers[worker];
    bool stopping = bel_shard_is_stopping(shard);
    bel_shard_forget_report_locked(shard, worker);
    w->version = w->answer = version;
    w->function = function;
    w->held = false;
    if (shard->config.shard == 0) tell_others_locked(shard, worker, version);
    if (shard->config.shard == 0 && !stopping) bel_ledger_lease_locked(shard, worker);
    for (int i = 0; i < shard->chunk_count && !stopping; i++) {
        const bel_chunk *chunk = &shard->config.layout->chunks[shard->chunks[i].chunk];
        if (chunk->kind == BEL_VARIABLE_FROZEN && w->reader != BEL_READER_NONE) continue;
        bel_shard_push_locked(shard,
                              (bel_shard_job){.kind = BEL_JOB_COPY, .local = i, .worker = worker});
        w->copies++;
        shard->work.copies++;
    }
    if (w->copies == 0) announce_locked(shard, worker, version);
}

// Counts one finished copy; the last one announces the version to the worker.
void bel_ledger_copied_locked(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    shard->work.copies--;
    if (--w->copies == 0) announce_locked(shard, worker, w->answer);
}

// --- Other shards --------------------------------------------------------------------------------

// Removes and returns the next answer; false unless it is known and this shard has its version.
static bool next_answer(bel_ledger *ledger, int64_t step, bel_answer_frame *out_answer)
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

// Gives the answers that are due, in order; a worker that was replaced meanwhile gets nothing. Then
// the page may be known: all counting workers are named, and all answers before its closing are
// given.
void bel_ledger_give_answers_locked(bel_shard *shard)
{
    bel_answer_frame answer;
    while (!shard->work.publishing && next_answer(&shard->ledger, shard->step, &answer)) {
        if ((answer.decision & BEL_DECIDE_STOP) != 0)
            bel_shard_decision_known_locked(shard, answer.decision);
        if (answer.worker_incarnation == shard->workers[answer.worker].incarnation) {
            bel_ledger_answer_locked(shard, answer.worker, answer.version,
                                     bel_decision_function(answer.decision));
        }
    }
    bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    bool named = page->needed > 0 && page->named == page->needed;
    page->known = page->known || (named && shard->ledger.answers >= page->answers);
}

// Other shards: keeps an answer until its number is next and the shard has its version. `known`: it
// was given, or waits already.
void bel_ledger_take_answer_locked(bel_shard *shard, const bel_frame *frame)
{
    bel_ledger *ledger = &shard->ledger;
    bel_answer_frame answer = bel_answer_frame_read(frame);
    bool fits = answer.worker >= 0 && answer.worker < shard->config.assignment->worker_count &&
                bel_decision_function(answer.decision) < shard->config.settings.function_count &&
                shard->config.shard != 0;
    bool known = answer.number < ledger->answers;
    for (size_t i = 0; i < ledger->waiting_count; i++)
        known = known || ledger->waiting[i].number == answer.number;
    if (known) {
        shard->counters.repeated++;
        return;
    }
    if (!fits || answer.version < shard->step) {
        bel_shard_fail_locked(shard, frame, "no such answer");
        return;
    }
    ledger->waiting = bel_xgrow(ledger->waiting, &ledger->waiting_capacity,
                                ledger->waiting_count + 1, sizeof *ledger->waiting);
    ledger->waiting[ledger->waiting_count++] = answer;
    if (shard->work.publishing) return; // they are given when the version is published
    bel_ledger_give_answers_locked(shard);
    bel_ledger_page_known_locked(shard);
}
