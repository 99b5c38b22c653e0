// Byte streams between processes: connections of unix sockets on one host, bidirectional calls of
// gRPC between hosts. Only this folder and rpc use gRPC's C core, whose library is opened when an
// address needs it.
//
// An endpoint is a process's part: the thread that makes all callbacks, a listening address if
// others open streams to it, and the job's secret, which everyone who opens a stream must show. The
// bytes of a stream arrive in order; their division into messages has no meaning. Thread-safe.
#ifndef BELFRY_TRANSPORT_STREAMS_ENDPOINT_H
#define BELFRY_TRANSPORT_STREAMS_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "transport/streams/spans.h"

typedef struct bel_endpoint bel_endpoint;
typedef struct bel_stream bel_stream;
typedef struct bel_stream_message bel_stream_message;

// Approximate maximum of a message. A receiver holds one of each stream, and reads it into buffers
// that stay with the connection.
enum { BEL_STREAM_MESSAGE_BYTES = 1 << 18 };

// Callbacks of a stream to its owner. All calls come from the endpoint's thread, or from a second
// one that it has for gRPC, one at a time. Only fill may also come from the thread that calls
// bel_stream_kick. So callbacks never run in parallel, except fill beside the others.
typedef struct bel_stream_events {
    void *context;
    // Both sides are connected. May be NULL.
    void (*opened)(void *context);
    // The peer's bytes. An error ends the stream, and the peer receives it.
    bel_status *(*received)(void *context, const uint8_t *bytes, size_t count);
    // Adds the next data to the message, or nothing.
    void (*fill)(void *context, bel_stream_message *message);
    // The last call: the stream is over. After it only a fill that a kick has begun may still run,
    // on the kick's thread. NULL: the side that opened the stream closed it, and all arrived. The
    // callee owns the status. UNAVAILABLE: no peer, or the connection is lost; UNAUTHENTICATED:
    // another secret; otherwise the peer's error.
    void (*closed)(void *context, bel_status *status);
} bel_stream_events;

// Copies a small piece into the message.
void bel_stream_message_copy(bel_stream_message *message, const void *bytes, size_t count);
// Adds a reference to a span, which `spans` counts.
void bel_stream_message_span(bel_stream_message *message, const void *bytes, size_t count,
                             bel_spans *spans);
size_t bel_stream_message_bytes(const bel_stream_message *message);

typedef struct bel_endpoint_config {
    const char *listen_address; // "unix:/path", "host:port" (port 0: chosen); NULL: no server
    const char *secret;         // "" for no secret
    const char *tls_ca, *tls_certificate, *tls_key; // PEM files; NULL without TLS
    double silence_secs; // a peer without an answer for longer is disconnected; at least 10
    // Called on the endpoint's thread when a peer has opened `path` ("/belfry/lane"): sets the
    // events, or refuses with an error. `stream` exists until its closed event.
    bel_status *(*accept)(void *context, const char *path, bel_stream *stream,
                          bel_stream_events *out_events);
    void *context;
} bel_endpoint_config;

// UNAVAILABLE: cannot listen on the address. INVALID_ARGUMENT: invalid address, or invalid files of
// TLS. FAILED_PRECONDITION: the address needs gRPC, which is not installed. RESOURCE_EXHAUSTED: no
// room for descriptors or threads.
bel_status *bel_endpoint_create(const bel_endpoint_config *config,
                                bel_endpoint **out_endpoint) BEL_MUST_USE;

// Ends all streams (their closed events have run when this returns) and the thread.
void bel_endpoint_destroy(bel_endpoint *endpoint);

// Returns the listening address of this endpoint, with the chosen port; "" without a server.
const char *bel_endpoint_address(const bel_endpoint *endpoint);

// Returns the processor time of the endpoint's threads, in nanoseconds. gRPC's other threads, which
// all endpoints of a process share, do not count.
int64_t bel_endpoint_processor_ns(bel_endpoint *endpoint);

// Returns a hint for an unreachable peer that is running; NULL without TLS.
const char *bel_endpoint_tls_hint(const bel_endpoint *endpoint);

// Opens a stream. It never fails at once: an error comes with the closed event. The caller owns a
// reference and releases it with bel_stream_release. NULL while the endpoint is being destroyed.
bel_stream *bel_stream_open(bel_endpoint *endpoint, const char *address, const char *path,
                            const bel_stream_events *events);

// Calls `each` on the endpoint's thread after a delay; with `due` false if the endpoint ends
// before. Only from that thread, in an event.
void bel_endpoint_after(bel_endpoint *endpoint, int64_t delay_ms,
                        void (*each)(void *context, bool due), void *context);

// Returns when the events that were running at the call have finished. A caller that makes sure
// that later events find no data may then free the data of earlier ones. Not from the endpoint's
// thread.
void bel_endpoint_settle(bel_endpoint *endpoint);

// References: the calls below need one. The endpoint holds another until the end.
void bel_stream_retain(bel_stream *stream);
void bel_stream_release(bel_stream *stream);

bel_endpoint *bel_stream_endpoint(bel_stream *stream);

// Signals that there may be data to send: fill will be called, on this thread or the endpoint's. Do
// not call it with a lock that fill takes.
void bel_stream_kick(bel_stream *stream);

// Closes this side: the peer receives all sent data, and then ends the stream. If this side ended
// it, data that the peer has not received could be lost. Only for the side that opened it, after
// fill was called and had no data.
void bel_stream_close(bel_stream *stream);

// Ends the stream with an error that the peer receives (a server's stream), or cancels it.
void bel_stream_end(bel_stream *stream, bel_code code, const char *message);

#endif
