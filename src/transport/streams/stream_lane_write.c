// Output of a lane on streams. Each stream begins with a hello. After the peer's hello, the frames
// follow that the peer does not have yet, each with its payload as spans of its owner's memory. The
// stream asks for the next message (fill), often on the endpoint's thread. A payload may take
// several messages; the cursor holds its position. If no frame goes out, a separate frame
// acknowledges the taken ones.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/number.h"
#include "transport/streams/stream_lane_inner.h"
#include "wire/bytes.h"

enum { CORRUPT_FRAME = 100 }; // the frame that BELFRY_FAULT=lane:corrupt changes
enum { SMALL_BYTES = 512 };   // maximum size of a copied payload; larger ones are referred to

// With the lane's mutex, if there is a lane; an attachment without one has a single holder.
void bel_attachment_release_locked(bel_attachment *a)
{
    if (--a->references > 0) return;
    bel_stream_release(a->stream);
    bel_free(a);
}

// Closing the queue lets the receiver take earlier frames; a closing owner's bell is not rung.
void bel_stream_lane_cut_locked(bel_stream_lane *lane, const char *reason)
{
    if (lane->cut_reason[0] == '\0') {
        bel_snprintf(lane->cut_reason, sizeof lane->cut_reason, "%s", reason);
    }
    bel_frame_queue_close(lane->in, lane->closing);
}

void bel_stream_lane_kick(bel_stream_lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    bel_attachment *a = lane->current;
    if (a != NULL) a->references++; // the stream may end meanwhile and still call fill
    pthread_mutex_unlock(&lane->mutex);
    if (a == NULL) return;
    bel_stream_kick(a->stream);
    pthread_mutex_lock(&lane->mutex);
    bel_attachment_release_locked(a);
    pthread_mutex_unlock(&lane->mutex);
}

// Every outgoing header acknowledges, so with frames both ways no other message is needed.
static void write_header_locked(bel_stream_lane *lane, bel_stream_message *message,
                                const bel_frame *frame, uint64_t sequence)
{
    uint64_t taken = bel_frame_queue_taken(lane->in);
    bel_wire_frame header = {.kind = (uint8_t)frame->kind,
                             .generation = frame->generation,
                             .incarnation = frame->incarnation,
                             .sender = frame->sender,
                             .payload_bytes = frame->payload_bytes,
                             .sequence = sequence,
                             .taken = taken};
    memcpy(header.fields, frame->fields, sizeof header.fields);
    bool corrupt = sequence == CORRUPT_FRAME && bel_fault_is(BEL_FAULT_LANE_CORRUPT);
    if (corrupt) header.kind = BEL_FRAME_LAST_KIND;
    uint8_t bytes[BEL_WIRE_FRAME_BYTES];
    bel_wire_frame_write(&header, bytes);
    bel_stream_message_copy(message, bytes, sizeof bytes);
    lane->taken_said = taken;
}

// Number 0: only users' frames are numbered.
static void write_hello_locked(bel_stream_lane *lane, bel_stream_message *message)
{
    bel_frame frame = {.kind = BEL_STREAM_LANE_HELLO,
                       .generation = lane->hello.generation,
                       .incarnation = lane->hello.incarnation};
    uint8_t *at = bel_wire_put(frame.fields, (uint32_t)lane->hello.kind, 4);
    at = bel_wire_put(at, (uint32_t)lane->hello.index, 4);
    (void)bel_wire_put(at, lane->received, 8);
    write_header_locked(lane, message, &frame, 0);
    lane->greeted = true;
}

// Adds the part of the cursor's frame that fits; advances the cursor when it is complete. A header
// that filled the message leaves room for one byte, so that a payload always continues.
static void write_frame_locked(bel_stream_lane *lane, bel_stream_message *message)
{
    const bel_frame *frame = &lane->ring[lane->cursor % lane->config.capacity];
    if (lane->cursor_done == 0) write_header_locked(lane, message, frame, lane->cursor);
    size_t room = BEL_STREAM_MESSAGE_BYTES, used = bel_stream_message_bytes(message);
    room = used < room ? room - used : 1;
    size_t left = frame->payload_bytes - lane->cursor_done, count = left < room ? left : room;
    const uint8_t *bytes = frame->payload;
    if (count > 0) bytes += lane->cursor_done; // otherwise there may be no payload
    if (count > SMALL_BYTES) {
        bel_stream_message_span(message, bytes, count, lane->spans);
    } else if (count > 0) {
        bel_stream_message_copy(message, bytes, count);
    }
    lane->cursor_done += count;
    if (lane->cursor_done < frame->payload_bytes) return;
    lane->cursor++;
    lane->cursor_done = 0;
}

// Fills one message: hello, then frames until it is full, then at the very end a close or an
// acknowledgement. A stream that is not the lane's sends nothing.
void bel_stream_lane_fill(void *context, bel_stream_message *message)
{
    bel_attachment *a = context;
    bel_stream_lane *lane = a->lane;
    if (lane == NULL) return;
    pthread_mutex_lock(&lane->mutex);
    if (lane->current != a) {
        pthread_mutex_unlock(&lane->mutex);
        return;
    }
    if (!lane->greeted) write_hello_locked(lane, message);
    while (lane->answered && lane->cursor <= lane->sent &&
           bel_stream_message_bytes(message) < BEL_STREAM_MESSAGE_BYTES)
        write_frame_locked(lane, message);
    bool all_out = lane->answered && lane->cursor > lane->sent;
    uint64_t untold = bel_frame_queue_taken(lane->in) - lane->taken_said;
    if (all_out && lane->closing && !lane->close_sent) {
        lane->close_sent = true;
        write_header_locked(lane, message, &(bel_frame){.kind = BEL_STREAM_LANE_CLOSE}, 0);
    } else if (all_out && untold > 0 && untold * 2 >= lane->config.capacity) {
        write_header_locked(lane, message, &(bel_frame){.kind = BEL_STREAM_LANE_TAKEN}, 0);
    }
    pthread_mutex_unlock(&lane->mutex);
}
