// An endpoint's life, its server and its thread. One thread takes the completion queue's events and
// makes all callbacks of streams. Alarms and the call being accepted belong to this thread, without
// a lock. `dispatches` is odd while an event runs, which is enough for settling. The secret is
// checked before any other work on the call.
//
// Connections of unix sockets come from a thread that only accepts. The end runs in order: no new
// connections, then all streams cancelled and their owners notified, then server, channels, queue
// and thread. It waits for gRPC to return every call, without a time limit.
#include "transport/grpc/endpoint_inner.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/linux_host.h"
#include "base/linux_memory.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/str.h"
#include "base/thread.h"
#include "rpc/credentials.h"
#include "transport/grpc/local_socket.h"

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
// gRPC keeps a read buffer for each connection, as large as the bytes that came at once. Windows
// that grow with the link (BDP) let megabytes come, which links between hosts need. On one host a
// window of one message is enough.
static void make_arguments(arguments *a, const bel_endpoint_config *config, bool is_server,
                           bool is_local)
{
    enum { MIB = 1 << 20, BACKOFF_MS = 50, MOST_BACKOFF_MS = 1000, KEEPALIVE_MS = 10000 };
    enum { MOST_SECS = 1000000 };
    double silence = config->silence_secs < MOST_SECS ? config->silence_secs : MOST_SECS;
    int patience_ms = 1000 * (int)silence > KEEPALIVE_MS ? 1000 * (int)silence : KEEPALIVE_MS;
    *a = (arguments){.args = {.args = a->list}};
    set_integer(a, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, 4 * MIB);
    set_integer(a, GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 * MIB);
    if (is_local) {
        set_integer(a, GRPC_ARG_HTTP2_BDP_PROBE, 0);
        set_integer(a, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, BEL_STREAM_MESSAGE_BYTES);
    }
    set_integer(a, GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS);
    set_integer(a, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, patience_ms);
    set_integer(a, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    if (is_server) {
        set_integer(a, GRPC_ARG_ALLOW_REUSEPORT, 0); // a port in use must be an error
        // A peer that sends nothing, or makes no call, still holds a descriptor. When a thousand
        // peers begin at once, each may be as slow as any process may be.
        set_integer(a, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, patience_ms);
        set_integer(a, GRPC_ARG_MAX_CONNECTION_IDLE_MS, patience_ms);
        set_integer(a, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, KEEPALIVE_MS / 2);
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

// --- Streams -------------------------------------------------------------------------------------

// Creates a channel over a connection that Belfry opens; a lame channel if no process listens.
static grpc_channel *open_local_channel(const bel_endpoint *endpoint, const char *address)
{
    arguments a;
    make_arguments(&a, &endpoint->config, false, true);
    int descriptor = -1;
    bel_status *status = bel_local_connect(address, &descriptor);
    if (status == NULL) {
        grpc_channel_credentials *credentials = bel_grpc.insecure_credentials_create();
        grpc_channel *channel =
            bel_grpc.channel_create_from_fd(address, descriptor, credentials, &a.args);
        bel_grpc.channel_credentials_release(credentials);
        return channel;
    }
    grpc_channel *lame = bel_grpc.lame_client_channel_create(
        address, (grpc_status_code)bel_status_code(status), bel_status_message(status));
    bel_status_ignore(status); // the channel reports it
    return lame;
}

// Returns the channel that streams to an address share, created with the first. It is a lame
// channel if TLS files cannot be read, so that the error comes with the stream's end.
static grpc_channel *channel_of_locked(bel_endpoint *endpoint, const char *address)
{
    for (size_t i = 0; i < endpoint->channel_count; i++)
        if (strcmp(endpoint->channels[i].address, address) == 0)
            return endpoint->channels[i].channel;
    arguments a;
    make_arguments(&a, &endpoint->config, false, false);
    const bel_rpc_tls tls = tls_of(&endpoint->config);
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
    endpoint->channels = bel_xgrow(endpoint->channels, &endpoint->channel_capacity,
                                   endpoint->channel_count + 1, sizeof *endpoint->channels);
    endpoint->channels[endpoint->channel_count++] = (bel_channel){bel_xstrdup(address), channel};
    return channel;
}

bel_stream *bel_stream_open(bel_endpoint *endpoint, const char *address, const char *path,
                            const bel_stream_events *events)
{
    pthread_mutex_lock(&endpoint->mutex);
    bool stopping = endpoint->stopping, local = bel_local_is(address);
    grpc_channel *channel = stopping || local ? NULL : channel_of_locked(endpoint, address);
    if (!stopping) endpoint->opening++; // the end waits for this function
    pthread_mutex_unlock(&endpoint->mutex);
    if (stopping) return NULL;
    if (local) channel = open_local_channel(endpoint, address);
    grpc_slice method = bel_grpc.slice_from_copied_string(path);
    grpc_call *call = bel_grpc.channel_create_call(
        channel, NULL, GRPC_PROPAGATE_DEFAULTS, endpoint->queue, method, NULL,
        bel_grpc.gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    bel_grpc.slice_unref(method);
    bel_stream *stream = bel_stream_create(endpoint, call, local ? channel : NULL, false);
    bel_stream_retain(stream); // the caller's
    bel_stream_start(stream, events);
    pthread_mutex_lock(&endpoint->mutex);
    endpoint->opening--;
    stopping = endpoint->stopping;
    pthread_cond_broadcast(&endpoint->cond);
    pthread_mutex_unlock(&endpoint->mutex);
    if (stopping) bel_stream_cancel(stream);
    return stream;
}

// --- Alarms --------------------------------------------------------------------------------------

void bel_endpoint_after(bel_endpoint *endpoint, int64_t delay_ms,
                        void (*each)(void *context, bool due), void *context)
{
    bel_alarm *alarm = bel_xcalloc(1, sizeof *alarm);
    *alarm = (bel_alarm){bel_clock_ns() + delay_ms * 1000000, each, context, endpoint->alarms};
    endpoint->alarms = alarm;
}

// Calls due alarms, or all at the end; new alarms may be set meanwhile.
static void call_alarms(bel_endpoint *endpoint, bool ending)
{
    int64_t now = bel_clock_ns();
    bel_alarm *list = endpoint->alarms;
    endpoint->alarms = NULL;
    while (list != NULL) {
        bel_alarm *alarm = list;
        list = alarm->next;
        if (!ending && alarm->due_ns > now) {
            alarm->next = endpoint->alarms;
            endpoint->alarms = alarm;
            continue;
        }
        alarm->each(alarm->context, !ending);
        bel_free(alarm);
    }
}

// Time at which the thread must return from the queue.
static gpr_timespec next_deadline(const bel_endpoint *endpoint)
{
    if (endpoint->alarms == NULL) return bel_grpc.gpr_inf_future(GPR_CLOCK_MONOTONIC);
    int64_t due = INT64_MAX;
    for (const bel_alarm *a = endpoint->alarms; a != NULL; a = a->next)
        due = a->due_ns < due ? a->due_ns : due;
    int64_t left = due - bel_clock_ns();
    return bel_grpc.gpr_time_add(bel_grpc.gpr_now(GPR_CLOCK_MONOTONIC),
                                 bel_grpc.gpr_time_from_nanos(left > 0 ? left : 0, GPR_TIMESPAN));
}

// --- The server ----------------------------------------------------------------------------------

// One call is requested at a time; accept_done requests the next one.
static void ask_for_call(bel_endpoint *endpoint)
{
    bel_grpc.call_details_init(&endpoint->accepted_details);
    bel_grpc.metadata_array_init(&endpoint->accepted_metadata);
    grpc_call_error error = bel_grpc.server_request_call(
        endpoint->server, &endpoint->accepted_call, &endpoint->accepted_details,
        &endpoint->accepted_metadata, endpoint->queue, endpoint->queue, &endpoint->accept_op);
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

// At most once a second, however often strangers call: a user waiting for a member should know.
static void say_stranger(bel_endpoint *endpoint)
{
    const int64_t second_ns = 1000000000;
    int64_t now = bel_clock_ns();
    if (endpoint->stranger_ns != 0 && now - endpoint->stranger_ns < second_ns) return;
    endpoint->stranger_ns = now;
    char *peer = bel_grpc.call_get_peer(endpoint->accepted_call);
    bel_log_write(BEL_LOG_WARN, "refused a call from %s that does not show this job's secret",
                  peer);
    bel_grpc.gpr_free(peer);
}

// Runs on the endpoint's thread: a call becomes a stream, or is refused with a status that its
// caller receives.
static void accept_call(bel_endpoint *endpoint)
{
    char *path = bel_grpc.slice_to_c_string(endpoint->accepted_details.method);
    grpc_call *call = endpoint->accepted_call;
    bel_status *status = NULL;
    if (!shows_secret(&endpoint->accepted_metadata, endpoint->config.secret)) {
        say_stranger(endpoint);
        status = BEL_ERR(BEL_UNAUTHENTICATED, "the call does not show this job's secret");
    }
    bel_stream *stream = bel_stream_create(endpoint, call, NULL, true);
    bel_stream_events events;
    if (status == NULL) {
        status = endpoint->config.accept(endpoint->config.context, path, stream, &events);
    }
    if (status == NULL) {
        bel_stream_start(stream, &events);
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
    bel_endpoint *endpoint = op->owner;
    if (ok) accept_call(endpoint);
    bel_grpc.call_details_destroy(&endpoint->accepted_details);
    bel_grpc.metadata_array_destroy(&endpoint->accepted_metadata);
    if (ok) ask_for_call(endpoint);
}

// The server has returned every call: end_streams waits for it.
static void shutdown_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    bel_endpoint *endpoint = op->owner;
    pthread_mutex_lock(&endpoint->mutex);
    endpoint->server_down = true;
    pthread_cond_broadcast(&endpoint->cond);
    pthread_mutex_unlock(&endpoint->mutex);
}

// "host:0" becomes "host:PORT".
static char *address_with_port(const char *address, int port)
{
    const char *colon = strrchr(address, ':');
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    if (is_unix || colon == NULL || strcmp(colon, ":0") != 0) return bel_xstrdup(address);
    return bel_strf("%.*s:%d", (int)(colon - address), address, port);
}

// Passes connections of the local socket to the server.
static void *acceptor_main(void *argument)
{
    enum { DEAF_NS = 50000000 };
    bel_endpoint *endpoint = argument;
    for (;;) {
        int connection = bel_local_accept(endpoint->local_socket);
        if (connection < 0) {
            if (errno == EINVAL || errno == EBADF) break; // bel_local_shut
            // No descriptors or no memory, or the peer is already gone.
            (void)nanosleep(&(struct timespec){.tv_nsec = DEAF_NS}, NULL);
            continue;
        }
        grpc_server_credentials *credentials = bel_grpc.insecure_server_credentials_create();
        bel_grpc.server_add_channel_from_fd(endpoint->server, connection, credentials);
        bel_grpc.server_credentials_release(credentials);
    }
    return NULL;
}

// True if gRPC can listen on the address without TLS. gRPC reports no reason for a failure to
// listen: then TLS was the reason. The server is destroyed after that.
static bool could_listen_without_tls(const bel_endpoint *endpoint)
{
    if (endpoint->config.tls_key == NULL) return false;
    grpc_server_credentials *plain = bel_grpc.insecure_server_credentials_create();
    char *listening = bel_linux_host_listening(endpoint->config.listen_address);
    int port = bel_grpc.server_add_http2_port(endpoint->server, listening, plain);
    bel_free(listening);
    bel_grpc.server_credentials_release(plain);
    return port != 0;
}

// Belfry opens a unix socket itself, and passes its connections to the server; gRPC opens any other
// address. Port 0 from gRPC means that it could not listen.
static bel_status *listen_on(bel_endpoint *endpoint)
{
    const char *address = endpoint->config.listen_address;
    if (bel_local_is(address)) BEL_TRY(bel_local_listen(address, &endpoint->local_socket));
    grpc_server_credentials *credentials = NULL;
    const bel_rpc_tls tls = tls_of(&endpoint->config);
    BEL_TRY(bel_rpc_server_credentials(&tls, &credentials));
    arguments a;
    make_arguments(&a, &endpoint->config, true, bel_local_is(address));
    endpoint->server = bel_grpc.server_create(&a.args, NULL);
    bel_grpc.server_register_completion_queue(endpoint->server, endpoint->queue, NULL);
    int port = 1;
    if (endpoint->local_socket < 0) {
        char *listening = bel_linux_host_listening(address);
        port = bel_grpc.server_add_http2_port(endpoint->server, listening, credentials);
        bel_free(listening);
    }
    bel_grpc.server_credentials_release(credentials);
    if (port == 0 && !bel_linux_host_is_known(address)) {
        return BEL_ERR(BEL_UNAVAILABLE, "cannot listen on %s: its host name does not resolve",
                       address);
    }
    if (port == 0 && could_listen_without_tls(endpoint)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "cannot listen on %s with TLS: expected that %s is the key of %s, and that "
                       "both are whole; hint: belfry doctor --cluster looks at them",
                       address, endpoint->config.tls_key, endpoint->config.tls_certificate);
    }
    if (port == 0) {
        return BEL_ERR(BEL_UNAVAILABLE,
                       "cannot listen on %s; hint: is the port taken, or is the address not one of "
                       "this host?",
                       address);
    }
    endpoint->address = address_with_port(address, port);
    bel_grpc.server_start(endpoint->server);
    ask_for_call(endpoint);
    if (endpoint->local_socket < 0) return NULL;
    BEL_TRY(bel_thread_start(&endpoint->acceptor, acceptor_main, endpoint));
    endpoint->has_acceptor = true;
    return NULL;
}

// --- Life ----------------------------------------------------------------------------------------

// The endpoint's thread, until the queue is shut down and drained. Remaining alarms are called as
// not due, so that their owners release them.
static void *thread_main(void *argument)
{
    bel_endpoint *endpoint = argument;
    bel_linux_give_way();
    for (;;) {
        grpc_event event =
            bel_grpc.completion_queue_next(endpoint->queue, next_deadline(endpoint), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) break;
        bel_grpc_op *op = event.tag;
        atomic_fetch_add(&endpoint->dispatches, 1);
        if (event.type == GRPC_OP_COMPLETE) op->done(op, event.success != 0);
        if (endpoint->alarms != NULL) call_alarms(endpoint, false);
        atomic_fetch_add(&endpoint->dispatches, 1);
    }
    call_alarms(endpoint, true);
    return NULL;
}

// An odd count that has changed means that the event in progress has finished, whatever runs now.
// Events are short, so this naps; the default memory order makes the event's effects visible here.
void bel_endpoint_settle(bel_endpoint *endpoint)
{
    enum { NAP_NS = 50000 };
    unsigned long long begun = atomic_load(&endpoint->dispatches);
    while (begun % 2 == 1 && atomic_load(&endpoint->dispatches) == begun)
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static char *copy_or_null(const char *text)
{
    return text != NULL ? bel_xstrdup(text) : NULL;
}

// Messages of 256 KB are allocated and freed all the time: kept in the process, they cost half.
static pthread_once_t memory_once = PTHREAD_ONCE_INIT;

bel_status *bel_endpoint_create(const bel_endpoint_config *config, bel_endpoint **out_endpoint)
{
    BEL_TRY(bel_rpc_begin());
    pthread_once(&memory_once, bel_linux_keep_freed_memory);
    bel_endpoint *endpoint = bel_xcalloc(1, sizeof *endpoint);
    endpoint->config = *config;
    endpoint->config.listen_address = copy_or_null(config->listen_address);
    endpoint->config.secret = bel_xstrdup(config->secret);
    endpoint->config.tls_ca = copy_or_null(config->tls_ca);
    endpoint->config.tls_certificate = copy_or_null(config->tls_certificate);
    endpoint->config.tls_key = copy_or_null(config->tls_key);
    pthread_mutex_init(&endpoint->mutex, NULL);
    bel_cond_init(&endpoint->cond);
    endpoint->accept_op = (bel_grpc_op){accept_done, endpoint};
    endpoint->shutdown_op = (bel_grpc_op){shutdown_done, endpoint};
    endpoint->server_down = true;
    endpoint->local_socket = -1;
    endpoint->queue = bel_grpc.completion_queue_create_for_next(NULL);
    bel_status *status = bel_thread_start(&endpoint->thread, thread_main, endpoint);
    endpoint->has_thread = status == NULL;
    if (status == NULL && config->listen_address != NULL) status = listen_on(endpoint);
    if (status != NULL) {
        bel_endpoint_destroy(endpoint);
        return status;
    }
    endpoint->server_down = endpoint->server == NULL;
    *out_endpoint = endpoint;
    return NULL;
}

// Cancels all streams and waits until every stream has called its owner. A stream that is being
// opened meanwhile is counted in `opening` and cancels itself once it sees `stopping`.
static void end_streams(bel_endpoint *endpoint)
{
    if (endpoint->server != NULL) {
        endpoint->server_down = false;
        bel_grpc.server_shutdown_and_notify(endpoint->server, endpoint->queue,
                                            &endpoint->shutdown_op);
        bel_grpc.server_cancel_all_calls(endpoint->server);
    }
    pthread_mutex_lock(&endpoint->mutex);
    endpoint->stopping = true;
    for (bel_stream_links *s = endpoint->streams; s != NULL; s = s->next)
        bel_stream_cancel(s->stream);
    while (endpoint->streams != NULL || endpoint->opening > 0 || !endpoint->server_down)
        pthread_cond_wait(&endpoint->cond, &endpoint->mutex);
    pthread_mutex_unlock(&endpoint->mutex);
}

void bel_endpoint_destroy(bel_endpoint *endpoint)
{
    if (endpoint == NULL) return;
    if (endpoint->local_socket >= 0) {
        bel_local_shut(endpoint->config.listen_address, endpoint->local_socket);
        if (endpoint->has_acceptor) pthread_join(endpoint->acceptor, NULL);
        close(endpoint->local_socket);
    }
    if (endpoint->has_thread) end_streams(endpoint);
    if (endpoint->server != NULL) bel_grpc.server_destroy(endpoint->server);
    for (size_t i = 0; i < endpoint->channel_count; i++) {
        bel_grpc.channel_destroy(endpoint->channels[i].channel);
        bel_free(endpoint->channels[i].address);
    }
    bel_free(endpoint->channels);
    bel_grpc.completion_queue_shutdown(endpoint->queue);
    if (endpoint->has_thread) pthread_join(endpoint->thread, NULL);
    bel_grpc.completion_queue_destroy(endpoint->queue);
    pthread_cond_destroy(&endpoint->cond);
    pthread_mutex_destroy(&endpoint->mutex);
    const char *texts[] = {endpoint->config.listen_address, endpoint->config.secret,
                           endpoint->config.tls_ca, endpoint->config.tls_certificate,
                           endpoint->config.tls_key};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        union {
            const char *read;
            char *owned;
        } text = {.read = texts[i]};
        bel_free(text.owned);
    }
    bel_free(endpoint->address);
    bel_free(endpoint);
    bel_grpc.shutdown_blocking();
}

const char *bel_endpoint_address(const bel_endpoint *endpoint)
{
    return endpoint->address != NULL ? endpoint->address : "";
}

const char *bel_endpoint_tls_hint(const bel_endpoint *endpoint)
{
    if (endpoint->config.tls_ca == NULL) return NULL;
    return "whether every host's certificate is signed by an authority in all others' tls_ca and "
           "names the address by which it is called";
}
