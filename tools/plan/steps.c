// A training in this process, only to measure its steps. A hook reads the clock before a worker's
// replica computes and after it has reported. The rest, until it computes again, is the update. The
// clock of a worker with one thread is that thread's processor time: on a busy machine it also
// waits for a core. Other threads of the process make batches.
//
// Several workers keep the cores busy that they would share in a job. A synchronous step waits for
// the last of them, as cores of a virtual machine differ and each worker is now and then late. So
// computing takes as long as the longest of each step. Nothing is saved before the end, and
// evaluations and the package's hooks do not run.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "estimator/estimator_inner.h"
#include "plan/plan.h"
#include "setup/setup.h"

enum { MOST_SAMPLES = 4096, WARM_STEPS = 3, LEAST_STEPS = 8 };

// Seconds of a measurement: more if the workers get only a part of the cores.
static double seconds_at(double load)
{
    const double least = 3, most = 15, more = least * load / bel_available_cores();
    return more < least ? least : more > most ? most : more;
}

typedef struct worker_watch {
    pthread_t thread;
    int64_t steps;
    int64_t begun_ns, reported_ns;
    double compute[MOST_SAMPLES]; // the newest
} worker_watch;

// The first worker that calls is measured in more detail.
typedef struct stop_watch {
    pthread_mutex_t mutex; // guards known_count and the threads
    worker_watch *workers;
    int worker_count, known_count;
    bool by_processor;            // workers have one thread
    int64_t created_ns, first_ns; // the monotonic clock: before all, and at the first step
    int64_t warm_ns, last_ns;     // the thread's, after the warm-up and at the newest step
    int64_t warm_process_ns, last_process_ns; // the same of the processor time of the process
    double pass[MOST_SAMPLES];                // the newest
    int64_t examples;                         // the most of a step
} stop_watch;

// Returns the watch of the worker whose thread calls; it begins at its first call.
static worker_watch *own_watch(stop_watch *watch)
{
    int i = 0;
    pthread_mutex_lock(&watch->mutex);
    while (i < watch->known_count && !pthread_equal(watch->workers[i].thread, pthread_self()))
        i++;
    BEL_CHECK(i < watch->worker_count); // a worker keeps its thread
    watch->workers[i].thread = pthread_self();
    if (i == watch->known_count) watch->known_count++;
    pthread_mutex_unlock(&watch->mutex);
    return &watch->workers[i];
}

static int64_t now(const stop_watch *watch)
{
    return watch->by_processor ? bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID) : bel_clock_ns();
}

static bel_status *step_begins(void *user, bel_hook_context *context, int64_t step)
{
    stop_watch *watch = user;
    worker_watch *own = own_watch(watch);
    (void)context, (void)step;
    own->begun_ns = now(watch);
    if (own != &watch->workers[0]) return NULL;
    if (watch->first_ns == 0) watch->first_ns = bel_clock_ns();
    if (own->steps == WARM_STEPS) {
        watch->warm_ns = own->begun_ns;
        watch->warm_process_ns = bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    if (own->steps > WARM_STEPS) {
        watch->last_ns = own->begun_ns;
        watch->last_process_ns = bel_clock_processor_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    if (own->steps > 0)
        watch->pass[(own->steps - 1) % MOST_SAMPLES] = (double)(own->begun_ns - own->reported_ns);
    return NULL;
}

static bel_status *step_is_reported(void *user, bel_hook_context *context,
                                    const bel_step_report *report)
{
    stop_watch *watch = user;
    worker_watch *own = own_watch(watch);
    (void)context;
    own->reported_ns = now(watch);
    own->compute[own->steps++ % MOST_SAMPLES] = (double)(own->reported_ns - own->begun_ns);
    if (own == &watch->workers[0] && report->examples > watch->examples)
        watch->examples = report->examples;
    return NULL;
}

// Number of steps that all workers have made.
static int64_t common_steps(const stop_watch *watch)
{
    int64_t steps = watch->workers[0].steps;
    for (int w = 1; w < watch->worker_count; w++)
        if (watch->workers[w].steps < steps) steps = watch->workers[w].steps;
    return steps;
}

// Puts the longest of each step into the samples of the first worker.
static void keep_longest(stop_watch *watch, int64_t steps)
{
    double *longest = watch->workers[0].compute;
    for (int w = 1; w < watch->worker_count; w++) {
        const double *compute = watch->workers[w].compute;
        for (int64_t i = 0; i < MOST_SAMPLES && i < steps; i++)
            if (compute[i] > longest[i]) longest[i] = compute[i];
    }
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Returns the median of the samples after the warm-up. A full ring has only those.
static double middle(double *samples, int64_t count)
{
    int64_t first = count > MOST_SAMPLES ? 0 : WARM_STEPS;
    int64_t end = count > MOST_SAMPLES ? MOST_SAMPLES : count;
    qsort(samples + first, (size_t)(end - first), sizeof *samples, by_length);
    return samples[first + (end - first) / 2];
}

// Only of one worker with one thread are other threads known to make its batches.
static double input_of(const stop_watch *watch, int workers)
{
    double steps = (double)(watch->workers[0].steps - 1 - WARM_STEPS);
    double own = (double)(watch->last_ns - watch->warm_ns);
    double all = (double)(watch->last_process_ns - watch->warm_process_ns);
    return watch->by_processor && workers == 1 && all > own ? (all - own) / steps : 0;
}

static bel_status *run_measured(const bel_setup *setup, double seconds, stop_watch *watch)
{
    const bel_hook hook = {.size = sizeof hook,
                           .name = "plan",
                           .user = watch,
                           .worker_before_step = step_begins,
                           .worker_after_step = step_is_reported};
    const bel_hook *const hooks[] = {&hook};
    const bel_train_spec spec = {.size = sizeof spec,
                                 .input_fn = setup->input_fn,
                                 .input_user = setup->input_user,
                                 // With --train_steps the input repeats forever; the time ends it.
                                 .max_steps = INT64_C(1) << 40,
                                 .max_seconds = seconds,
                                 .hooks = hooks,
                                 .hook_count = 1};
    int code = 0;
    BEL_TRY(bel_train_with_signals(setup->estimator, &spec, NULL, 0, NULL, &code));
    if (code != 0) return BEL_ERR(BEL_CANCELLED, "stopped by a signal while it measured");
    if (common_steps(watch) >= LEAST_STEPS) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "the model made %lld steps in %.0f s, expected at least %d to measure; hint: "
                   "more data or epochs, or a smaller --train_batch_size",
                   (long long)common_steps(watch), seconds, LEAST_STEPS);
}

bel_status *bel_plan_measure_steps(const bel_options *training, int threads, int workers,
                                   bel_step_figures *out_figures)
{
    bel_setup *setup;
    stop_watch *watch = bel_xcalloc(1, sizeof *watch);
    watch->workers = bel_xcalloc((size_t)workers, sizeof *watch->workers);
    watch->worker_count = workers;
    pthread_mutex_init(&watch->mutex, NULL);
    watch->by_processor = threads == 1;
    watch->created_ns = bel_clock_ns();
    bel_step_figures figures = {.load = bel_machine_load()};
    bel_status *status = bel_setup_for_training(training, NULL, &setup);
    if (status == NULL) {
        bel_run_config *config = &setup->estimator->config;
        config->num_gpus = config->num_gpus > 1 ? 1 : config->num_gpus;
        config->num_threads = threads;
        config->save_checkpoints_secs = 0;
        config->save_checkpoints_steps = 0;
        config->save_summary_steps = 0;
        config->report = false;
        config->trace = NULL;
        config->metrics_port = 0;
        status = bel_estimator_place(setup->estimator, workers, NULL, 1, threads);
        if (status == NULL) status = run_measured(setup, seconds_at(figures.load), watch);
        bel_setup_destroy(setup);
    }
    if (status == NULL) {
        int64_t steps = common_steps(watch);
        keep_longest(watch, steps);
        figures.steps = (double)steps;
        figures.examples = (double)watch->examples;
        figures.compute_ns = middle(watch->workers[0].compute, steps);
        figures.pass_ns = middle(watch->pass, steps - 1);
        figures.input_ns = input_of(watch, workers);
        figures.start_ns = (double)(watch->first_ns - watch->created_ns);
        *out_figures = figures;
    }
    pthread_mutex_destroy(&watch->mutex);
    bel_free(watch->workers);
    bel_free(watch);
    return status;
}
