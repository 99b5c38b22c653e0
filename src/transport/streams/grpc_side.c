// Streams between hosts, as calls of gRPC: one completion queue with one thread, a server if the
// endpoint listens, and a channel for each address. The first address that is not a unix socket's
// creates all of it. An event of the queue runs as an event of the endpoint. The secret is checked
// before any other work on a call.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/linux_host.h"
#include "base/linux_sched.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/thread.h"
#include "rpc/credentials.h"
#include "transport/streams/grpc_inner.h"

typedef struct bel_channel {
    char *address;
    grpc_channel *channel;
} bel_channel;

struct bel_calls {
    bel_endpoint *endpoint;
    grpc_completion_queue *queue;
    grpc_server *server;
    pthread_t thread;
    bool has_thread;
    bel_grpc_op accept_op; // one call is always requested
    grpc_call *accepted_call;
    grpc_call_details accepted_details;
    grpc_metadata_array accepted_metadata;
    bel_grpc_op shutdown_op;

    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    bel_channel *channels;
    size_t channel_count, channel_capacity;
    bool server_down;
};

// --- Arguments -----------------------------------------------------------------------------------

enum { ARGUMENTS = 16 };

typedef struct arguments {
    grpc_arg list[ARGUMENTS];
    grpc_channel_args args;
} arguments;

static void set_integer(arguments *a, const char *name, int value)
{
    union { // gRPC never writes to the key
        const char *read;
        char *key;
    } text = {.read = name};
    BEL_CHECK(a->args.num_args < ARGUMENTS);
    a->list[a->args.num_args++] =
        (grpc_arg){.type = GRPC_ARG_INTEGER, .key = text.key, .value.integer = value};
}

// Keepalive pings detect a dead peer, also when no data flows. A ping may stay unanswered for as
// long as a process may be silent; the callers' clocks react earlier. Reconnecting is quick, as a
// restarted member listens within moments.
//
// A stream's window is fixed: 1 MiB allows 1 GB/s over a link of 1 ms. Windows that grow with the
// link (BDP) let many megabytes come, which no cache holds: a step of 10 M parameters took twice
// the time. gRPC keeps a read buffer for each connection, as large as the bytes that came at once.
static void make_arguments(arguments *a, const bel_endpoint *endpoint, bool is_server)
{
    enum { MIB = 1 << 20, BACKOFF_MS = 50, MOST_BACKOFF_MS = 1000 };
    int patience_ms = bel_endpoint_patience_ms(endpoint);
    *a = (arguments){.args = {.args = a->list}};
    set_integer(a, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 4 * MIB);
    set_integer(a, GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 * MIB);
    set_integer(a, GRPC_ARG_HTTP2_BDP_PROBE, 0);
    set_integer(a, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 * MIB);
    set_integer(a, GRPC_ARG_KEEPALIVE_TIME_MS, BEL_KEEPALIVE_MS);
    set_integer(a, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, patience_ms);
    set_integer(a, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    if (is_server) {
        set_integer(a, GRPC_ARG_ALLOW_REUSEPORT, 0); // a port in use must be an error
        // A peer that sends nothing, or makes no call, still holds a descriptor. When a thousand
        // peers begin at once, each may be as slow as any process may be.
        set_integer(a, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, patience_ms);
        set_integer(a, GRPC_ARG_MAX_CONNECTION_IDLE_MS, patience_ms);
        set_integer(a, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, BEL_KEEPALIVE_MS / 2);
        return;
    }
    // a lane retries, and knows which frames have arrived
    set_integer(a, GRPC_ARG_ENABLE_RETRIES, 0);
    set_integer(a, GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    set_integer(a, GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
    set_integer(a, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    set_integer(a, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, MOST_BACKOFF_MS);
    set_integer(a, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_MS);
    set_integer(a, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, MOST_BACKOFF_MS);
}

static bel_rpc_tls tls_of(const bel_endpoint_config *config)
{
    return (bel_rpc_tls){config->tls_ca, config->tls_certificate, config->tls_key};
}

// --- Channels ------------------------------------------------------------------------------------

// Returns the channel that streams to an address share, created with the first. It is a lame
// channel if TLS files cannot be read, so that the error comes with the stream's end.
static grpc_channel *channel_of_locked(bel_calls *calls, const char *address)
{
    for (size_t i = 0; i < calls->channel_count; i++)
        if (strcmp(calls->channels[i].address, address) == 0) return calls->channels[i].channel;
    arguments a;
    make_arguments(&a, calls->endpoint, false);
    const bel_rpc_tls tls = tls_of(&calls->endpoint->config);
    grpc_channel_credentials *credentials = NULL;
    bel_status *status = bel_rpc_channel_credentials(&tls, &credentials);
    grpc_channel *channel;
    if (status != NULL) {
        channel = bel_grpc.lame_client_channel_create(
            address, (grpc_status_code)bel_status_code(status), bel_status_message(status));
        bel_status_destroy(status);
    } else {
        channel = bel_grpc.channel_create(address, credentials, &a.args);
        bel_grpc.channel_credentials_release(credentials);
    }
    calls->channels = bel_xgrow(calls->channels, &calls->channel_capacity, calls->channel_count + 1,
                                sizeof *calls->channels);
    calls->channels[calls->channel_count++] = (bel_channel){bel_xstrdup(address), channel};
    return channel;
}

// --- The server ----------------------------------------------------------------------------------

// One call is requested at a time; accept_done requests the next one.
static void ask_for_call(bel_calls *calls)
{
    bel_grpc.call_details_init(&calls->accepted_details);
    bel_grpc.metadata_array_init(&calls->accepted_metadata);
    grpc_call_error error = bel_grpc.server_request_call(
        calls->server, &calls->accepted_call, &calls->accepted_details, &calls->accepted_metadata,
        calls->queue, calls->queue, &calls->accept_op);
    BEL_CHECK(error == GRPC_CALL_OK);
}

static bool shows_secret(const grpc_metadata_array *metadata, const char *secret)
{
    for (size_t i = 0; i < metadata->count; i++) {
        grpc_slice value = metadata->metadata[i].value;
        if (bel_grpc.slice_str_cmp(metadata->metadata[i].key, BEL_SECRET_KEY) == 0 &&
            bel_secret_matches(secret, GRPC_SLICE_START_PTR(value), GRPC_SLICE_LENGTH(value)))
            return true;
    }
    return false;
}

// An event: a call becomes a stream, or is refused with a status that its caller receives.
static void accept_call(bel_calls *calls)
{
    bel_endpoint *endpoint = calls->endpoint;
    char *path = bel_grpc.slice_to_c_string(calls->accepted_details.method);
    grpc_call *call = calls->accepted_call;
    bel_status *status = NULL;
    if (!shows_secret(&calls->accepted_metadata, endpoint->config.secret)) {
        char *peer = bel_grpc.call_get_peer(call);
        bel_endpoint_say_stranger(endpoint, peer);
        bel_grpc.gpr_free(peer);
        status = BEL_ERR(BEL_UNAUTHENTICATED, "the call does not show this job's secret");
    }
    bel_stream *stream = bel_call_create(endpoint, call, true);
    bel_stream_events events;
    if (status == NULL) {
        status = endpoint->config.accept(endpoint->config.context, path, stream, &events);
    }
    if (status == NULL) {
        bel_call_start(stream, &events);
    } else {
        bel_grpc.call_cancel_with_status(call, (grpc_status_code)bel_status_code(status),
                                         bel_status_message(status), NULL);
        bel_status_destroy(status);
        bel_grpc.call_unref(call);
        bel_stream_release(stream);
    }
    bel_grpc.gpr_free(path);
}

// Not ok: the server is shutting down, and no further call is requested.
static void accept_done(bel_grpc_op *op, bool ok)
{
    bel_calls *calls = op->owner;
    if (ok) accept_call(calls);
    bel_grpc.call_details_destroy(&calls->accepted_details);
    bel_grpc.metadata_array_destroy(&calls->accepted_metadata);
    if (ok) ask_for_call(calls);
}

// The server has returned every call: bel_calls_destroy waits for it.
static void shutdown_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    bel_calls *calls = op->owner;
    pthread_mutex_lock(&calls->mutex);
    calls->server_down = true;
    pthread_cond_broadcast(&calls->cond);
    pthread_mutex_unlock(&calls->mutex);
}

// "host:0" becomes "host:PORT".
static char *address_with_port(const char *address, int port)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || strcmp(colon, ":0") != 0) return bel_xstrdup(address);
    return bel_strf("%.*s:%d", (int)(colon - address), address, port);
}

// True if gRPC can listen on the address without TLS. gRPC reports no reason for a failure to
// listen: then TLS was the reason. The server is destroyed after that.
static bool could_listen_without_tls(const bel_calls *calls)
{
    const bel_endpoint_config *config = &calls->endpoint->config;
    if (config->tls_key == NULL) return false;
    grpc_server_credentials *plain = bel_grpc.insecure_server_credentials_create();
    char *listening = bel_linux_host_listening(config->listen_address);
    int port = bel_grpc.server_add_http2_port(calls->server, listening, plain);
    bel_free(listening);
    bel_grpc.server_credentials_release(plain);
    return port != 0;
}

// Port 0 from gRPC means that it could not listen.
static bel_status *no_port_error(const bel_calls *calls)
{
    const bel_endpoint_config *config = &calls->endpoint->config;
    const char *address = config->listen_address;
    if (!bel_linux_host_is_known(address)) {
        return BEL_ERR(BEL_UNAVAILABLE, "cannot listen on %s: its host name does not resolve",
                       address);
    }
    if (could_listen_without_tls(calls)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cannot listen on %s with TLS: expected that %s is the key of %s, and that "
                       "both are whole; hint: belfry doctor --cluster looks at them",
                       address, config->tls_key, config->tls_certificate);
    }
    return BEL_ERR(BEL_UNAVAILABLE,
                   "cannot listen on %s; hint: is the port taken, or is the address not one of "
                   "this host?",
                   address);
}

static bel_status *listen_for_calls(bel_calls *calls, char **out_address)
{
    const char *address = calls->endpoint->config.listen_address;
    grpc_server_credentials *credentials = NULL;
    const bel_rpc_tls tls = tls_of(&calls->endpoint->config);
    BEL_TRY(bel_rpc_server_credentials(&tls, &credentials));
    arguments a;
    make_arguments(&a, calls->endpoint, true);
    calls->server = bel_grpc.server_create(&a.args, NULL);
    bel_grpc.server_register_completion_queue(calls->server, calls->queue, NULL);
    char *listening = bel_linux_host_listening(address);
    int port = bel_grpc.server_add_http2_port(calls->server, listening, credentials);
    bel_free(listening);
    bel_grpc.server_credentials_release(credentials);
    if (port == 0) return no_port_error(calls);
    *out_address = address_with_port(address, port);
    bel_grpc.server_start(calls->server);
    ask_for_call(calls);
    return NULL;
}

// --- Life ----------------------------------------------------------------------------------------

// The queue's thread, until the queue is shut down and drained.
static void *thread_main(void *argument)
{
    bel_calls *calls = argument;
    bel_linux_give_way();
    for (;;) {
        grpc_event event = bel_grpc.completion_queue_next(
            calls->queue, bel_grpc.gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (event.type != GRPC_OP_COMPLETE) continue;
        bel_grpc_op *op = event.tag;
        bel_endpoint_enter(calls->endpoint);
        op->done(op, event.success != 0);
        bel_endpoint_leave(calls->endpoint);
    }
}

void bel_calls_destroy(bel_calls *calls)
{
    if (calls == NULL) return;
    pthread_mutex_lock(&calls->mutex);
    while (!calls->server_down)
        pthread_cond_wait(&calls->cond, &calls->mutex);
    pthread_mutex_unlock(&calls->mutex);
    if (calls->server != NULL) bel_grpc.server_destroy(calls->server);
    for (size_t i = 0; i < calls->channel_count; i++) {
        bel_grpc.channel_destroy(calls->channels[i].channel);
        bel_free(calls->channels[i].address);
    }
    bel_free(calls->channels);
    bel_grpc.completion_queue_shutdown(calls->queue);
    if (calls->has_thread) pthread_join(calls->thread, NULL);
    bel_grpc.completion_queue_destroy(calls->queue);
    pthread_cond_destroy(&calls->cond);
    pthread_mutex_destroy(&calls->mutex);
    bel_free(calls);
    bel_grpc.shutdown_blocking();
}

int64_t bel_calls_processor_ns(const bel_calls *calls)
{
    clockid_t clock;
    return pthread_getcpuclockid(calls->thread, &clock) == 0 ? bel_clock_processor_ns(clock) : 0;
}

static bel_status *calls_create(bel_endpoint *endpoint, bel_calls **out_calls)
{
    BEL_TRY(bel_rpc_begin());
    bel_calls *calls = bel_xcalloc(1, sizeof *calls);
    calls->endpoint = endpoint;
    calls->accept_op = (bel_grpc_op){accept_done, calls};
    calls->shutdown_op = (bel_grpc_op){shutdown_done, calls};
    calls->server_down = true;
    pthread_mutex_init(&calls->mutex, NULL);
    bel_cond_init(&calls->cond);
    calls->queue = bel_grpc.completion_queue_create_for_next(NULL);
    bel_status *status = bel_thread_start(&calls->thread, thread_main, calls);
    if (status != NULL) {
        bel_calls_destroy(calls);
        return status;
    }
    calls->has_thread = true;
    *out_calls = calls;
    return NULL;
}

// Returns the endpoint's side, created at the first call.
static bel_status *calls_of(bel_endpoint *endpoint, bel_calls **out_calls)
{
    pthread_mutex_lock(&endpoint->mutex);
    bel_status *status = NULL;
    if (endpoint->calls == NULL) status = calls_create(endpoint, &endpoint->calls);
    *out_calls = endpoint->calls;
    pthread_mutex_unlock(&endpoint->mutex);
    return status;
}

bel_status *bel_calls_listen(bel_endpoint *endpoint, char **out_address)
{
    bel_calls *calls;
    BEL_TRY(calls_of(endpoint, &calls));
    return listen_for_calls(calls, out_address);
}

bel_stream *bel_calls_open(bel_endpoint *endpoint, const char *address, const char *path,
                           const bel_stream_events *events)
{
    bel_calls *calls;
    bel_status *status = calls_of(endpoint, &calls);
    if (status != NULL) return bel_sockets_fail(endpoint, status, events);
    pthread_mutex_lock(&calls->mutex);
    grpc_channel *channel = channel_of_locked(calls, address);
    pthread_mutex_unlock(&calls->mutex);
    grpc_slice method = bel_grpc.slice_from_copied_string(path);
    grpc_call *call =
        bel_grpc.channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, calls->queue, method,
                                     NULL, bel_grpc.gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    bel_grpc.slice_unref(method);
    bel_stream *stream = bel_call_create(endpoint, call, false);
    bel_stream_retain(stream); // the caller's
    bel_call_start(stream, events);
    return stream;
}

void bel_calls_shut(bel_calls *calls)
{
    if (calls == NULL || calls->server == NULL) return;
    pthread_mutex_lock(&calls->mutex);
    calls->server_down = false;
    pthread_mutex_unlock(&calls->mutex);
    bel_grpc.server_shutdown_and_notify(calls->server, calls->queue, &calls->shutdown_op);
    bel_grpc.server_cancel_all_calls(calls->server);
}
