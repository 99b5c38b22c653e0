// See ps_step_bare.h. Barriers sleep, because there are more threads than cores.
#include "ps_step_bare.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bare.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "figures.h"
#include "transport/shm/region.h"

enum { WORKERS = 2, MOST_THREADS = 64, PAGE = 4096, LINE = 16, PATIENCE_SECS = 60 };

// State of all processes, at the begin of the shared memory; the arrays follow.
typedef struct board {
    pthread_barrier_t reported, updated;
    double median_ms;
} board;

typedef struct job {
    board *board;
    float *gradients[WORKERS], *values, *speeds; // speeds NULL: SGD
    int64_t elements, warm, steps;
    int threads;
} job;

static void run_worker(const job *j, int worker)
{
    double *ms = bel_xcalloc((size_t)(j->warm + j->steps), sizeof *ms);
    int64_t begun = bel_clock_ns();
    for (int64_t step = 0; step < j->warm + j->steps; step++) {
        pthread_barrier_wait(&j->board->reported);
        pthread_barrier_wait(&j->board->updated);
        int64_t now = bel_clock_ns();
        ms[step] = (double)(now - begun) * 1e-6;
        begun = now;
    }
    if (worker == 0) j->board->median_ms = bench_median(ms + j->warm, (int)j->steps);
    bel_free(ms);
}

typedef struct server_thread {
    const job *job;
    int index;
    pthread_t thread;
} server_thread;

static void *update_part(void *argument)
{
    const server_thread *s = argument;
    const job *j = s->job;
    const bench_bare *bare = bench_bare_get();
    int64_t first = j->elements * s->index / j->threads / LINE * LINE;
    int64_t end = j->elements * (s->index + 1) / j->threads / LINE * LINE;
    if (s->index == j->threads - 1) end = j->elements;
    const float *a = j->gradients[0] + first, *b = j->gradients[1] + first;
    float *values = j->values + first;
    for (int64_t step = 0; step < j->warm + j->steps; step++) {
        pthread_barrier_wait(&j->board->reported);
        if (j->speeds == NULL) {
            bare->sgd(a, b, end - first, 0.01f, values, values);
        } else {
            bare->momentum(a, b, end - first, 0.01f, 0.9f, values, values, j->speeds + first);
        }
        pthread_barrier_wait(&j->board->updated);
    }
    return NULL;
}

static void serve(const job *j)
{
    server_thread threads[MOST_THREADS];
    for (int t = 0; t < j->threads; t++)
        threads[t] = (server_thread){.job = j, .index = t};
    for (int t = 1; t < j->threads; t++)
        if (pthread_create(&threads[t].thread, NULL, update_part, &threads[t]) != 0) _exit(1);
    (void)update_part(&threads[0]);
    for (int t = 1; t < j->threads; t++)
        pthread_join(threads[t].thread, NULL);
}

static void init_barrier(pthread_barrier_t *barrier, int count)
{
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier, &attributes, (unsigned)count);
    pthread_barrierattr_destroy(&attributes);
}

// Runs the processes: workers 0 and 1, then the server. A process that fails leaves the others at a
// barrier, where the alarm ends them.
static bool run_processes(const job *j)
{
    bool good = true;
    for (int p = 0; p <= WORKERS; p++) {
        pid_t pid = fork();
        if (pid > 0) continue;
        if (pid < 0) return false;
        alarm(PATIENCE_SECS);
        if (p < WORKERS) {
            run_worker(j, p);
        } else {
            serve(j);
        }
        _exit(0);
    }
    for (int state; wait(&state) > 0;)
        good = good && state == 0;
    return good;
}

bel_status *bench_ps_step_bare(int64_t elements, bool momentum, int64_t warm, int64_t steps,
                               double *out_ms)
{
    size_t bytes = ((size_t)elements * sizeof(float) + PAGE - 1) / PAGE * PAGE;
    size_t all = PAGE + (WORKERS + 2) * bytes;
    bel_shm_region *region;
    BEL_TRY(bel_shm_region_create("prototype", all, &region));
    char *memory = bel_shm_region_memory(region);
    memset(memory, 0, all); // all pages, before any step
    float *arrays[WORKERS + 2];
    for (size_t i = 0; i < WORKERS + 2; i++) {
        arrays[i] = (float *)(void *)(memory + PAGE + i * bytes);
        for (int64_t k = 0; k < elements; k++)
            arrays[i][k] = (float)(k % 17) * 1e-3f;
    }
    int cores = bel_available_cores();
    job j = {.board = (board *)(void *)memory,
             .gradients = {arrays[0], arrays[1]},
             .values = arrays[2],
             .speeds = momentum ? arrays[3] : NULL,
             .elements = elements,
             .warm = warm,
             .steps = steps,
             .threads = cores < MOST_THREADS ? cores : MOST_THREADS};
    init_barrier(&j.board->reported, WORKERS + j.threads);
    init_barrier(&j.board->updated, WORKERS + j.threads);
    bool good = run_processes(&j);
    *out_ms = j.board->median_ms;
    bel_shm_region_destroy(region);
    return good ? NULL : BEL_ERR(BEL_INTERNAL, "the prototype's processes failed");
}
