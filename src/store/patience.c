// Patience of a thread: see patience.h.
#include "store/patience.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/store.h"

static _Thread_local double patience_secs = 120;
static _Thread_local bel_store_permission thread_permission;

double bel_store_set_patience(double secs)
{
    double before = patience_secs;
    patience_secs = secs > 0 ? secs : 0;
    return before;
}

bel_store_permission bel_store_set_permission(bel_store_permission permission)
{
    bel_store_permission before = thread_permission;
    thread_permission = permission;
    return before;
}

bel_status *bel_patience_ask_permission(void)
{
    const bel_store_permission *p = &thread_permission;
    return p->ask != NULL ? p->ask(p->context) : NULL;
}

int64_t bel_patience_ns(void)
{
    return (int64_t)(patience_secs * 1e9);
}

int64_t bel_patience_end_ns(int64_t from_ns)
{
    return from_ns + bel_patience_ns();
}

double bel_patience_stall_secs(void)
{
    double sixth = patience_secs / 6;
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
