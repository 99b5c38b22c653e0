// The inside of a gRPC lane, for grpc_lane.c (streams and the lane's life), grpc_lane_write.c (what
// goes out) and grpc_lane_read.c (what comes in).
//
// A lane outlives its streams. Each stream has an attachment: the parser of what comes in, and the
// lane it belongs to (a server's stream learns that from its first frame). The lane's mutex guards
// the numbers; spans are written where `place` says, without a lock, on the endpoint's thread.
//
//   sent ring    acked < … ≤ sent: frames not yet taken by the peer, at most `capacity`
//   cursor       the next frame to write on the current stream, and how much of its payload is out
//   received     frames that have come whole; taken: those that the receiver has asked for
#ifndef BELFRY_TRANSPORT_GRPC_GRPC_LANE_INNER_H
#define BELFRY_TRANSPORT_GRPC_GRPC_LANE_INNER_H

#include <pthread.h>

#include "transport/grpc/grpc_lane.h"
#include "transport/queue.h"
#include "wire/frame.h"

// The lane's own kinds stand behind those of its users. A hello's fields are what and which the
// opening end is (i32, i32) and how many frames it has received (u64); the others have none.
enum { BEL_GRPC_HELLO = BEL_FRAME_LAST_KIND + 1, BEL_GRPC_TAKEN, BEL_GRPC_CLOSE };
_Static_assert((int)BEL_FRAME_FIELD_BYTES == (int)BEL_WIRE_FIELD_BYTES,
               "fields travel as they are");
enum { BEL_GRPC_REASON_TEXT = 256 };

typedef struct bel_grpc_lane bel_grpc_lane;

typedef struct bel_grpc_attachment {
    bel_grpc_lane *lane; // NULL: a server's stream that has not yet said which
    bel_stream *stream;
    int references; // guarded by the lane's mutex once there is a lane
    bool over;
    bel_lane_find *find; // of a server's stream
    void *find_context;
    // The parser, on the endpoint's thread alone.
    uint8_t header[BEL_WIRE_FRAME_BYTES];
    size_t header_bytes; // that are here; all: the payload follows
    bel_frame frame;     // in work
    uint8_t *payload;    // where the lane's owner wants it
    size_t payload_done; // bytes of it that are there
    uint64_t polls;      // for BELFRY_FAULT=lane:break
} bel_grpc_attachment;

struct bel_grpc_lane {
    bel_lane lane; // first: a bel_lane * is a bel_grpc_lane *
    bel_endpoint *endpoint;
    bel_grpc_lane_config config;
    char *address; // NULL: the end that waits
    bel_lane_hello hello;
    bel_frame_queue *in;
    bel_spans *spans;      // payloads that gRPC refers to, of all its streams
    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    int references;
    bel_grpc_attachment *current;
    bool greeted;         // this stream has carried our hello
    bool answered;        // … and the peer's
    bel_frame *ring;      // by number modulo capacity
    uint64_t sent, acked; // numbers of the last frame that was sent, and that the peer has taken
    uint64_t cursor;      // of the next one to write on this stream
    size_t cursor_done;   // payload bytes of the cursor's frame that are out
    uint64_t received;    // frames that have come whole, over all streams
    uint64_t taken_said;  // how many taken frames the peer was told of
    bool closing, close_sent;
    bool is_faulty;      // it is cut because of what came, not because its other end has gone
    uint32_t generation; // that the hello of the end that connects names, as all of its frames do
    bool closed;         // the owner is done: nothing that comes is placed any more
    char cut_reason[BEL_GRPC_REASON_TEXT];
    uint64_t streams; // opened so far
};

// grpc_lane_write.c
void bel_grpc_release_attachment_locked(bel_grpc_attachment *a);
void bel_grpc_cut_locked(bel_grpc_lane *lane,
                         const char *reason); // for good; the first reason stays
void bel_grpc_kick(bel_grpc_lane *lane);      // the current stream asks what to send
void bel_grpc_fill(void *attachment, bel_stream_message *message);

// grpc_lane_read.c
bel_status *bel_grpc_received(void *attachment, const uint8_t *bytes, size_t count) BEL_MUST_USE;

#endif
