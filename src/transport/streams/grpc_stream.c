// A stream as one bidirectional call of gRPC. It has five batches of operations: the start, the
// peer's messages one after the other, this side's messages one after the other, the close, and the
// status, which is last. `inflight` counts the batches that the completion queue has not returned.
// When the status has come and none is left, the stream is over and its owner is called.
#include "base/alloc.h"
#include "base/check.h"
#include "transport/streams/grpc_inner.h"

typedef struct grpc_stream {
    bel_stream base;       // first: a bel_stream * is a grpc_stream *
    atomic_uint kicks;     // 0: no thread is sending; otherwise number of kicks since it was 0
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
} grpc_stream;

// --- Messages ------------------------------------------------------------------------------------

static void free_copy(void *bytes)
{
    bel_free(bytes);
}

// The slice takes the piece's reference, or its bytes.
static grpc_slice take_piece(const bel_piece *piece)
{
    union { // gRPC never writes to it
        const void *read;
        void *start;
    } memory = {.read = piece->bytes};
    if (piece->spans == NULL) {
        return bel_grpc.slice_new_with_user_data(memory.start, piece->count, free_copy,
                                                 memory.start);
    }
    return bel_grpc.slice_new_with_user_data(memory.start, piece->count, bel_spans_end,
                                             piece->spans);
}

// Moves the message into a buffer, which keeps the slices; NULL if it is empty.
static grpc_byte_buffer *take_message(bel_stream_message *message)
{
    grpc_slice slices[BEL_MESSAGE_PIECES];
    if (message->piece_count == 0) return NULL;
    for (size_t i = 0; i < message->piece_count; i++)
        slices[i] = take_piece(&message->pieces[i]);
    grpc_byte_buffer *buffer = bel_grpc.raw_byte_buffer_create(slices, message->piece_count);
    for (size_t i = 0; i < message->piece_count; i++)
        bel_grpc.slice_unref(slices[i]);
    message->piece_count = message->byte_count = 0;
    return buffer;
}

// --- Life ----------------------------------------------------------------------------------------

static grpc_stream *of(bel_stream *base)
{
    return (grpc_stream *)base;
}

static void destroy(bel_stream *base)
{
    grpc_stream *stream = of(base);
    bel_status_destroy(stream->error);
    pthread_mutex_destroy(&stream->mutex);
    bel_free(stream);
}

// Reason of the end: this side's error first, since gRPC's status only repeats it.
static bel_status *closing_status(grpc_stream *stream)
{
    pthread_mutex_lock(&stream->mutex);
    bel_status *error = stream->error;
    stream->error = NULL;
    pthread_mutex_unlock(&stream->mutex);
    if (error != NULL) return error;
    if (stream->base.is_server) {
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
static void finish(grpc_stream *stream)
{
    stream->base.events.closed(stream->base.events.context, closing_status(stream));
    pthread_mutex_lock(&stream->mutex);
    bel_grpc.call_unref(stream->call);
    stream->call = NULL;
    pthread_mutex_unlock(&stream->mutex);
    bel_grpc.metadata_array_destroy(&stream->initial);
    bel_grpc.metadata_array_destroy(&stream->trailing);
    bel_grpc.slice_unref(stream->details);
    bel_stream_finish(&stream->base);
}

// --- Batches -------------------------------------------------------------------------------------

// False if the stream has its status: then no batch may start.
static bool stream_begin(grpc_stream *stream, const grpc_op *ops, size_t count, bel_grpc_op *op)
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
static void stream_end(grpc_stream *stream, bool has_status)
{
    pthread_mutex_lock(&stream->mutex);
    stream->has_status = stream->has_status || has_status;
    stream->inflight--;
    bool over = stream->has_status && stream->inflight == 0;
    pthread_mutex_unlock(&stream->mutex);
    if (over) finish(stream);
}

static void receive_next(grpc_stream *stream)
{
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &stream->received};
    stream->received = NULL;
    (void)stream_begin(stream, &op, 1, &stream->receive_op); // a finished stream receives nothing
}

// Passes a message's bytes to the owner, slice by slice, in place.
static bel_status *hand_over(grpc_stream *stream, grpc_byte_buffer *buffer)
{
    grpc_byte_buffer_reader reader;
    if (!bel_grpc.byte_buffer_reader_init(&reader, buffer)) {
        return BEL_ERR(BEL_DATA_LOSS, "a message could not be unpacked");
    }
    bel_status *status = NULL;
    grpc_slice *slice;
    while (status == NULL && bel_grpc.byte_buffer_reader_peek(&reader, &slice)) {
        status = stream->base.events.received(
            stream->base.events.context, GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
    }
    bel_grpc.byte_buffer_reader_destroy(&reader);
    return status;
}

static void cancel(bel_stream *base)
{
    grpc_stream *stream = of(base);
    pthread_mutex_lock(&stream->mutex);
    if (stream->call != NULL) bel_grpc.call_cancel(stream->call, NULL);
    pthread_mutex_unlock(&stream->mutex);
}

static void end(bel_stream *base, bel_code code, const char *message)
{
    grpc_stream *stream = of(base);
    pthread_mutex_lock(&stream->mutex);
    if (stream->error == NULL) stream->error = BEL_ERR(code, "%s", message);
    if (stream->call != NULL) {
        bel_grpc.call_cancel_with_status(stream->call, (grpc_status_code)code, message, NULL);
    }
    pthread_mutex_unlock(&stream->mutex);
}

// Requests the next message only when the owner has taken this one: that is the flow control. `end`
// is last, so that the stream cannot end while its next batch is being started.
static void receive_done(bel_grpc_op *op, bool ok)
{
    grpc_stream *stream = op->owner;
    grpc_byte_buffer *buffer = stream->received;
    if (ok && buffer != NULL) {
        bel_status *status = hand_over(stream, buffer);
        bel_grpc.byte_buffer_destroy(buffer);
        if (status == NULL) {
            receive_next(stream);
        } else {
            end(&stream->base, bel_status_code(status), bel_status_message(status));
            bel_status_destroy(status);
        }
    } else if (ok && stream->base.is_server) {
        cancel(&stream->base); // the peer has finished
    }
    stream_end(stream, false);
}

// Sends until fill has no more data. Only one thread at a time is here: the one that raised kicks
// from 0, and after that the one on which a message completes. kicks returns to 0 only if it has
// not changed since before the call of fill, so no kick is lost.
static void send_next(grpc_stream *stream)
{
    for (;;) {
        unsigned seen = atomic_load(&stream->kicks);
        stream->base.events.fill(stream->base.events.context, &stream->message);
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
    grpc_stream *stream = op->owner;
    bel_grpc.byte_buffer_destroy(stream->sending);
    if (ok) send_next(stream);
    stream_end(stream, false);
}

// Raises kicks: from 0 this thread sends, otherwise the sending thread checks again.
static void kick(bel_stream *base)
{
    grpc_stream *stream = of(base);
    if (atomic_fetch_add(&stream->kicks, 1) == 0) send_next(stream);
}

static void close_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    stream_end(op->owner, false);
}

static void close_call(bel_stream *base)
{
    grpc_stream *stream = of(base);
    grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
    (void)stream_begin(stream, &op, 1, &stream->close_op); // a finished stream is closed
}

static void start_done(bel_grpc_op *op, bool ok)
{
    grpc_stream *stream = op->owner; // if not ok, the status has the reason
    if (ok && stream->base.events.opened != NULL)
        stream->base.events.opened(stream->base.events.context);
    stream_end(stream, false);
}

static void status_done(bel_grpc_op *op, bool ok)
{
    (void)ok;
    stream_end(op->owner, true);
}

// The call's metadata show the secret. The three batches are started in this order because the
// status ends the stream (bel_call_start).
static void start_client(grpc_stream *stream)
{
    const char *secret = stream->base.endpoint->config.secret;
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

static void start_server(grpc_stream *stream)
{
    grpc_op start = {.op = GRPC_OP_SEND_INITIAL_METADATA};
    grpc_op status = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                      .data.recv_close_on_server.cancelled = &stream->cancelled};
    (void)stream_begin(stream, &start, 1, &stream->start_op);
    receive_next(stream);
    (void)stream_begin(stream, &status, 1, &stream->status_op);
}

static const bel_carrier carrier = {
    .kick = kick, .close = close_call, .cancel = cancel, .end = end, .destroy = destroy};

bel_stream *bel_call_create(bel_endpoint *endpoint, grpc_call *call, bool is_server)
{
    grpc_stream *stream = bel_xcalloc(1, sizeof *stream);
    bel_stream_init(&stream->base, &carrier, endpoint, is_server);
    stream->call = call;
    stream->details = bel_grpc.empty_slice();
    pthread_mutex_init(&stream->mutex, NULL);
    bel_grpc.metadata_array_init(&stream->initial);
    bel_grpc.metadata_array_init(&stream->trailing);
    stream->start_op = (bel_grpc_op){start_done, stream};
    stream->receive_op = (bel_grpc_op){receive_done, stream};
    stream->send_op = (bel_grpc_op){send_done, stream};
    stream->close_op = (bel_grpc_op){close_done, stream};
    stream->status_op = (bel_grpc_op){status_done, stream};
    return &stream->base;
}

// The status is requested last: until then the stream cannot end, and an event of the queue ends
// it. A call without a peer may be over when this returns.
void bel_call_start(bel_stream *base, const bel_stream_events *events)
{
    base->events = *events;
    bel_stream_begin(base);
    if (base->is_server) {
        start_server(of(base));
    } else {
        start_client(of(base));
    }
}
