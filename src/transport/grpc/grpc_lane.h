// Lanes over gRPC: frames between two processes, on one stream of an endpoint each.
//
// Frames are numbered each way. An end keeps what it has sent until the other end says that it was
// taken; when the stream breaks, the client end opens another, both say what they have received
// whole, and go on from there. So a frame arrives once, whatever happens to streams, and a span may
// be changed as soon as its frame was answered. bel_lane_close returns when gRPC reads no span any
// more, so that their memory may go; it waits for that, but no longer than 5 s.
#ifndef BELFRY_TRANSPORT_GRPC_GRPC_LANE_H
#define BELFRY_TRANSPORT_GRPC_GRPC_LANE_H

#include "transport/grpc/endpoint.h"
#include "transport/lane.h"

#define BEL_GRPC_LANE_PATH "/belfry/lane"

typedef struct bel_grpc_lane_config {
    size_t capacity;    // frames that may be under way in each direction
    bel_doorbell *bell; // rung when a frame arrives or the lane is cut; NULL: nobody waits
    uint32_t quiet;     // bit set of kinds that do not ring: frames that others announce
    bel_frame_place *place;
    void *place_context;
} bel_grpc_lane_config;

// The end that opens streams. The address is asked again and again until the lane is closed or the
// other end refuses it for good (FAILED_PRECONDITION, UNAUTHENTICATED, PERMISSION_DENIED).
bel_lane *bel_grpc_lane_connect(bel_endpoint *endpoint, const char *address,
                                const bel_lane_hello *hello, const bel_grpc_lane_config *config);

// The end that waits for streams; bel_grpc_lane_accept brings them to it.
bel_lane *bel_grpc_lane_create(bel_endpoint *endpoint, const bel_grpc_lane_config *config);

// For bel_endpoint_config.accept at BEL_GRPC_LANE_PATH: reads the hello, which is the first frame
// of a stream, and asks `find` for the lane that was created for it.
bel_status *bel_grpc_lane_accept(bel_stream *stream, bel_lane_find *find, void *context,
                                 bel_stream_events *out_events) BEL_MUST_USE;

// How many streams it has had; 1 when nothing ever broke.
uint64_t bel_grpc_lane_streams(bel_lane *lane);

// Its payloads that gRPC refers to, for tests. The caller releases them.
bel_spans *bel_grpc_lane_spans(bel_lane *lane);

// Why the lane was cut; only once bel_lane_is_cut says so.
const char *bel_grpc_lane_cut_reason(const bel_lane *lane);

#endif
