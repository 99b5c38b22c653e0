// The file is looked at every 20 ms while records of the next step are missing. The wait ends when
// no record was appended for the time that the dataset says, or when training ends. Records that
// come slowly are waited for: workers of this process see that the loop rests, and others know that
// a step may take long (bel_trainable_patience_secs).
// A long wait is logged, but not each one of a slow stream.
#include "master/job/follow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "master/job/replicator.h"

struct bel_follow {
    bel_trainable *trainable;
    const bel_input *input;  // its input
    bel_input_reader reader; // the last checkpoint
    int64_t said_ns;         // time of the last line about a long wait; 0: none
    pthread_mutex_t mutex;
    bel_input_segment segment; // under the mutex
};

bel_follow *bel_follow_create(bel_trainable *trainable)
{
    bel_follow *f = bel_xcalloc(1, sizeof *f);
    f->trainable = trainable;
    f->input = trainable->input;
    pthread_mutex_init(&f->mutex, NULL);
    bel_input_join(f->input, &f->reader);
    return f;
}

void bel_follow_destroy(bel_follow *f)
{
    if (f == NULL) return;
    bel_input_leave(f->input, &f->reader);
    pthread_mutex_destroy(&f->mutex);
    bel_free(f);
}

void bel_follow_set_segment(bel_follow *f, const bel_input_segment *segment)
{
    pthread_mutex_lock(&f->mutex);
    f->segment = *segment;
    pthread_mutex_unlock(&f->mutex);
}

// Records that `step` and the steps before it lack.
static bel_status *count_missing(bel_follow *f, int64_t step, int64_t *out_missing,
                                 int64_t *out_records)
{
    pthread_mutex_lock(&f->mutex);
    const bel_input_segment segment = f->segment;
    pthread_mutex_unlock(&f->mutex);
    *out_records = segment.replica_count * bel_input_batch_size(f->input);
    return bel_input_look(
        f->input, bel_input_segment_block(&segment, step, segment.replica_count - 1), out_missing);
}

// A wait for the records of a step.
typedef struct wait {
    int64_t step, begun_ns;
    int64_t since_ns; // the last record, or the beginning
    int64_t missing;  // -1: unknown yet
    int64_t records;  // number that a step takes
} wait;

static double secs_since(int64_t ns)
{
    return (double)(bel_clock_awake_ns() - ns) * 1e-9;
}

// Logs why training ends, and what is left in the file.
static void say_end(const bel_follow *f, const wait *w, const char *why)
{
    bel_str rest = {0}, part = {0};
    bel_str_puts(&rest, "");
    int64_t left = w->missing >= 0 ? w->records - w->missing : 0;
    if (left > 0)
        bel_str_printf(&rest, "; the last %lld records wait for more, as a step takes %lld",
                       (long long)left, (long long)w->records);
    bel_input_unfinished(f->input, &part);
    if (part.length > 0) bel_str_printf(&rest, "; %s", part.text);
    bel_log_write(BEL_LOG_INFO, "%s: training ends at step %lld%s", why, (long long)w->step,
                  rest.text);
    bel_str_deinit(&part);
    bel_str_deinit(&rest);
}

// Whether the wait has lasted long enough.
static bool is_over(const bel_follow *f, const wait *w)
{
    char why[80];
    double patience = bel_input_follow_secs(f->input);
    if (secs_since(w->since_ns) < patience) return false;
    bel_snprintf(why, sizeof why, "no record was appended for %g s", patience);
    say_end(f, w, why);
    return true;
}

// Logs a wait of a minute for the rest of a step, and the next such wait ten minutes later.
static void say_wait(bel_follow *f, const wait *w)
{
    enum { LONG_SECS = 60, AGAIN_SECS = 600 };
    if (w->missing <= 0 || secs_since(w->begun_ns) < LONG_SECS) return;
    if (f->said_ns != 0 && secs_since(f->said_ns) < AGAIN_SECS) return;
    f->said_ns = bel_clock_awake_ns();
    bel_log_write(BEL_LOG_INFO, "step %lld waits for %lld more records, as a step takes %lld",
                  (long long)w->step, (long long)w->missing, (long long)w->records);
}

// Waits for the records of a step. *out_ended: no record was appended for a long time.
static bel_status *await_step(bel_follow *f, bel_replicator *replicator, bool *out_ended)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    wait w = {
        .step = bel_replicator_step(replicator), .begun_ns = bel_clock_awake_ns(), .missing = -1};
    w.since_ns = w.begun_ns;
    *out_ended = false;
    for (;;) {
        int64_t missing;
        bel_replicator_rest(replicator);
        atomic_fetch_add(&f->trainable->rests, 1);
        bel_status *status = count_missing(f, w.step, &missing, &w.records);
        if (bel_input_reads(f->input)) w.since_ns = bel_clock_awake_ns();
        if (status != NULL && (bel_input_error_stays(bel_status_code(status)) ||
                               secs_since(w.since_ns) >= bel_input_follow_secs(f->input)))
            return status;
        if (status == NULL && missing != w.missing) w.since_ns = bel_clock_awake_ns();
        if (status == NULL) w.missing = missing;
        bel_status_ignore(status); // it may pass
        if (w.missing == 0 || bel_replicator_ends(replicator)) return NULL;
        *out_ended = is_over(f, &w);
        if (*out_ended) return NULL;
        say_wait(f, &w);
        (void)nanosleep(&nap, NULL);
    }
}

static bel_status *follow_run(void *user, bel_replicator *replicator)
{
    for (;;) {
        bool ended;
        BEL_TRY(await_step(user, replicator, &ended));
        if (ended) return NULL;
        BEL_TRY(bel_replicator_run(replicator, 0, NULL));
    }
}

bel_loop bel_follow_loop(bel_follow *f)
{
    return (bel_loop){.size = sizeof(bel_loop), .function_count = 1, .run = follow_run, .user = f};
}

bel_status *bel_follow_mark(const bel_follow *f, const bel_input_segment *segment, int64_t step,
                            bel_str *out_text)
{
    const struct timespec nap = {.tv_nsec = 100000000};
    const int64_t block = bel_input_segment_block(segment, step, 0);
    int64_t begun = bel_clock_awake_ns();
    for (;;) {
        bel_status *status = bel_input_mark(f->input, block, out_text);
        if (bel_input_reads(f->input)) begun = bel_clock_awake_ns();
        bool passes = status != NULL && !bel_input_error_stays(bel_status_code(status));
        if (!passes || secs_since(begun) >= bel_input_follow_secs(f->input)) return status;
        bel_status_ignore(status); // tried again
        (void)nanosleep(&nap, NULL);
    }
}

// Whether an error of the rows before a checkpoint stays. Nothing adds rows that are missing there.
static bool is_lost(const bel_status *status)
{
    bel_code code = bel_status_code(status);
    return code == BEL_NOT_FOUND || bel_input_error_stays(code);
}

bel_status *bel_follow_begin(bel_follow *f, const bel_input_segment *segment, int64_t step,
                             const char *mark)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    const int64_t block = bel_input_segment_block(segment, step, 0);
    int64_t begun = bel_clock_awake_ns();
    BEL_TRY(bel_input_begin(f->input, block, mark));
    for (;;) {
        int64_t missing;
        bel_status *status = bel_input_look(f->input, block - 1, &missing);
        if (bel_input_reads(f->input)) begun = bel_clock_awake_ns();
        if (status == NULL && missing > 0)
            status = BEL_ERR(BEL_NOT_FOUND, "%s: it lacks %lld records",
                             bel_input_followed(f->input), (long long)missing);
        if (status == NULL) break;
        bool lost = is_lost(status);
        if (lost || secs_since(begun) >= bel_input_follow_secs(f->input)) {
            if (!lost) return status;
            bel_status *error = BEL_ERR(BEL_DATA_LOSS,
                                        "%s; training has read %s; hint: a new log needs a new "
                                        "training, with --warm_start",
                                        bel_status_message(status), mark != NULL ? mark : "more");
            bel_status_ignore(status); // replaced
            return error;
        }
        bel_status_ignore(status); // tried again
        (void)nanosleep(&nap, NULL);
    }
    bel_follow_saved(f, segment, step);
    return NULL;
}

void bel_follow_saved(bel_follow *f, const bel_input_segment *segment, int64_t step)
{
    bel_input_pass(f->input, &f->reader, bel_input_segment_block(segment, step, 0));
}
