// Dispatch to a lane's implementation.
#include "transport/lane.h"

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

bel_status *bel_lane_fault(bel_lane *lane)
{
    return lane != NULL && lane->ops->fault != NULL ? lane->ops->fault(lane) : NULL;
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
