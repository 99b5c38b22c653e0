// It listens as the master will, but knows neither model nor seats: a model is made of the
// description. Joins of other roles, and of other versions of Belfry, are dropped; the master that
// follows refuses the latter. The wait is on the main thread.
#include "driver/hear_input.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "driver/reach.h"
#include "transport/streams/mailbox.h"

typedef struct caller {
    struct caller *next;
    bel_mailbox *mailbox;
} caller;

typedef struct hearing {
    bel_doorbell *bell;
    pthread_mutex_t mutex; // guards the list
    caller *first;
} hearing;

bool bel_may_hear_input(const bel_task *task)
{
    return task != NULL && task->role == BEL_ROLE_MASTER && !task->master_trains &&
           strncmp(task->master_address, "unix:", 5) != 0 && bel_task_recovers(task);
}

// Runs on the endpoint's thread.
static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    hearing *h = context;
    if (strcmp(path, BEL_MAILBOX_PATH) != 0)
        return BEL_ERR(BEL_UNAVAILABLE, "the master does not listen for %s yet", path);
    caller *c = bel_xcalloc(1, sizeof *c);
    c->mailbox = bel_mailbox_accept(stream, h->bell, out_events);
    pthread_mutex_lock(&h->mutex);
    c->next = h->first;
    h->first = c;
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

static bool describes(const Bel__Message *message)
{
    if (message->kind_case != BEL__MESSAGE__KIND_JOIN) return false;
    const Bel__Join *join = message->join;
    return join->role == BEL_ROLE_WORKER && join->protocol == BEL_PROTOCOL_VERSION &&
           strcmp(join->version, bel_version()) == 0;
}

static bel_status *take_join(const Bel__Join *join, bel_remote_input **out_input)
{
    size_t count = join->n_settings;
    bel_settings settings = {.names = bel_xcalloc(count + 1, sizeof *settings.names),
                             .values = bel_xcalloc(count + 1, sizeof *settings.values),
                             .count = (int)count};
    for (size_t i = 0; i < count; i++) {
        settings.names[i] = join->settings[i]->name;
        settings.values[i] = join->settings[i]->value;
    }
    const bel_remote_input_words words = {.settings = &settings,
                                          .file = join->data_file,
                                          .epoch_records = join->epoch_records,
                                          .records = join->records};
    char *source = bel_strf("worker %d on %s", join->index, join->host);
    bel_status *status = bel_remote_input_create(&words, source, out_input);
    bel_free(source);
    bel_free(settings.names);
    bel_free(settings.values);
    return status;
}

// Takes the messages that have come. *out_input stays NULL until a worker has joined.
static bel_status *hear_all(hearing *h, bel_remote_input **out_input)
{
    bel_status *status = NULL;
    pthread_mutex_lock(&h->mutex);
    for (caller *c = h->first; c != NULL && *out_input == NULL && status == NULL; c = c->next) {
        Bel__Message *message = bel_mailbox_take(c->mailbox);
        if (message == NULL) continue;
        if (describes(message)) status = take_join(message->join, out_input);
        bel_message_destroy(message);
    }
    pthread_mutex_unlock(&h->mutex);
    return status;
}

static void hang_up(hearing *h)
{
    while (h->first != NULL) {
        caller *c = h->first;
        h->first = c->next;
        bel_mailbox_close(c->mailbox, 0);
        bel_free(c);
    }
}

// Looks at requests to end between short waits.
static bel_status *hear_workers(hearing *h, const bel_task *task, const char *why,
                                bel_remote_input **out_input)
{
    enum { PAUSE_NS = 200000000 };
    int64_t deadline = bel_clock_awake_ns() + (int64_t)(task->join_timeout_secs * 1e9);
    for (;;) {
        BEL_TRY(hear_all(h, out_input));
        if (*out_input != NULL) return NULL;
        if (bel_end_requested()) {
            return BEL_ERR(BEL_CANCELLED,
                           "ended, as it was told to, while no worker described the training data");
        }
        if (bel_clock_awake_ns() >= deadline) {
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "%s, and no worker has described it within %g s",
                           why, task->join_timeout_secs);
        }
        (void)bel_doorbell_wait(h->bell, bel_clock_ns() + PAUSE_NS);
    }
}

bel_status *bel_hear_input(bel_task *task, const char *why, bel_remote_input **out_input)
{
    *out_input = NULL;
    bel_log_write(BEL_LOG_INFO, "%s: waiting for a worker's description of it", why);
    BEL_TRY(bel_task_reach(task));
    hearing h = {.bell = bel_doorbell_create()};
    pthread_mutex_init(&h.mutex, NULL);
    const bel_endpoint_config config = {.listen_address = task->listen_address,
                                        .secret = task->secret,
                                        .silence_secs = task->silence_timeout_secs,
                                        .tls_ca = task->tls_ca,
                                        .tls_certificate = task->tls_certificate,
                                        .tls_key = task->tls_key,
                                        .accept = accept_stream,
                                        .context = &h};
    bel_endpoint *endpoint;
    bel_status *status = bel_endpoint_create(&config, &endpoint);
    if (status == NULL) {
        status = hear_workers(&h, task, why, out_input);
        bel_endpoint_settle(endpoint);
        hang_up(&h);
        bel_endpoint_destroy(endpoint);
        hang_up(&h); // callers of the last moment
    }
    pthread_mutex_destroy(&h.mutex);
    bel_doorbell_destroy(h.bell);
    return status;
}
