// Decisions and snapshots under one mutex. A decision is a function of the version, the schedule
// and requests, so each step costs one call. The publishing thread makes it; the master's or the
// member's main thread releases snapshots. If the call is repeated for a version after "later", it
// counts the statistics once.
//
// The next snapshot is ordered only after the last one was released: a snapshot due by steps makes
// the step wait, one due by time is postponed. A busy master loses no points: the ring grows.
// Points stay after their reading until they are overwritten, for a master that replaces this one.
// If hooks see the steps, all points since the last checkpoint but one stay: the last one may be
// lost with the master that writes it, and hooks' states come from the one before.
#include "ps/server/control.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/thread.h"
#include "ps/layout/step_stats.h"
#include "ps/server/kept.h"

enum { FEWEST_POINTS = 1024, MOST_KEPT_POINTS = 1 << 20, MOST_SECS = 1000000000 };

// A point without its series, as few jobs have series.
typedef struct step_point {
    int64_t step;
    double loss, examples_per_second, steps_per_second;
    bool for_hooks_alone, snapshot;
} step_point;

struct bel_control {
    bel_control_config config;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bel_control_state state;
    bool snapshot_busy; // ordered, and not yet released
    bool tells_release; // with the next decision
    int64_t decided;    // the last version with a decided step; -1: none
    struct {
        int function;
        bool wanted;
    } asked[BEL_CONTROL_MOST_ASKED]; // by version modulo the size
    int64_t asked_end;               // end of the versions with a requested step …
    atomic_llong asked_shown;        // … for readers without the mutex
    int64_t snapshot_ordered;        // its version, also after its end; -1: no snapshot so far
    int snapshot_shards;             // number of shards that have finished it
    int running;
    int64_t last_save_ns;
    bool cancelled, stop_wanted, interrupted, pause_wanted, paused, over;
    bel_status *error;
    // A ring that grows while the master is busy: only points that the master has read are
    // overwritten.
    step_point *points;
    double *series; // by index in the ring: sum and weight of each series
    int64_t point_room, point_count, points_taken;
    int64_t point_first; // earlier points are gone
    int64_t point_kept;  // for hooks: points from here on stay
    int64_t point_saved; // end of the points of the newest save
    bool said_dropped;
    int64_t point_ns, point_examples, point_step;
};

static size_t series_size(const bel_control *control)
{
    return 2 * (size_t)control->config.stats.series;
}

static void read_point(const bel_control *control, int64_t place, bel_control_point *out_point)
{
    const step_point *from = &control->points[place];
    size_t size = series_size(control);
    *out_point = (bel_control_point){.step = from->step,
                                     .loss = from->loss,
                                     .examples_per_second = from->examples_per_second,
                                     .steps_per_second = from->steps_per_second,
                                     .for_hooks_alone = from->for_hooks_alone};
    if (size > 0) {
        memcpy(out_point->series, control->series + (size_t)place * size, size * sizeof(double));
    }
}

static void keep_point(const bel_control *control, int64_t place)
{
    bel_control_point point;
    read_point(control, place, &point);
    bel_kept_add_point(control->config.kept, &point);
}

// A save that is only ordered is due again for a successor, which does not know it.
static void keep_save(const bel_control *control)
{
    if (control->config.kept != NULL)
        bel_kept_set_saved(control->config.kept, control->last_save_ns);
}

// Saves by time stay due at their times.
static void recall_save(bel_control *control)
{
    const bel_control_config *config = &control->config;
    int64_t now = bel_clock_ns(), kept_ns = config->kept != NULL ? bel_kept_saved(config->kept) : 0;
    control->last_save_ns = now;
    if (config->continues && kept_ns > 0 && kept_ns <= now) {
        control->last_save_ns = kept_ns;
    } else if (config->continues && config->saved_secs > 0) {
        control->last_save_ns = now - (int64_t)(fmin(config->saved_secs, MOST_SECS) * 1e9);
    }
    keep_save(control);
}

// Shows a snapshot of the last generation again.
static void recall_snapshot(bel_control *control)
{
    const bel_control_config *config = &control->config;
    if (config->snapshot == 0) return;
    control->snapshot_busy = control->state.has_snapshot = true;
    control->snapshot_ordered = control->state.snapshot = config->snapshot;
    control->snapshot_shards = config->shard_count;
    control->state.save = config->snapshot_save;
    control->state.eval = config->snapshot_eval;
    if (config->snapshot_save) control->last_save_ns = bel_clock_ns(); // kept when it is released
}

// Puts a predecessor's point into the ring, which has room for all that are kept.
static void recall_point(bel_control *control, const bel_control_point *point)
{
    size_t size = series_size(control);
    int64_t place = control->point_count++ % control->point_room;
    control->points[place] = (step_point){.step = point->step,
                                          .loss = point->loss,
                                          .examples_per_second = point->examples_per_second,
                                          .steps_per_second = point->steps_per_second};
    if (size > 0)
        memcpy(control->series + (size_t)place * size, point->series, size * sizeof(double));
}

// Takes a predecessor's points; the master may not have received all of them.
static void recall_points(bel_control *control)
{
    bel_kept *kept = control->config.kept;
    bel_kept_drop_points_after(kept, control->config.first_step);
    for (int64_t i = bel_kept_first_point(kept); i < bel_kept_end_point(kept); i++) {
        bel_control_point point;
        bel_kept_read_point(kept, i, &point);
        if (point.step <= control->config.first_step) // else a dropped one's place
            recall_point(control, &point);
    }
}

void bel_control_add_points(bel_control *control, const bel_control_point *points, int count)
{
    pthread_mutex_lock(&control->mutex);
    int64_t newest = control->point_count - 1;
    int64_t there = newest >= 0 ? control->points[newest % control->point_room].step : -1;
    for (int i = 0; i < count; i++) {
        if (points[i].step <= there || points[i].step > control->config.first_step) continue;
        recall_point(control, &points[i]);
        if (control->config.kept != NULL) bel_kept_add_point(control->config.kept, &points[i]);
    }
    pthread_mutex_unlock(&control->mutex);
}

bel_control *bel_control_create(const bel_control_config *config)
{
    bel_control *control = bel_xcalloc(1, sizeof *control);
    control->config = *config;
    control->state.step = config->first_step;
    control->snapshot_ordered = -1;
    control->decided = -1;
    control->asked_end = config->first_step;
    atomic_store(&control->asked_shown, config->first_step);
    control->state.loss = NAN;
    control->running = config->worker_count;
    control->point_room = FEWEST_POINTS;
    control->points = bel_xcalloc(FEWEST_POINTS, sizeof *control->points);
    control->series = bel_xcalloc(FEWEST_POINTS * series_size(control), sizeof(double));
    pthread_mutex_init(&control->mutex, NULL);
    bel_cond_init(&control->cond);
    recall_save(control);
    recall_snapshot(control);
    if (config->kept != NULL) recall_points(control);
    return control;
}

void bel_control_destroy(bel_control *control)
{
    if (control == NULL) return;
    bel_status_destroy(control->error);
    pthread_cond_destroy(&control->cond);
    pthread_mutex_destroy(&control->mutex);
    bel_free(control->points);
    bel_free(control->series);
    bel_free(control);
}

// --- Decisions -----------------------------------------------------------------------------------

// Returns true if points that hooks need must be dropped, since there are too many.
static bool drops_kept_locked(bel_control *control)
{
    if (control->point_room < MOST_KEPT_POINTS) return false;
    if (!control->said_dropped) {
        bel_log_write(BEL_LOG_WARN,
                      "more than %d steps for hooks since the last checkpoint: a master that "
                      "replaces this one would miss some; hint: save more often",
                      MOST_KEPT_POINTS);
    }
    control->said_dropped = true;
    return true;
}

// A point's index is its number modulo the room, so needed points move to their new indices; others
// are dropped here.
static void grow_points_locked(bel_control *control, int64_t needed)
{
    int64_t room = 2 * control->point_room;
    size_t size = series_size(control);
    step_point *points = bel_xcalloc((size_t)room, sizeof *points);
    double *series = bel_xcalloc((size_t)room * size, sizeof *series);
    for (int64_t i = needed; i < control->point_count; i++) {
        int64_t from = i % control->point_room, to = i % room;
        points[to] = control->points[from];
        if (size > 0) {
            memcpy(series + (size_t)to * size, control->series + (size_t)from * size,
                   size * sizeof *series);
        }
    }
    bel_free(control->points);
    bel_free(control->series);
    control->points = points;
    control->series = series;
    control->point_room = room;
    control->point_first = needed;
}

// Grows the ring if it is full of needed points.
static void add_point_locked(bel_control *control, const double *stats, bool for_hooks_alone,
                             bool snapshot)
{
    bool keeps = control->config.hook_steps > 0 && control->point_kept < control->points_taken;
    int64_t needed = keeps ? control->point_kept : control->points_taken;
    bool full = control->point_count - needed >= control->point_room;
    if (full && keeps && drops_kept_locked(control)) {
        needed = control->point_kept = control->points_taken;
        full = control->point_count - needed >= control->point_room;
    }
    if (full) grow_points_locked(control, needed);
    int64_t now = bel_clock_ns(), examples = control->state.examples - control->point_examples;
    double seconds = (double)(now - control->point_ns) * 1e-9;
    bool first = control->point_ns == 0;
    int64_t place = control->point_count++ % control->point_room;
    size_t size = series_size(control);
    int64_t steps = control->state.step - control->point_step;
    control->points[place] =
        (step_point){.step = control->state.step,
                     .loss = control->state.loss,
                     .examples_per_second = first ? 0 : (double)examples / seconds,
                     .steps_per_second = first ? 0 : (double)steps / seconds,
                     .for_hooks_alone = for_hooks_alone,
                     .snapshot = snapshot};
    control->point_step = control->state.step;
    if (size > 0) {
        memcpy(control->series + (size_t)place * size, stats + BEL_STATS_COUNT,
               size * sizeof(double));
    }
    control->point_ns = now;
    control->point_examples = control->state.examples;
    if (control->config.kept != NULL) keep_point(control, place);
}

static bool is_multiple(int64_t version, int64_t period)
{
    return period > 0 && version % period == 0;
}

// Shows a snapshot when every shard has it and its version's point is available; either may come
// first.
static void show_snapshot_locked(bel_control *control)
{
    bool complete =
        control->snapshot_busy && control->snapshot_shards == control->config.shard_count;
    if (!complete || control->state.step < control->snapshot_ordered) return;
    control->state.has_snapshot = true;
    control->state.snapshot = control->snapshot_ordered;
    pthread_cond_broadcast(&control->cond);
}

// Records the preceding step's statistics. A loss that is not finite ends the job with an error,
// which decide_locked turns into a stop.
static void take_stats_locked(bel_control *control, int64_t version, const double *stats,
                              bel_steps_left left)
{
    const bel_control_config *config = &control->config;
    double examples = stats[BEL_STATS_EXAMPLES];
    if (examples > 0) control->state.loss = stats[BEL_STATS_LOSS_SUM] / examples;
    control->state.step = version;
    control->state.examples += (int64_t)examples;
    bool first = version == config->first_step + 1 && !config->continues;
    bool last = left != BEL_STEPS_FOLLOW || version == config->last_step; // possibly
    bool due = first || last || is_multiple(version, config->series_steps);
    bool snapshot = version == control->snapshot_ordered;
    if (due || snapshot || is_multiple(version, config->hook_steps))
        add_point_locked(control, stats, !due, snapshot);
    show_snapshot_locked(control);
    if (stats[BEL_STATS_NONFINITE] == 0 || control->error != NULL) return;
    control->error = BEL_ERR(BEL_ABORTED,
                             "the loss is not finite (%g) at step %lld; hint: a lower "
                             "learning_rate, warmup_steps or clip_global_norm often helps",
                             control->state.loss, (long long)version - 1);
}

// Snapshots that are due with version `version`. A snapshot by time may wait, the others may not.
static bool due_locked(bel_control *control, int64_t version, bool *out_save, bool *out_eval,
                       bool *out_by_time)
{
    const bel_control_config *config = &control->config;
    *out_by_time = config->save_steps == 0 && config->save_secs > 0 &&
                   (double)(bel_clock_ns() - control->last_save_ns) * 1e-9 >= config->save_secs;
    bool extra = version == config->save_at;
    *out_save = is_multiple(version, config->save_steps) || *out_by_time || extra;
    *out_eval = is_multiple(version, config->eval_steps);
    return (*out_save || *out_eval) && version != config->last_step; // the end always saves
}

// Checks, in order: an error, the end, a request, a snapshot. A snapshot is decided one version
// ahead: the step from `version` streams `version + 1`.
static uint32_t decide_locked(bel_control *control, int64_t version, bel_steps_left left)
{
    if (control->error != NULL || control->cancelled) return BEL_DECIDE_STOP;
    control->over = left == BEL_STEPS_OVER;
    // If shards continue, some chunks have the next version's slots already: that step is made.
    bool must = control->config.continues && version == control->config.first_step;
    if (!must && (control->over || version >= control->config.last_step)) return BEL_DECIDE_STOP;
    control->interrupted = !must && (bel_stop_requested() || control->stop_wanted);
    control->paused = !must && control->pause_wanted && !control->interrupted;
    if (control->interrupted || control->paused) return BEL_DECIDE_STOP;
    if (left == BEL_STEPS_UNASKED) return BEL_DECIDE_LATER; // look at the input again first
    if (control->config.asks && version >= control->asked_end) return BEL_DECIDE_LATER;
    uint32_t decision = 0;
    if (control->config.asks) {
        int function = control->asked[version % BEL_CONTROL_MOST_ASKED].function;
        decision = (uint32_t)function * BEL_DECIDE_FUNCTION;
    }
    if (control->tells_release) decision |= BEL_DECIDE_RELEASED;
    control->tells_release = false; // while a snapshot is in use it is false
    bool save, eval, by_time;
    if (!due_locked(control, version + 1, &save, &eval, &by_time)) return decision;
    if (control->snapshot_busy) return by_time && !eval ? decision : BEL_DECIDE_LATER;
    control->snapshot_busy = true;
    control->snapshot_ordered = version + 1;
    control->snapshot_shards = 0;
    control->state.save = save;
    control->state.eval = eval;
    if (save) control->last_save_ns = bel_clock_ns();
    return decision | BEL_DECIDE_SAVE;
}

// A loop that has waited for the preceding step asks for the next one within microseconds: sleeping
// and waking would take longer. If it needs this processor, it gets it.
static void await_ask(bel_control *control, int64_t version)
{
    enum { MOST_NS = 40000 };
    int64_t deadline = bel_clock_ns() + MOST_NS;
    while (atomic_load_explicit(&control->asked_shown, memory_order_relaxed) <= version &&
           bel_clock_ns() < deadline)
        sched_yield();
}

uint32_t bel_control_decide(void *context, int64_t version, const double *stats,
                            bel_steps_left left)
{
    bel_control *control = context;
    pthread_mutex_lock(&control->mutex);
    bool repeated = stats != NULL && control->state.step == version; // repeated after "later"
    if (stats != NULL && !repeated) take_stats_locked(control, version, stats, left);
    uint32_t decision = decide_locked(control, version, left);
    if ((decision & (BEL_DECIDE_STOP | BEL_DECIDE_LATER)) == 0) control->decided = version;
    const bel_control_made made = {
        .version = version,
        .wanted =
            control->asked[(version + BEL_CONTROL_MOST_ASKED - 1) % BEL_CONTROL_MOST_ASKED].wanted,
        .snapshot = version == control->snapshot_ordered,
        .stats = stats};
    bool tells = control->config.asks && stats != NULL && !repeated && control->error == NULL;
    pthread_mutex_unlock(&control->mutex);
    if (tells) control->config.made(control->config.made_context, &made);
    if (!tells || !made.wanted || (decision & BEL_DECIDE_LATER) == 0) return decision;
    await_ask(control, version);
    // known by now, or the call is repeated
    return bel_control_decide(context, version, stats, left);
}

// Each shard calls once for a snapshot; the last call wakes the master.
void bel_control_snapshot_ready(void *context, int shard, int64_t version)
{
    (void)shard, (void)version; // the ordered one
    bel_control *control = context;
    pthread_mutex_lock(&control->mutex);
    control->snapshot_shards++;
    show_snapshot_locked(control);
    pthread_mutex_unlock(&control->mutex);
}

// --- The end -------------------------------------------------------------------------------------

// Takes ownership of the status.
static void fail_locked(bel_control *control, bel_status *status)
{
    bool cancelled = bel_status_code(status) == BEL_CANCELLED;
    if (status != NULL && control->error == NULL && !cancelled) {
        control->error = status;
    } else {
        bel_status_ignore(status); // the first error matters; CANCELLED only follows from it
    }
}

void bel_control_worker_ended(bel_control *control, bel_status *status)
{
    pthread_mutex_lock(&control->mutex);
    control->running--;
    if (status != NULL) control->cancelled = true;
    fail_locked(control, status);
    pthread_cond_broadcast(&control->cond);
    pthread_mutex_unlock(&control->mutex);
}

bool bel_control_is_cancelled(void *context)
{
    bel_control *control = context;
    pthread_mutex_lock(&control->mutex);
    bool cancelled = control->cancelled;
    pthread_mutex_unlock(&control->mutex);
    return cancelled;
}

void bel_control_cancel(bel_control *control, bel_status *status)
{
    pthread_mutex_lock(&control->mutex);
    control->cancelled = true;
    fail_locked(control, status);
    pthread_cond_broadcast(&control->cond);
    pthread_mutex_unlock(&control->mutex);
}

bel_status *bel_control_take_error(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    bel_status *status = control->error;
    control->error = NULL;
    pthread_mutex_unlock(&control->mutex);
    return status;
}

bool bel_control_was_interrupted(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    bool interrupted = control->interrupted;
    pthread_mutex_unlock(&control->mutex);
    return interrupted;
}

bool bel_control_ask(bel_control *control, int64_t version, int function, bool wanted)
{
    pthread_mutex_lock(&control->mutex);
    bool next =
        version == control->asked_end && version - control->state.step < BEL_CONTROL_MOST_ASKED - 1;
    if (next) {
        control->asked[version % BEL_CONTROL_MOST_ASKED].function = function;
        control->asked[version % BEL_CONTROL_MOST_ASKED].wanted = wanted;
        control->asked_end++;
        atomic_store_explicit(&control->asked_shown, control->asked_end, memory_order_relaxed);
    }
    pthread_mutex_unlock(&control->mutex);
    return next;
}

int bel_control_function_of(void *context, int64_t version)
{
    bel_control *control = context;
    pthread_mutex_lock(&control->mutex);
    bool asked = !control->config.asks || version < control->asked_end;
    int function = control->asked[version % BEL_CONTROL_MOST_ASKED].function;
    pthread_mutex_unlock(&control->mutex);
    return asked ? function : -1;
}

// A version in progress is finished first.
void bel_control_stop_at(bel_control *control, int64_t step)
{
    pthread_mutex_lock(&control->mutex);
    int64_t soonest = control->decided + 1;
    int64_t last = step > soonest ? step : soonest;
    if (last < control->config.last_step) control->config.last_step = last;
    pthread_mutex_unlock(&control->mutex);
}

void bel_control_interrupt(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    control->stop_wanted = true;
    pthread_mutex_unlock(&control->mutex);
}

bool bel_control_was_paused(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    bool paused = control->paused;
    pthread_mutex_unlock(&control->mutex);
    return paused;
}

bool bel_control_is_over(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    bool over = control->over;
    pthread_mutex_unlock(&control->mutex);
    return over;
}

void bel_control_pause(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    control->pause_wanted = true;
    pthread_mutex_unlock(&control->mutex);
}

// --- The master's side ---------------------------------------------------------------------------

void bel_control_wait(bel_control *control, double secs, bel_control_state *out_state)
{
    int64_t deadline = bel_clock_ns() + (int64_t)(secs * 1e9);
    pthread_mutex_lock(&control->mutex);
    bool in_time = true;
    while (in_time && control->running > 0 && !control->state.has_snapshot)
        in_time = bel_cond_wait_until(&control->cond, &control->mutex, deadline);
    control->state.running = control->running > 0;
    *out_state = control->state;
    pthread_mutex_unlock(&control->mutex);
}

void bel_control_release_snapshot(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    if (control->state.save) { // its point is the last one that was taken
        control->point_kept = control->point_saved;
        control->point_saved = control->points_taken;
        keep_save(control);
    }
    control->tells_release = control->state.has_snapshot;
    control->state.has_snapshot = false;
    control->snapshot_busy = false;
    pthread_mutex_unlock(&control->mutex);
}

int bel_control_take_points(bel_control *control, bel_control_point *out_points, int capacity)
{
    pthread_mutex_lock(&control->mutex);
    int count = 0;
    bool snapshot = false;
    while (count < capacity && !snapshot && control->points_taken < control->point_count) {
        int64_t place = control->points_taken++ % control->point_room;
        const step_point *from = &control->points[place];
        bel_control_point *point = &out_points[count++];
        read_point(control, place, point);
        snapshot = from->snapshot && from->step == control->snapshot_ordered &&
                   control->snapshot_busy; // otherwise it was released
        point->snapshot = snapshot;
    }
    pthread_mutex_unlock(&control->mutex);
    return count;
}

// The oldest point in the ring: not overwritten, and not dropped when the ring grew.
static int64_t oldest_locked(const bel_control *control)
{
    int64_t oldest = control->point_count - control->point_room;
    return oldest > control->point_first ? oldest : control->point_first;
}

void bel_control_give_points_again(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    control->points_taken = oldest_locked(control);
    pthread_mutex_unlock(&control->mutex);
}

int bel_control_newest_points(bel_control *control, bel_control_point *out_points, int capacity)
{
    int count = 0;
    pthread_mutex_lock(&control->mutex);
    int64_t first = control->point_count - capacity, oldest = oldest_locked(control);
    for (int64_t i = first > oldest ? first : oldest; i < control->point_count; i++)
        read_point(control, i % control->point_room, &out_points[count++]);
    pthread_mutex_unlock(&control->mutex);
    return count;
}

bool bel_control_has_failed(bel_control *control)
{
    pthread_mutex_lock(&control->mutex);
    bool failed = control->error != NULL;
    pthread_mutex_unlock(&control->mutex);
    return failed;
}
