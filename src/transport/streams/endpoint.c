// An endpoint's life. Its streams are those of two carriers: unix sockets on one host, calls of
// gRPC between hosts. An address says which.
//
// The end runs in order: no new connections, then all streams cancelled and their owners notified,
// then the threads. It waits for gRPC to return every call, without a time limit.
#include "transport/streams/endpoint.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_memory.h"
#include "base/str.h"
#include "base/thread.h"
#include "transport/streams/endpoint_inner.h"
#include "transport/streams/local_socket.h"

// --- Streams -------------------------------------------------------------------------------------

bel_stream *bel_stream_open(bel_endpoint *endpoint, const char *address, const char *path,
                            const bel_stream_events *events)
{
    pthread_mutex_lock(&endpoint->mutex);
    bool stopping = endpoint->stopping;
    if (!stopping) endpoint->opening++; // the end waits for this function
    pthread_mutex_unlock(&endpoint->mutex);
    if (stopping) return NULL;
    bel_stream *stream = bel_local_is(address) ? bel_sockets_open(endpoint, address, path, events)
                                               : bel_calls_open(endpoint, address, path, events);
    pthread_mutex_lock(&endpoint->mutex);
    endpoint->opening--;
    stopping = endpoint->stopping;
    pthread_cond_broadcast(&endpoint->cond);
    pthread_mutex_unlock(&endpoint->mutex);
    if (stopping) stream->carrier->cancel(stream);
    return stream;
}

// --- Life ----------------------------------------------------------------------------------------

static char *copy_or_null(const char *text)
{
    return text != NULL ? bel_xstrdup(text) : NULL;
}

static bel_status *listen_on(bel_endpoint *endpoint)
{
    const char *address = endpoint->config.listen_address;
    if (!bel_local_is(address)) return bel_calls_listen(endpoint, &endpoint->address);
    return bel_sockets_listen(endpoint);
}

// Messages of 256 KB are allocated and freed all the time: kept in the process, they cost half.
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;

bel_status *bel_endpoint_create(const bel_endpoint_config *config, bel_endpoint **out_endpoint)
{
    pthread_once(&memory_once, bel_linux_keep_freed_memory);
    bel_endpoint *endpoint = bel_xcalloc(1, sizeof *endpoint);
    endpoint->config = *config;
    endpoint->config.listen_address = copy_or_null(config->listen_address);
    endpoint->config.secret = bel_xstrdup(config->secret);
    endpoint->config.tls_ca = copy_or_null(config->tls_ca);
    endpoint->config.tls_certificate = copy_or_null(config->tls_certificate);
    endpoint->config.tls_key = copy_or_null(config->tls_key);
    endpoint->alarm_ns = INT64_MAX;
    pthread_mutex_init(&endpoint->mutex, NULL);
    pthread_mutex_init(&endpoint->event_mutex, NULL);
    pthread_mutex_init(&endpoint->errand_mutex, NULL);
    bel_cond_init(&endpoint->cond);
    bel_status *status = bel_endpoint_start(endpoint);
    if (status == NULL && config->listen_address != NULL) status = listen_on(endpoint);
    if (status != NULL) {
        bel_endpoint_destroy(endpoint);
        return status;
    }
    *out_endpoint = endpoint;
    return NULL;
}

// Cancels all streams and waits until every stream has called its owner. A stream that is being
// opened meanwhile is counted in `opening` and cancels itself once it sees `stopping`.
static void end_streams(bel_endpoint *endpoint)
{
    bel_sockets_shut(endpoint);
    bel_calls_shut(endpoint->calls);
    pthread_mutex_lock(&endpoint->mutex);
    endpoint->stopping = true;
    for (bel_stream *stream = endpoint->streams; stream != NULL; stream = stream->next)
        stream->carrier->cancel(stream);
    while (endpoint->streams != NULL || endpoint->opening > 0)
        pthread_cond_wait(&endpoint->cond, &endpoint->mutex);
    pthread_mutex_unlock(&endpoint->mutex);
}

static void free_config(bel_endpoint_config *config)
{
    const char *texts[] = {config->listen_address, config->secret, config->tls_ca,
                           config->tls_certificate, config->tls_key};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        union {
            const char *read;
            char *owned;
        } text = {.read = texts[i]};
        bel_free(text.owned);
    }
}

void bel_endpoint_destroy(bel_endpoint *endpoint)
{
    if (endpoint == NULL) return;
    if (endpoint->has_thread) end_streams(endpoint);
    bel_calls_destroy(endpoint->calls);
    bel_endpoint_stop(endpoint);
    bel_sockets_destroy(endpoint->sockets);
    pthread_cond_destroy(&endpoint->cond);
    pthread_mutex_destroy(&endpoint->errand_mutex);
    pthread_mutex_destroy(&endpoint->event_mutex);
    pthread_mutex_destroy(&endpoint->mutex);
    free_config(&endpoint->config);
    bel_free(endpoint->address);
    bel_free(endpoint);
}

const char *bel_endpoint_address(const bel_endpoint *endpoint)
{
    return endpoint->address != NULL ? endpoint->address : "";
}

int64_t bel_endpoint_processor_ns(bel_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->mutex);
    bel_calls *calls = endpoint->calls;
    pthread_mutex_unlock(&endpoint->mutex);
    int64_t ns = calls != NULL ? bel_calls_processor_ns(calls) : 0;
    clockid_t clock;
    if (pthread_getcpuclockid(endpoint->thread, &clock) == 0) ns += bel_clock_processor_ns(clock);
    return ns;
}

const char *bel_endpoint_tls_hint(const bel_endpoint *endpoint)
{
    if (endpoint->config.tls_ca == NULL) return NULL;
    return "whether every host's certificate is signed by an authority in all others' tls_ca and "
           "names the address by which it is called";
}
