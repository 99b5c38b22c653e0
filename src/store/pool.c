// Threads that serve transfers. They begin when there is work and no idle thread, and stay until
// the process ends: a thread of transfers mostly waits for a server.
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/store.h"

typedef struct work {
    struct work *next;
    bel_store_work *run;
    void *context;
} work;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static work *first, *last; // the queue
static int threads, idle, waiting;

// Runs the first work of the queue; the mutex is held at the begin and the end, not meanwhile.
static void serve_first(void)
{
    work *w = first;
    first = w->next;
    if (first == NULL) last = NULL;
    waiting--;
    pthread_mutex_unlock(&mutex);
    w->run(w->context);
    bel_free(w);
    pthread_mutex_lock(&mutex);
}

static void *serve(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    for (;;) {
        // An idle thread waits for work until the process ends.
        while (first == NULL)
            pthread_cond_wait(&arrived, &mutex);
        idle--;
        serve_first();
        idle++;
    }
    return NULL;
}

void bel_store_begin(bel_store_work *run, void *context)
{
    work *w = bel_xcalloc(1, sizeof *w);
    w->run = run;
    w->context = context;
    pthread_mutex_lock(&mutex);
    if (last != NULL)
        last->next = w;
    else
        first = w;
    last = w;
    waiting++;
    bool starts = waiting > idle && threads < BEL_STORE_TRANSFERS;
    if (starts) {
        threads++;
        idle++;
    }
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&mutex);
    if (!starts) return;
    pthread_t thread;
    bel_status *status = bel_thread_start(&thread, serve, NULL);
    if (status == NULL) {
        pthread_detach(thread);
        return;
    }
    bel_status_ignore(status); // the other threads serve the work, or this one does
    pthread_mutex_lock(&mutex);
    threads--;
    idle--;
    while (threads == 0 && first != NULL)
        serve_first();
    pthread_mutex_unlock(&mutex);
}
