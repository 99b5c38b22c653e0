// Dispatch to a lane's implementation, and the common parts: the errors of sending, and closing
// many ends in parallel. Each end is closed on a separate thread, since one whose peer's host is
// gone takes seconds; without a thread it is closed in its turn. The errors are created here so
// that the texts for full and cut lanes are the same in all implementations.
#include "transport/lane.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "transport/queue.h"

bel_status *bel_lane_send(bel_lane *lane, const bel_frame *frame)
{
    return lane->ops->send(lane, frame);
}

void bel_lane_flush(bel_lane *lane)
{
    if (lane->ops->flush != NULL) lane->ops->flush(lane);
}

bool bel_lane_receive(bel_lane *lane, bel_frame *out_frame)
{
    return lane->ops->receive(lane, out_frame);
}

bool bel_lane_is_closed(const bel_lane *lane)
{
    return bel_frame_queue_is_closed(lane->ops->incoming(lane));
}

bool bel_lane_is_cut(const bel_lane *lane)
{
    return bel_frame_queue_is_over(lane->ops->incoming(lane));
}

bel_status *bel_lane_fault(bel_lane *lane)
{
    return lane != NULL && lane->ops->fault != NULL ? lane->ops->fault(lane) : NULL;
}

void bel_lane_close(bel_lane *lane)
{
    if (lane != NULL) lane->ops->close(lane);
}

// Thread of one closing end: bel_lane_close_all joins it.
static void *closer_main(void *argument)
{
    bel_lane_close(argument);
    return NULL;
}

void bel_lane_close_all(bel_lane **lanes, int count)
{
    if (lanes == NULL || count == 0) return;
    pthread_t *closers = bel_xcalloc((size_t)count, sizeof *closers);
    bool *runs = bel_xcalloc((size_t)count, sizeof *runs);
    for (int i = 0; i < count; i++) {
        if (lanes[i] == NULL) continue;
        bel_status *status = bel_thread_start(&closers[i], closer_main, lanes[i]);
        runs[i] = status == NULL;
        if (status != NULL) bel_lane_close(lanes[i]);
        bel_status_ignore(status); // without a thread they are closed one after the other
    }
    for (int i = 0; i < count; i++) {
        if (runs[i]) pthread_join(closers[i], NULL);
        lanes[i] = NULL; // frames that arrive until a lane is closed may be answered on it
    }
    bel_free(closers);
    bel_free(runs);
}

bel_status *bel_lane_full_error(void)
{
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "the lane is full: the other end takes no frames");
}

bel_status *bel_lane_cut_error(const char *why)
{
    return BEL_ERR(BEL_UNAVAILABLE, "the lane is cut: %s", why);
}
