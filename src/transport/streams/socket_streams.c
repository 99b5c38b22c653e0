// The life of streams on unix sockets, and their input. A stream has one connection, as the kernel
// then does what a protocol over a shared one would need: order, limits, the end. Only the
// endpoint's thread reads, and ends a stream; other threads ask for the end with an errand. So an
// owner may hold its locks, and no event comes after the closed one but fill.
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/str.h"
#include "transport/streams/local_socket.h"
#include "transport/streams/socket_inner.h"
#include "wire/bytes.h"

enum {
    MOST_CONTROL_BYTES = 16384, // a limit for frames other than DATA
    READ_BYTES = BEL_STREAM_MESSAGE_BYTES,
    SILENT_MS = 1000, // between looks at a silent peer, as its clock wants it (base/clock.h)
    DEAF_MS = 50,     // pause after a connection could not be accepted, for lack of descriptors
};

struct bel_sockets {
    int listener; // -1: none
    bel_watch listener_watch;
    uint8_t buffer[READ_BYTES]; // the bytes read last; only for the endpoint's thread
};

static bel_socket_stream *of(bel_stream *base)
{
    return (bel_socket_stream *)base;
}

// --- The end -------------------------------------------------------------------------------------

// The errand writes it, so that the owner may hold its locks.
static void close_sending(bel_stream *base)
{
    bel_socket_stream *stream = of(base);
    pthread_mutex_lock(&stream->mutex);
    if (!stream->over && !stream->ending) bel_socket_want_locked(stream, BEL_SOCKET_CLOSE, NULL, 0);
    bel_socket_post_locked(stream);
    pthread_mutex_unlock(&stream->mutex);
}

// Takes the reason. An end at once tells the peer nothing but that this side is gone.
static void begin_end(bel_socket_stream *stream, bel_status *reason, bool at_once)
{
    pthread_mutex_lock(&stream->mutex);
    bool is_first = !stream->ending && !stream->over;
    if (is_first) {
        stream->ending = true;
        stream->reason = reason;
    }
    if (at_once || !stream->base.is_server) stream->may_finish = true;
    bel_socket_post_locked(stream);
    pthread_mutex_unlock(&stream->mutex);
    if (!is_first) bel_status_destroy(reason);
}

static void cancel(bel_stream *base)
{
    begin_end(of(base),
              base->is_server ? BEL_ERR(BEL_UNAVAILABLE, "the peer has gone")
                              : BEL_ERR(BEL_CANCELLED, "cancelled"),
              true);
}

static void end(bel_stream *base, bel_code code, const char *message)
{
    begin_end(of(base), BEL_ERR(code, "%s", message), false);
}

// An event: the stream is over, and its owner is called. Takes the status, which is the peer's, or
// the system's: if this side ended the stream, its reason counts.
static void finish(bel_socket_stream *stream, bel_status *status)
{
    bel_endpoint *endpoint = stream->base.endpoint;
    pthread_mutex_lock(&stream->mutex);
    bool again = stream->over, owns_output = stream->blocked;
    int descriptor = stream->descriptor;
    stream->over = true;
    stream->descriptor = -1;
    if (stream->ending && !again) {
        bel_status_destroy(status);
        status = stream->reason;
        stream->reason = NULL;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (again) {
        bel_status_destroy(status);
        return;
    }
    if (descriptor >= 0) {
        bel_endpoint_unwatch(endpoint, descriptor);
        close(descriptor);
    }
    if (owns_output)
        bel_socket_release_output(stream); // a sender that is not blocked finds no descriptor
    if (stream->begun) {
        stream->base.events.closed(stream->base.events.context, status);
    } else {
        bel_status_destroy(status);
    }
    bel_stream_finish(&stream->base);
}

// --- Silence -------------------------------------------------------------------------------------

// Sends a ping after a silence, and ends the stream if no byte has come a while after that. The
// silence itself does not count: this thread may have stood still, and the peer's bytes may wait. A
// stranger gets no ping, as its first frame from here is OPENED or END. The alarm has a reference.
static void on_alarm(void *context, bool due)
{
    bel_socket_stream *stream = context;
    bel_endpoint *endpoint = stream->base.endpoint;
    int64_t now = bel_clock_awake_ns();
    int64_t silent_ms = (bel_clock_ns() - stream->heard_ns) / 1000000;
    bool is_silent = silent_ms >= BEL_KEEPALIVE_MS;
    bool is_asked = stream->asked_ns != 0;
    bool asks = is_silent && !is_asked && (!stream->base.is_server || stream->greeted);
    pthread_mutex_lock(&stream->mutex);
    bool over = stream->over;
    if (!over && asks) bel_socket_want_locked(stream, BEL_SOCKET_PING, NULL, 0);
    pthread_mutex_unlock(&stream->mutex);
    if (!due || over) {
        bel_stream_release(&stream->base);
        return;
    }
    if (is_silent && !is_asked) stream->asked_ns = now;
    bel_endpoint_after(endpoint, is_silent ? SILENT_MS : BEL_KEEPALIVE_MS, on_alarm, stream);
    if (is_asked && (now - stream->asked_ns) / 1000000 >= bel_endpoint_patience_ms(endpoint)) {
        finish(stream, BEL_ERR(BEL_UNAVAILABLE, "the peer was silent for %lld s",
                               (long long)(silent_ms / 1000)));
    } else if (asks) {
        bel_socket_push(stream);
    }
}

static void begin_alarm(bel_socket_stream *stream)
{
    stream->has_alarm = true;
    bel_stream_retain(&stream->base);
    bel_endpoint_after(stream->base.endpoint, BEL_KEEPALIVE_MS, on_alarm, stream);
}

// --- Errands -------------------------------------------------------------------------------------

static void on_errand(bel_errand *errand)
{
    bel_socket_stream *stream = errand->owner;
    pthread_mutex_lock(&stream->mutex);
    bool over = stream->over;
    bool finishes = !over && stream->ending && (stream->may_finish || stream->blocked);
    pthread_mutex_unlock(&stream->mutex);
    if (finishes) {
        finish(stream, NULL);
    } else if (!over) {
        if (!stream->has_alarm) begin_alarm(stream);
        bel_socket_push(stream);
    }
    bel_stream_release(&stream->base);
}

static void destroy(bel_stream *base)
{
    bel_socket_stream *stream = of(base);
    bel_socket_release_output(stream);
    bel_free(stream->wanted);
    bel_free(stream->in_control);
    bel_status_destroy(stream->reason);
    pthread_mutex_destroy(&stream->mutex);
    bel_free(stream);
}

// --- Reading -------------------------------------------------------------------------------------

static bel_status *malformed(void)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "malformed bytes on a unix socket of this job");
}

static void start(bel_socket_stream *stream, const bel_stream_events *events)
{
    stream->base.events = *events;
    stream->begun = true;
}

// The stranger becomes a stream, or is refused with a status that it receives.
static bel_status *hear_hello(bel_socket_stream *stream, const uint8_t *bytes, size_t count)
{
    bel_endpoint *endpoint = stream->base.endpoint;
    size_t secret_bytes = count >= 4 ? (size_t)bel_wire_get(bytes, 4) : SIZE_MAX;
    bool fits = count >= 4 && secret_bytes <= count - 4;
    if (!fits || !bel_secret_matches(endpoint->config.secret, bytes + 4, secret_bytes)) {
        bel_endpoint_say_stranger(endpoint, endpoint->address);
        return BEL_ERR(BEL_UNAUTHENTICATED, "the call does not show this job's secret");
    }
    char *path = bel_strf("%.*s", (int)(count - 4 - secret_bytes), bytes + 4 + secret_bytes);
    bel_stream_events events;
    bel_status *status =
        endpoint->config.accept(endpoint->config.context, path, &stream->base, &events);
    bel_free(path);
    BEL_TRY(status);
    start(stream, &events);
    pthread_mutex_lock(&stream->mutex);
    bel_socket_want_locked(stream, BEL_SOCKET_OPENED, NULL, 0);
    pthread_mutex_unlock(&stream->mutex);
    bel_socket_push(stream);
    if (events.opened != NULL) events.opened(events.context);
    return NULL;
}

static bel_status *hear_end(const uint8_t *bytes, size_t count)
{
    if (count < 4) return malformed();
    uint64_t code = bel_wire_get(bytes, 4);
    if (code == BEL_OK) return NULL;
    if (code > BEL_UNAUTHENTICATED) return malformed();
    return BEL_ERR((bel_code)code, "%.*s", (int)(count - 4), bytes + 4);
}

// A complete frame other than DATA. An error ends the stream. An END sets *out_ended, and its
// status is the peer's.
static bel_status *hear_control(bel_socket_stream *stream, const uint8_t *bytes, size_t count,
                                bool *out_ended)
{
    bool is_server = stream->base.is_server, is_first = !stream->greeted;
    bool is_greeting =
        is_server ? stream->in_kind == BEL_SOCKET_HELLO : stream->in_kind == BEL_SOCKET_OPENED;
    if (is_first && !is_greeting && (is_server || stream->in_kind != BEL_SOCKET_END))
        return malformed();
    stream->greeted = true;
    switch (stream->in_kind) {
    case BEL_SOCKET_HELLO:
        if (!is_server || !is_first) return malformed();
        return hear_hello(stream, bytes, count);
    case BEL_SOCKET_OPENED:
        if (is_server || !is_first) return malformed();
        if (stream->base.events.opened != NULL)
            stream->base.events.opened(stream->base.events.context);
        return NULL;
    case BEL_SOCKET_CLOSE:
        if (!is_server) return malformed();
        begin_end(stream, NULL, false);
        return NULL;
    case BEL_SOCKET_END:
        if (is_server) return malformed();
        *out_ended = true;
        return hear_end(bytes, count);
    case BEL_SOCKET_PING:
        pthread_mutex_lock(&stream->mutex);
        if (!stream->blocked) // else the peer has bytes to hear, and must not make the list grow
            bel_socket_want_locked(stream, BEL_SOCKET_PONG, NULL, 0);
        pthread_mutex_unlock(&stream->mutex);
        bel_socket_push(stream);
        return NULL;
    case BEL_SOCKET_PONG: return NULL;
    default: return malformed();
    }
}

// The head of a frame is complete.
static bel_status *hear_head(bel_socket_stream *stream)
{
    stream->in_left = (size_t)bel_wire_get(stream->in_head, 4);
    stream->in_kind = (uint32_t)bel_wire_get(stream->in_head + 4, 4);
    if (stream->in_kind == BEL_SOCKET_DATA)
        return stream->begun && stream->greeted ? NULL : malformed();
    if (stream->in_left > MOST_CONTROL_BYTES) return malformed();
    bel_free(stream->in_control);
    stream->in_control = bel_xmalloc(stream->in_left + 1);
    stream->in_control_bytes = 0;
    return NULL;
}

// Takes bytes in the pieces in which they come. Stops at the peer's END.
static bel_status *hear(bel_socket_stream *stream, const uint8_t *bytes, size_t count,
                        bool *out_ended)
{
    while (count > 0 && !*out_ended) {
        bool in_head = stream->in_head_bytes < BEL_SOCKET_HEAD_BYTES;
        size_t left = in_head ? BEL_SOCKET_HEAD_BYTES - stream->in_head_bytes : stream->in_left;
        size_t part = count < left ? count : left;
        if (in_head) {
            memcpy(stream->in_head + stream->in_head_bytes, bytes, part);
            stream->in_head_bytes += part;
            if (part < left) return NULL;
            BEL_TRY(hear_head(stream));
        } else if (stream->in_kind == BEL_SOCKET_DATA) {
            stream->in_left -= part;
            BEL_TRY(stream->base.events.received(stream->base.events.context, bytes, part));
        } else {
            memcpy(stream->in_control + stream->in_control_bytes, bytes, part);
            stream->in_control_bytes += part;
            stream->in_left -= part;
        }
        bytes += part;
        count -= part;
        if (stream->in_left > 0) continue;
        stream->in_head_bytes = 0; // a frame is complete
        if (stream->in_kind != BEL_SOCKET_DATA) {
            BEL_TRY(hear_control(stream, stream->in_control, stream->in_control_bytes, out_ended));
        }
    }
    return NULL;
}

// Reads once: epoll calls again while there is more, after other streams had their turn.
static void read_some(bel_socket_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    int descriptor = stream->descriptor;
    bool ending = stream->ending;
    pthread_mutex_unlock(&stream->mutex);
    uint8_t *buffer = stream->base.endpoint->sockets->buffer;
    ssize_t count;
    do
        count = recv(descriptor, buffer, READ_BYTES, MSG_DONTWAIT);
    while (count < 0 && errno == EINTR);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count <= 0) {
        finish(stream, BEL_ERR(BEL_UNAVAILABLE, "the peer has gone"));
        return;
    }
    if (stream->begun) { // a stranger must come to the point
        stream->heard_ns = bel_clock_ns();
        stream->asked_ns = 0;
    }
    if (ending) return; // the owner wants no more
    bool ended = false;
    bel_status *status = hear(stream, buffer, (size_t)count, &ended);
    if (ended) {
        finish(stream, status);
    } else if (status != NULL) {
        begin_end(stream, status, false);
    }
}

static void on_ready(bel_watch *watch, uint32_t events)
{
    bel_socket_stream *stream = watch->owner;
    if ((events & EPOLLOUT) != 0) bel_socket_resume(stream);
    if ((events & ~(uint32_t)EPOLLOUT) != 0) read_some(stream);
}

// --- Opening and listening -----------------------------------------------------------------------

static const bel_carrier carrier = {.kick = bel_socket_kick,
                                    .close = close_sending,
                                    .cancel = cancel,
                                    .end = end,
                                    .destroy = destroy};

static bel_sockets *sockets_of(bel_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->mutex);
    if (endpoint->sockets == NULL) {
        endpoint->sockets = bel_xcalloc(1, sizeof *endpoint->sockets);
        endpoint->sockets->listener = -1;
    }
    bel_sockets *sockets = endpoint->sockets;
    pthread_mutex_unlock(&endpoint->mutex);
    return sockets;
}

static bel_socket_stream *socket_stream_create(bel_endpoint *endpoint, int descriptor,
                                               bool is_server)
{
    (void)sockets_of(endpoint);
    bel_socket_stream *stream = bel_xcalloc(1, sizeof *stream);
    bel_stream_init(&stream->base, &carrier, endpoint, is_server);
    stream->errand = (bel_errand){.run = on_errand, .owner = stream};
    stream->watch = (bel_watch){on_ready, stream};
    stream->descriptor = descriptor;
    stream->heard_ns = bel_clock_ns();
    pthread_mutex_init(&stream->mutex, NULL);
    return stream;
}

bel_stream *bel_sockets_fail(bel_endpoint *endpoint, bel_status *status,
                             const bel_stream_events *events)
{
    bel_socket_stream *stream = socket_stream_create(endpoint, -1, false);
    bel_stream_retain(&stream->base); // the caller's
    start(stream, events);
    bel_stream_begin(&stream->base);
    begin_end(stream, status, true);
    return &stream->base;
}

bel_stream *bel_sockets_open(bel_endpoint *endpoint, const char *address, const char *path,
                             const bel_stream_events *events)
{
    int descriptor = -1;
    bel_status *status = bel_local_connect(address, &descriptor);
    if (status != NULL) return bel_sockets_fail(endpoint, status, events);
    bel_socket_stream *stream = socket_stream_create(endpoint, -1, false);
    bel_stream_retain(&stream->base); // the caller's
    start(stream, events);
    size_t secret_bytes = strlen(endpoint->config.secret), path_bytes = strlen(path);
    uint8_t *hello = bel_xmalloc(4 + secret_bytes + path_bytes);
    uint8_t *at = bel_wire_put(hello, secret_bytes, 4);
    memcpy(at, endpoint->config.secret, secret_bytes);
    memcpy(at + secret_bytes, path, path_bytes);
    bel_socket_want_locked(stream, BEL_SOCKET_HELLO, hello,
                           4 + secret_bytes + path_bytes); // no other thread has it yet
    bel_free(hello);
    bel_stream_begin(&stream->base);
    pthread_mutex_lock(&stream->mutex);
    bool over = stream->over; // the endpoint is being destroyed
    if (!over) {
        stream->descriptor = descriptor;
        bel_endpoint_watch(endpoint, descriptor, &stream->watch, EPOLLIN);
        bel_socket_post_locked(stream); // writes the hello, and sets the alarm
    }
    pthread_mutex_unlock(&stream->mutex);
    if (over) close(descriptor);
    return &stream->base;
}

static void accept_stream(bel_endpoint *endpoint, int descriptor)
{
    bel_socket_stream *stream = socket_stream_create(endpoint, descriptor, true);
    bel_stream_begin(&stream->base);
    begin_alarm(stream);
    bel_endpoint_watch(endpoint, descriptor, &stream->watch, EPOLLIN);
    if (bel_endpoint_is_stopping(endpoint)) cancel(&stream->base);
}

static void listen_again(void *context, bool due)
{
    bel_endpoint *endpoint = context;
    bel_sockets *sockets = endpoint->sockets;
    if (due) bel_endpoint_watch(endpoint, sockets->listener, &sockets->listener_watch, EPOLLIN);
}

// One connection: epoll calls again if there are more. Without descriptors or memory it pauses.
static void on_connection(bel_watch *watch, uint32_t events)
{
    (void)events;
    bel_endpoint *endpoint = watch->owner;
    const int listener = endpoint->sockets->listener;
    int descriptor = bel_local_accept(listener);
    if (descriptor >= 0) {
        accept_stream(endpoint, descriptor);
        return;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    bool shut = errno == EINVAL; // bel_sockets_shut
    bel_endpoint_unwatch(endpoint, listener);
    if (!shut) bel_endpoint_after(endpoint, DEAF_MS, listen_again, endpoint);
}

bel_status *bel_sockets_listen(bel_endpoint *endpoint)
{
    bel_sockets *sockets = sockets_of(endpoint);
    BEL_TRY(bel_local_listen(endpoint->config.listen_address, &sockets->listener));
    endpoint->address = bel_xstrdup(endpoint->config.listen_address);
    sockets->listener_watch = (bel_watch){on_connection, endpoint};
    bel_endpoint_watch(endpoint, sockets->listener, &sockets->listener_watch, EPOLLIN);
    return NULL;
}

void bel_sockets_shut(bel_endpoint *endpoint)
{
    const bel_sockets *sockets = endpoint->sockets;
    if (sockets == NULL || sockets->listener < 0) return;
    bel_local_shut(endpoint->config.listen_address, sockets->listener);
}

void bel_sockets_destroy(bel_sockets *sockets)
{
    if (sockets == NULL) return;
    if (sockets->listener >= 0) close(sockets->listener);
    bel_free(sockets);
}
