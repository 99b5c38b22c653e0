// Pages of the ledger: the workers whose reports make a step. Shard 0 closes a page when enough
// reports are complete. It names the first of them in the order of arrival, and sends the page to
// the other shards, which keep it until they reach its step. A page is kept until its step is the
// preceding one.
#include <string.h>

#include "base/alloc.h"
#include "ps/server/shard_inner.h"

// --- Life ----------------------------------------------------------------------------------------

void bel_ledger_create(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    size_t workers = (size_t)shard->config.assignment->worker_count;
    // Each page of a step that some shard has not finished names a worker that still waits for it.
    ledger->page_count = (int)workers + 2;
    ledger->pages = bel_xcalloc((size_t)ledger->page_count, sizeof *ledger->pages);
    for (int i = 0; i < ledger->page_count; i++)
        ledger->pages[i].counts = bel_xcalloc(workers, sizeof(bool));
    size_t shards = (size_t)shard->config.layout->shard_count;
    ledger->mail = bel_xcalloc(shards, sizeof *ledger->mail);
    ledger->queue = bel_xcalloc(workers, sizeof *ledger->queue);
    ledger->returned = bel_xcalloc(2 * workers, sizeof *ledger->returned);
    ledger->regained = bel_xcalloc(workers, sizeof *ledger->regained);
    ledger->asked_step = -1;
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
    bel_free(ledger->regained);
}

// Clears a page for the step that is page_count steps later.
void bel_ledger_clear_page(const bel_shard *shard, bel_ledger_page *page)
{
    memset(page->counts, 0, (size_t)shard->config.assignment->worker_count * sizeof *page->counts);
    page->known = false;
    page->named = page->needed = 0;
}

// For another generation: all state is void. Leases begin again with bel_shard_lease_from.
void bel_ledger_reset_locked(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    for (int i = 0; i < ledger->page_count; i++)
        bel_ledger_clear_page(shard, &ledger->pages[i]);
    for (int k = 0; k < shard->config.layout->shard_count; k++)
        ledger->mail[k].count = 0;
    memset(ledger->stale, 0, sizeof ledger->stale);
    ledger->queue_count = ledger->returned_count = ledger->regained_count = 0;
    ledger->asked_step = -1;
    ledger->asked_left = ledger->turn = 0;
    ledger->starved = false;
    ledger->answers = 0;
    ledger->waiting_count = 0;
}

// --- Mail to other shards ------------------------------------------------------------------------

void bel_ledger_put_mail(bel_shard *shard, int other, bel_frame frame)
{
    bel_ledger_mail *mail = &shard->ledger.mail[other];
    mail->frames = bel_xgrow(mail->frames, &mail->capacity, mail->count + 1, sizeof *mail->frames);
    mail->frames[mail->count++] = frame;
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
        bel_status_ignore(status); // a full lane has room soon; the master notices a lost shard
        if (sent == 0) continue;   // also without mail, as frames may be NULL then
        mail->count -= sent;
        memmove(mail->frames, mail->frames + sent, mail->count * sizeof *mail->frames);
    }
}

// --- Pages ---------------------------------------------------------------------------------------

// The counting workers are known: queues chunks and tables whose reports have arrived.
void bel_ledger_page_known_locked(bel_shard *shard)
{
    const bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    if (!page->known) return;
    bel_shard_decision_known_locked(shard, page->decision);
    bel_shard_push_kept_locked(shard);
    bel_shard_look_at_all_locked(shard);
}

// The last bin also counts later reports.
static void note_staleness(bel_shard *shard, bel_shard_worker *worker)
{
    int64_t versions = shard->step - worker->version, last = BEL_STALENESS_BINS - 1;
    shard->ledger.stale[versions < last ? versions : last]++;
    worker->stale += versions > 0;
}

// True while a worker computes, or its report waits to be counted.
static bool is_under_way(const bel_shard_worker *worker)
{
    return worker->version >= 0 && !worker->held;
}

bool bel_ledger_may_report(const bel_shard *shard, int worker, int function, bool used_up)
{
    const bel_shard_worker *w = &shard->workers[worker];
    int leases = w->lease_count - (used_up ? 1 : 0);
    bool other = !used_up && is_under_way(w) && w->function != function;
    if (other && shard->policy->ahead) return false; // it waits for a request of that function
    return leases - (other ? 1 : 0) > 0;             // otherwise it is dropped
}

// Returns the number of reports that make this step. When all blocks are leased, it is limited to
// the workers that still have blocks.
static int needed_reports(const bel_shard *shard)
{
    int needed = shard->config.settings.counting.workers, able = 0;
    if (bel_ledger_has_blocks(&shard->ledger)) return needed;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        able += bel_ledger_may_report(shard, w, bel_shard_function(shard), false);
    return able > 0 && able < needed ? able : needed;
}

static bool is_of_step(const bel_shard *shard, int worker)
{
    return shard->workers[worker].function == bel_shard_function(shard);
}

static int count_of_step(const bel_shard *shard)
{
    int count = 0;
    for (int i = 0; i < shard->ledger.queue_count; i++)
        count += is_of_step(shard, shard->ledger.queue[i]);
    return count;
}

// Names one more worker that counts in this step.
static void name_locked(bel_shard *shard, bel_ledger_page *page, int worker, int needed)
{
    page->counts[worker] = true;
    shard->workers[worker].counted_step = shard->step;
    note_staleness(shard, &shard->workers[worker]);
    bel_counts_frame counts = {.step = shard->step,
                               .decision = shard->decision.now,
                               .worker = worker,
                               .needed = needed,
                               .answers = shard->ledger.answers};
    for (int k = 1; k < shard->config.layout->shard_count; k++)
        bel_ledger_put_mail(shard, k, bel_counts_frame_write(counts, NULL, 0));
}

// Shard 0 closes its page here. The other shards receive it by mail, one frame for each counting
// worker; `needed` and `answers` tell them when it is complete.
void bel_ledger_close_page_locked(bel_shard *shard)
{
    bel_ledger *ledger = &shard->ledger;
    bel_ledger_page *page = bel_ledger_page_of(shard, shard->step);
    int needed = needed_reports(shard);
    bool waits =
        !shard->started || shard->pause.calls > 0 || page->known || bel_shard_is_stopping(shard);
    if (waits || count_of_step(shard) < needed) return;
    int left = 0; // in the queue
    for (int i = 0, named = 0; i < ledger->queue_count; i++) {
        int worker = ledger->queue[i];
        if (named < needed && is_of_step(shard, worker)) {
            name_locked(shard, page, worker, needed);
            named++;
        } else {
            ledger->queue[left++] = worker;
        }
    }
    ledger->queue_count = left;
    bel_ledger_send_mail_locked(shard);
    page->named = needed;
    page->decision = shard->decision.now;
    page->known = true;
    bel_ledger_page_known_locked(shard);
}
