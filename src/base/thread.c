// Threads and the team of a kernel. The team's helpers wait for a job number: they spin for a
// moment, since the next kernel usually follows within microseconds, and then sleep on a futex. An
// atomic counter assigns tiles. Its upper half is the job number, so a helper that wakes late can
// never take a tile of a job that it has not seen begin.
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/linux_sched.h"

enum { SPINS = 500 }; // more would take the core from the threads that read ahead

struct bel_team {
    int helper_count;
    pthread_t *helpers;
    bel_team_job *job;
    void *argument;
    uint32_t tile_count;
    atomic_uint job_number;    // futex: rises with every job
    atomic_uint_fast64_t next; // (job number << 32) | next tile
    atomic_uint running;       // helpers that have not finished the current job
    atomic_uint sleeping;      // helpers on the futex
    atomic_bool stop;
};

bel_status *bel_thread_start(pthread_t *out_thread, void *(*body)(void *), void *argument)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(out_thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0) return NULL;
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    bool limited = getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    if (error != EAGAIN || !limited) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
    }
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "cannot start a thread: %s; hint: `ulimit -u` allows %llu processes and threads "
                   "of this user together, and a container may allow fewer",
                   strerror(error), (unsigned long long)limit.rlim_cur);
}

static void *wait_for_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

bel_status *bel_thread_check_room(int count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // no thread ends before all are there
    pthread_t *threads = bel_xcalloc((size_t)count, sizeof *threads);
    bel_status *status = NULL;
    int started = 0;
    pthread_mutex_lock(&gate);
    while (started < count && status == NULL) {
        status = bel_thread_start(&threads[started], wait_for_gate, &gate);
        started += status == NULL;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    bel_free(threads);
    return status;
}

void bel_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

bool bel_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                .tv_nsec = (long)(deadline_ns % 1000000000)};
    return pthread_cond_timedwait(cond, mutex, &deadline) != ETIMEDOUT;
}

// Runs tiles of job `number` until all are taken.
static void take_tiles(bel_team *team, unsigned number)
{
    for (;;) {
        uint_fast64_t ticket = atomic_load_explicit(&team->next, memory_order_acquire);
        do {
            if ((unsigned)(ticket >> 32) != number) return;
            if ((uint32_t)ticket >= team->tile_count) return;
        } while (!atomic_compare_exchange_weak_explicit(
            &team->next, &ticket, ticket + 1, memory_order_acq_rel, memory_order_acquire));
        team->job(team->argument, (int64_t)(uint32_t)ticket);
    }
}

// A helper increments `sleeping` before it checks the job number a last time, and bel_team_run
// stores the number before it checks for sleepers, all sequentially consistent. So either the
// helper sees the number or it is woken.
static unsigned wait_for_job(bel_team *team, unsigned seen)
{
    for (int spin = 0; spin < SPINS; spin++) {
        unsigned number = atomic_load_explicit(&team->job_number, memory_order_acquire);
        if (number != seen) return number;
        bel_thread_pause();
    }
    atomic_fetch_add(&team->sleeping, 1);
    unsigned number;
    while ((number = atomic_load(&team->job_number)) == seen)
        bel_linux_futex_wait(&team->job_number, seen);
    atomic_fetch_sub(&team->sleeping, 1);
    return number;
}

// Release: bel_team_run, which waits for `running` to be 0 (acquire), sees the writes of the
// helper's tiles.
static void *helper_main(void *argument)
{
    bel_team *team = argument;
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(team, seen);
        if (atomic_load(&team->stop)) return NULL;
        take_tiles(team, seen);
        atomic_fetch_sub_explicit(&team->running, 1, memory_order_release);
    }
}

// Starts helpers. After an error those before it run.
static bel_status *start_helpers(bel_team *team, size_t helpers)
{
    team->helpers = bel_xcalloc(helpers, sizeof *team->helpers);
    for (; (size_t)team->helper_count < helpers; team->helper_count++)
        BEL_TRY(bel_thread_start(&team->helpers[team->helper_count], helper_main, team));
    return NULL;
}

bel_status *bel_team_create(int thread_count, bel_team **out_team)
{
    bel_team *team = bel_xcalloc(1, sizeof *team);
    bel_status *status = start_helpers(team, thread_count > 1 ? (size_t)thread_count - 1 : 0);
    if (status != NULL) {
        bel_team_destroy(team);
        return status;
    }
    *out_team = team;
    return NULL;
}

bel_team *bel_team_create_some(int thread_count)
{
    bel_team *team = bel_xcalloc(1, sizeof *team);
    size_t helpers = thread_count > 1 ? (size_t)thread_count - 1 : 0;
    bel_status_ignore(start_helpers(team, helpers)); // the threads that run do all tiles
    return team;
}

void bel_team_destroy(bel_team *team)
{
    if (team == NULL) return;
    atomic_store(&team->stop, true);
    atomic_fetch_add(&team->job_number, 1);
    bel_linux_futex_wake_all(&team->job_number);
    for (int i = 0; i < team->helper_count; i++)
        pthread_join(team->helpers[i], NULL);
    bel_free(team->helpers);
    bel_free(team);
}

int bel_team_size(const bel_team *team)
{
    return team->helper_count + 1;
}

void bel_team_run(bel_team *team, bel_team_job *job, void *argument, int64_t tile_count)
{
    if (team->helper_count == 0 || tile_count <= 1) {
        for (int64_t tile = 0; tile < tile_count; tile++)
            job(argument, tile);
        return;
    }
    // Plain stores: helpers read them only after they get a ticket of this job from `next`
    // (acquire), which is stored after them (release).
    team->job = job;
    team->argument = argument;
    team->tile_count = (uint32_t)tile_count;
    unsigned number = atomic_load_explicit(&team->job_number, memory_order_relaxed) + 1;
    atomic_store_explicit(&team->running, (unsigned)team->helper_count, memory_order_relaxed);
    atomic_store_explicit(&team->next, (uint_fast64_t)number << 32, memory_order_release);
    atomic_store(&team->job_number, number);
    if (atomic_load(&team->sleeping) > 0) bel_linux_futex_wake_all(&team->job_number);
    take_tiles(team, number);
    // Every helper must finish before the job's memory may change, even one without a tile.
    for (int spin = 0; atomic_load_explicit(&team->running, memory_order_acquire) > 0; spin++) {
        if (spin < SPINS) {
            bel_thread_pause();
        } else {
            sched_yield();
        }
    }
}

typedef struct trials {
    bel_team_trial *trial;
    void *argument;
    pthread_mutex_t mutex;
    int64_t failed;     // the first tile known to fail
    bel_status *status; // its error
} trials;

// A tile before the failed one has begun before it, so it always runs.
static void try_tile(void *argument, int64_t tile)
{
    trials *t = argument;
    pthread_mutex_lock(&t->mutex);
    bool after = tile > t->failed;
    pthread_mutex_unlock(&t->mutex);
    bel_status *status = after ? NULL : t->trial(t->argument, tile), *other = status;
    if (status == NULL) return;
    pthread_mutex_lock(&t->mutex);
    if (tile < t->failed) {
        other = t->status;
        t->status = status;
        t->failed = tile;
    }
    pthread_mutex_unlock(&t->mutex);
    bel_status_ignore(other); // the first one is enough
}

bel_status *bel_team_try(bel_team *team, bel_team_trial *trial, void *argument, int64_t tile_count)
{
    trials t = {.trial = trial, .argument = argument, .failed = INT64_MAX};
    pthread_mutex_init(&t.mutex, NULL);
    bel_team_run(team, try_tile, &t, tile_count);
    pthread_mutex_destroy(&t.mutex);
    return t.status;
}

int bel_available_cores(void)
{
    int cores = bel_linux_affinity_cores();
    uint64_t quota = bel_cgroup_core_limit("");
    return quota < (uint64_t)cores ? (int)quota : cores;
}
