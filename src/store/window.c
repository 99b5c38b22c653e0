// Window over the parts of a transfer: see window.h. Each part has limits of time, so the waits
// end.
#include "store/window.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "store/store.h"

typedef struct window window;

typedef struct part {
    window *of;
    size_t index;
    bool is_served;
} part;

struct window {
    bel_window_part *serve;
    void *context;
    double patience_secs;
    bel_store_permission permission;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    part *parts; // `width`, by index modulo width
    size_t running;
    bel_status *status; // the first error
};

// Under the mutex.
static void window_fail(window *w, bel_status *status)
{
    if (w->status == NULL)
        w->status = status;
    else
        bel_status_ignore(status); // one error is reported
}

static void serve_part(void *context)
{
    part *p = context;
    window *w = p->of;
    double before = bel_store_set_patience(w->patience_secs);
    bel_store_permission permission_before = bel_store_set_permission(w->permission);
    bel_status *status = w->serve(w->context, p->index);
    (void)bel_store_set_permission(permission_before);
    bel_store_set_patience(before);
    pthread_mutex_lock(&w->mutex);
    p->is_served = true;
    w->running--;
    window_fail(w, status);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

// Waits for a part, and takes it. The mutex is held, except in `take`.
static void take_part(window *w, part *p, bel_window_part *take)
{
    while (!p->is_served)
        pthread_cond_wait(&w->changed, &w->mutex);
    if (take == NULL || w->status != NULL) return;
    pthread_mutex_unlock(&w->mutex);
    bel_status *status = take(w->context, p->index);
    pthread_mutex_lock(&w->mutex);
    window_fail(w, status);
}

bel_status *bel_window_run(size_t count, size_t width, bel_window_part *serve,
                           bel_window_part *take, void *context)
{
    double patience_secs = bel_store_set_patience(0);
    bel_store_set_patience(patience_secs);
    bel_store_permission permission = bel_store_set_permission((bel_store_permission){0});
    (void)bel_store_set_permission(permission);
    window w = {.serve = serve,
                .context = context,
                .patience_secs = patience_secs,
                .permission = permission};
    pthread_mutex_init(&w.mutex, NULL);
    pthread_cond_init(&w.changed, NULL);
    w.parts = bel_xcalloc(width, sizeof *w.parts);
    size_t begun = 0, taken = 0;
    pthread_mutex_lock(&w.mutex);
    while (w.status == NULL && taken < count) {
        if (begun < count && begun < taken + width) {
            part *p = &w.parts[begun % width];
            *p = (part){.of = &w, .index = begun++};
            w.running++;
            pthread_mutex_unlock(&w.mutex);
            bel_store_begin(serve_part, p);
            pthread_mutex_lock(&w.mutex);
        } else {
            take_part(&w, &w.parts[taken % width], take);
            taken++;
        }
    }
    while (w.running > 0)
        pthread_cond_wait(&w.changed, &w.mutex);
    pthread_mutex_unlock(&w.mutex);
    bel_free(w.parts);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.mutex);
    return w.status;
}
