// Input of a lane's stream, in the pieces in which it arrives: headers go into the parser,
// payloads directly to their destination. The first frame of a stream must be a hello, which on the
// waiting side also finds the lane. Numbers then rise by one, so a frame that arrived on the
// preceding stream is not sent again. Any mismatch ends the stream with an error that cuts the lane
// for good (is_final in stream_lane.c).
//
// All functions run on the endpoint's thread. A payload is written without the lock: each piece
// first checks whether the lane is closed or another stream has replaced this one, and closing
// waits for events under way (bel_endpoint_settle).
#include <string.h>

#include "base/fault.h"
#include "base/rng.h"
#include "transport/streams/stream_lane_inner.h"
#include "wire/bytes.h"

static bel_status *lane_read_malformed(const char *what, const bel_wire_frame *frame)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "malformed frame: %s (kind %u, number %llu, from %d of generation %u and "
                   "incarnation %u, %llu bytes)",
                   what, frame->kind, (unsigned long long)frame->sequence, (int)frame->sender,
                   frame->generation, frame->incarnation, (unsigned long long)frame->payload_bytes);
}

// Number of frames that the sender of a hello has received.
static uint64_t received_of(const bel_wire_frame *hello)
{
    return bel_wire_get(hello->fields + 8, 8);
}

// A hello may name only frames that can be sent again: the ring has those after `acked`.
static bool fits_locked(const bel_stream_lane *lane, const bel_wire_frame *hello)
{
    uint64_t has = received_of(hello);
    return has <= lane->sent && has >= lane->acked && hello->taken <= lane->sent;
}

// Continues after the frames that the peer has received.
static bel_status *take_hello(bel_stream_lane *lane, const bel_wire_frame *frame)
{
    pthread_mutex_lock(&lane->mutex);
    bool good = fits_locked(lane, frame) && !lane->answered;
    lane->cursor = good ? received_of(frame) + 1 : lane->cursor;
    lane->cursor_done = 0;
    lane->answered = good;
    if (good) lane->backoff.tries = 0;
    pthread_mutex_unlock(&lane->mutex);
    if (!good) return lane_read_malformed("a hello that does not fit what was sent", frame);
    bel_stream_lane_kick(lane);
    return NULL;
}

// Every header has the number of frames that the peer has taken; a lower number than before changes
// nothing.
static bel_status *take_acknowledgement(bel_stream_lane *lane, const bel_wire_frame *frame)
{
    pthread_mutex_lock(&lane->mutex);
    bool good = frame->taken <= lane->sent;
    if (good && frame->taken > lane->acked) lane->acked = frame->taken;
    pthread_mutex_unlock(&lane->mutex);
    return good ? NULL : lane_read_malformed("more was taken than was sent", frame);
}

// A frame is complete: counts it and gives it to the receiver. A replaced stream counts nothing,
// since its successor's hello has reported the received frames.
static bel_status *finish_frame(bel_attachment *a)
{
    bel_stream_lane *lane = a->lane;
    pthread_mutex_lock(&lane->mutex);
    bool ours = lane->current == a;
    if (ours) lane->received++;
    pthread_mutex_unlock(&lane->mutex);
    a->header_bytes = 0;
    if (!ours) return BEL_ERR(BEL_CANCELLED, "another stream has taken over");
    a->frame.payload = a->payload;
    bool urgent = (lane->config.urgent >> a->frame.kind & 1u) != 0;
    if (urgent) lane->config.at_once(lane->config.place_context, &a->frame);
    bool ring = (lane->config.quiet >> a->frame.kind & 1u) == 0;
    if (bel_frame_queue_put(lane->in, &a->frame, ring) != BEL_PUT_FULL) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "more frames than the lane holds");
}

// A frame's header is complete: checks it before any use, and determines the destination of its
// payload. `received` and `answered` are read without the lock, as they change only on this thread
// while a stream is current.
static bel_status *begin_frame(bel_attachment *a, const bel_wire_frame *header)
{
    bel_stream_lane *lane = a->lane;
    if (header->kind == 0 || header->kind > BEL_FRAME_LAST_KIND) {
        return lane_read_malformed("its kind", header);
    }
    if (!lane->answered) return lane_read_malformed("frames before the hello", header);
    if (header->sequence != lane->received + 1) return lane_read_malformed("its number", header);
    if (header->generation != lane->generation)
        return lane_read_malformed("its generation", header);
    a->frame = (bel_frame){.kind = header->kind,
                           .generation = header->generation,
                           .incarnation = header->incarnation,
                           .sender = header->sender,
                           .payload_bytes = header->payload_bytes};
    memcpy(a->frame.fields, header->fields, sizeof a->frame.fields);
    a->payload = NULL;
    a->payload_done = 0;
    if (header->payload_bytes == 0) return finish_frame(a);
    a->payload = lane->config.place(lane->config.place_context, &a->frame);
    return a->payload != NULL ? NULL : lane_read_malformed("its sender, fields or size", header);
}

// A server's stream names its lane, and replaces the lane's stream: the peer opens another only
// when it has lost that one.
static bel_status *find_lane(bel_attachment *a, const bel_wire_frame *header)
{
    if (header->kind != BEL_STREAM_LANE_HELLO)
        return lane_read_malformed("a stream must begin with a hello", header);
    bel_lane_hello hello = {.kind = (int32_t)bel_wire_get(header->fields, 4),
                            .index = (int32_t)bel_wire_get(header->fields + 4, 4),
                            .generation = header->generation,
                            .incarnation = header->incarnation};
    bel_lane *found = NULL;
    BEL_TRY(a->find(a->find_context, &hello, &found));
    if (found == NULL) return BEL_ERR(BEL_UNAVAILABLE, "that lane is not there yet");
    bel_stream_lane *lane = (bel_stream_lane *)found;
    pthread_mutex_lock(&lane->mutex);
    if (lane->closed) {
        pthread_mutex_unlock(&lane->mutex);
        return BEL_ERR(BEL_CANCELLED, "closed");
    }
    if (!fits_locked(lane, header)) { // the lane keeps its stream
        pthread_mutex_unlock(&lane->mutex);
        return lane_read_malformed("a hello that does not fit what was sent", header);
    }
    bel_stream *old = lane->current != NULL ? lane->current->stream : NULL;
    if (old != NULL) bel_stream_retain(old);
    lane->references++;
    a->lane = lane;
    lane->current = a;
    lane->generation = hello.generation;
    lane->greeted = lane->answered = false;
    lane->streams++;
    pthread_mutex_unlock(&lane->mutex);
    if (old != NULL) bel_stream_end(old, BEL_CANCELLED, "another stream has taken over");
    bel_stream_release(old);
    return NULL;
}

// Internal kinds end here (header_bytes 0: a header follows); for a user's frame the payload
// follows.
static bel_status *take_header(bel_attachment *a)
{
    bel_wire_frame header;
    if (!bel_wire_frame_read(a->header, &header)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed frame: it does not begin as one, with BEL2");
    }
    if (a->lane == NULL) BEL_TRY(find_lane(a, &header));
    BEL_TRY(take_acknowledgement(a->lane, &header));
    switch (header.kind) {
    case BEL_STREAM_LANE_HELLO: a->header_bytes = 0; return take_hello(a->lane, &header);
    case BEL_STREAM_LANE_TAKEN: a->header_bytes = 0; return NULL;
    case BEL_STREAM_LANE_CLOSE:
        pthread_mutex_lock(&a->lane->mutex);
        bel_stream_lane_cut_locked(a->lane, "its other end has closed");
        pthread_mutex_unlock(&a->lane->mutex);
        return BEL_ERR(BEL_CANCELLED, "closed");
    default: return begin_frame(a, &header);
    }
}

// The fault: about one piece in sixteen breaks the stream, drawn separately for each stream.
static bool breaks_now(bel_attachment *a)
{
    if (!bel_fault_is(BEL_FAULT_LANE_BREAK) || a->lane == NULL) return false;
    uint32_t words[4];
    uint64_t streams = a->lane->streams;
    bel_rng_block((bel_rng_key){{3, 4}}, streams, a->polls++, words);
    return words[0] % 16 == 0;
}

// True if nothing more is placed: the lane is closed, or another stream has replaced this one.
static bool is_through(const bel_attachment *a)
{
    bel_stream_lane *lane = a->lane;
    if (lane == NULL) return false;
    pthread_mutex_lock(&lane->mutex);
    bool through = lane->closed || lane->current != a;
    pthread_mutex_unlock(&lane->mutex);
    return through;
}

// The parser: collects a header's bytes, and writes a payload's to their destination. A frame
// without payload is complete with its header, so the loop never waits for 0 bytes.
bel_status *bel_stream_lane_received(void *context, const uint8_t *bytes, size_t count)
{
    bel_attachment *a = context;
    if (breaks_now(a)) return BEL_ERR(BEL_UNAVAILABLE, "broken on purpose");
    while (count > 0) {
        if (is_through(a)) return BEL_ERR(BEL_CANCELLED, "closed");
        size_t part;
        if (a->header_bytes < sizeof a->header) {
            size_t left = sizeof a->header - a->header_bytes;
            part = count < left ? count : left;
            memcpy(a->header + a->header_bytes, bytes, part);
            a->header_bytes += part;
            if (a->header_bytes == sizeof a->header) BEL_TRY(take_header(a));
        } else {
            size_t left = a->frame.payload_bytes - a->payload_done;
            part = count < left ? count : left;
            memcpy(a->payload + a->payload_done, bytes, part);
            a->payload_done += part;
            if (part == left) BEL_TRY(finish_frame(a));
        }
        bytes += part;
        count -= part;
    }
    return NULL;
}
