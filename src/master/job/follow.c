// The file is looked at every 20 ms while records of the next step are missing. The wait ends when
// no record was appended for the time that the dataset says, or when training ends. It also ends
// before workers count as stuck, if records come but are too few for a step.
#include "master/job/follow.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "master/job/replicator.h"

struct bel_follow {
    const bel_input *input;
    double stall_secs;
    pthread_mutex_t mutex;
    bel_input_segment segment; // under the mutex
};

bel_follow *bel_follow_create(const bel_input *input, double stall_secs)
{
    bel_follow *f = bel_xcalloc(1, sizeof *f);
    f->input = input;
    f->stall_secs = stall_secs;
    pthread_mutex_init(&f->mutex, NULL);
    return f;
}

void bel_follow_destroy(bel_follow *f)
{
    if (f == NULL) return;
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
    return (double)(bel_clock_ns() - ns) * 1e-9;
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
    char why[160];
    double patience = bel_input_follow_secs(f->input), most = 0.8 * f->stall_secs;
    bool rare = secs_since(w->begun_ns) >= most; // also before workers say so
    if (secs_since(w->since_ns) >= patience) {
        bel_snprintf(why, sizeof why, "no record was appended for %g s", patience);
    } else if (rare) {
        bel_snprintf(why, sizeof why,
                     "the records of a step did not come within %g s, 0.8 of --stall_timeout",
                     most);
    } else {
        return false;
    }
    say_end(f, w, why);
    return true;
}

// Waits for the records of a step. *out_ended: no record was appended for a long time.
static bel_status *await_step(bel_follow *f, bel_replicator *replicator, bool *out_ended)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    wait w = {.step = bel_replicator_step(replicator), .begun_ns = bel_clock_ns(), .missing = -1};
    w.since_ns = w.begun_ns;
    *out_ended = false;
    for (;;) {
        int64_t missing;
        bel_replicator_rest(replicator);
        bel_status *status = count_missing(f, w.step, &missing, &w.records);
        if (status != NULL && (bel_input_error_stays(bel_status_code(status)) ||
                               secs_since(w.since_ns) >= bel_input_follow_secs(f->input)))
            return status;
        if (status == NULL && missing != w.missing) w.since_ns = bel_clock_ns();
        if (status == NULL) w.missing = missing;
        bel_status_ignore(status); // it may pass
        if (w.missing == 0 || bel_replicator_ends(replicator)) return NULL;
        *out_ended = is_over(f, &w);
        if (*out_ended) return NULL;
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
    const int64_t begun = bel_clock_ns(), block = bel_input_segment_block(segment, step, 0);
    for (;;) {
        bel_status *status = bel_input_mark(f->input, block, out_text);
        bool passes = status != NULL && !bel_input_error_stays(bel_status_code(status));
        if (!passes || secs_since(begun) >= bel_input_follow_secs(f->input)) return status;
        bel_status_ignore(status); // tried again
        (void)nanosleep(&nap, NULL);
    }
}

bel_status *bel_follow_check_mark(const bel_follow *f, const bel_input_segment *segment,
                                  int64_t step, const char *mark)
{
    bel_str now = {0};
    bel_status *status = bel_follow_mark(f, segment, step, &now);
    if (status == NULL && mark != NULL && now.length > 0 && strcmp(mark, now.text) != 0)
        status = BEL_ERR(BEL_DATA_LOSS,
                         "%s: the rows that training has read were others (%s), got %s; hint: a "
                         "new log needs a new training, with --warm_start",
                         bel_input_followed(f->input), mark, now.text);
    bel_str_deinit(&now);
    return status;
}
