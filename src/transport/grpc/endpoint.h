// Streams of bytes between processes, over gRPC's C core: the only room that knows it.
//
// An endpoint is a process's side of it: one completion queue with one thread, one server if it
// listens, a channel for each address that it opened streams to, and the job's secret, which every
// call must show. A stream is one bidirectional call; what is sent arrives in order, as bytes whose
// cut into messages means nothing. Thread-safe.
#ifndef BELFRY_TRANSPORT_GRPC_ENDPOINT_H
#define BELFRY_TRANSPORT_GRPC_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "transport/grpc/spans.h"

typedef struct bel_endpoint bel_endpoint;
typedef struct bel_stream bel_stream;
typedef struct bel_stream_message bel_stream_message;

enum { BEL_STREAM_MESSAGE_BYTES = 1 << 20 }; // how much a message should hold, at most about

// What a stream tells its owner. All calls come from the endpoint's thread, but fill, which may
// also come from the thread that calls bel_stream_kick; never two of one stream's at once, save
// that fill may run beside received.
typedef struct bel_stream_events {
    void *context;
    // Both sides are there. May be NULL.
    void (*opened)(void *context);
    // The peer's bytes. An error ends the stream: the peer learns of it.
    bel_status *(*received)(void *context, const uint8_t *bytes, size_t count);
    // Adds to the message what is to be sent next; adds nothing when there is nothing to send.
    void (*fill)(void *context, bel_stream_message *message);
    // The last call: the stream is over, and `context` is not used again. NULL: the peer ended it
    // in order. The status is the callee's. UNAVAILABLE: nobody there, or the connection is lost;
    // UNAUTHENTICATED: another secret; otherwise what the peer said.
    void (*closed)(void *context, bel_status *status);
} bel_stream_events;

// Small pieces are copied; spans are referred to, which `spans` counts.
void bel_stream_message_copy(bel_stream_message *message, const void *bytes, size_t count);
void bel_stream_message_span(bel_stream_message *message, const void *bytes, size_t count,
                             bel_spans *spans);
size_t bel_stream_message_bytes(const bel_stream_message *message);

typedef struct bel_endpoint_config {
    const char *listen_address; // "unix:/path", "host:port" (port 0: chosen); NULL: no server
    const char *secret;         // "" for none
    const char *tls_ca, *tls_certificate, *tls_key; // PEM files; NULL without TLS
    double silence_secs; // a peer that answers nothing for longer is cut off; below 10 it is 10
    // A peer has opened `path` ("/belfry/lane"): sets the events, or refuses with an error. Called
    // on the endpoint's thread. `stream` lives until its closed event.
    bel_status *(*accept)(void *context, const char *path, bel_stream *stream,
                          bel_stream_events *out_events);
    void *context;
} bel_endpoint_config;

// UNAVAILABLE: the address cannot be listened on. INVALID_ARGUMENT: it is none; files of TLS.
bel_status *bel_endpoint_create(const bel_endpoint_config *config,
                                bel_endpoint **out_endpoint) BEL_MUST_USE;

// Ends all streams (their closed events have run when this returns) and the thread.
void bel_endpoint_destroy(bel_endpoint *endpoint);

// Where this endpoint listens, with the port that was chosen; "" without a server.
const char *bel_endpoint_address(const bel_endpoint *endpoint);

// What to look at, by a hint, where a peer cannot be reached though it runs; NULL without TLS.
const char *bel_endpoint_tls_hint(const bel_endpoint *endpoint);

// Opens a stream. Never fails at once: what is wrong comes with the closed event. The caller owns a
// reference and gives it back with bel_stream_release. NULL while the endpoint is being destroyed.
bel_stream *bel_stream_open(bel_endpoint *endpoint, const char *address, const char *path,
                            const bel_stream_events *events);

// Calls `each` on the endpoint's thread after a while; with `due` false when the endpoint ends
// before. Only from that thread: from an event.
void bel_endpoint_after(bel_endpoint *endpoint, int64_t delay_ms,
                        void (*each)(void *context, bool due), void *context);

// Returns when the events that ran as it was called are over: a caller that has made sure that
// later ones find nothing may then free what earlier ones used. Not from the endpoint's own thread.
void bel_endpoint_settle(bel_endpoint *endpoint);

// References: one is needed to call what follows. The endpoint holds its own until the end.
void bel_stream_retain(bel_stream *stream);
void bel_stream_release(bel_stream *stream);

bel_endpoint *bel_stream_endpoint(bel_stream *stream);

// There may be something to send: fill will be asked, on this thread or the endpoint's. Must not be
// called with a lock that fill takes.
void bel_stream_kick(bel_stream *stream);

// Nothing more is sent: the peer gets what was sent, all of it, and then ends the stream. Ending it
// from here may cost what the peer has not taken yet. By the side that opened it, once fill has
// been asked and had nothing.
void bel_stream_close(bel_stream *stream);

// Ends the stream with an error that the peer sees (a server's stream), or cancels it.
void bel_stream_end(bel_stream *stream, bel_code code, const char *message);

#endif
