// Threads and the team that runs the tiles of a kernel.
#ifndef BELFRY_BASE_THREAD_H
#define BELFRY_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

// Starts a thread with all signals blocked, so that signals go to the main thread.
bel_status *bel_thread_start(pthread_t *out_thread, void *(*body)(void *),
                             void *argument) BEL_MUST_USE;

// Checks that `count` more threads can be started, for a library that hangs otherwise: starts them,
// and ends them again. RESOURCE_EXHAUSTED.
bel_status *bel_thread_check_room(int count) BEL_MUST_USE;

// Pauses between two checks of memory that another thread may change.
static inline void bel_thread_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Initializes a condition variable on the monotonic clock.
void bel_cond_init(pthread_cond_t *cond);

// Waits until signaled or `deadline_ns` (bel_clock_ns) is reached; false when it was reached.
bool bel_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ns);

// Team of threads: the calling thread and `thread_count - 1` helpers, which take the tiles 0 …
// count-1 of a job in any order. A job's result must not depend on the thread of a tile. Bound to
// the thread that calls bel_team_run. A team of one has no helpers and costs nothing.
typedef struct bel_team bel_team;
typedef void bel_team_job(void *argument, int64_t tile);

bel_status *bel_team_create(int thread_count, bel_team **out_team) BEL_MUST_USE;
// The same without an error: if a thread cannot be started, the team is smaller.
bel_team *bel_team_create_some(int thread_count);
void bel_team_destroy(bel_team *team);
int bel_team_size(const bel_team *team);
void bel_team_run(bel_team *team, bel_team_job *job, void *argument, int64_t tile_count);

// The same for tiles that may fail. Tiles begin in their order, and those after a failed one may be
// left out. Returns the error of the first tile that fails, whatever the threads.
typedef bel_status *bel_team_trial(void *argument, int64_t tile);
bel_status *bel_team_try(bel_team *team, bel_team_trial *trial, void *argument,
                         int64_t tile_count) BEL_MUST_USE;

// Returns the cores that this process may use (its affinity mask, limited by the cgroup's quota).
int bel_available_cores(void);

#endif
