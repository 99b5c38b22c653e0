// Server of unary gRPC calls: calls one function for each request, on separate threads.
//
// A thread serves one call at a time. So `calls` bounds the calls in progress, whatever number of
// connections they come from; a call more gets RESOURCE_EXHAUSTED, and a few threads are kept for
// that. A call whose answer the client does not read is cancelled after `timeout_ms`.
//
// A stream whose message has not arrived in full is no call yet. gRPC bounds these: `calls` of a
// connection, memory of two messages a call for all connections, and ten minutes for a connection,
// then ten more and twice `timeout_ms` for its streams. It has no bound on connections.
#ifndef BELFRY_RPC_RPC_SERVER_H
#define BELFRY_RPC_RPC_SERVER_H

#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"

// Request with its entire message. Lives until the function returns.
typedef struct bel_rpc_request {
    int method;          // index in `methods`
    const char *remote;  // the client's address
    const uint8_t *body; // the message
    size_t body_size;
    int64_t deadline_ns; // the client's (bel_clock_ns); 0: none
    const void *call;    // for bel_rpc_header
} bel_rpc_request;

// Copies a header's value; NULL: absent, or given twice. Free with bel_free.
char *bel_rpc_header(const bel_rpc_request *request, const char *name);

typedef struct bel_rpc_config {
    const char *address;        // "127.0.0.1", "0.0.0.0", "[::]"
    int port;                   // 0: the system chooses one
    const char *what;           // for the error: "models"
    const char *hint;           // for the error: "another --grpc_port"
    const char *const *methods; // static paths: "/package.Service/Method"
    int method_count;
    int calls;        // at the same time, from 1 on
    int timeout_ms;   // most time for a connection's handshake, and to send an answer
    int idle_ms;      // most time of a connection without a call
    size_t most_body; // bytes of a message; a larger one gets RESOURCE_EXHAUSTED
    const char *tls_ca, *tls_certificate, *tls_key; // PEM files; certificate NULL: no TLS
    // Answers a request: fills in the answer's message, or returns an error for the client, which
    // the server owns. Any of the server's threads.
    bel_status *(*answer)(void *user, const bel_rpc_request *request, bel_str *out_body);
    // A call gets an error of the server, before it is a request. NULL: not needed.
    void (*refused)(void *user, const bel_status *status);
    void *user;
} bel_rpc_config;

typedef struct bel_rpc_server bel_rpc_server;

// The config is copied, its texts but the methods are not kept. UNAVAILABLE: the port is in use, or
// the address is not this host's. INVALID_ARGUMENT: the files of TLS. RESOURCE_EXHAUSTED: too few
// threads.
bel_status *bel_rpc_server_start(const bel_rpc_config *config,
                                 bel_rpc_server **out_server) BEL_MUST_USE;

int bel_rpc_server_port(const bel_rpc_server *server); // Returns the listening port.

// Accepts no more calls and waits until no call is in progress, at most this long. Returns the
// number of calls that are left. It may be called again, to wait more.
int bel_rpc_server_drain(bel_rpc_server *server, int most_ms);

// Ends the server, after it was drained; calls in progress lose their answers. Waits until `answer`
// has returned. NULL is fine.
void bel_rpc_server_stop(bel_rpc_server *server);

#endif
