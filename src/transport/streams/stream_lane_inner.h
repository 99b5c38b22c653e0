// Inside view of a lane on streams, for stream_lane.c (streams and the lane's life),
// stream_lane_write.c (output) and stream_lane_read.c (input).
//
// A lane outlives its streams. Each stream has an attachment: the parser of its input, and its lane
// (a server's stream learns that from its first frame). The lane's mutex guards the numbers. Spans
// are written where `place` says, without a lock, on the endpoint's thread.
//
//   sent ring    acked < … ≤ sent: frames not yet taken by the peer, at most `capacity`
//   cursor       the next frame to write on the current stream, and the written part of its payload
//   received     frames that arrived completely; taken: frames that the receiver has taken
#ifndef BELFRY_TRANSPORT_STREAMS_STREAM_LANE_INNER_H
#define BELFRY_TRANSPORT_STREAMS_STREAM_LANE_INNER_H

#include <pthread.h>

#include "base/backoff.h"
#include "transport/queue.h"
#include "transport/streams/stream_lane.h"
#include "wire/frame.h"

// The lane's internal kinds, which follow those of its users. A hello's fields are kind and index
// of the opening end (i32, i32) and the number of frames that it has received (u64); the others
// have none.
enum {
    BEL_STREAM_LANE_HELLO = BEL_FRAME_LAST_KIND + 1,
    BEL_STREAM_LANE_TAKEN,
    BEL_STREAM_LANE_CLOSE
};
_Static_assert((int)BEL_FRAME_FIELD_BYTES == (int)BEL_WIRE_FIELD_BYTES,
               "fields travel as they are");
enum { BEL_STREAM_LANE_REASON_TEXT = 256 };

typedef struct bel_stream_lane bel_stream_lane;

typedef struct bel_attachment {
    bel_stream_lane *lane; // NULL: a server's stream before its hello
    bel_stream *stream;
    int references; // guarded by the lane's mutex once there is a lane
    bool over;
    bel_lane_find *find; // a server's stream's
    void *find_context;
    // The parser, only for the endpoint's thread.
    uint8_t header[BEL_WIRE_FRAME_BYTES];
    size_t header_bytes; // received so far; if complete, the payload follows
    bel_frame frame;     // the frame in work
    uint8_t *payload;    // destination, chosen by the lane's owner
    size_t payload_done; // number of its bytes received
    uint64_t polls;      // for BELFRY_FAULT=lane:break
} bel_attachment;

struct bel_stream_lane {
    bel_lane lane; // first: a bel_lane * is a bel_stream_lane *
    bel_endpoint *endpoint;
    bel_stream_lane_config config;
    char *address; // NULL: the waiting end
    bel_lane_hello hello;
    bel_frame_queue *in;
    bel_spans *spans;      // payloads to which streams refer, over all its streams
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    int references;
    bel_attachment *current;
    bool greeted;    // this stream has carried this end's hello
    bool answered;   // … and the peer's
    bel_frame *ring; // by number modulo capacity
    // numbers of the last frame sent, and of the last one that the peer has taken
    uint64_t sent, acked;
    uint64_t cursor;     // number of the next frame to write on this stream
    size_t cursor_done;  // payload bytes of the cursor's frame already written
    uint64_t received;   // frames that arrived completely, over all streams
    uint64_t taken_said; // number of taken frames reported to the peer
    bool closing, close_sent;
    bool is_faulty;      // cut because of its input, not because the other end is gone
    uint32_t generation; // generation in the connecting end's hello, and in all its frames
    bool closed;         // the owner has closed it: no input is placed any more
    char cut_reason[BEL_STREAM_LANE_REASON_TEXT];
    uint64_t streams;    // opened so far
    bel_backoff backoff; // until the peer's hello has come
};

// stream_lane_write.c
void bel_attachment_release_locked(bel_attachment *a);
void bel_stream_lane_cut_locked(bel_stream_lane *lane,
                                const char *reason); // for good; the first reason stays
void bel_stream_lane_kick(bel_stream_lane *lane);    // the current stream calls fill
void bel_stream_lane_fill(void *attachment, bel_stream_message *message);

// stream_lane_read.c
bel_status *bel_stream_lane_received(void *attachment, const uint8_t *bytes,
                                     size_t count) BEL_MUST_USE;

#endif
