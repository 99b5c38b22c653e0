// Inside view for socket_streams.c (life and reading) and socket_write.c (writing): a stream is one
// connection of a unix socket. Bytes travel in frames of a head (bytes that follow, u32; kind, u32)
// and its bytes:
//
//   HELLO   secret's length (u32), secret, path     the first one; from the side that opens
//   OPENED                                          the answer, from the side that accepts
//   DATA    bytes of the stream
//   CLOSE                                           the side that opens has sent all
//   END     code (u32), text                        the last one; from the side that accepts
//   PING, PONG                                      after a silence
#ifndef BELFRY_TRANSPORT_STREAMS_SOCKET_INNER_H
#define BELFRY_TRANSPORT_STREAMS_SOCKET_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/streams/endpoint_inner.h"

enum {
    BEL_SOCKET_HELLO = 1,
    BEL_SOCKET_OPENED,
    BEL_SOCKET_DATA,
    BEL_SOCKET_CLOSE,
    BEL_SOCKET_END,
    BEL_SOCKET_PING,
    BEL_SOCKET_PONG
};
enum { BEL_SOCKET_HEAD_BYTES = 8 };

typedef struct bel_socket_stream {
    bel_stream base; // first: a bel_stream * is a bel_socket_stream *
    bel_errand errand;
    bel_watch watch;
    atomic_uint kicks; // 0: no thread is sending; otherwise number of kicks since it was 0
    atomic_bool asked; // fill is to be called

    // The sender's.
    bel_stream_message message;
    uint8_t head[BEL_SOCKET_HEAD_BYTES]; // the message's
    uint8_t *control;                    // frames other than DATA that are being written
    size_t out_bytes, out_done;
    bool out_is_last;

    // The reader's, only for the endpoint's thread.
    uint8_t in_head[BEL_SOCKET_HEAD_BYTES];
    size_t in_head_bytes;
    uint32_t in_kind;
    size_t in_left;
    uint8_t *in_control;
    size_t in_control_bytes;
    bool greeted; // the peer's first frame has come
    bool begun;   // the owner has events
    bool has_alarm;
    int64_t heard_ns; // when the last byte came
    int64_t asked_ns; // when a ping was sent that has no answer yet (bel_clock_awake_ns); 0: none

    pthread_mutex_t mutex; // guards what follows
    int descriptor;        // -1: not connected, or the stream is over
    uint8_t *wanted;       // frames to write between messages
    size_t wanted_bytes, wanted_capacity;
    bool blocked;    // the socket is full: the endpoint's thread continues
    bool ending;     // no more data either way
    bool may_finish; // nothing more can be written, or has to be
    bool over;
    bel_status *reason; // this side's, for an ending; NULL: in order
} bel_socket_stream;

// socket_write.c. Writing is the work of one thread at a time, the sender: the one that raised
// `kicks` from 0, and the endpoint's thread once the socket was full (`blocked`).

// Adds a frame other than DATA to those that the sender writes next.
void bel_socket_want_locked(bel_socket_stream *stream, uint32_t kind, const void *bytes,
                            size_t count);
void bel_socket_push(bel_socket_stream *stream);   // lets the sender look for such frames
void bel_socket_kick(bel_stream *base);            // … and ask the owner for data
void bel_socket_resume(bel_socket_stream *stream); // an event: the full socket has room
void bel_socket_release_output(bel_socket_stream *stream);
// Posts the stream's errand, which has a reference. A stream that is over needs none.
void bel_socket_post_locked(bel_socket_stream *stream);

#endif
