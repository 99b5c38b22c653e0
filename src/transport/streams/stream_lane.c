// The life of a lane on streams: its streams, opened, accepted, lost and opened again, and the
// owner's calls (stream_lane_inner.h describes the fields). The end that opened a stream replaces
// it after a pause, unless its code would repeat; then the lane is cut. References keep the lane
// until its owner, its streams and its alarms have released it.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "transport/streams/stream_lane_inner.h"

enum { RETRY_MS = 20, MOST_RETRY_MS = 250, CLOSE_MS = 1000, LET_GO_MS = 5000 };

static void open_stream(bel_stream_lane *lane);

// Releases one reference; the last one frees the lane, outside its lock.
static void unlock_and_release(bel_stream_lane *lane)
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

// --- Streams -------------------------------------------------------------------------------------

// Codes with which another stream would end as well.
static bool is_final(bel_code code)
{
    return code == BEL_UNAUTHENTICATED || code == BEL_PERMISSION_DENIED ||
           code == BEL_FAILED_PRECONDITION || code == BEL_UNIMPLEMENTED ||
           code == BEL_INVALID_ARGUMENT || code == BEL_RESOURCE_EXHAUSTED;
}

// An alarm's call, on the endpoint's thread; releases the reference that on_closed took for it.
static void on_retry(void *context, bool due)
{
    bel_stream_lane *lane = context;
    pthread_mutex_lock(&lane->mutex);
    bool wanted = due && !lane->closing && lane->cut_reason[0] == '\0';
    pthread_mutex_unlock(&lane->mutex);
    if (wanted) open_stream(lane);
    pthread_mutex_lock(&lane->mutex);
    unlock_and_release(lane);
}

// A stream is over; on the endpoint's thread. `ours`: the lane has no newer stream, so this one's
// status still counts for the lane.
static void on_closed(void *context, bel_status *status)
{
    bel_attachment *a = context;
    bel_stream_lane *lane = a->lane;
    if (lane == NULL) {
        bel_status_ignore(status); // it never named its lane: no lane waits for it
        bel_attachment_release_locked(a);
        return;
    }
    pthread_mutex_lock(&lane->mutex);
    bool ours = lane->current == a || lane->current == NULL;
    if (lane->current == a) lane->current = NULL;
    bel_code code = bel_status_code(status);
    if (ours && is_final(code) && lane->cut_reason[0] == '\0' && !lane->closing) {
        lane->is_faulty = true;
    }
    if (ours && is_final(code)) bel_stream_lane_cut_locked(lane, bel_status_message(status));
    bool again = ours && lane->address != NULL && !lane->closing && lane->cut_reason[0] == '\0';
    if (again) {
        lane->references++;
        int64_t pause_ms = bel_backoff_next(&lane->backoff) / 1000000;
        bel_endpoint_after(lane->endpoint, pause_ms, on_retry, lane);
    }
    a->over = true;
    bel_attachment_release_locked(a);
    pthread_cond_broadcast(&lane->cond);
    unlock_and_release(lane);
    bel_status_ignore(status); // kept as the reason if relevant
}

static bel_stream_events events_of(bel_attachment *a)
{
    return (bel_stream_events){.context = a,
                               .received = bel_stream_lane_received,
                               .fill = bel_stream_lane_fill,
                               .closed = on_closed};
}

// Runs on the connecting thread, and later on the endpoint's. The stream may end, and the lane may
// be closed, before bel_stream_open returns, so both are checked afterwards under the lock.
static void open_stream(bel_stream_lane *lane)
{
    bel_attachment *a = bel_xcalloc(1, sizeof *a);
    a->lane = lane;
    a->references = 2; // for the events and this function
    pthread_mutex_lock(&lane->mutex);
    lane->references++;
    lane->streams++;
    pthread_mutex_unlock(&lane->mutex);
    bel_stream_events events = events_of(a);
    bel_stream *stream =
        bel_stream_open(lane->endpoint, lane->address, BEL_STREAM_LANE_PATH, &events);
    pthread_mutex_lock(&lane->mutex);
    a->stream = stream;
    bool alive = stream != NULL && !a->over;
    bool late = alive && lane->closed; // closed meanwhile: the data of its frames may be gone
    if (stream == NULL) {              // no event will come
        a->references--;
        lane->references--;
    }
    if (late) bel_stream_retain(stream);
    if (alive && !late) {
        lane->current = a;
        lane->greeted = lane->answered = false;
    }
    bel_attachment_release_locked(a);
    pthread_mutex_unlock(&lane->mutex);
    if (late) {
        bel_stream_end(stream, BEL_CANCELLED, "closed");
        bel_stream_release(stream);
    } else if (alive) {
        bel_stream_lane_kick(lane);
    }
}

bel_status *bel_stream_lane_accept(bel_stream *stream, bel_lane_find *find, void *context,
                                   bel_stream_events *out_events)
{
    bel_attachment *a = bel_xcalloc(1, sizeof *a);
    a->references = 1;
    a->stream = stream;
    a->find = find;
    a->find_context = context;
    bel_stream_retain(stream);
    *out_events = events_of(a);
    return NULL;
}

// --- The lane ------------------------------------------------------------------------------------

// The ring holds frames acked + 1 to sent, each at its number modulo capacity. The kick is outside
// the lock, which fill takes. A message costs its two ends tens of microseconds, so small frames
// wait for the frame that follows them.
static bel_status *stream_lane_send(bel_lane *base, const bel_frame *frame)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bool cut = lane->closing || lane->cut_reason[0] != '\0';
    bool full = lane->sent - lane->acked >= lane->config.capacity;
    if (!cut && !full) lane->ring[++lane->sent % lane->config.capacity] = *frame;
    bel_status *status = NULL;
    if (cut) status = bel_lane_cut_error(lane->cut_reason);
    pthread_mutex_unlock(&lane->mutex);
    if (cut) return status;
    if (full) return bel_lane_full_error();
    bool waits = (lane->config.joined >> frame->kind & 1u) != 0;
    if (!waits || frame->payload_bytes > BEL_STREAM_LANE_JOINED_BYTES) bel_stream_lane_kick(lane);
    return NULL;
}

static void stream_lane_flush(bel_lane *base)
{
    bel_stream_lane_kick((bel_stream_lane *)base);
}

// When half of the lane's capacity is taken but not acknowledged, this end acknowledges it at once:
// the peer's ring may be nearly full, and no frame may be going back.
static bool stream_lane_receive(bel_lane *base, bel_frame *out_frame)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    if (!bel_frame_queue_take(lane->in, out_frame)) return false;
    pthread_mutex_lock(&lane->mutex);
    uint64_t untold = bel_frame_queue_taken(lane->in) - lane->taken_said;
    pthread_mutex_unlock(&lane->mutex);
    if (untold * 2 >= lane->config.capacity)
        bel_stream_lane_kick(lane); // usually the next frame back acknowledges
    return true;
}

static bel_frame_queue *stream_lane_incoming(const bel_lane *base)
{
    return ((const bel_stream_lane *)base)->in;
}

static bel_status *stream_lane_fault(bel_lane *base)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    bel_status *status = lane->is_faulty ? BEL_ERR(BEL_INTERNAL, "%s", lane->cut_reason) : NULL;
    pthread_mutex_unlock(&lane->mutex);
    return status;
}

// All sent data goes out first; the peer then ends the stream. If it does not, the stream is
// cancelled, and the endpoint releases the data that the peer has not read.
static void stream_lane_close(bel_lane *base)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    int64_t deadline = bel_clock_ns() + CLOSE_MS * (int64_t)1000000;
    pthread_mutex_lock(&lane->mutex);
    lane->closing = true;
    bel_frame_queue_close(lane->in, true);
    pthread_mutex_unlock(&lane->mutex);
    bel_stream_lane_kick(lane);
    pthread_mutex_lock(&lane->mutex);
    bool in_time = true;
    while (in_time && lane->current != NULL)
        in_time = bel_cond_wait_until(&lane->cond, &lane->mutex, deadline);
    bel_stream *stream = lane->current != NULL ? lane->current->stream : NULL;
    if (stream != NULL) bel_stream_retain(stream);
    lane->current = NULL; // late events find no data of this lane
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

static const bel_lane_ops stream_lane_ops = {
    .shares_memory = false,
    .send = stream_lane_send,
    .flush = stream_lane_flush,
    .receive = stream_lane_receive,
    .incoming = stream_lane_incoming,
    .fault = stream_lane_fault,
    .close = stream_lane_close,
};

bel_lane *bel_stream_lane_create(bel_endpoint *endpoint, const bel_stream_lane_config *config)
{
    bel_stream_lane *lane = bel_xcalloc(1, sizeof *lane);
    lane->lane.ops = &stream_lane_ops;
    lane->endpoint = endpoint;
    lane->config = *config;
    lane->references = 1;
    lane->cursor = 1;
    lane->backoff = (bel_backoff){.least_ns = RETRY_MS * INT64_C(1000000),
                                  .most_ns = MOST_RETRY_MS * INT64_C(1000000)};
    lane->ring = bel_xcalloc(config->capacity, sizeof *lane->ring);
    lane->spans = bel_spans_create();
    lane->in = bel_frame_queue_create(config->capacity, config->bell);
    pthread_mutex_init(&lane->mutex, NULL);
    bel_cond_init(&lane->cond);
    return &lane->lane;
}

bel_lane *bel_stream_lane_connect(bel_endpoint *endpoint, const char *address,
                                  const bel_lane_hello *hello, const bel_stream_lane_config *config)
{
    bel_lane *base = bel_stream_lane_create(endpoint, config);
    bel_stream_lane *lane = (bel_stream_lane *)base;
    lane->address = bel_xstrdup(address);
    lane->hello = *hello;
    lane->generation = hello->generation;
    open_stream(lane);
    return base;
}

uint64_t bel_stream_lane_streams(bel_lane *base)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    pthread_mutex_lock(&lane->mutex);
    uint64_t streams = lane->streams;
    pthread_mutex_unlock(&lane->mutex);
    return streams;
}

bel_spans *bel_stream_lane_spans(bel_lane *base)
{
    bel_stream_lane *lane = (bel_stream_lane *)base;
    bel_spans_retain(lane->spans);
    return lane->spans;
}

const char *bel_stream_lane_cut_reason(const bel_lane *base)
{
    return ((const bel_stream_lane *)base)->cut_reason;
}
