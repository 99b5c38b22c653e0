// Threads take events of one completion queue. A requested call that arrives requests the next one
// of its method, and is then answered on the thread that took the event. Its end is another event.
//
// Each call in progress is counted from its arrival to that end. gRPC's shutdown lets these calls
// finish, refuses new ones, and is an event itself.
#include "rpc/rpc_server.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "rpc/api.h"
#include "rpc/credentials.h"

// Threads that refuse calls; calls that are requested of each method, so that one that arrives
// finds one.
enum { SPARE_THREADS = 4, REQUESTED = 4, ARGUMENTS = 12 };

typedef struct call call;

struct bel_rpc_server {
    bel_rpc_config config;
    void **methods; // gRPC's handles
    grpc_completion_queue *queue;
    grpc_server *server;
    pthread_t *threads;
    int thread_count, port;
    pthread_t clerk; // the thread of call_ends
    bool has_clerk;
    pthread_mutex_t mutex;
    pthread_cond_t ending; // is_ending became true
    call *oldest, *newest; // calls whose answers are sent
    pthread_cond_t idle;   // active became 0, or `is_down` true
    int active;            // calls between arrival and end
    bool draining, is_down, is_ending;
};

// Tag of an event: a requested call, then its end. A tag without `owner` is the shutdown's.
struct call {
    bel_rpc_server *owner;
    int method; // -1: any other
    bool answered;
    grpc_call *call;
    gpr_timespec deadline;
    grpc_call_details details; // only if the method is another
    grpc_metadata_array metadata;
    grpc_byte_buffer *received;
    int cancelled;
    int64_t until_ns;     // most time of the answer's bytes
    call *before, *after; // in the server's list
};

// --- Calls --------------------------------------------------------------------------------------

static void request_call(bel_rpc_server *server, int method)
{
    call *c = bel_xcalloc(1, sizeof *c);
    c->owner = server;
    c->method = method;
    bel_grpc.call_details_init(&c->details);
    bel_grpc.metadata_array_init(&c->metadata);
    grpc_call_error error =
        method >= 0
            ? bel_grpc.server_request_registered_call(server->server, server->methods[method],
                                                      &c->call, &c->deadline, &c->metadata,
                                                      &c->received, server->queue, server->queue, c)
            : bel_grpc.server_request_call(server->server, &c->call, &c->details, &c->metadata,
                                           server->queue, server->queue, c);
    BEL_CHECK(error == GRPC_CALL_OK);
}

static void free_call(call *c)
{
    if (c->call != NULL) bel_grpc.call_unref(c->call);
    if (c->received != NULL) bel_grpc.byte_buffer_destroy(c->received);
    bel_grpc.call_details_destroy(&c->details);
    bel_grpc.metadata_array_destroy(&c->metadata);
    bel_free(c);
}

// --- Answers ------------------------------------------------------------------------------------
// A client may leave an answer unread for ever. So each answer has a time, after which a thread
// cancels the call.

static void begin_sending(call *c)
{
    bel_rpc_server *server = c->owner;
    c->answered = true;
    c->until_ns = bel_clock_ns() + server->config.timeout_ms * INT64_C(1000000);
    pthread_mutex_lock(&server->mutex);
    c->before = server->newest;
    *(c->before != NULL ? &c->before->after : &server->oldest) = c;
    server->newest = c;
    pthread_mutex_unlock(&server->mutex);
}

static void unlink_call(call *c)
{
    bel_rpc_server *server = c->owner;
    if (c->until_ns == 0) return; // the thread has cancelled it
    *(c->before != NULL ? &c->before->after : &server->oldest) = c->after;
    *(c->after != NULL ? &c->after->before : &server->newest) = c->before;
    c->until_ns = 0;
}

static void end_sending(call *c)
{
    pthread_mutex_lock(&c->owner->mutex);
    unlink_call(c);
    pthread_mutex_unlock(&c->owner->mutex);
}

// Cancels the oldest call if its time has passed.
static bool cancel_late(bel_rpc_server *server, int64_t now)
{
    call *c = server->oldest;
    if (c == NULL || now < c->until_ns) return false;
    grpc_call *late = c->call;
    bel_grpc.call_ref(late); // its end may free the call meanwhile
    unlink_call(c);
    pthread_mutex_unlock(&server->mutex);
    (void)bel_grpc.call_cancel(late, NULL);
    bel_grpc.call_unref(late);
    pthread_mutex_lock(&server->mutex);
    return true;
}

static void *clerk_main(void *argument)
{
    enum { TICK_MS = 500 };
    bel_rpc_server *server = argument;
    pthread_mutex_lock(&server->mutex);
    while (!server->is_ending) {
        int64_t now = bel_clock_ns();
        if (!cancel_late(server, now))
            (void)bel_cond_wait_until(&server->ending, &server->mutex,
                                      now + TICK_MS * INT64_C(1000000));
    }
    pthread_mutex_unlock(&server->mutex);
    return NULL;
}

// Sends the answer, of which gRPC keeps the slices, and asks for the call's end.
static void send_answer(call *c, const bel_status *status, bel_str *body)
{
    grpc_slice message = bel_grpc.slice_from_copied_buffer(body->text, body->length);
    grpc_slice details =
        bel_grpc.slice_from_copied_string(status != NULL ? bel_status_message(status) : "");
    grpc_byte_buffer *buffer = bel_grpc.raw_byte_buffer_create(&message, 1);
    grpc_op ops[4] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &c->cancelled},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
         .data.send_status_from_server = {.status = (grpc_status_code)bel_status_code(status),
                                          .status_details = &details}},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer}};
    begin_sending(c);
    grpc_call_error error =
        bel_grpc.call_start_batch(c->call, ops, status == NULL ? 4 : 3, c, NULL);
    BEL_CHECK(error == GRPC_CALL_OK);
    bel_grpc.byte_buffer_destroy(buffer);
    bel_grpc.slice_unref(message);
    bel_grpc.slice_unref(details);
}

static int64_t deadline_of(const call *c)
{
    if (bel_grpc.gpr_time_cmp(c->deadline, bel_grpc.gpr_inf_future(c->deadline.clock_type)) == 0)
        return 0;
    enum { MOST_SECONDS = 365 * 24 * 3600 }; // clients may send 99,999,999 hours
    gpr_timespec left =
        bel_grpc.gpr_time_sub(c->deadline, bel_grpc.gpr_now(c->deadline.clock_type));
    int64_t seconds = left.tv_sec < MOST_SECONDS ? left.tv_sec : MOST_SECONDS;
    return bel_clock_ns() + seconds * INT64_C(1000000000) + left.tv_nsec;
}

// Errors of the server, before a call is a request. Without an error `out_reader` is initialized.
static bel_status *check_call(const call *c, bool is_crowded, grpc_byte_buffer_reader *out_reader)
{
    if (is_crowded) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%d calls are in progress", c->owner->config.calls);
    }
    if (c->method < 0) return BEL_ERR(BEL_UNIMPLEMENTED, "there is no such method");
    if (c->received == NULL) return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a message, got none");
    if (c->received->data.raw.compression != GRPC_COMPRESS_NONE)
        return BEL_ERR(BEL_UNIMPLEMENTED, "expected a message that is not compressed");
    if (bel_grpc.byte_buffer_reader_init(out_reader, c->received)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed message");
}

// Calls the user's function with the bytes of the message, which are in one piece unless they came
// in several.
static bel_status *answer(const call *c, grpc_byte_buffer_reader *reader, bel_str *out_body)
{
    const bel_rpc_server *server = c->owner;
    grpc_slice bytes = bel_grpc.byte_buffer_reader_readall(reader);
    char *remote = bel_grpc.call_get_peer(c->call);
    const bel_rpc_request request = {.method = c->method,
                                     .remote = remote,
                                     .body = GRPC_SLICE_START_PTR(bytes),
                                     .body_size = GRPC_SLICE_LENGTH(bytes),
                                     .deadline_ns = deadline_of(c),
                                     .call = c};
    bel_status *status = server->config.answer(server->config.user, &request, out_body);
    bel_grpc.gpr_free(remote);
    bel_grpc.slice_unref(bytes);
    bel_grpc.byte_buffer_reader_destroy(reader);
    return status;
}

static void serve_call(call *c)
{
    bel_rpc_server *server = c->owner;
    grpc_byte_buffer_reader reader;
    bel_str body = {0};
    pthread_mutex_lock(&server->mutex);
    bool is_crowded = ++server->active > server->config.calls;
    pthread_mutex_unlock(&server->mutex);
    bel_status *status = check_call(c, is_crowded, &reader);
    if (status == NULL) {
        status = answer(c, &reader, &body);
    } else if (server->config.refused != NULL) {
        server->config.refused(server->config.user, status);
    }
    send_answer(c, status, &body);
    bel_str_deinit(&body);
    bel_status_ignore(status); // the client has it
}

static void take_event(call *c, bool ok)
{
    bel_rpc_server *server = c->owner;
    if (!c->answered && ok) {
        request_call(server, c->method);
        serve_call(c);
        return;
    }
    bool was_active = c->answered;
    if (was_active) end_sending(c);
    free_call(c); // its end, or no call came before the shutdown
    if (!was_active) return;
    pthread_mutex_lock(&server->mutex);
    if (--server->active == 0) pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->mutex);
}

static void *thread_main(void *argument)
{
    bel_rpc_server *server = argument;
    for (;;) {
        grpc_event event = bel_grpc.completion_queue_next(
            server->queue, bel_grpc.gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN) return NULL;
        if (event.tag != server) {
            take_event(event.tag, event.success != 0);
            continue;
        }
        pthread_mutex_lock(&server->mutex); // the shutdown is complete
        server->is_down = true;
        pthread_cond_broadcast(&server->idle);
        pthread_mutex_unlock(&server->mutex);
    }
}

char *bel_rpc_header(const bel_rpc_request *request, const char *name)
{
    const grpc_metadata_array *all = &((const call *)request->call)->metadata;
    const grpc_slice *found = NULL;
    for (size_t i = 0; i < all->count; i++) {
        if (bel_grpc.slice_str_cmp(all->metadata[i].key, name) != 0) continue;
        if (found != NULL) return NULL;
        found = &all->metadata[i].value;
    }
    if (found == NULL) return NULL;
    return bel_xstrndup((const char *)GRPC_SLICE_START_PTR(*found), GRPC_SLICE_LENGTH(*found));
}

// --- Start and end ------------------------------------------------------------------------------

static grpc_arg *add_argument(grpc_channel_args *args, const char *name, grpc_arg_type type)
{
    union { // gRPC never writes to the key
        const char *read;
        char *key;
    } text = {.read = name};
    BEL_CHECK(args->num_args < ARGUMENTS);
    grpc_arg *added = &args->args[args->num_args++];
    *added = (grpc_arg){.type = type, .key = text.key};
    return added;
}

static void set_integer(grpc_channel_args *args, const char *name, int value)
{
    add_argument(args, name, GRPC_ARG_INTEGER)->value.integer = value;
}

// Limit of the memory that all connections need: room for two messages a call.
static grpc_resource_quota *create_quota(const bel_rpc_config *config)
{
    const size_t least = (size_t)64 << 20;
    grpc_resource_quota *quota = bel_grpc.resource_quota_create("belfry");
    bel_grpc.resource_quota_resize(quota, least + 2 * (size_t)config->calls * config->most_body);
    return quota;
}

static void set_quota(grpc_channel_args *args, grpc_resource_quota *quota)
{
    grpc_arg *added = add_argument(args, GRPC_ARG_RESOURCE_QUOTA, GRPC_ARG_POINTER);
    added->value.pointer.p = quota;
    added->value.pointer.vtable = bel_grpc.resource_quota_arg_vtable();
}

static grpc_server *create_server(const bel_rpc_config *config)
{
    enum { HEADER_BYTES = 16 << 10, PING_MS = 5000, AGE_MS = 600000 };
    grpc_arg list[ARGUMENTS];
    grpc_channel_args args = {.args = list};
    int most = config->most_body < INT32_MAX ? (int)config->most_body : INT32_MAX;
    set_integer(&args, GRPC_ARG_ALLOW_REUSEPORT, 0); // a port in use must be an error
    set_integer(&args, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, most);
    set_integer(&args, GRPC_ARG_MAX_CONCURRENT_STREAMS, config->calls);
    set_integer(&args, GRPC_ARG_MAX_METADATA_SIZE, HEADER_BYTES);
    set_integer(&args, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, config->timeout_ms);
    set_integer(&args, GRPC_ARG_MAX_CONNECTION_IDLE_MS, config->idle_ms);
    // A message that never ends is no call, and only its connection bounds it. Clients open a new
    // one, and calls in progress end on the old one.
    set_integer(&args, GRPC_ARG_MAX_CONNECTION_AGE_MS, AGE_MS);
    set_integer(&args, GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, AGE_MS + 2 * config->timeout_ms);
    set_integer(&args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, PING_MS);
    // A small message could become a very large one.
    set_integer(&args, GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
    grpc_resource_quota *quota = create_quota(config);
    set_quota(&args, quota);
    grpc_server *server = bel_grpc.server_create(&args, NULL);
    bel_grpc.resource_quota_unref(quota); // the server has it
    return server;
}

// gRPC reports no reason if it cannot listen. Port 0 means that.
static bel_status *listen_on(bel_rpc_server *server)
{
    const bel_rpc_config *config = &server->config;
    const bel_rpc_tls tls = {config->tls_ca, config->tls_certificate, config->tls_key};
    grpc_server_credentials *credentials;
    BEL_TRY(bel_rpc_server_credentials(&tls, &credentials));
    char *where = bel_strf("%s:%d", config->address, config->port);
    server->port = bel_grpc.server_add_http2_port(server->server, where, credentials);
    bel_grpc.server_credentials_release(credentials);
    bel_status *status = NULL;
    if (server->port == 0) {
        status = BEL_ERR(
            BEL_UNAVAILABLE, "cannot serve %s over gRPC on %s%s; hint: %s", config->what, where,
            tls.certificate != NULL ? ", with this key and certificate" : "", config->hint);
    }
    bel_free(where);
    return status;
}

static bel_status *start_threads(bel_rpc_server *server)
{
    int count = server->config.calls + SPARE_THREADS;
    BEL_TRY(bel_thread_check_room(count + 1));
    server->threads = bel_xcalloc((size_t)count, sizeof *server->threads);
    for (; server->thread_count < count; server->thread_count++)
        BEL_TRY(bel_thread_start(&server->threads[server->thread_count], thread_main, server));
    BEL_TRY(bel_thread_start(&server->clerk, clerk_main, server));
    server->has_clerk = true;
    return NULL;
}

static bel_status *start(bel_rpc_server *server)
{
    int methods = server->config.method_count;
    server->queue = bel_grpc.completion_queue_create_for_next(NULL);
    server->server = create_server(&server->config);
    server->methods = bel_xcalloc((size_t)methods, sizeof(void *));
    bel_grpc.server_register_completion_queue(server->server, server->queue, NULL);
    for (int m = 0; m < methods; m++)
        server->methods[m] =
            bel_grpc.server_register_method(server->server, server->config.methods[m], NULL,
                                            GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    BEL_TRY(listen_on(server));
    BEL_TRY(start_threads(server)); // before the first call
    bel_grpc.server_start(server->server);
    for (int m = -1; m < methods; m++)
        for (int i = 0; i < REQUESTED; i++)
            request_call(server, m);
    return NULL;
}

bel_status *bel_rpc_server_start(const bel_rpc_config *config, bel_rpc_server **out_server)
{
    BEL_TRY(bel_rpc_begin());
    bel_rpc_server *server = bel_xcalloc(1, sizeof *server);
    server->config = *config;
    pthread_mutex_init(&server->mutex, NULL);
    bel_cond_init(&server->idle);
    bel_cond_init(&server->ending);
    bel_status *status = start(server);
    if (status != NULL) {
        bel_rpc_server_stop(server);
        return status;
    }
    *out_server = server;
    return NULL;
}

int bel_rpc_server_port(const bel_rpc_server *server)
{
    return server->port;
}

int bel_rpc_server_drain(bel_rpc_server *server, int most_ms)
{
    enum { CALM_MS = 200 };
    int64_t deadline = bel_clock_ns() + most_ms * INT64_C(1000000);
    bool begins = !server->draining;
    server->draining = true;
    if (begins) bel_grpc.server_shutdown_and_notify(server->server, server->queue, server);
    pthread_mutex_lock(&server->mutex);
    while (server->active > 0 && bel_cond_wait_until(&server->idle, &server->mutex, deadline))
        continue;
    // A call may have come without being counted yet. A client that does not react to the end of
    // its connection must not hold up the server.
    int64_t calm = bel_clock_ns() + CALM_MS * INT64_C(1000000);
    while (!server->is_down && bel_clock_ns() < deadline &&
           bel_cond_wait_until(&server->idle, &server->mutex, calm))
        continue;
    int left = server->active;
    pthread_mutex_unlock(&server->mutex);
    return left;
}

void bel_rpc_server_stop(bel_rpc_server *server)
{
    if (server == NULL) return;
    if (server->thread_count > 0) {
        (void)bel_rpc_server_drain(server, 0);
        bel_grpc.server_cancel_all_calls(server->server);
        pthread_mutex_lock(&server->mutex);
        // The queue also sends the answers in progress.
        while (!server->is_down || server->active > 0)
            (void)bel_cond_wait_until(&server->idle, &server->mutex, INT64_MAX);
        pthread_mutex_unlock(&server->mutex);
    } else {
        bel_grpc.server_shutdown_and_notify(server->server, server->queue, server);
    }
    bel_grpc.completion_queue_shutdown(server->queue);
    if (server->thread_count == 0) (void)thread_main(server); // takes the remaining events
    for (int t = 0; t < server->thread_count; t++)
        pthread_join(server->threads[t], NULL);
    pthread_mutex_lock(&server->mutex);
    server->is_ending = true;
    pthread_cond_signal(&server->ending);
    pthread_mutex_unlock(&server->mutex);
    if (server->has_clerk) pthread_join(server->clerk, NULL);
    bel_grpc.server_destroy(server->server);
    bel_grpc.completion_queue_destroy(server->queue);
    pthread_cond_destroy(&server->idle);
    pthread_cond_destroy(&server->ending);
    pthread_mutex_destroy(&server->mutex);
    bel_free(server->threads);
    bel_free(server->methods);
    bel_free(server);
    bel_grpc.shutdown_blocking();
}
