// Threads that serve transfers. They begin when there is work and no idle thread, and stay until
// the process ends: a thread of transfers mostly waits for a server.
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/linux_sched.h"
#include "base/thread.h"
#include "store/store.h"

typedef struct work {
    struct work *next;
    bel_store_work *run;
    void *context;
} work;

// Threads of one priority. The low one is for works of threads that called
// bel_store_lower_priority, and of bel_store_begin_low.
typedef struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    work *first, *last; // the queue
    int threads, idle, waiting;
} pool;

static pool usual = {.mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};
static pool low = {.mutex = PTHREAD_MUTEX_INITIALIZER, .arrived = PTHREAD_COND_INITIALIZER};
static _Thread_local bool is_low;

void bel_store_lower_priority(void)
{
    is_low = true;
    bel_linux_lower_priority();
}

// Runs the first work of the queue; the mutex is held at the begin and the end, not meanwhile.
static void serve_first(pool *p)
{
    work *w = p->first;
    p->first = w->next;
    if (p->first == NULL) p->last = NULL;
    p->waiting--;
    pthread_mutex_unlock(&p->mutex);
    w->run(w->context);
    bel_free(w);
    pthread_mutex_lock(&p->mutex);
}

static void *serve(void *argument)
{
    pool *p = argument;
    if (p == &low) bel_store_lower_priority();
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        // An idle thread waits for work until the process ends.
        while (p->first == NULL)
            pthread_cond_wait(&p->arrived, &p->mutex);
        p->idle--;
        serve_first(p);
        p->idle++;
    }
    return NULL;
}

static void enqueue(pool *p, work *w, bool comes_first)
{
    bool is_only = p->first == NULL;
    if (comes_first) w->next = p->first;
    if (comes_first || is_only)
        p->first = w;
    else
        p->last->next = w;
    if (!comes_first || is_only) p->last = w;
    p->waiting++;
}

static void begin(pool *p, bel_store_work *run, void *context, bool comes_first)
{
    work *w = bel_xcalloc(1, sizeof *w);
    w->run = run;
    w->context = context;
    pthread_mutex_lock(&p->mutex);
    enqueue(p, w, comes_first);
    bool starts = p->waiting > p->idle && p->threads < BEL_STORE_TRANSFERS;
    if (starts) {
        p->threads++;
        p->idle++;
    }
    pthread_cond_signal(&p->arrived);
    pthread_mutex_unlock(&p->mutex);
    if (!starts) return;
    pthread_t thread;
    bel_status *status = bel_thread_start(&thread, serve, p);
    if (status == NULL) {
        pthread_detach(thread);
        return;
    }
    bel_status_ignore(status); // the other threads serve the work, or this one does
    pthread_mutex_lock(&p->mutex);
    p->threads--;
    p->idle--;
    while (p->threads == 0 && p->first != NULL)
        serve_first(p);
    pthread_mutex_unlock(&p->mutex);
}

void bel_store_begin(bel_store_work *run, void *context)
{
    begin(is_low ? &low : &usual, run, context, false);
}

void bel_store_begin_first(bel_store_work *run, void *context)
{
    begin(is_low ? &low : &usual, run, context, true);
}

void bel_store_begin_low(bel_store_work *run, void *context)
{
    begin(&low, run, context, false);
}
