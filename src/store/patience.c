// Patience of a thread: see patience.h.
#include "store/patience.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/store.h"

static _Thread_local double patience_secs = 120;
static _Thread_local int64_t thread_deadline_ns; // 0: none

double bel_store_set_patience(double secs)
{
    double before = patience_secs;
    patience_secs = secs > 0 ? secs : 0;
    return before;
}

int64_t bel_store_set_deadline(int64_t deadline_ns)
{
    int64_t before = thread_deadline_ns;
    thread_deadline_ns = deadline_ns;
    return before;
}

int64_t bel_patience_ns(void)
{
    return (int64_t)(patience_secs * 1e9);
}

int64_t bel_patience_end_ns(int64_t from_ns)
{
    int64_t end = from_ns + bel_patience_ns();
    return thread_deadline_ns != 0 && thread_deadline_ns < end ? thread_deadline_ns : end;
}

double bel_patience_stall_secs(void)
{
    int64_t now = bel_clock_ns();
    double sixth = (double)(bel_patience_end_ns(now) - now) * 1e-9 / 6;
    return sixth < 2 ? 2 : sixth > 20 ? 20 : sixth;
}

// No thread signals the condition: only the time ends the wait.
void bel_patience_wait(int64_t pause_ns)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never;
    int64_t deadline_ns = bel_clock_ns() + pause_ns;
    bel_cond_init(&never);
    pthread_mutex_lock(&mutex);
    while (bel_cond_wait_until(&never, &mutex, deadline_ns)) {
    }
    pthread_mutex_unlock(&mutex);
    pthread_cond_destroy(&never);
    pthread_mutex_destroy(&mutex);
}
