// Two ring queues with a mutex each. The disturbances of BEL_FAULT=lane:… happen where frames are
// taken: a frame may be passed over for some polls, taken out of order, or taken again later.
#include "transport/inproc/inproc.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/rng.h"

typedef struct queue {
    pthread_mutex_t mutex;
    bel_frame *frames; // a ring of `capacity`
    size_t capacity, head, count;
    bel_doorbell *bell; // of the receiver
    bool closed;        // by either end: nothing more can be sent
    bel_frame repeated; // a frame that will come a second time
    bool has_repeated;
    uint64_t polls;
} queue;

typedef struct channel {
    queue queues[2]; // queues[i] leads to end i
    pthread_mutex_t mutex;
    int open_ends;
} channel;

typedef struct inproc_end {
    bel_lane lane; // first: a bel_lane * is an inproc_end *
    channel *channel;
    int index;
} inproc_end;

static inproc_end *end_of(bel_lane *lane)
{
    return (inproc_end *)lane;
}

static bel_status *inproc_send(bel_lane *lane, const bel_frame *frame)
{
    inproc_end *end = end_of(lane);
    queue *q = &end->channel->queues[1 - end->index];
    pthread_mutex_lock(&q->mutex);
    bool closed = q->closed, full = q->count == q->capacity;
    if (!closed && !full) q->frames[(q->head + q->count++) % q->capacity] = *frame;
    if (!closed && !full && q->bell != NULL) bel_doorbell_ring(q->bell);
    pthread_mutex_unlock(&q->mutex);
    if (closed) return BEL_ERR(BEL_UNAVAILABLE, "the lane is cut: its other end has closed");
    if (full) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "the lane is full: the other end takes no frames");
    }
    return NULL;
}

static bel_frame take_at(queue *q, size_t offset)
{
    bel_frame frame = q->frames[(q->head + offset) % q->capacity];
    for (size_t i = offset; i > 0; i--) // close the gap towards the head
        q->frames[(q->head + i) % q->capacity] = q->frames[(q->head + i - 1) % q->capacity];
    q->head = (q->head + 1) % q->capacity;
    q->count--;
    return frame;
}

static bool take_disturbed(queue *q, bel_frame *out_frame)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{1, 2}}, 0, q->polls++, words);
    if (bel_fault_is(BEL_FAULT_LANE_DELAY) && words[0] % 4 == 0) return false;
    if (bel_fault_is(BEL_FAULT_LANE_REPEAT) && q->has_repeated && words[1] % 2 == 0) {
        *out_frame = q->repeated;
        q->has_repeated = false;
        return true;
    }
    if (q->count == 0) return false;
    size_t offset = bel_fault_is(BEL_FAULT_LANE_REORDER) ? words[2] % q->count : 0;
    *out_frame = take_at(q, offset);
    if (bel_fault_is(BEL_FAULT_LANE_REPEAT) && !q->has_repeated) {
        q->repeated = *out_frame;
        q->has_repeated = true;
    }
    return true;
}

static bool is_disturbed(void)
{
    return bel_fault_is(BEL_FAULT_LANE_DELAY) || bel_fault_is(BEL_FAULT_LANE_REPEAT) ||
           bel_fault_is(BEL_FAULT_LANE_REORDER);
}

static bool inproc_receive(bel_lane *lane, bel_frame *out_frame)
{
    inproc_end *end = end_of(lane);
    queue *q = &end->channel->queues[end->index];
    pthread_mutex_lock(&q->mutex);
    bool got;
    if (is_disturbed()) {
        got = take_disturbed(q, out_frame);
    } else {
        got = q->count > 0;
        if (got) *out_frame = take_at(q, 0);
    }
    pthread_mutex_unlock(&q->mutex);
    return got;
}

static bool inproc_is_cut(const bel_lane *lane)
{
    const inproc_end *end = (const inproc_end *)lane;
    queue *q = &end->channel->queues[end->index];
    pthread_mutex_lock(&q->mutex);
    bool cut = q->closed && q->count == 0;
    pthread_mutex_unlock(&q->mutex);
    return cut;
}

static void destroy_channel(channel *ch)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_destroy(&ch->queues[i].mutex);
        bel_free(ch->queues[i].frames);
    }
    pthread_mutex_destroy(&ch->mutex);
    bel_free(ch);
}

static void inproc_close(bel_lane *lane)
{
    inproc_end *end = end_of(lane);
    channel *ch = end->channel;
    for (int i = 0; i < 2; i++) {
        queue *q = &ch->queues[i];
        pthread_mutex_lock(&q->mutex);
        q->closed = true;
        if (i == end->index) q->bell = NULL; // this end's doorbell may go now
        if (q->bell != NULL) bel_doorbell_ring(q->bell);
        pthread_mutex_unlock(&q->mutex);
    }
    pthread_mutex_lock(&ch->mutex);
    int left = --ch->open_ends;
    pthread_mutex_unlock(&ch->mutex);
    bel_free(end);
    if (left == 0) destroy_channel(ch);
}

static const bel_lane_ops inproc_ops = {
    .name = "inproc",
    .send = inproc_send,
    .receive = inproc_receive,
    .is_cut = inproc_is_cut,
    .close = inproc_close,
};

void bel_inproc_lane_create(size_t capacity, bel_doorbell *a_bell, bel_doorbell *b_bell,
                            bel_lane **out_a, bel_lane **out_b)
{
    channel *ch = bel_xcalloc(1, sizeof *ch);
    pthread_mutex_init(&ch->mutex, NULL);
    ch->open_ends = 2;
    bel_lane **outs[2] = {out_a, out_b};
    bel_doorbell *bells[2] = {a_bell, b_bell};
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&ch->queues[i].mutex, NULL);
        ch->queues[i].capacity = capacity;
        ch->queues[i].frames = bel_xcalloc(capacity, sizeof(bel_frame));
        ch->queues[i].bell = bells[i];
        inproc_end *end = bel_xcalloc(1, sizeof *end);
        *end = (inproc_end){.lane = {.ops = &inproc_ops}, .channel = ch, .index = i};
        *outs[i] = &end->lane;
    }
}
