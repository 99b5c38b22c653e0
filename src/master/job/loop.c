// The program's loop in the master's main program (belfry/replica.h, replicator.h). It is started
// with shards and workers, checked for progress while they run, and ended whenever training ends.
// After a pause it continues where it is; after a loss it starts again from the checkpoint.
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/requests.h"
#include "master/job/job.h"

static void loop_ask(void *context, int64_t version, int function, bool wanted)
{
    bel_backend *backend = context;
    backend->ops->ask(backend, version, function, wanted);
}

bel_status *bel_job_start_loop(bel_job *job)
{
    if (job->loop.replicator == NULL || job->loop.end >= 0) return NULL;
    if (job->loop.follow != NULL)
        bel_follow_set_segment(job->loop.follow, bel_job_newest_segment(&job->segments));
    return bel_replicator_start(job->loop.replicator, job->steps.first, loop_ask, job->backend);
}

// Whether the loop's state at a step is known. Before a run begins it is the program's initial
// memory, and no function has run.
bool bel_job_knows_loop(bel_job_loop *loop, int64_t step)
{
    return loop->replicator == NULL || bel_replicator_recall(loop->replicator, step, loop->runs);
}

// Waits for the loop, which may compute before it requests the step after the checkpoint.
bel_status *bel_job_await_loop(bel_job *job, int64_t step)
{
    double most = job->estimator->config.stall_timeout;
    int64_t begun = bel_clock_awake_ns();
    while (!bel_job_knows_loop(&job->loop, step)) {
        double waited = (double)(bel_clock_awake_ns() - begun) * 1e-9;
        if (waited >= most) {
            return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                           "the loop of the program has asked for no step after version %lld for "
                           "%.1f s",
                           (long long)step, waited);
        }
        BEL_TRY(job->backend->ops->attend(job->backend, 0));
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return NULL;
}

// Checks the loop. Its time limit ends before those of workers, which wait for a version meanwhile
// and would name shard 0.
bel_status *bel_job_look_at_loop(bel_job *job)
{
    if (job->loop.replicator == NULL || job->loop.end >= 0) return NULL;
    bel_replicator_look look = bel_replicator_look_at(job->loop.replicator);
    if (look.idle_secs >= 0.9 * job->estimator->config.stall_timeout) {
        return BEL_ERR(BEL_DEADLINE_EXCEEDED,
                       "the loop of the program has asked for no step after version %lld for "
                       "%.1f s; hint: --stall_timeout",
                       (long long)look.asked, look.idle_secs);
    }
    if (!look.returned) return NULL;
    bel_status *error;
    BEL_TRY(bel_replicator_end(job->loop.replicator, BEL_CANCELLED, "it has returned", 1, &error));
    if (error != NULL) return error;
    job->loop.end = look.asked;
    job->backend->ops->stop_at(job->backend, look.asked);
    return NULL;
}

bel_status *bel_job_try_loop(bel_job *job)
{
    if (job->loop.replicator == NULL) return NULL;
    BEL_TRY(bel_job_start_loop(job));
    while (job->loop.end < 0 &&
           bel_replicator_look_at(job->loop.replicator).asked <= job->steps.first) {
        BEL_TRY(bel_job_look_at_loop(job));
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return NULL;
}

bel_status *bel_job_end_loop(bel_job *job, bel_status *status)
{
    if (job->loop.replicator == NULL) return status;
    const bel_backend *backend = job->backend;
    bool well = status == NULL && !backend->interrupted;
    char words[400];
    if (backend->lost) {
        bel_snprintf(words, sizeof words, "a member was lost: training goes back to a checkpoint");
    } else if (bel_leave_requested() && bel_status_code(status) == BEL_CANCELLED) {
        bel_snprintf(words, sizeof words, "%s", bel_status_message(status));
    } else if (status != NULL) {
        bel_snprintf(words, sizeof words, "the job has failed: %s", bel_status_message(status));
    } else {
        bel_snprintf(words, sizeof words, "training ends at step %lld%s",
                     (long long)job->state.step, backend->interrupted ? ", as was asked for" : "");
    }
    bel_status *error,
        *ending = bel_replicator_end(job->loop.replicator, well ? BEL_OUT_OF_RANGE : BEL_CANCELLED,
                                     words, job->estimator->config.stall_timeout, &error);
    if (error == NULL) error = ending;
    if (status == NULL) return error;
    bel_status_ignore(error); // the first error counts
    return status;
}
