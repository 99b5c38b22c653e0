// Server of HTTP/1.1 and 1.0, with or without TLS: calls one function for each request.
//
// One thread serves one connection at a time, and idle connections keep theirs until they time out.
// So `connections` bounds both. A connection that is one more when it is accepted, and still at its
// first request, gets 503 and is closed; a few threads are kept for that. If they are busy, too,
// others wait. A drain refuses none for that.
//
//     static void answer(void *user, const bel_http_request *request, bel_http_answer *answer)
//     {
//         if (strcmp(request->path, "/") == 0) bel_str_puts(&answer->body, "hello\n");
//         else answer->code = 404;
//     }
#ifndef BELFRY_HTTP_HTTP_SERVER_H
#define BELFRY_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "belfry/status.h"

// Request with its entire body. Lives until the function returns.
typedef struct bel_http_request {
    const char *method, *path; // the path is decoded and has no query
    const char *remote;        // the client's address
    const char *body;          // with a zero byte after it; never NULL
    size_t body_size;
    const struct bel_http_head *head; // for bel_http_header
} bel_http_request;

// Returns a header's value; NULL: absent. Names are case-insensitive.
const char *bel_http_header(const bel_http_request *request, const char *name);

// Answer that the function fills in. The server frees its strings. HEAD gets the length only.
typedef struct bel_http_answer {
    int code;         // 200
    const char *type; // static; "text/plain; charset=utf-8"
    bel_str head;     // more header lines, each with "\r\n"
    bel_str body;
} bel_http_answer;

typedef struct bel_http_config {
    const char *address; // "127.0.0.1", "0.0.0.0", "[::]"
    int port;            // 0: the system chooses one
    const char *what;    // for the error: "metrics"
    const char *hint;    // for the error: "another --metrics_port"
    int connections;     // at the same time, from 1 on
    bool keep_alive;     // several requests on a connection
    int timeout_ms;      // most time from the connection to its first header, for a later header,
                         // for a body, and for a MiB of an answer
    int idle_ms;         // most time between two requests
    size_t most_body;    // bytes; a larger body gets 413
    const char *tls_ca, *tls_certificate, *tls_key; // PEM files; certificate NULL: no TLS
    // Whether a request is to be answered, by its head: `body` is empty. False: `answer` is the
    // refusal, and a body is not read. NULL: all are. Any of the server's threads.
    bool (*accepts)(void *user, const bel_http_request *request, bel_http_answer *answer);
    // Answers a request. Any of the server's threads.
    void (*answer)(void *user, const bel_http_request *request, bel_http_answer *answer);
    // Makes the body of an answer with a code of 400 or more that the server gives (a bad header,
    // too large a body, too many connections). NULL: no body.
    void (*refuse)(void *user, int code, const char *message, bel_http_answer *answer);
    void *user;
} bel_http_config;

typedef struct bel_http_server bel_http_server;

// The config is copied, its texts are not kept. UNAVAILABLE: the port is in use, or the address is
// not this host's. INVALID_ARGUMENT: the files of TLS. RESOURCE_EXHAUSTED: too few threads.
bel_status *bel_http_server_start(const bel_http_config *config,
                                  bel_http_server **out_server) BEL_MUST_USE;

int bel_http_server_port(const bel_http_server *server); // Returns the listening port.

// From now on every answer closes its connection. Waits until the requests that have begun before
// are answered, at most this long, and then accepts no more connections but those that the system
// has accepted already, for a second. An open connection may send one more request within 200 ms,
// one that still greets within two seconds. Returns the number of requests and greetings that are
// left.
int bel_http_server_drain(bel_http_server *server, int most_ms);

// Ends the server; requests in progress lose their answers. NULL is fine.
void bel_http_server_stop(bel_http_server *server);

#endif
