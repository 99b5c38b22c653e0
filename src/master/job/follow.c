// The file is looked at every 20 ms while records of the next step are missing. The wait ends when
// no record was appended for the time that the dataset says, or when training ends.
#include "master/job/follow.h"

#include <pthread.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "master/job/replicator.h"

struct bel_follow {
    const bel_input *input;
    pthread_mutex_t mutex;
    bel_input_segment segment; // under the mutex
};

bel_follow *bel_follow_create(const bel_input *input)
{
    bel_follow *f = bel_xcalloc(1, sizeof *f);
    f->input = input;
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

static void say_end(double secs, int64_t step, int64_t left, int64_t records)
{
    bel_str rest = {0};
    bel_str_puts(&rest, "");
    if (left > 0)
        bel_str_printf(&rest, "; the last %lld records wait for more, as a step takes %lld",
                       (long long)left, (long long)records);
    bel_log_write(BEL_LOG_INFO, "no record was appended for %g s: training ends at step %lld%s",
                  secs, (long long)step, rest.text);
    bel_str_deinit(&rest);
}

// Waits for the records of a step. *out_ended: no record was appended for a long time.
static bel_status *await_step(bel_follow *f, bel_replicator *replicator, bool *out_ended)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    int64_t step = bel_replicator_step(replicator), since = bel_clock_ns(), before = -1;
    double most = bel_input_follow_secs(f->input);
    *out_ended = false;
    bel_replicator_rest(replicator);
    for (;;) {
        int64_t missing, records;
        BEL_TRY(count_missing(f, step, &missing, &records));
        if (missing == 0 || bel_replicator_ends(replicator)) return NULL;
        if (missing != before) since = bel_clock_ns();
        before = missing;
        double waited = (double)(bel_clock_ns() - since) * 1e-9;
        if (waited >= most) {
            say_end(most, step, records - missing, records);
            *out_ended = true;
            return NULL;
        }
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
