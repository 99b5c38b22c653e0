// Dispatch to a lane's implementation, and the doorbell.
#include "transport/lane.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/thread.h"

struct bel_doorbell {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    uint64_t rung;
    uint64_t seen;
};

bel_doorbell *bel_doorbell_create(void)
{
    bel_doorbell *doorbell = bel_xcalloc(1, sizeof *doorbell);
    pthread_mutex_init(&doorbell->mutex, NULL);
    bel_cond_init(&doorbell->cond);
    return doorbell;
}

void bel_doorbell_destroy(bel_doorbell *doorbell)
{
    if (doorbell == NULL) return;
    pthread_cond_destroy(&doorbell->cond);
    pthread_mutex_destroy(&doorbell->mutex);
    bel_free(doorbell);
}

void bel_doorbell_ring(bel_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    doorbell->rung++;
    pthread_cond_broadcast(&doorbell->cond);
    pthread_mutex_unlock(&doorbell->mutex);
}

bool bel_doorbell_wait(bel_doorbell *doorbell, int64_t deadline_ns)
{
    pthread_mutex_lock(&doorbell->mutex);
    bool in_time = true;
    while (doorbell->rung == doorbell->seen && in_time)
        in_time = bel_cond_wait_until(&doorbell->cond, &doorbell->mutex, deadline_ns);
    bool was_rung = doorbell->rung != doorbell->seen;
    doorbell->seen = doorbell->rung;
    pthread_mutex_unlock(&doorbell->mutex);
    return was_rung;
}

uint64_t bel_doorbell_count(bel_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    uint64_t rung = doorbell->rung;
    pthread_mutex_unlock(&doorbell->mutex);
    return rung;
}

bel_status *bel_lane_send(bel_lane *lane, const bel_frame *frame)
{
    return lane->ops->send(lane, frame);
}

bool bel_lane_receive(bel_lane *lane, bel_frame *out_frame)
{
    return lane->ops->receive(lane, out_frame);
}

bool bel_lane_is_cut(const bel_lane *lane)
{
    return lane->ops->is_cut(lane);
}

void bel_lane_close(bel_lane *lane)
{
    if (lane != NULL) lane->ops->close(lane);
}

bel_status *bel_lane_full_error(void)
{
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "the lane is full: the other end takes no frames");
}

bel_status *bel_lane_cut_error(const char *why)
{
    return BEL_ERR(BEL_UNAVAILABLE, "the lane is cut: %s", why);
}
