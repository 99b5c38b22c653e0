// A lane outlives its streams. Each stream has an attachment: the parser of what comes in, and the
// lane it belongs to (a server's stream learns that from its first frame). The lane's mutex guards
// the numbers; spans are written where `place` says, without a lock, on the endpoint's thread.
//
//   sent ring    acked < … ≤ sent: frames not yet taken by the peer, at most `capacity`
//   cursor       the next frame to write on the current stream, and how much of its payload is out
//   received     frames that have come whole; taken: those that the receiver has asked for
#include "transport/grpc/grpc_lane.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/thread.h"
#include "transport/queue.h"
#include "wire/bytes.h"
#include "wire/frame.h"

// The lane's own kinds stand behind those of its users. A hello's fields are what and which the
// opening end is (i32, i32) and how many frames it has received (u64); the others have none.
enum { FRAME_HELLO = BEL_FRAME_LAST_KIND + 1, FRAME_TAKEN, FRAME_CLOSE };
_Static_assert((int)BEL_FRAME_FIELD_BYTES == (int)BEL_WIRE_FIELD_BYTES,
               "fields travel as they are");
enum { CORRUPT_FRAME = 100 }; // of BELFRY_FAULT=lane:corrupt
enum { RETRY_MS = 20, CLOSE_MS = 1000, LET_GO_MS = 5000, REASON_TEXT = 256, SMALL_BYTES = 512 };

typedef struct grpc_lane grpc_lane;

typedef struct attachment {
    grpc_lane *lane; // NULL: a server's stream that has not said which
    bel_stream *stream;
    int references; // guarded by the lane's mutex once there is a lane
    bool over;
    bel_lane_find *find;
    void *find_context;
    // The parser.
    uint8_t header[BEL_WIRE_FRAME_BYTES];
    size_t header_bytes;
    bel_frame frame; // in work
    uint64_t sequence;
    uint8_t *payload;
    size_t payload_done;
    uint64_t polls; // for BELFRY_FAULT=lane:break
} attachment;

struct grpc_lane {
    bel_lane lane; // first: a bel_lane * is a grpc_lane *
    bel_endpoint *endpoint;
    bel_grpc_lane_config config;
    char *address; // NULL: the end that waits
    bel_lane_hello hello;
    bel_frame_queue *in;
    bel_spans *spans;      // payloads that gRPC refers to, of all its streams
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    int references;
    attachment *current;
    bool greeted;    // this stream has carried our hello
    bool answered;   // … and the peer's
    bel_frame *ring; // by sequence modulo capacity
    uint64_t sent, acked, cursor;
    size_t cursor_done; // payload bytes of the cursor's frame that are out
    uint64_t received, taken_said;
    bool closing, close_sent;
    bool is_faulty;      // it is cut for what came, not because its other end has gone
    uint32_t generation; // that the hello of the end that connects names, as all of its frames do
    bool closed;         // the owner is through: nothing that comes is placed any more
    char cut_reason[REASON_TEXT];
    uint64_t streams; // opened so far
};

static void open_stream(grpc_lane *lane);

// --- References ----------------------------------------------------------------------------------

static void unlock_and_release(grpc_lane *lane)
{
    bool last = --lane->references == 0;
    pthread_mutex_unlock(&lane->mutex);
    if (!last) return;
    bel_frame_queue_destroy(lane->in);
    bel_spans_release(lane->spans);
    pthread_cond_destroy(&lane->cond);
    pthread_mutex_destroy(&lane->mutex);
    bel_free(lane->ring);
    bel_free(lane->address);
    bel_free(lane);
}

static void release_attachment_locked(attachment *a)
{
    if (--a->references > 0) return;
    bel_stream_release(a->stream);
    bel_free(a);
}

static void cut_locked(grpc_lane *lane, const char *reason)
{
    if (lane->cut_reason[0] == '\0') {
        bel_snprintf(lane->cut_reason, sizeof lane->cut_reason, "%s", reason);
    }
    bel_frame_queue_close(lane->in, lane->closing);
}

static void kick(grpc_lane *lane)
{
    pthread_mutex_lock(&lane->mutex);
    attachment *a = lane->current;
    if (a != NULL) a->references++; // the stream may end meanwhile, and then ask it what to send
    pthread_mutex_unlock(&lane->mutex);
    if (a == NULL) return;
    bel_stream_kick(a->stream);
    pthread_mutex_lock(&lane->mutex);
    release_attachment_locked(a);
    pthread_mutex_unlock(&lane->mutex);
}

// --- Writing -------------------------------------------------------------------------------------

static void write_header_locked(grpc_lane *lane, bel_stream_message *message,
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

static void write_hello_locked(grpc_lane *lane, bel_stream_message *message)
{
    bel_frame frame = {.kind = FRAME_HELLO,
                       .generation = lane->hello.generation,
                       .incarnation = lane->hello.incarnation};
    uint8_t *at = bel_wire_put(frame.fields, (uint32_t)lane->hello.kind, 4);
    at = bel_wire_put(at, (uint32_t)lane->hello.index, 4);
    (void)bel_wire_put(at, lane->received, 8);
    write_header_locked(lane, message, &frame, 0);
    lane->greeted = true;
}

// Adds what fits of the frame at the cursor; moves the cursor when it is out.
static void write_frame_locked(grpc_lane *lane, bel_stream_message *message)
{
    const bel_frame *frame = &lane->ring[lane->cursor % lane->config.capacity];
    if (lane->cursor_done == 0) write_header_locked(lane, message, frame, lane->cursor);
    size_t room = BEL_STREAM_MESSAGE_BYTES, used = bel_stream_message_bytes(message);
    room = used < room ? room - used : 1;
    size_t left = frame->payload_bytes - lane->cursor_done, count = left < room ? left : room;
    const uint8_t *bytes = (const uint8_t *)frame->payload + lane->cursor_done;
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

static void on_fill(void *context, bel_stream_message *message)
{
    attachment *a = context;
    grpc_lane *lane = a->lane;
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
        write_header_locked(lane, message, &(bel_frame){.kind = FRAME_CLOSE}, 0);
    } else if (all_out && untold > 0 && untold * 2 >= lane->config.capacity) {
        write_header_locked(lane, message, &(bel_frame){.kind = FRAME_TAKEN}, 0);
    }
    pthread_mutex_unlock(&lane->mutex);
}

// --- Reading -------------------------------------------------------------------------------------

static bel_status *malformed(const char *what, const bel_wire_frame *frame)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "malformed frame: %s (kind %u, number %llu, from %d of generation %u and "
                   "incarnation %u, %llu bytes)",
                   what, frame->kind, (unsigned long long)frame->sequence, (int)frame->sender,
                   frame->generation, frame->incarnation, (unsigned long long)frame->payload_bytes);
}

// Frames that the sender of a hello has received.
static uint64_t received_of(const bel_wire_frame *hello)
{
    return bel_wire_get(hello->fields + 8, 8);
}

static bool fits_locked(const grpc_lane *lane, const bel_wire_frame *hello)
{
    uint64_t has = received_of(hello);
    return has <= lane->sent && has >= lane->acked && hello->taken <= lane->sent;
}

// Goes on behind what the peer has received.
static bel_status *take_hello(grpc_lane *lane, const bel_wire_frame *frame)
{
    pthread_mutex_lock(&lane->mutex);
    bool good = fits_locked(lane, frame) && !lane->answered;
    lane->cursor = good ? received_of(frame) + 1 : lane->cursor;
    lane->cursor_done = 0;
    lane->answered = good;
    pthread_mutex_unlock(&lane->mutex);
    if (!good) return malformed("a hello that does not fit what was sent", frame);
    kick(lane);
    return NULL;
}

static bel_status *take_acknowledgement(grpc_lane *lane, const bel_wire_frame *frame)
{
    pthread_mutex_lock(&lane->mutex);
    bool good = frame->taken <= lane->sent;
    if (good && frame->taken > lane->acked) lane->acked = frame->taken;
    pthread_mutex_unlock(&lane->mutex);
    return good ? NULL : malformed("more was taken than was sent", frame);
}

static bel_status *finish_frame(attachment *a)
{
    grpc_lane *lane = a->lane;
    pthread_mutex_lock(&lane->mutex);
    bool ours = lane->current == a;
    if (ours) lane->received++;
    pthread_mutex_unlock(&lane->mutex);
    a->header_bytes = 0;
    if (!ours) return BEL_ERR(BEL_CANCELLED, "another stream has taken over");
    a->frame.payload = a->payload;
    bool ring = (lane->config.quiet >> a->frame.kind & 1u) == 0;
    if (bel_frame_queue_put(lane->in, &a->frame, ring) != BEL_PUT_FULL) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "more frames than the lane holds");
}

static bel_status *begin_frame(attachment *a, const bel_wire_frame *header)
{
    grpc_lane *lane = a->lane;
    if (header->kind == 0 || header->kind > BEL_FRAME_LAST_KIND) {
        return malformed("its kind", header);
    }
    if (!lane->answered) return malformed("frames before the hello", header);
    if (header->sequence != lane->received + 1) return malformed("its number", header);
    if (header->generation != lane->generation) return malformed("its generation", header);
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
    return a->payload != NULL ? NULL : malformed("its sender, fields or size", header);
}

static bel_status *find_lane(attachment *a, const bel_wire_frame *header)
{
    if (header->kind != FRAME_HELLO) return malformed("a stream must begin with a hello", header);
    bel_lane_hello hello = {.kind = (int32_t)bel_wire_get(header->fields, 4),
                            .index = (int32_t)bel_wire_get(header->fields + 4, 4),
                            .generation = header->generation,
                            .incarnation = header->incarnation};
    bel_lane *found = NULL;
    BEL_TRY(a->find(a->find_context, &hello, &found));
    if (found == NULL) return BEL_ERR(BEL_UNAVAILABLE, "that lane is not there yet");
    grpc_lane *lane = (grpc_lane *)found;
    pthread_mutex_lock(&lane->mutex);
    if (lane->closed) {
        pthread_mutex_unlock(&lane->mutex);
        return BEL_ERR(BEL_CANCELLED, "closed");
    }
    if (!fits_locked(lane, header)) { // the stream that the lane has, stays
        pthread_mutex_unlock(&lane->mutex);
        return malformed("a hello that does not fit what was sent", header);
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

static bel_status *take_header(attachment *a)
{
    bel_wire_frame header;
    if (!bel_wire_frame_read(a->header, &header)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed frame: it does not begin as one, with BEL2");
    }
    if (a->lane == NULL) BEL_TRY(find_lane(a, &header));
    BEL_TRY(take_acknowledgement(a->lane, &header));
    switch (header.kind) {
    case FRAME_HELLO: a->header_bytes = 0; return take_hello(a->lane, &header);
    case FRAME_TAKEN: a->header_bytes = 0; return NULL;
    case FRAME_CLOSE:
        pthread_mutex_lock(&a->lane->mutex);
        cut_locked(a->lane, "its other end has closed");
        pthread_mutex_unlock(&a->lane->mutex);
        return BEL_ERR(BEL_CANCELLED, "closed");
    default: return begin_frame(a, &header);
    }
}

static bool breaks_now(attachment *a)
{
    if (!bel_fault_is(BEL_FAULT_LANE_BREAK) || a->lane == NULL) return false;
    uint32_t words[4];
    uint64_t streams = a->lane->streams;
    bel_rng_block((bel_rng_key){{3, 4}}, streams, a->polls++, words);
    return words[0] % 16 == 0;
}

// Nothing more is placed: the lane is closed, or another stream has taken over.
static bool is_through(const attachment *a)
{
    grpc_lane *lane = a->lane;
    if (lane == NULL) return false;
    pthread_mutex_lock(&lane->mutex);
    bool through = lane->closed || lane->current != a;
    pthread_mutex_unlock(&lane->mutex);
    return through;
}

static bel_status *on_received(void *context, const uint8_t *bytes, size_t count)
{
    attachment *a = context;
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

// --- Streams -------------------------------------------------------------------------------------

static bool is_final(bel_code code)
{
    return code == BEL_UNAUTHENTICATED || code == BEL_PERMISSION_DENIED ||
           code == BEL_FAILED_PRECONDITION || code == BEL_UNIMPLEMENTED ||
           code == BEL_INVALID_ARGUMENT || code == BEL_RESOURCE_EXHAUSTED;
}

static void on_retry(void *context, bool due)
{
    grpc_lane *lane = context;
    pthread_mutex_lock(&lane->mutex);
    bool wanted = due && !lane->closing && lane->cut_reason[0] == '\0';
    pthread_mutex_unlock(&lane->mutex);
    if (wanted) open_stream(lane);
    pthread_mutex_lock(&lane->mutex);
    unlock_and_release(lane);
}

static void on_closed(void *context, bel_status *status)
{
    attachment *a = context;
    grpc_lane *lane = a->lane;
    if (lane == NULL) {
        bel_status_ignore(status); // it never said which lane it was: nobody waits for it
        release_attachment_locked(a);
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    bool ours = lane->current == a || lane->current == NULL;
    if (lane->current == a) lane->current = NULL;
    bel_code code = bel_status_code(status);
    if (ours && is_final(code) && lane->cut_reason[0] == '\0' && !lane->closing) {
        lane->is_faulty = true;
    }
    if (ours && is_final(code)) cut_locked(lane, bel_status_message(status));
    bool again = ours && lane->address != NULL && !lane->closing && lane->cut_reason[0] == '\0';
    if (again) {
        lane->references++;
        bel_endpoint_after(lane->endpoint, RETRY_MS, on_retry, lane);
    }
    a->over = true;
    release_attachment_locked(a);
    pthread_cond_broadcast(&lane->cond);
    unlock_and_release(lane);
    bel_status_ignore(status); // kept as the reason where it matters
}

static bel_stream_events events_of(attachment *a)
{
    return (bel_stream_events){
        .context = a, .received = on_received, .fill = on_fill, .closed = on_closed};
}

static void open_stream(grpc_lane *lane)
{
    attachment *a = bel_xcalloc(1, sizeof *a);
    a->lane = lane;
    a->references = 2; // the events', and this function's
    pthread_mutex_lock(&lane->mutex);
    lane->references++;
    lane->streams++;
    pthread_mutex_unlock(&lane->mutex);
    bel_stream_events events = events_of(a);
    bel_stream *stream =
        bel_stream_open(lane->endpoint, lane->address, BEL_GRPC_LANE_PATH, &events);
    pthread_mutex_lock(&lane->mutex);
    a->stream = stream;
    bool alive = stream != NULL && !a->over;
    bool late = alive && lane->closed; // meanwhile: what its frames point at may be gone
    if (stream == NULL) {              // no event will come
        a->references--;
        lane->references--;
    }
    if (late) bel_stream_retain(stream);
    if (alive && !late) {
        lane->current = a;
        lane->greeted = lane->answered = false;
    }
    release_attachment_locked(a);
    pthread_mutex_unlock(&lane->mutex);
    if (late) {
        bel_stream_end(stream, BEL_CANCELLED, "closed");
        bel_stream_release(stream);
    } else if (alive) {
        kick(lane);
    }
}

bel_status *bel_grpc_lane_accept(bel_stream *stream, bel_lane_find *find, void *context,
                                 bel_stream_events *out_events)
{
    attachment *a = bel_xcalloc(1, sizeof *a);
    a->references = 1;
    a->stream = stream;
    a->find = find;
    a->find_context = context;
    bel_stream_retain(stream);
    *out_events = events_of(a);
    return NULL;
}

// --- The lane ------------------------------------------------------------------------------------

static bel_status *grpc_send(bel_lane *base, const bel_frame *frame)
{
    grpc_lane *lane = (grpc_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bool cut = lane->closing || lane->cut_reason[0] != '\0';
    bool full = lane->sent - lane->acked >= lane->config.capacity;
    if (!cut && !full) lane->ring[++lane->sent % lane->config.capacity] = *frame;
    bel_status *status = NULL;
    if (cut) status = bel_lane_cut_error(lane->cut_reason);
    pthread_mutex_unlock(&lane->mutex);
    if (cut) return status;
    if (full) return bel_lane_full_error();
    kick(lane);
    return NULL;
}

static bool grpc_receive(bel_lane *base, bel_frame *out_frame)
{
    grpc_lane *lane = (grpc_lane *)base;
    if (!bel_frame_queue_take(lane->in, out_frame)) return false;
    pthread_mutex_lock(&lane->mutex);
    uint64_t untold = bel_frame_queue_taken(lane->in) - lane->taken_said;
    pthread_mutex_unlock(&lane->mutex);
    if (untold * 2 >= lane->config.capacity) kick(lane); // usually the next frame back tells
    return true;
}

static bool grpc_is_cut(const bel_lane *base)
{
    return bel_frame_queue_is_over(((const grpc_lane *)base)->in);
}

static bel_status *grpc_fault(bel_lane *base)
{
    grpc_lane *lane = (grpc_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bel_status *status = lane->is_faulty ? BEL_ERR(BEL_INTERNAL, "%s", lane->cut_reason) : NULL;
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

// What was sent goes out first; the peer then ends the stream. A peer that does not is given up,
// and gRPC lets go of what it has not read.
static void grpc_close(bel_lane *base)
{
    grpc_lane *lane = (grpc_lane *)base;
    int64_t deadline = bel_clock_ns() + CLOSE_MS * (int64_t)1000000;
    pthread_mutex_lock(&lane->mutex);
    lane->closing = true;
    bel_frame_queue_close(lane->in, true);
    pthread_mutex_unlock(&lane->mutex);
    kick(lane);
    pthread_mutex_lock(&lane->mutex);
    bool in_time = true;
    while (in_time && lane->current != NULL)
        in_time = bel_cond_wait_until(&lane->cond, &lane->mutex, deadline);
    bel_stream *stream = lane->current != NULL ? lane->current->stream : NULL;
    if (stream != NULL) bel_stream_retain(stream);
    lane->current = NULL; // late events find nothing of ours
    lane->closed = true;
    pthread_mutex_unlock(&lane->mutex);
    bel_endpoint_settle(lane->endpoint);
    if (stream != NULL) bel_stream_end(stream, BEL_CANCELLED, "closed");
    bel_stream_release(stream);
    if (!bel_spans_wait(lane->spans, bel_clock_ns() + LET_GO_MS * (int64_t)1000000)) {
        bel_log_write(BEL_LOG_WARN, "what a closed lane has sent is still to be written");
    }
    pthread_mutex_lock(&lane->mutex);
    unlock_and_release(lane);
}

static const bel_lane_ops grpc_ops = {
    .name = "grpc",
    .shares_memory = false,
    .send = grpc_send,
    .receive = grpc_receive,
    .is_cut = grpc_is_cut,
    .fault = grpc_fault,
    .close = grpc_close,
};

bel_lane *bel_grpc_lane_create(bel_endpoint *endpoint, const bel_grpc_lane_config *config)
{
    grpc_lane *lane = bel_xcalloc(1, sizeof *lane);
    lane->lane.ops = &grpc_ops;
    lane->endpoint = endpoint;
    lane->config = *config;
    lane->references = 1;
    lane->cursor = 1;
    lane->ring = bel_xcalloc(config->capacity, sizeof *lane->ring);
    lane->spans = bel_spans_create();
    lane->in = bel_frame_queue_create(config->capacity, config->bell);
    pthread_mutex_init(&lane->mutex, NULL);
    bel_cond_init(&lane->cond);
    return &lane->lane;
}

bel_lane *bel_grpc_lane_connect(bel_endpoint *endpoint, const char *address,
                                const bel_lane_hello *hello, const bel_grpc_lane_config *config)
{
    bel_lane *base = bel_grpc_lane_create(endpoint, config);
    grpc_lane *lane = (grpc_lane *)base;
    lane->address = bel_xstrdup(address);
    lane->hello = *hello;
    lane->generation = hello->generation;
    open_stream(lane);
    return base;
}

uint64_t bel_grpc_lane_streams(bel_lane *base)
{
    grpc_lane *lane = (grpc_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    uint64_t streams = lane->streams;
    pthread_mutex_unlock(&lane->mutex);
    return streams;
}

bel_spans *bel_grpc_lane_spans(bel_lane *base)
{
    grpc_lane *lane = (grpc_lane *)base;
    bel_spans_retain(lane->spans);
    return lane->spans;
}

const char *bel_grpc_lane_cut_reason(const bel_lane *base)
{
    return ((const grpc_lane *)base)->cut_reason;
}
