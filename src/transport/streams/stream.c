// The part that all streams share: references, a place in their endpoint's list, and the pieces of
// a message. The public calls go to the stream's carrier. The endpoint's end waits for an empty
// list.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "transport/streams/endpoint_inner.h"

// --- Messages ------------------------------------------------------------------------------------

static void add_piece(bel_stream_message *message, bel_piece piece)
{
    BEL_CHECK(message->piece_count < BEL_MESSAGE_PIECES);
    message->pieces[message->piece_count++] = piece;
    message->byte_count += piece.count;
}

void bel_stream_message_copy(bel_stream_message *message, const void *bytes, size_t count)
{
    uint8_t *copy = bel_xmalloc(count);
    memcpy(copy, bytes, count);
    add_piece(message, (bel_piece){copy, count, NULL});
}

void bel_stream_message_span(bel_stream_message *message, const void *bytes, size_t count,
                             bel_spans *spans)
{
    bel_spans_begin(spans);
    add_piece(message, (bel_piece){bytes, count, spans});
}

size_t bel_stream_message_bytes(const bel_stream_message *message)
{
    // A message without room for another header and span counts as full.
    if (message->piece_count + 2 > BEL_MESSAGE_PIECES) return SIZE_MAX;
    return message->byte_count;
}

void bel_piece_release(const bel_piece *piece)
{
    union {
        const uint8_t *read;
        uint8_t *owned;
    } bytes = {.read = piece->bytes};
    if (piece->spans != NULL) {
        bel_spans_end(piece->spans);
    } else {
        bel_free(bytes.owned);
    }
}

void bel_stream_message_clear(bel_stream_message *message)
{
    for (size_t i = 0; i < message->piece_count; i++)
        bel_piece_release(&message->pieces[i]);
    message->piece_count = message->byte_count = 0;
}

// --- Life ----------------------------------------------------------------------------------------

void bel_stream_init(bel_stream *stream, const bel_carrier *carrier, bel_endpoint *endpoint,
                     bool is_server)
{
    stream->carrier = carrier;
    stream->endpoint = endpoint;
    stream->is_server = is_server;
    atomic_store(&stream->references, 1);
}

void bel_stream_begin(bel_stream *stream)
{
    bel_endpoint *endpoint = stream->endpoint;
    pthread_mutex_lock(&endpoint->mutex);
    stream->next = endpoint->streams;
    if (stream->next != NULL) stream->next->previous = stream;
    endpoint->streams = stream;
    pthread_mutex_unlock(&endpoint->mutex);
}

void bel_stream_finish(bel_stream *stream)
{
    bel_endpoint *endpoint = stream->endpoint;
    pthread_mutex_lock(&endpoint->mutex);
    if (stream->next != NULL) stream->next->previous = stream->previous;
    if (stream->previous != NULL) {
        stream->previous->next = stream->next;
    } else {
        endpoint->streams = stream->next;
    }
    pthread_cond_broadcast(&endpoint->cond);
    pthread_mutex_unlock(&endpoint->mutex);
    bel_stream_release(stream);
}

void bel_stream_retain(bel_stream *stream)
{
    atomic_fetch_add(&stream->references, 1);
}

// The last holder frees; the default memory order makes the others' effects visible to it.
void bel_stream_release(bel_stream *stream)
{
    if (stream == NULL || atomic_fetch_sub(&stream->references, 1) > 1) return;
    stream->carrier->destroy(stream);
}

// --- Calls ---------------------------------------------------------------------------------------

bel_endpoint *bel_stream_endpoint(bel_stream *stream)
{
    return stream->endpoint;
}

void bel_stream_kick(bel_stream *stream)
{
    stream->carrier->kick(stream);
}

void bel_stream_close(bel_stream *stream)
{
    BEL_CHECK(!stream->is_server);
    stream->carrier->close(stream);
}

void bel_stream_end(bel_stream *stream, bel_code code, const char *message)
{
    stream->carrier->end(stream, code, message);
}
