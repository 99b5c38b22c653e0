// One bidirectional call. It has five batches of operations: the start, the peer's messages one
// after the other, this side's messages one after the other, the close, and the status, which is
// last. `inflight` counts the batches that the completion queue has not returned. When the status
// has come and none is left, the stream is over and its owner is called.
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/check.h"
#include "transport/grpc/endpoint_inner.h"

enum { MESSAGE_SLICES = 128 };

struct bel_stream_message {
    grpc_slice slices[MESSAGE_SLICES];
    size_t slice_count, byte_count;
};

struct bel_stream {
    bel_endpoint *endpoint;
    bool is_server;
    grpc_channel *channel; // the stream's own, or NULL
    bel_stream_events events;
    bel_stream_links links;
    atomic_int references;
    atomic_uint kicks; // 0: no thread is sending; otherwise number of kicks since it was 0

    pthread_mutex_t mutex; // guards what follows
    grpc_call *call;       // NULL after the end
    int inflight;
    bool has_status;   // no further batch may start
    bel_status *error; // reason, if this side ended it

    bel_grpc_op start_op, receive_op, send_op, close_op, status_op;
    grpc_metadata secret;
    grpc_metadata_array initial, trailing;
    grpc_status_code status;
    grpc_slice details;
    int cancelled;
    grpc_byte_buffer *received, *sending;
    bel_stream_message message;
};

// --- Messages ------------------------------------------------------------------------------------

// The message takes ownership of the slice.
static void add_slice(bel_stream_message *message, grpc_slice slice, size_t count)
{
    BEL_CHECK(message->slice_count < MESSAGE_SLICES);
    message->slices[message->slice_count++] = slice;
    message->byte_count += count;
}

void bel_stream_message_copy(bel_stream_message *message, const void *bytes, size_t count)
{
    add_slice(message, bel_grpc.slice_from_copied_buffer(bytes, count), count);
}

void bel_stream_message_span(bel_stream_message *message, const void *bytes, size_t count,
                             bel_spans *spans)
{
    union { // gRPC never writes to it
        const void *read;
        void *start;
    } memory = {.read = bytes};
    bel_spans_begin(spans);
    add_slice(message, bel_grpc.slice_new_with_user_data(memory.start, count, bel_spans_end, spans),
              count);
}

size_t bel_stream_message_bytes(const bel_stream_message *message)
{
    // A message without room for another header and span counts as full.
    if (message->slice_count + 2 > MESSAGE_SLICES) return SIZE_MAX;
    return message->byte_count;
}

// Moves the message into a buffer, which keeps the slices; NULL if it is empty.
static grpc_byte_buffer *take_message(bel_stream_message *message)
{
    grpc_byte_buffer *buffer = NULL;
    if (message->slice_count > 0) {
        buffer = bel_grpc.raw_byte_buffer_create(message->slices, message->slice_count);
    }
    for (size_t i = 0; i < message->slice_count; i++)
        bel_grpc.slice_unref(message->slices[i]);
    message->slice_count = message->byte_count = 0;
    return buffer;
}

// --- Life ----------------------------------------------------------------------------------------

bel_endpoint *bel_stream_endpoint(bel_stream *stream)
{
    return stream->endpoint;
}

void bel_stream_retain(bel_stream *stream)
{
    atomic_fetch_add(&stream->references, 1);
}

// The last holder frees; the default memory order makes the others' effects visible to it.
void bel_stream_release(bel_stream *stream)
{
    if (stream == NULL || atomic_fetch_sub(&stream->references, 1) > 1) return;
    bel_status_destroy(stream->error);
    pthread_mutex_destroy(&stream->mutex);
    bel_free(stream);
}

bel_stream *bel_stream_create(bel_endpoint *endpoint, grpc_call *call, grpc_channel *channel,
                              bool is_server)
{
    bel_stream *stream = bel_xcalloc(1, sizeof *stream);
    stream->links.stream = stream;
    stream->channel = channel;
    stream->endpoint = endpoint;
    stream->call = call;
    stream->is_server = is_server;
    stream->details = bel_grpc.empty_slice();
    atomic_store(&stream->references, 1); // the endpoint's
    pthread_mutex_init(&stream->mutex, NULL);
    bel_grpc.metadata_array_init(&stream->initial);
    bel_grpc.metadata_array_init(&stream->trailing);
    return stream;
}

// Reason of the end: this side's error first, since gRPC's status only repeats it.
static bel_status *closing_status(bel_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bel_status *error = stream->error;
    stream->error = NULL;
    pthread_mutex_unlock(&stream->mutex);
    if (error != NULL) return error;
    if (stream->is_server) {
        return stream->cancelled ? BEL_ERR(BEL_UNAVAILABLE, "the peer has gone") : NULL;
    }
    if (stream->status == GRPC_STATUS_OK) return NULL;
    char *text = bel_grpc.slice_to_c_string(stream->details);
    bool known = stream->status > 0 && stream->status <= GRPC_STATUS_UNAUTHENTICATED;
    bel_code code = known ? (bel_code)stream->status : BEL_UNKNOWN;
    error = BEL_ERR(code, "%s", text[0] != '\0' ? text : "the peer ended the call");
    bel_grpc.gpr_free(text);
    return error;
}

// Runs once, when nothing is in flight: it needs the lock only for `call`, which other threads may
// be about to cancel.
static void stream_finish(bel_stream *stream)
{
    stream->events.closed(stream->events.context, closing_status(stream));
    pthread_mutex_lock(&stream->mutex);
    bel_grpc.call_unref(stream->call);
    stream->call = NULL;
    pthread_mutex_unlock(&stream->mutex);
    if (stream->channel != NULL) bel_grpc.channel_destroy(stream->channel);
    bel_grpc.metadata_array_destroy(&stream->initial);
    bel_grpc.metadata_array_destroy(&stream->trailing);
    bel_grpc.slice_unref(stream->details);
    bel_endpoint_remove(stream->endpoint, &stream->links);
    bel_stream_release(stream);
}

// --- Batches -------------------------------------------------------------------------------------

// False if the stream has its status: then no batch may start.
static bool stream_begin(bel_stream *stream, const grpc_op *ops, size_t count, bel_grpc_op *op)
{
    pthread_mutex_lock(&stream->mutex);
    bool open = !stream->has_status;
    if (open) {
        stream->inflight++;
        grpc_call_error error = bel_grpc.call_start_batch(stream->call, ops, count, op, NULL);
        BEL_CHECK(error == GRPC_CALL_OK);
    }
    pthread_mutex_unlock(&stream->mutex);
    return open;
}

// A batch has returned. The batch that brings the count to 0 after the status ends the stream.
static void stream_end(bel_stream *stream, bool has_status)
{
    pthread_mutex_lock(&stream->mutex);
    stream->has_status = stream->has_status || has_status;
    stream->inflight--;
    bool over = stream->has_status && stream->inflight == 0;
    pthread_mutex_unlock(&stream->mutex);
    if (over) stream_finish(stream);
}

static void receive_next(bel_stream *stream)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &stream->received};
    stream->received = NULL;
    (void)stream_begin(stream, &op, 1, &stream->receive_op); // a finished stream receives nothing
}

// Passes a message's bytes to the owner, slice by slice, in place.
static bel_status *hand_over(bel_stream *stream, grpc_byte_buffer *buffer)
{
    grpc_byte_buffer_reader reader;
    if (!bel_grpc.byte_buffer_reader_init(&reader, buffer)) {
        return BEL_ERR(BEL_DATA_LOSS, "a message could not be unpacked");
    }
    bel_status *status = NULL;
    grpc_slice *slice;
    while (status == NULL && bel_grpc.byte_buffer_reader_peek(&reader, &slice)) {
        status = stream->events.received(stream->events.context, GRPC_SLICE_START_PTR(*slice),
                                         GRPC_SLICE_LENGTH(*slice));
    }
    bel_grpc.byte_buffer_reader_destroy(&reader);
    return status;
}

// Requests the next message only when the owner has taken this one: that is the flow control. `end`
// is last, so that the stream cannot end while its next batch is being started.
static void receive_done(bel_grpc_op *op, bool ok)
{
    bel_stream *stream = op->owner;
    grpc_byte_buffer *buffer = stream->received;
    if (ok && buffer != NULL) {
        bel_status *status = hand_over(stream, buffer);
        bel_grpc.byte_buffer_destroy(buffer);
        if (status == NULL) {
            receive_next(stream);
        } else {
            bel_stream_end(stream, bel_status_code(status), bel_status_message(status));
            bel_status_destroy(status);
        }
    } else if (ok && stream->is_server) {
        bel_stream_cancel(stream); // the peer has finished
    }
    stream_end(stream, false);
}

// Sends until fill has no more data. Only one thread at a time is here: the one that raised kicks
// from 0, and after that the one on which a message completes. kicks returns to 0 only if it has
// not changed since before the call of fill, so no kick is lost.
static void send_next(bel_stream *stream)
{
    for (;;) {
        unsigned seen = atomic_load(&stream->kicks);
        stream->events.fill(stream->events.context, &stream->message);
        stream->sending = take_message(&stream->message);
        if (stream->sending != NULL) {
            grpc_op op = {.op = GRPC_OP_SEND_MESSAGE,
                          .data.send_message.send_message = stream->sending};
            if (stream_begin(stream, &op, 1, &stream->send_op)) return;
            bel_grpc.byte_buffer_destroy(stream->sending); // ended: the rest is not sent
            return; // kicks stays: fill is never called again
        }
        if (atomic_compare_exchange_strong(&stream->kicks, &seen, 0)) return;
    }
}

// The message has left gRPC as far as flow control is concerned; its spans may still be read.
static void send_done(bel_grpc_op *op, bool ok)
{
    bel_stream *stream = op->owner;
    bel_grpc.byte_buffer_destroy(stream->sending);
    if (ok) send_next(stream);
    stream_end(stream, false);
}

// Raises kicks: from 0 this thread sends, otherwise the sending thread checks again.
void bel_stream_kick(bel_stream *stream)
{
    if (atomic_fetch_add(&stream->kicks, 1) == 0) send_next(stream);
}

static void close_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    stream_end(op->owner, false);
}

void bel_stream_close(bel_stream *stream)
{
    BEL_CHECK(!stream->is_server);
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    (void)stream_begin(stream, &op, 1, &stream->close_op); // a finished stream is closed
}

static void start_done(bel_grpc_op *op, bool ok)
{
    bel_stream *stream = op->owner; // if not ok, the status has the reason
    if (ok && stream->events.opened != NULL) stream->events.opened(stream->events.context);
    stream_end(stream, false);
}

static void status_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    stream_end(op->owner, true);
}

// The call's metadata show the secret. The three batches are started in this order because the
// status ends the stream (bel_stream_start).
static void start_client(bel_stream *stream)
{
    const char *secret = stream->endpoint->config.secret;
    stream->secret = (grpc_metadata){.key = bel_grpc.slice_from_static_string(BEL_SECRET_KEY),
                                     .value = bel_grpc.slice_from_static_string(secret)};
    grpc_op start[] = {{.op = GRPC_OP_SEND_INITIAL_METADATA,
                        .data.send_initial_metadata = {.count = 1, .metadata = &stream->secret}},
                       {.op = GRPC_OP_RECV_INITIAL_METADATA,
                        .data.recv_initial_metadata.recv_initial_metadata = &stream->initial}};
    grpc_op status = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                      .data.recv_status_on_client = {.trailing_metadata = &stream->trailing,
                                                     .status = &stream->status,
                                                     .status_details = &stream->details}};
    (void)stream_begin(stream, start, 2, &stream->start_op);
    receive_next(stream);
    (void)stream_begin(stream, &status, 1, &stream->status_op);
}

static void start_server(bel_stream *stream)
{
    grpc_op start = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    grpc_op status = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                      .data.recv_close_on_server.cancelled = &stream->cancelled};
    (void)stream_begin(stream, &start, 1, &stream->start_op);
    receive_next(stream);
    (void)stream_begin(stream, &status, 1, &stream->status_op);
}

void bel_stream_start(bel_stream *stream, const bel_stream_events *events)
{
    stream->events = *events;
    stream->start_op = (bel_grpc_op){start_done, stream};
    stream->receive_op = (bel_grpc_op){receive_done, stream};
    stream->send_op = (bel_grpc_op){send_done, stream};
    stream->close_op = (bel_grpc_op){close_done, stream};
    stream->status_op = (bel_grpc_op){status_done, stream};
    bel_endpoint_add(stream->endpoint, &stream->links);
    // The status is requested last: until then the stream cannot end, and an event of the queue
    // ends it, on the endpoint's thread. A call without a peer may be over when this returns.
    if (stream->is_server) {
        start_server(stream);
    } else {
        start_client(stream);
    }
}

// Any thread; the closed event follows on the endpoint's.
void bel_stream_cancel(bel_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    if (stream->call != NULL) bel_grpc.call_cancel(stream->call, NULL);
    pthread_mutex_unlock(&stream->mutex);
}

void bel_stream_end(bel_stream *stream, bel_code code, const char *message)
{
    pthread_mutex_lock(&stream->mutex);
    if (stream->error == NULL) stream->error = BEL_ERR(code, "%s", message);
    if (stream->call != NULL) {
        bel_grpc.call_cancel_with_status(stream->call, (grpc_status_code)code, message, NULL);
    }
    pthread_mutex_unlock(&stream->mutex);
}
