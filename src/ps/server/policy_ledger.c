// Some workers count: the policies backups, async and bounded. They differ in two decisions of
// shard 0: whether a report on an older version counts, and whether a worker is answered at once.
// The rest is common to all (policy.h).
//
// A worker's report stays in place until the worker is answered; then it is forgotten, as the
// worker computes again. No step is closed at another shard before all answers with its version are
// known, so no answer is missed.

#include "ps/server/shard_inner.h"

static void nothing_of_worker(bel_shard *shard, int worker)
{
    (void)shard, (void)worker;
}

// Reports stay until their workers are answered.
static void policy_ledger_begin(bel_shard *shard)
{
    (void)shard;
}

// --- Counting ------------------------------------------------------------------------------------

static bool is_known(const bel_shard *shard)
{
    return bel_ledger_page_of(shard, shard->step)->known;
}

static bool policy_ledger_counts(const bel_shard *shard, int worker)
{
    return bel_ledger_page_of(shard, shard->step)->counts[worker];
}

static bool always(const bel_shard *shard)
{
    (void)shard;
    return true;
}

// A late report counts only if no other report could follow.
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

// --- Received frames -----------------------------------------------------------------------------

// A worker reports once on its last version, by the step function that was assigned to it; anything
// else was answered already.
static bool policy_ledger_accepts(bel_shard *shard, const bel_frame *frame, int worker,
                                  int64_t version, uint32_t decision)
{
    if (version != shard->workers[worker].version || bel_shard_is_stopping(shard)) return false;
    if (bel_decision_function(decision) == shard->workers[worker].function) return true;
    bel_shard_fail_locked(shard, frame, "of a step function that it was not handed");
    return false;
}

static void passed_by(bel_shard *shard, int worker, int64_t version, int node)
{
    (void)shard, (void)worker, (void)version, (void)node; // it was answered already
}

// A worker that was notified of no more blocks waits for the end, even if some were returned since.
static bool may_report(const bel_shard *shard, const bel_shard_worker *worker)
{
    bool asks = worker->held || worker->version < 0;
    return worker->lease_count > 0 || (asks && bel_ledger_has_blocks(&shard->ledger));
}

// The fewest counted reports of any worker with work left. A worker whose complete report waits,
// for others of its step or for a step of its function, delays no other worker.
static int64_t slowest_count(const bel_shard *shard)
{
    const bel_ledger *ledger = &shard->ledger;
    int64_t slowest = INT64_MAX;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        const bel_shard_worker *worker = &shard->workers[w];
        bool waits = false;
        for (int i = 0; i < ledger->queue_count; i++)
            waits = waits || ledger->queue[i] == w;
        if (!waits && may_report(shard, worker) && worker->counted < slowest)
            slowest = worker->counted;
    }
    return slowest;
}

// Shard 0: sends the newest version to workers that are owed one and may continue. When this step
// is closed they wait for the next one, since other shards may have made it by then. At the end all
// are notified.
static void answer_due_locked(bel_shard *shard)
{
    if (shard->work.publishing || is_known(shard)) return;
    bel_ledger *ledger = &shard->ledger;
    bool stopping = bel_shard_is_stopping(shard);
    int64_t slowest = slowest_count(shard);
    int workers = shard->config.assignment->worker_count, first = ledger->turn;
    ledger->starved = false;
    for (int i = 0; i < workers; i++) {
        int w = (first + i) % workers;
        bool due = shard->workers[w].held && shard->policy->may_go_on(shard, w, slowest);
        if (stopping) due = shard->workers[w].held;
        if (!due) continue;
        int function = stopping ? 0 : bel_ledger_hand_function(shard, w);
        if (function >= 0) {
            bel_ledger_answer_locked(shard, w, shard->step, function);
        } else if (!ledger->starved) {
            ledger->starved = true;
            ledger->turn = w; // it is first the next time
        }
    }
}

static void owe_locked(bel_shard *shard, int worker)
{
    shard->workers[worker].held = true;
    answer_due_locked(shard);
    bel_ledger_close_page_locked(shard); // it may have taken the last blocks
}

// Can a complete report count in this step, or a later one? A late report of another function than
// the step's must be of a function that was assigned ahead.
static bool still_counts(const bel_shard *shard, int worker)
{
    const bel_shard_worker *w = &shard->workers[worker];
    if (w->version == shard->step) return true;
    bool wanted = shard->policy->ahead || w->function == bel_shard_function(shard);
    return wanted && shard->policy->takes_stale(shard);
}

// Its batches are used up anyway: the worker has moved on.
static void drop_report(bel_shard_worker *worker)
{
    worker->dropped++;
    bel_ledger_use_up_lease(worker);
}

// Shard 0: queues a complete report to be counted, or drops it and answers its worker.
static void policy_ledger_completed(bel_shard *shard, int worker)
{
    bel_shard_worker *w = &shard->workers[worker];
    if (shard->config.shard != 0) return;
    if (!still_counts(shard, worker)) {
        drop_report(w);
        owe_locked(shard, worker);
        return;
    }
    shard->ledger.queue[shard->ledger.queue_count++] = worker;
    bel_ledger_close_page_locked(shard);
    answer_due_locked(shard); // it may have been the slowest
}

// Shard 0: a worker begins; it gets the newest version, whatever version it names.
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

// Other shards: adds one worker to a page.
static void take_counts(bel_shard *shard, const bel_frame *frame)
{
    bel_counts_frame named = bel_counts_frame_read(frame);
    if (named.step < shard->step) {
        shard->counters.late++;
        return;
    }
    bool fits = named.worker >= 0 && named.worker < shard->config.assignment->worker_count &&
                named.needed > 0 && named.needed <= shard->config.settings.counting.workers &&
                bel_decision_function(named.decision) < shard->config.settings.function_count &&
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
    if (named.step != shard->step || shard->work.publishing) return;
    bel_ledger_give_answers_locked(shard);
    bel_ledger_page_known_locked(shard);
}

// Rows are read in their present state, whatever their version; also for a worker that asks when
// training stops, as it must not wait forever.
static bool rows_fit(const bel_shard *shard, int table, int worker, int64_t version)
{
    (void)table;
    return version <= shard->workers[worker].version;
}

// --- A step --------------------------------------------------------------------------------------

// Steps may have been requested meanwhile.
static void policy_ledger_poll(bel_shard *shard)
{
    bel_ledger_send_mail_locked(shard);
    if (shard->ledger.starved) answer_due_locked(shard);
}

// Every counting worker is complete, and no copy for a worker is in progress.
static bool is_done(const bel_shard *shard)
{
    if (!is_known(shard) || shard->work.copies > 0) return false;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        if (policy_ledger_counts(shard, w) && !shard->workers[w].complete) return false;
    return true;
}

// The input is leased, and no worker has a report left for the next step. If that step is not
// requested yet, the answer is unknown; the question is repeated.
static bel_steps_left steps_left(const bel_shard *shard)
{
    int64_t next = shard->step + (is_known(shard) ? 1 : 0);
    int function = 0;
    if (bel_ledger_has_blocks(&shard->ledger)) return BEL_STEPS_FOLLOW;
    if (shard->config.settings.function_count > 1)
        function = shard->events.function_of(shard->events.context, next);
    if (function < 0) return BEL_STEPS_UNASKED;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bool used_up = is_known(shard) && policy_ledger_counts(shard, w);
        if (bel_ledger_may_report(shard, w, function, used_up)) return BEL_STEPS_FOLLOW;
    }
    return BEL_STEPS_OVER;
}

// Shard 0, with a new version: answers workers that counted in the preceding step (`page`), and
// those whose report no longer counts; at the end all workers.
static void answer_workers_locked(bel_shard *shard, const bel_ledger_page *page)
{
    bel_ledger *ledger = &shard->ledger;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        bel_shard_worker *worker = &shard->workers[w];
        if (page->counts[w]) {
            worker->counted++;
            worker->held = true; // until it is answered
            worker->handed = false;
            bel_ledger_use_up_lease(worker);
        }
        if (bel_shard_is_stopping(shard) && worker->version >= 0) worker->held = true;
    }
    int left = 0; // in the queue
    for (int i = 0; i < ledger->queue_count; i++) {
        int w = ledger->queue[i];
        if (still_counts(shard, w)) {
            ledger->queue[left++] = w;
        } else {
            drop_report(&shard->workers[w]);
            shard->workers[w].held = true;
        }
    }
    ledger->queue_count = left;
    answer_due_locked(shard);
}

// The preceding step is closed for good, and its page is cleared for a later step.
static void policy_ledger_published(bel_shard *shard)
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

// --- Replacement of a worker ---------------------------------------------------------------------

// The lost worker's queued report does not count, and its leases go to others.
static void policy_ledger_forget(bel_shard *shard, int worker)
{
    bel_ledger *ledger = &shard->ledger;
    bel_shard_end_pulls_locked(shard, worker); // its successor gets the newest version
    int kept = 0;
    for (int i = 0; i < ledger->queue_count; i++)
        if (ledger->queue[i] != worker) ledger->queue[kept++] = ledger->queue[i];
    ledger->queue_count = kept;
    if (shard->config.shard != 0) return;
    bel_ledger_return_leases(shard, &shard->workers[worker]);
    bel_ledger_regain_function(ledger, &shard->workers[worker]);
}

// Pages are not closed while a worker is being admitted; this one may be due.
static void ledger_admitted(bel_shard *shard)
{
    if (shard->config.shard == 0) bel_ledger_close_page_locked(shard);
}

// --- The policies --------------------------------------------------------------------------------

#define LEDGER                                                                                     \
    .create = bel_ledger_create, .destroy = bel_ledger_destroy, .reset = bel_ledger_reset_locked,  \
    .is_known = is_known, .counts = policy_ledger_counts, .accepts = policy_ledger_accepts,        \
    .passed_by = passed_by, .completed = policy_ledger_completed, .take_pull = take_pull,          \
    .take_counts = take_counts, .take_answer = bel_ledger_take_answer_locked,                      \
    .rows_fit = rows_fit, .begin = policy_ledger_begin, .is_done = is_done,                        \
    .steps_left = steps_left, .chunk_passed = nothing_of_worker,                                   \
    .copied = bel_ledger_copied_locked, .published = policy_ledger_published,                      \
    .poll = policy_ledger_poll, .forget = policy_ledger_forget, .admitted = ledger_admitted

const bel_policy bel_policy_backups = {LEDGER, .takes_stale = when_none_can_follow,
                                       .may_go_on = at_once};
const bel_policy bel_policy_async = {LEDGER, .ahead = true, .takes_stale = always,
                                     .may_go_on = at_once};
const bel_policy bel_policy_bounded = {LEDGER, .ahead = true, .takes_stale = always,
                                       .may_go_on = within_lead};
