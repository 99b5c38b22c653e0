// A ring with a mutex. Faults are injected when frames are taken: a frame may be skipped for some
// polls, taken out of order, or taken again later; none is dropped. They depend on the number of
// the poll, not on a clock. The bell is rung under the mutex. So after a silent close, which clears
// the bell under it, no thread rings it any more, and it may be destroyed.
#include "transport/queue.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/rng.h"

struct bel_frame_queue {
    pthread_mutex_t mutex;
    bel_frame *frames; // a ring of `capacity`
    size_t capacity, head;
    atomic_size_t count; // changed under the mutex
    bel_doorbell *bell;
    bool closed;
    bel_frame repeated; // a frame that will be repeated
    atomic_bool has_repeated;
    uint64_t polls, taken; // polls: number of calls of take_disturbed, the seed of its faults
};

bel_frame_queue *bel_frame_queue_create(size_t capacity, bel_doorbell *bell)
{
    bel_frame_queue *queue = bel_xcalloc(1, sizeof *queue);
    pthread_mutex_init(&queue->mutex, NULL);
    queue->frames = bel_xcalloc(capacity, sizeof *queue->frames);
    queue->capacity = capacity;
    queue->bell = bell;
    return queue;
}

void bel_frame_queue_destroy(bel_frame_queue *queue)
{
    if (queue == NULL) return;
    pthread_mutex_destroy(&queue->mutex);
    bel_free(queue->frames);
    bel_free(queue);
}

bel_frame_put bel_frame_queue_put(bel_frame_queue *queue, const bel_frame *frame, bool ring)
{
    pthread_mutex_lock(&queue->mutex);
    bel_frame_put result = BEL_PUT_DONE;
    if (queue->closed) {
        result = BEL_PUT_CLOSED;
    } else if (queue->count == queue->capacity) {
        result = BEL_PUT_FULL;
    } else {
        queue->frames[(queue->head + queue->count) % queue->capacity] = *frame;
        queue->count++;
        if (ring && queue->bell != NULL) bel_doorbell_ring(queue->bell);
    }
    pthread_mutex_unlock(&queue->mutex);
    return result;
}

// Takes the frame `offset` places after the head; those before it keep their order.
static bel_frame take_at(bel_frame_queue *queue, size_t offset)
{
    bel_frame frame = queue->frames[(queue->head + offset) % queue->capacity];
    for (size_t i = offset; i > 0; i--) { // close the gap towards the head
        queue->frames[(queue->head + i) % queue->capacity] =
            queue->frames[(queue->head + i - 1) % queue->capacity];
    }
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    queue->taken++;
    return frame;
}

// Takes with injected faults. A repeated frame needs no frame in the queue: a copy was kept.
static bool take_disturbed(bel_frame_queue *queue, bel_frame *out_frame)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{1, 2}}, 0, queue->polls++, words);
    if (bel_fault_is(BEL_FAULT_LANE_DELAY) && words[0] % 4 == 0) {
        // A receiver without a frame sleeps until the bell: ring it for skipped frames.
        if (queue->count > 0 && queue->bell != NULL) bel_doorbell_ring(queue->bell);
        return false;
    }
    if (bel_fault_is(BEL_FAULT_LANE_REPEAT) && queue->has_repeated && words[1] % 2 == 0) {
        *out_frame = queue->repeated;
        queue->has_repeated = false;
        return true;
    }
    if (queue->count == 0) return false;
    size_t offset = bel_fault_is(BEL_FAULT_LANE_REORDER) ? words[2] % queue->count : 0;
    *out_frame = take_at(queue, offset);
    if (bel_fault_is(BEL_FAULT_LANE_REPEAT) && !queue->has_repeated) {
        queue->repeated = *out_frame;
        queue->has_repeated = true;
    }
    return true;
}

// Without a fault, taking draws no random numbers.
static bool is_disturbed(void)
{
    return bel_fault_is(BEL_FAULT_LANE_DELAY) || bel_fault_is(BEL_FAULT_LANE_REPEAT) ||
           bel_fault_is(BEL_FAULT_LANE_REORDER);
}

// A shard looks at all its lanes when one has rung, so an empty queue costs no lock. A frame that
// is put meanwhile rings the bell after this look.
bool bel_frame_queue_take(bel_frame_queue *queue, bel_frame *out_frame)
{
    if (atomic_load(&queue->count) == 0 && !atomic_load(&queue->has_repeated)) return false;
    pthread_mutex_lock(&queue->mutex);
    bool got;
    if (is_disturbed()) {
        got = take_disturbed(queue, out_frame);
    } else {
        got = queue->count > 0;
        if (got) *out_frame = take_at(queue, 0);
    }
    pthread_mutex_unlock(&queue->mutex);
    return got;
}

void bel_frame_queue_close(bel_frame_queue *queue, bool silent)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    if (silent) queue->bell = NULL;
    if (queue->bell != NULL) bel_doorbell_ring(queue->bell);
    pthread_mutex_unlock(&queue->mutex);
}

bool bel_frame_queue_is_closed(bel_frame_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->mutex);
    return closed;
}

bool bel_frame_queue_is_over(bel_frame_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    bool over = queue->closed && queue->count == 0;
    pthread_mutex_unlock(&queue->mutex);
    return over;
}

uint64_t bel_frame_queue_taken(bel_frame_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    uint64_t taken = queue->taken;
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}
