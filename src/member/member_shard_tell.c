// Reports of the shard to the master, from the main thread: steps, snapshots, and requested values.
// The engine's thread only notes due reports and rings, so no step waits for a message. The master
// must receive each snapshot before a later step.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "member/member_inner.h"

// Shard 0, on the engine's thread: the main thread reports a step at once if a loop waits for it,
// and other steps often enough for a loop that runs ahead.
void bel_member_shard_step_made(void *context, const bel_control_made *made)
{
    enum { TELL_EVERY = 16 };
    member *m = context;
    member_shard_made *newest = &m->shard.made;
    size_t bytes = (size_t)bel_stats_size(m->settings.stats) * sizeof(double);
    if (made->wanted) {
        pthread_mutex_lock(&newest->mutex);
        if (newest->stats == NULL) newest->stats = bel_xmalloc(bytes);
        memcpy(newest->stats, made->stats, bytes);
        newest->version = made->version;
        newest->told = false;
        pthread_mutex_unlock(&newest->mutex);
    }
    if (!made->wanted && made->version % TELL_EVERY != 0) return;
    atomic_store(&m->shard.reports.progress_due, true);
    bel_doorbell_ring(m->bell);
}

// Copies it for a message, if the master has not received it; free the copy with bel_free.
static double *take_made(member_shard_made *made, size_t count, Bel__Made *out_made)
{
    bel__made__init(out_made);
    pthread_mutex_lock(&made->mutex);
    if (made->stats != NULL && !made->told) {
        out_made->stats = bel_xmalloc(count * sizeof(double));
        memcpy(out_made->stats, made->stats, count * sizeof(double));
        out_made->n_stats = count;
        out_made->version = made->version;
        made->told = true;
    }
    pthread_mutex_unlock(&made->mutex);
    return out_made->stats;
}

void bel_member_shard_forget_made(member_shard_made *made)
{
    pthread_mutex_lock(&made->mutex);
    bel_free(made->stats);
    made->stats = NULL;
    pthread_mutex_unlock(&made->mutex);
}

// Sends messages that end with the point of a snapshot, or when they are full; the last one may
// have no points. Each has the step that it has reached, so a step is reported after all points up
// to it.
static void send_progress(member *m, const bel_control_state *state)
{
    enum { MOST = BEL_PROGRESS_POINTS };
    size_t stats_size = (size_t)bel_stats_size(m->settings.stats);
    bel_control_point points[MOST];
    Bel__Point list[MOST], *pointers[MOST];
    int count;
    bool more;
    do {
        count = bel_control_take_points(m->shard.control, points, MOST);
        for (int i = 0; i < count; i++) {
            bel__point__init(pointers[i] = &list[i]);
            list[i].step = points[i].step;
            list[i].loss = points[i].loss;
            list[i].examples_per_second = points[i].examples_per_second;
            list[i].steps_per_second = points[i].steps_per_second;
            list[i].for_hooks_alone = points[i].for_hooks_alone;
            list[i].snapshot = points[i].snapshot;
            list[i].n_series = 2 * (size_t)m->settings.stats.series;
            list[i].series = points[i].series;
        }
        bel_shard_staleness staleness = bel_shard_stale(m->shard.shard, NULL);
        Bel__Progress progress;
        bel__progress__init(&progress);
        more = count == MOST || (count > 0 && points[count - 1].snapshot);
        progress.step = more ? points[count - 1].step : state->step;
        progress.loss = state->loss;
        progress.examples = state->examples;
        progress.points = pointers;
        progress.n_points = (size_t)count;
        progress.interrupted = bel_control_was_interrupted(m->shard.control);
        progress.paused = bel_control_was_paused(m->shard.control);
        progress.over = bel_control_is_over(m->shard.control);
        progress.lateness = staleness.counted;
        progress.n_lateness = BEL_STALENESS_BINS;
        progress.dropped = staleness.dropped;
        Bel__Made made;
        // after all points up to its step
        double *stats = more ? NULL : take_made(&m->shard.made, stats_size, &made);
        if (stats != NULL) progress.made = &made;
        bel_member_send(m, &progress.base);
        bel_free(stats);
    } while (more);
}

// The master has received nothing: for a new generation, or as a new master.
void bel_member_shard_forget_told(member_shard_reports *reports)
{
    reports->snapshot_told = reports->progress_told = -1;
    reports->progress_ns = 0;
}

// Sends the rest of the values that the master requested, as far as its lane has room.
void bel_member_shard_go_on_sending(member *m)
{
    member_shard *s = &m->shard;
    bool whole;
    if (s->sending.step < 0) return;
    bel_status *status = bel_shard_send_snapshot(s->shard, s->lanes.master, s->sending.step,
                                                 &s->sending.sent, &whole);
    if (status == NULL && !whole) return;
    s->sending.step = -1;
    if (status == NULL) return;
    // The master is gone, and its mailbox will report that; or it will ask on another lane.
    bel_log_write(BEL_LOG_DEBUG, "values of a snapshot: %s", bel_status_message(status));
    bel_status_ignore(status); // logged
}

// The last step is reported as the last even if it was reported before: it may have waited for a
// snapshot before the stop.
static void tell_progress(member *m, const bel_control_state *state, bool due)
{
    enum { EVERY_NS = 100000000 };
    member_shard_reports *reports = &m->shard.reports;
    int64_t now = bel_clock_ns();
    bool told = state->step == reports->progress_told || now - reports->progress_ns < EVERY_NS;
    if (told && !due) return;
    reports->progress_ns = now;
    reports->progress_told = state->step;
    send_progress(m, state);
}

// Shard 0 reports the purpose of a snapshot, and skips one that was released meanwhile. Returns
// true if it has reported one now.
static bool tell_snapshot(member *m, const bel_control_state *state)
{
    member_shard *s = &m->shard;
    int64_t version = atomic_load(&s->reports.snapshot_ready);
    if (s->control != NULL) version = state->has_snapshot ? state->snapshot : -1;
    if (version < 0 || version == s->reports.snapshot_told) return false;
    s->reports.snapshot_told = version;
    Bel__Snapshot snapshot;
    bel__snapshot__init(&snapshot);
    snapshot.step = version;
    snapshot.save = state->save;
    snapshot.eval = state->eval;
    snapshot.next_block = bel_shard_leased(m->shard.shard);
    bel_member_send(m, &snapshot.base);
    return true;
}

static void shard_report(member *m, bool due)
{
    member_shard *s = &m->shard;
    bel_control_state state = {0};
    if (s->control != NULL) bel_control_wait(s->control, 0, &state);
    // In this order: the master receives each snapshot before a later step. It uses the snapshot
    // when it has received all earlier steps, so their report is not delayed.
    if (tell_snapshot(m, &state)) due = true;
    bel_member_shard_go_on_sending(m);
    if (s->control != NULL) tell_progress(m, &state, due);
}

void bel_member_shard_report(member *m)
{
    shard_report(m, true);
}

// Main thread, on each round: reports to the master, and sends values that did not fit the lane
// before.
void bel_member_shard_progress(member *m)
{
    if (!m->shard.engine.runs) return;
    shard_report(m, atomic_exchange(&m->shard.reports.progress_due, false));
}

void bel_member_shard_tell_again(member *m)
{
    if (m->shard.shard != NULL)
        bel_shard_go_on(m->shard.shard); // another master, or a repeated request
    bel_member_shard_forget_told(&m->shard.reports);
    pthread_mutex_lock(&m->shard.made.mutex);
    m->shard.made.told = false;
    pthread_mutex_unlock(&m->shard.made.mutex);
    if (m->shard.control != NULL) bel_control_give_points_again(m->shard.control);
}
