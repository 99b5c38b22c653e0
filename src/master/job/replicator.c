// Two threads and one mutex: the loop's thread requests steps and waits for their results; the
// thread that publishes a version reports it; the master's thread starts and ends the loop. The
// request callback is called under the mutex, so that it is never called after a pause.
//
// A wait ends when a step is made, or by bel_replicator_end, which the master calls whenever
// training ends, for any reason. The master's clocks end training that hangs.
//
// Memory before the step on version v is in slot v modulo KEPT. The loop runs at most AHEAD steps
// before the last known version, so a version that is made is still there. A snapshot's memory is
// copied when its version is made, as it may be saved much later.
#include "master/job/replicator.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "checkpoint/setting_names.h"
#include "ps/layout/step_stats.h"

enum { AHEAD = 64, KEPT = BEL_CONTROL_MOST_ASKED };

// The state before the step on a version.
typedef struct moment {
    int64_t runs[BEL_MAX_STEP_FUNCTIONS]; // runs of each function before it
    uint8_t *memory;                      // the loop's memory
    int function;                         // function of the step itself, once it is requested
    bool wanted;
} moment;

struct bel_replicator {
    const bel_trainable *trainable;
    bel_loop loop;        // a copy: its thread may outlast the call that trains
    uint8_t *hook_memory; // memory for checkpoints

    pthread_mutex_t mutex; // guards all fields below
    pthread_cond_t cond;   // a step was made, the loop has returned, or it must end
    pthread_t thread;
    bool began; // it has started once
    bool runs, returned;
    bel_status *error; // error of the loop, once it has returned
    bel_code failing;  // bel_replicator_run fails with it; BEL_OK: it does not
    bool has_failed;   // and it has failed: the loop's error is the same
    char why[512];
    bel_replicator_ask *ask; // NULL: paused
    void *ask_context;
    int64_t asked;   // version on which the next step is made
    int64_t reached; // end of the known moments: asked + 1, or asked
    int64_t made;    // newest version that was made
    bool wants_room; // the loop waits until fewer steps are under way
    int64_t idle_ns; // since when the loop could request a step
    int64_t awaited; // version that the loop waits for; -1: none
    bool result_is_there;
    bel_step_result result; // result of `awaited`
    bel_returned values[BEL_MAX_RETURNS];
    double *numbers; // numbers of the result
    moment moments[KEPT];
    int64_t snapshot;  // newest version with a snapshot; -1: none …
    bool has_snapshot; // … and its moment:
    moment at_snapshot;
};

static size_t state_bytes(const bel_replicator *r)
{
    return r->loop.state_bytes;
}

bel_replicator *bel_replicator_create(const bel_trainable *trainable, const bel_train_spec *spec)
{
    bel_replicator *r = bel_xcalloc(1, sizeof *r);
    r->trainable = trainable;
    r->loop = *spec->loop;
    r->snapshot = r->awaited = -1;
    r->numbers = bel_xcalloc((size_t)trainable->stats.returned + 1, sizeof *r->numbers);
    if (state_bytes(r) > 0) {
        r->hook_memory = bel_xmalloc(state_bytes(r));
        memcpy(r->hook_memory, r->loop.state, state_bytes(r));
        r->at_snapshot.memory = bel_xmalloc(state_bytes(r));
        for (int i = 0; i < KEPT; i++)
            r->moments[i].memory = bel_xmalloc(state_bytes(r));
    }
    pthread_mutex_init(&r->mutex, NULL);
    bel_cond_init(&r->cond);
    return r;
}

void bel_replicator_destroy(bel_replicator *r)
{
    if (r == NULL) return;
    if (r->runs) return; // a loop that does not return still uses it
    for (int i = 0; i < KEPT; i++)
        bel_free(r->moments[i].memory);
    bel_free(r->at_snapshot.memory);
    bel_free(r->hook_memory);
    bel_free(r->numbers);
    bel_status_destroy(r->error);
    pthread_cond_destroy(&r->cond);
    pthread_mutex_destroy(&r->mutex);
    bel_free(r);
}

bel_hook bel_replicator_hook(bel_replicator *r)
{
    return (bel_hook){.size = sizeof(bel_hook),
                      .name = ".loop",
                      .state = r->hook_memory,
                      .state_bytes = state_bytes(r)};
}

static void copy_moment(const bel_replicator *r, moment *to, const moment *from)
{
    uint8_t *memory = to->memory;
    *to = *from;
    to->memory = memory;
    if (memory != NULL) memcpy(memory, from->memory, state_bytes(r));
}

static moment *moment_of(bel_replicator *r, int64_t version)
{
    return &r->moments[version % KEPT];
}

// Records the moment of the version on which the next step is made: on the loop's thread.
static void note_moment_locked(bel_replicator *r)
{
    moment *now = moment_of(r, r->asked);
    if (r->reached > r->asked) return;
    if (now->memory != NULL) memcpy(now->memory, r->loop.state, state_bytes(r));
    r->reached = r->asked + 1;
    if (r->snapshot != r->asked || r->has_snapshot) return;
    copy_moment(r, &r->at_snapshot, now);
    r->has_snapshot = true;
}

// --- The loop's thread ---------------------------------------------------------------------------

int64_t bel_replicator_step(const bel_replicator *r)
{
    return r->asked; // only the loop's thread changes it while it runs
}

static bel_status *failure_locked(bel_replicator *r)
{
    r->has_failed = true;
    return BEL_ERR(r->failing, "%s", r->why);
}

enum { NAP_NS = BEL_CLOCK_LOOK_MS * 1000000 };

static void wait_locked(bel_replicator *r, int64_t ns)
{
    if (ns > NAP_NS) ns = NAP_NS;
    (void)bel_cond_wait_until(&r->cond, &r->mutex, bel_clock_ns() + ns);
}

// Requests a step. The next moment is this one with one more run.
static void ask_locked(bel_replicator *r, int function, bool wanted)
{
    moment *now = moment_of(r, r->asked), *next = moment_of(r, r->asked + 1);
    now->function = function;
    now->wanted = wanted;
    memcpy(next->runs, now->runs, sizeof next->runs);
    next->runs[function]++;
    int64_t version = r->asked++;
    if (r->ask != NULL) r->ask(r->ask_context, version, function, wanted);
}

static bel_status *run_locked(bel_replicator *r, int function, const bel_step_result **out_result)
{
    note_moment_locked(r);
    if (r->asked - r->made >= AHEAD) { // waits for several: a wake-up costs more
        r->wants_room = true;
        while (r->failing == BEL_OK && r->asked - r->made > AHEAD / 2)
            wait_locked(r, NAP_NS);
        r->wants_room = false;
    }
    while (r->failing == BEL_OK && r->ask == NULL)
        wait_locked(r, NAP_NS);
    if (r->failing != BEL_OK) return failure_locked(r);
    r->result_is_there = false;
    r->awaited = out_result != NULL ? r->asked + 1 : -1;
    ask_locked(r, function, out_result != NULL);
    if (out_result == NULL) return NULL;
    while (r->failing == BEL_OK && !r->result_is_there)
        wait_locked(r, NAP_NS);
    r->idle_ns = bel_clock_awake_ns();
    if (!r->result_is_there) return failure_locked(r);
    *out_result = &r->result;
    return NULL;
}

bel_status *bel_replicator_run(bel_replicator *r, int function, const bel_step_result **out_result)
{
    if (function < 0 || function >= r->loop.function_count) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no step function %d: the loop has %d",
                       function, r->loop.function_count);
    }
    pthread_mutex_lock(&r->mutex);
    bel_status *status = run_locked(r, function, out_result);
    pthread_mutex_unlock(&r->mutex);
    return status;
}

const double *bel_step_result_find(const bel_step_result *result, const char *name,
                                   int64_t *out_count)
{
    for (int i = 0; i < result->value_count; i++) {
        if (strcmp(result->values[i].name, name) != 0) continue;
        if (out_count != NULL) *out_count = result->values[i].count;
        return result->values[i].numbers;
    }
    return NULL;
}

static void *loop_main(void *argument)
{
    bel_replicator *r = argument;
    bel_status *status = r->loop.run(r->loop.user, r);
    pthread_mutex_lock(&r->mutex);
    note_moment_locked(r);
    r->error = status;
    r->returned = true;
    pthread_cond_broadcast(&r->cond);
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

// --- The publishing thread ----------------------------------------------------------------------

// Takes the values of a step from its statistics: sums for means are weighted by examples.
static void take_result_locked(bel_replicator *r, const bel_control_made *made)
{
    int function = moment_of(r, made->version - 1)->function;
    const bel_trainable *t = r->trainable;
    const bel_estimator_spec *spec = &t->built->functions[function].spec;
    const double *from = made->stats + bel_stats_returned(t->stats);
    double examples = made->stats[BEL_STATS_EXAMPLES];
    for (int i = 0; i < spec->return_count; i++) {
        const bel_worker_return *place = &t->returns[function][i];
        bool mean = place->kind == BEL_RETURN_MEAN && examples > 0;
        int64_t copies = place->kind == BEL_RETURN_REPLICAS ? t->estimator->replica_count : 1;
        int64_t count = place->elements * copies;
        for (int64_t e = place->first; e < place->first + count; e++)
            r->numbers[e] = mean ? from[e] / examples : from[e];
        r->values[i] = (bel_returned){
            .name = spec->returns[i].name, .numbers = r->numbers + place->first, .count = count};
    }
    r->result =
        (bel_step_result){.step = made->version,
                          .loss = examples > 0 ? made->stats[BEL_STATS_LOSS_SUM] / examples : NAN,
                          .examples = (int64_t)examples,
                          .values = r->values,
                          .value_count = spec->return_count};
    r->result_is_there = true;
}

void bel_replicator_made(void *replicator, const bel_control_made *made)
{
    bel_replicator *r = replicator;
    pthread_mutex_lock(&r->mutex);
    if (made->version > r->made) r->made = made->version;
    if (r->made >= r->asked) r->idle_ns = bel_clock_awake_ns();
    if (made->snapshot && made->version > r->snapshot) {
        r->snapshot = made->version;
        r->has_snapshot = made->version < r->reached;
        if (r->has_snapshot) copy_moment(r, &r->at_snapshot, moment_of(r, made->version));
    }
    bool awaited = made->stats != NULL && made->version == r->awaited && !r->result_is_there;
    if (awaited) take_result_locked(r, made);
    bool room = r->wants_room && r->asked - r->made <= AHEAD / 2;
    if (awaited || room) pthread_cond_broadcast(&r->cond);
    pthread_mutex_unlock(&r->mutex);
}

// --- The master's thread -------------------------------------------------------------------------

bel_status *bel_replicator_load_runs(bel_replicator *r, const char *text)
{
    int64_t *runs = r->at_snapshot.runs;
    memset(runs, 0, sizeof r->at_snapshot.runs);
    for (int f = 0; text != NULL && f < r->loop.function_count; f++) {
        size_t length = strcspn(text, ",");
        bool last = f == r->loop.function_count - 1;
        bool number = bel_parse_i64(text, length, &runs[f]) && runs[f] >= 0;
        if (!number || (text[length] == '\0') != last) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s must be %d numbers, at \"%s\"",
                           BEL_SETTING_RUNS, r->loop.function_count, text);
        }
        text += length + !last;
    }
    return NULL;
}

// Starts from a checkpoint: its runs are in at_snapshot, its memory is the hook's.
static bel_status *begin_locked(bel_replicator *r, int64_t step)
{
    if (state_bytes(r) > 0) memcpy(r->loop.state, r->hook_memory, state_bytes(r));
    memcpy(moment_of(r, step)->runs, r->at_snapshot.runs, sizeof r->at_snapshot.runs);
    r->began = true;
    r->asked = r->reached = r->made = step;
    r->snapshot = r->awaited = -1;
    r->has_snapshot = r->returned = r->has_failed = false;
    r->failing = BEL_OK;
    bel_status *status = bel_thread_start(&r->thread, loop_main, r);
    r->runs = status == NULL;
    return status;
}

// Requests steps that a pause has skipped again, in order.
static void ask_again_locked(bel_replicator *r, int64_t step)
{
    r->made = step;
    for (int64_t version = step; version < r->asked; version++) {
        const moment *then = moment_of(r, version);
        r->ask(r->ask_context, version, then->function, then->wanted);
    }
}

bel_status *bel_replicator_start(bel_replicator *r, int64_t step, bel_replicator_ask *ask,
                                 void *context)
{
    bel_status *status = NULL;
    pthread_mutex_lock(&r->mutex);
    r->ask = ask;
    r->ask_context = context;
    r->idle_ns = bel_clock_awake_ns();
    if (r->runs) {
        ask_again_locked(r, step);
    } else {
        status = begin_locked(r, step);
    }
    pthread_cond_broadcast(&r->cond);
    pthread_mutex_unlock(&r->mutex);
    return status;
}

void bel_replicator_pause(bel_replicator *r)
{
    pthread_mutex_lock(&r->mutex);
    r->ask = NULL;
    pthread_mutex_unlock(&r->mutex);
}

bel_replicator_look bel_replicator_look_at(bel_replicator *r)
{
    pthread_mutex_lock(&r->mutex);
    bool idle = r->runs && !r->returned && r->made >= r->asked && r->ask != NULL;
    bel_replicator_look look = {.returned = r->returned,
                                .asked = r->asked,
                                .idle_secs =
                                    idle ? (double)(bel_clock_awake_ns() - r->idle_ns) * 1e-9 : 0};
    pthread_mutex_unlock(&r->mutex);
    return look;
}

void bel_replicator_rest(bel_replicator *r)
{
    pthread_mutex_lock(&r->mutex);
    note_moment_locked(r);
    r->idle_ns = bel_clock_awake_ns();
    pthread_mutex_unlock(&r->mutex);
}

bool bel_replicator_still_runs(const bel_replicator *r)
{
    return r != NULL && r->runs;
}

bool bel_replicator_ends(bel_replicator *r)
{
    pthread_mutex_lock(&r->mutex);
    bool ends = r->failing != BEL_OK;
    pthread_mutex_unlock(&r->mutex);
    return ends;
}

bel_status *bel_replicator_end(bel_replicator *r, bel_code code, const char *words, double secs,
                               bel_status **out_error)
{
    *out_error = NULL;
    if (!r->runs) return NULL;
    int64_t deadline = bel_clock_awake_ns() + (int64_t)(secs * 1e9);
    pthread_mutex_lock(&r->mutex);
    r->failing = code;
    bel_snprintf(r->why, sizeof r->why, "%s", words);
    pthread_cond_broadcast(&r->cond);
    while (!r->returned && bel_clock_awake_ns() < deadline)
        wait_locked(r, deadline - bel_clock_awake_ns());
    bool returned = r->returned;
    r->ask = NULL;
    pthread_mutex_unlock(&r->mutex);
    if (!returned) {
        return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                       "the loop of the program does not return: training ended %.0f s ago, at "
                       "step %lld (%s)",
                       secs, (long long)r->asked, words);
    }
    pthread_join(r->thread, NULL);
    r->runs = false;
    if (r->has_failed) {
        bel_status_ignore(r->error); // the same as bel_replicator_run has returned
    } else {
        *out_error = r->error;
    }
    r->error = NULL;
    return NULL;
}

bool bel_replicator_recall(bel_replicator *r, int64_t version, char *text)
{
    text[0] = '\0';
    pthread_mutex_lock(&r->mutex);
    const moment *then = NULL;
    if (version == r->snapshot || !r->began) {
        if (r->has_snapshot || !r->began) then = &r->at_snapshot;
    } else if (version < r->reached && version > r->reached - KEPT) {
        then = moment_of(r, version);
    }
    size_t length = 0;
    for (int f = 0; then != NULL && r->loop.function_count > 1 && f < r->loop.function_count; f++)
        length += (size_t)bel_snprintf(text + length, BEL_RUNS_TEXT - length, "%s%lld",
                                       f > 0 ? "," : "", (long long)then->runs[f]);
    if (then != NULL && state_bytes(r) > 0 && r->began)
        memcpy(r->hook_memory, then->memory, state_bytes(r));
    pthread_mutex_unlock(&r->mutex);
    return then != NULL;
}
