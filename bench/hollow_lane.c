#include "hollow_lane.h"

static bel_status *counted_send(bel_lane *lane, const bel_frame *frame)
{
    counted_lane *c = (counted_lane *)lane;
    c->sent++;
    c->sent_bytes += (int64_t)frame->payload_bytes;
    return bel_lane_send(c->inner, frame);
}

static void counted_flush(bel_lane *lane)
{
    bel_lane_flush(((counted_lane *)lane)->inner);
}

static bool counted_receive(bel_lane *lane, bel_frame *out_frame)
{
    counted_lane *c = (counted_lane *)lane;
    if (!bel_lane_receive(c->inner, out_frame)) return false;
    c->received++;
    c->received_bytes += (int64_t)out_frame->payload_bytes;
    return true;
}

static struct bel_frame_queue *counted_incoming(const bel_lane *lane)
{
    const counted_lane *c = (const counted_lane *)lane;
    return c->inner->ops->incoming(c->inner);
}

static bel_status *counted_fault(bel_lane *lane)
{
    return bel_lane_fault(((counted_lane *)lane)->inner);
}

static void counted_close(bel_lane *lane)
{
    bel_lane_close(((counted_lane *)lane)->inner);
}

void counted_lane_init(counted_lane *lane, bel_lane *inner)
{
    *lane = (counted_lane){.inner = inner};
    lane->ops = (bel_lane_ops){.shares_memory = inner->ops->shares_memory,
                               .maps_memory = inner->ops->maps_memory,
                               .send = counted_send,
                               .flush = counted_flush,
                               .receive = counted_receive,
                               .incoming = counted_incoming,
                               .fault = counted_fault,
                               .close = counted_close};
    lane->base.ops = &lane->ops;
}
