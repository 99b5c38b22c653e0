// Lanes on streams: frames between two processes, on one stream of an endpoint each.
//
// Frames are numbered each way. An end keeps its sent frames until the other end acknowledges them.
// When the stream breaks, the client end opens another, both ends report the frames that they have
// received completely, and continue from there. So a frame arrives once, whatever happens to
// streams, and a span may be changed as soon as its frame was answered. bel_lane_close returns when
// the endpoint no longer reads any span, so that their memory may be freed; it waits for that at
// most 5 s.
#ifndef BELFRY_TRANSPORT_STREAMS_STREAM_LANE_H
#define BELFRY_TRANSPORT_STREAMS_STREAM_LANE_H

#include "transport/lane.h"
#include "transport/streams/endpoint.h"

#define BEL_STREAM_LANE_PATH "/belfry/lane"

// Frames of the kinds in `joined` wait for the next one if their payloads are no larger. A larger
// one is on its way while the next frame is made.
enum { BEL_STREAM_LANE_JOINED_BYTES = 16384 };

typedef struct bel_stream_lane_config {
    size_t capacity;    // maximum number of frames under way in each direction
    bel_doorbell *bell; // rung when a frame arrives or the lane is cut; NULL: no bell
    uint32_t quiet;     // bit set of kinds that do not ring: frames that other frames announce
    bel_frame_place *place;
    void *place_context;
    // Bit set of kinds, without payloads, that are also given to `at_once` on the lane's thread as
    // soon as they arrive. It may send on the lane. 0: none.
    uint32_t urgent;
    void (*at_once)(void *place_context, const bel_frame *frame);
    // Bit set of kinds after which this end always sends a frame of another kind, or flushes: up to
    // BEL_STREAM_LANE_JOINED_BYTES they wait for that, and go out in one message. 0: none wait.
    uint32_t joined;
} bel_stream_lane_config;

// Creates the end that opens streams. It retries the address until the lane is closed or the other
// end refuses it for good (FAILED_PRECONDITION, UNAUTHENTICATED, PERMISSION_DENIED).
bel_lane *bel_stream_lane_connect(bel_endpoint *endpoint, const char *address,
                                  const bel_lane_hello *hello,
                                  const bel_stream_lane_config *config);

// Creates the end that waits for streams, which bel_stream_lane_accept assigns to it.
bel_lane *bel_stream_lane_create(bel_endpoint *endpoint, const bel_stream_lane_config *config);

// For bel_endpoint_config.accept at BEL_STREAM_LANE_PATH: reads the hello, which is the first frame
// of a stream, and calls `find` for the lane that was created for it.
bel_status *bel_stream_lane_accept(bel_stream *stream, bel_lane_find *find, void *context,
                                   bel_stream_events *out_events) BEL_MUST_USE;

// Returns the number of its streams so far; 1 if none broke.
uint64_t bel_stream_lane_streams(bel_lane *lane);

// Returns its payloads to which its streams refer, for tests. The caller releases them.
bel_spans *bel_stream_lane_spans(bel_lane *lane);

// Returns the reason of a cut; only after bel_lane_is_cut has returned true.
const char *bel_stream_lane_cut_reason(const bel_lane *lane);

#endif
