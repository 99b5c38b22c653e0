// Two queues, one each way. Spans are passed as pointers, so their memory must stay until the
// receiver has finished with it. Closing an end closes both queues: this end's silently, as its
// doorbell may be destroyed, the other with a ring. The peer still takes earlier frames and then
// sees the cut. The end that closes last frees the memory; the count of ends has a mutex since they
// close on two threads.
#include "transport/inproc/inproc.h"

#include <pthread.h>

#include "base/alloc.h"
#include "transport/queue.h"

typedef struct channel {
    bel_frame_queue *queues[2]; // queues[i] leads to end i
    pthread_mutex_t mutex;
    int open_ends;
} channel;

typedef struct inproc_end {
    bel_lane lane; // first: a bel_lane * is an inproc_end *
    channel *channel;
    int index;
} inproc_end;

static bel_status *inproc_send(bel_lane *lane, const bel_frame *frame)
{
    const inproc_end *end = (const inproc_end *)lane;
    switch (bel_frame_queue_put(end->channel->queues[1 - end->index], frame, true)) {
    case BEL_PUT_DONE: return NULL;
    case BEL_PUT_FULL: return bel_lane_full_error();
    case BEL_PUT_CLOSED: break;
    }
    return bel_lane_cut_error("its other end has closed");
}

static bool inproc_receive(bel_lane *lane, bel_frame *out_frame)
{
    const inproc_end *end = (const inproc_end *)lane;
    return bel_frame_queue_take(end->channel->queues[end->index], out_frame);
}

static bel_frame_queue *inproc_incoming(const bel_lane *lane)
{
    const inproc_end *end = (const inproc_end *)lane;
    return end->channel->queues[end->index];
}

// The other end can still take earlier frames; the last close frees both queues.
static void inproc_close(bel_lane *lane)
{
    inproc_end *end = (inproc_end *)lane;
    channel *ch = end->channel;
    for (int i = 0; i < 2; i++) // this end's doorbell may be destroyed now
        bel_frame_queue_close(ch->queues[i], i == end->index);
    pthread_mutex_lock(&ch->mutex);
    int left = --ch->open_ends;
    pthread_mutex_unlock(&ch->mutex);
    bel_free(end);
    if (left > 0) return;
    for (int i = 0; i < 2; i++)
        bel_frame_queue_destroy(ch->queues[i]);
    pthread_mutex_destroy(&ch->mutex);
    bel_free(ch);
}

static const bel_lane_ops inproc_ops = {
    .shares_memory = true,
    .send = inproc_send,
    .receive = inproc_receive,
    .incoming = inproc_incoming,
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
        ch->queues[i] = bel_frame_queue_create(capacity, bells[i]);
        inproc_end *end = bel_xcalloc(1, sizeof *end);
        *end = (inproc_end){.lane = {.ops = &inproc_ops}, .channel = ch, .index = i};
        *outs[i] = &end->lane;
    }
}
