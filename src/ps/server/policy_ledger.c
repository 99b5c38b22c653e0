// Some workers count: the policies backups, async and bounded. They differ in two questions that
// shard 0 asks, whether a report on an older version counts and whether a worker is answered at
// once; all else is the ledger's (policy.h).
//
// A worker's report stays where it is until the worker is answered; then all that is kept of it is
// forgotten, as it computes anew. No step is closed at another shard before all answers with its
// version are known, so no answer is missed.

#include "ps/server/shard_inner.h"

static void nothing_of_worker(bel_shard *shard, int worker)
{
    (void)shard, (void)worker;
}

// Reports stay until their workers are answered.
static void begin(bel_shard *shard)
{
    (void)shard;
}

// --- Who counts ----------------------------------------------------------------------------------

static bool is_known(const bel_shard *shard)
{
    return bel_ledger_page_of(shard, shard->step)->known;
}

static bool counts(const bel_shard *shard, int worker)
{
    return bel_ledger_page_of(shard, shard->step)->counts[worker];
}

static bool always(const bel_shard *shard)
{
    (void)shard;
    return true;
}

// A late report counts only where nothing could follow it.
static bool when_none_can_follow(const bel_shard *shard)
{
    return !bel_ledger_has_blocks(&shard->ledger);
}

static bool at_once(const bel_shard *shard, int worker, int64_t slowest)
{
    (void)shard, (void)worker, (void)slowest;
    return true;
}

// Bounded: at most max_lead counted reports ahead of the slowest worker.
static bool within_lead(const bel_shard *shard, int worker, int64_t slowest)
{
    return shard->workers[worker].counted - slowest <= shard->config.settings.counting.max_lead;
}

// --- What is taken in ----------------------------------------------------------------------------

// A worker reports once on the version that it was given last; anything else was answered already.
static bool accepts(bel_shard *shard, const bel_frame *frame, int worker, int64_t version,
                    uint32_t decision)
{
    (void)frame, (void)decision; // the page says what the step does
    return version == shard->workers[worker].version && !bel_shard_is_stopping(shard);
}

static void passed_by(bel_shard *shard, int worker, int64_t version, int node)
{
    (void)shard, (void)worker, (void)version, (void)node; // it was answered already
}

// Shard 0 owes a worker the newest version: now, or the next one when this step is closed, since
// the other shards may have made it by then.
static void owe_locked(bel_shard *shard, int worker)
{
    if (shard->publishing || is_known(shard)) {
        shard->workers[worker].held = true;
    } else {
        bel_ledger_answer_locked(shard, worker, shard->step);
        bel_ledger_close_page_locked(shard); // it may have taken the last blocks
    }
}

// Its batches are used up all the same: the worker has moved on.
static void drop_report(bel_shard_worker *worker)
{
    worker->dropped++;
    bel_ledger_use_up_lease(worker);
}

// Shard 0: a report is whole. It queues up to be counted, or is dropped and its worker answered.
static void completed(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    if (shard->config.shard != 0) return;
    if (w->version < shard->step && !shard->policy->takes_stale(shard)) {
        drop_report(w);
        owe_locked(shard, worker);
        return;
    }
    shard->ledger.queue[shard->ledger.queue_count++] = worker;
    bel_ledger_close_page_locked(shard);
}

// Shard 0: a worker begins; whatever version it names, it gets the newest.
static void take_pull(bel_shard *shard, const bel_frame *frame, int worker)
{
    const bel_shard_worker *w = &shard->workers[worker];
    bool begins = w->version < 0 && !w->held;
    if (shard->config.shard != 0) {
        bel_shard_fail_locked(shard, frame, "only shard 0 is asked for a version");
    } else if (begins) {
        owe_locked(shard, worker);
    } else {
        shard->counters.repeated++;
    }
}

// Other shards: one more worker of a page.
static void take_counts(bel_shard *shard, const bel_frame *frame)
{
    bel_counts_frame named = bel_counts_frame_read(frame);
    if (named.step < shard->step) {
        shard->counters.late++;
        return;
    }
    bool fits = named.worker >= 0 && named.worker < shard->config.assignment->worker_count &&
                named.needed > 0 && named.needed <= shard->config.settings.counting.workers &&
                shard->config.shard != 0 && named.step < shard->step + shard->ledger.page_count - 1;
    if (!fits) {
        bel_shard_fail_locked(shard, frame, "no such page of the ledger");
        return;
    }
    bel_ledger_page *page = bel_ledger_page_of(shard, named.step);
    if (page->counts[named.worker]) {
        shard->counters.repeated++;
        return;
    }
    page->counts[named.worker] = true;
    page->decision = named.decision;
    page->needed = named.needed;
    page->answers = named.answers;
    page->named++;
    if (named.step != shard->step || shard->publishing) return;
    bel_ledger_give_answers_locked(shard);
    bel_ledger_page_known_locked(shard);
}

// Rows are read as they are now, of whatever version; also for a worker that asks when training
// stops, as it must not wait for ever.
static bool rows_fit(const bel_shard *shard, int table, int worker, int64_t version)
{
    (void)table;
    return version <= shard->workers[worker].version;
}

// --- A step --------------------------------------------------------------------------------------

// Every worker that counts is complete, and no copy for a worker is still being made.
static bool is_done(const bel_shard *shard)
{
    if (!is_known(shard) || shard->copies > 0) return false;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        if (counts(shard, w) && !shard->workers[w].complete) return false;
    return true;
}

// The input is leased, and no worker has a lease left but the one that this step uses up.
static bool is_over(const bel_shard *shard)
{
    if (bel_ledger_has_blocks(&shard->ledger)) return false;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bool used_up = is_known(shard) && counts(shard, w);
        if (shard->workers[w].lease_count > (used_up ? 1 : 0)) return false;
    }
    return true;
}

// A worker that was told that no blocks are left waits for the end, even when some have come back
// since.
static bool may_report(const bel_shard *shard, const bel_shard_worker *worker)
{
    bool asks = worker->held || worker->version < 0;
    return worker->lease_count > 0 || (asks && bel_ledger_has_blocks(&shard->ledger));
}

// The fewest counted reports of any worker that has something left to do.
static int64_t slowest_count(const bel_shard *shard)
{
    int64_t slowest = INT64_MAX;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        const bel_shard_worker *worker = &shard->workers[w];
        if (may_report(shard, worker) && worker->counted < slowest) slowest = worker->counted;
    }
    return slowest;
}

// Shard 0, with a new version: workers that counted in the step before (`page`) are due, and those
// whose report does not count any more; at the end all are.
static void answer_workers_locked(bel_shard *shard, const bel_ledger_page *page)
{
    bel_ledger *ledger = &shard->ledger;
    int workers = shard->config.assignment->worker_count;
    for (int w = 0; w < workers; w++) {
        if (page->counts[w]) {
            shard->workers[w].counted++;
            shard->workers[w].held = true; // until it is answered
            bel_ledger_use_up_lease(&shard->workers[w]);
        }
    }
    bool drops = !shard->policy->takes_stale(shard);
    for (int i = 0; i < ledger->queue_count && drops; i++) {
        drop_report(&shard->workers[ledger->queue[i]]);
        shard->workers[ledger->queue[i]].held = true;
    }
    if (drops) ledger->queue_count = 0;
    int64_t slowest = slowest_count(shard);
    for (int w = 0; w < workers; w++) {
        const bel_shard_worker *worker = &shard->workers[w];
        bool due = worker->held && shard->policy->may_go_on(shard, w, slowest);
        bool last = bel_shard_is_stopping(shard) && (worker->held || worker->version >= 0);
        if (due || last) bel_ledger_answer_locked(shard, w, shard->step);
    }
}

// The step before is closed for good, and its page is cleared for a later step.
static void published(bel_shard *shard)
{
    if (shard->step > 0) {
        bel_ledger_page *page = bel_ledger_page_of(shard, shard->step - 1);
        if (shard->config.shard == 0 && page->known) answer_workers_locked(shard, page);
        bel_ledger_clear_page(shard, page);
    }
    if (shard->config.shard == 0) {
        bel_ledger_close_page_locked(shard);
    } else {
        bel_ledger_give_answers_locked(shard);
    }
    bel_ledger_page_known_locked(shard);
}

// --- A worker is replaced ------------------------------------------------------------------------

// What the lost worker had queued does not count, and its leases go to others.
static void forget(bel_shard *shard, int worker)
{
    bel_ledger *ledger = &shard->ledger;
    bel_shard_end_pulls_locked(shard, worker); // its successor gets what is newest
    int kept = 0;
    for (int i = 0; i < ledger->queue_count; i++)
        if (ledger->queue[i] != worker) ledger->queue[kept++] = ledger->queue[i];
    ledger->queue_count = kept;
    if (shard->config.shard == 0) bel_ledger_return_leases(shard, &shard->workers[worker]);
}

// Pages are not closed while a worker is being admitted; this one may be due.
static void admitted(bel_shard *shard)
{
    if (shard->config.shard == 0) bel_ledger_close_page_locked(shard);
}

// --- The policies --------------------------------------------------------------------------------

#define LEDGER                                                                                     \
    .create = bel_ledger_create, .destroy = bel_ledger_destroy, .reset = bel_ledger_reset_locked,  \
    .is_known = is_known, .counts = counts, .accepts = accepts, .passed_by = passed_by,            \
    .completed = completed, .take_pull = take_pull, .take_counts = take_counts,                    \
    .take_answer = bel_ledger_take_answer_locked, .rows_fit = rows_fit, .begin = begin,            \
    .is_done = is_done, .is_over = is_over, .chunk_passed = nothing_of_worker,                     \
    .copied = bel_ledger_copied_locked, .published = published,                                    \
    .poll = bel_ledger_send_mail_locked, .forget = forget, .admitted = admitted

const bel_policy bel_policy_backups = {LEDGER, .takes_stale = when_none_can_follow,
                                       .may_go_on = at_once};
const bel_policy bel_policy_async = {LEDGER, .takes_stale = always, .may_go_on = at_once};
const bel_policy bel_policy_bounded = {LEDGER, .takes_stale = always, .may_go_on = within_lead};
