// Bytes of a connection, with or without TLS. Every wait has a deadline.
//
// Thread rule: a stream belongs to one thread. bel_http_tls is immutable, and threads share it.
#ifndef BELFRY_HTTP_HTTP_STREAM_H
#define BELFRY_HTTP_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// A server's certificate and key, and the authority of its clients.
typedef struct bel_http_tls bel_http_tls;

// PEM files. `ca` NULL: clients show no certificate. INVALID_ARGUMENT: a file does not hold what it
// should, or the key is another one's. Errors of files.
bel_status *bel_http_tls_create(const char *certificate, const char *key, const char *ca,
                                bel_http_tls **out_tls) BEL_MUST_USE;
void bel_http_tls_destroy(bel_http_tls *tls); // accepts NULL

typedef struct bel_http_stream {
    int file;      // a socket that does not block
    void *session; // TLS; NULL: none
} bel_http_stream;

// Results of a read beside a number of bytes.
enum {
    BEL_HTTP_END = 0,    // the client sends no more
    BEL_HTTP_LATE = -1,  // the deadline
    BEL_HTTP_LOST = -2,  // the connection is broken
    BEL_HTTP_WOKEN = -3, // `wake` became readable, and no byte is there
};

// Takes ownership of the socket. With `tls` it waits for the client's greeting. False: it did not
// come; *out_is_plain: the client sends HTTP without TLS instead. The stream is to be closed in any
// case.
bool bel_http_stream_open(bel_http_stream *stream, int file, const bel_http_tls *tls,
                          int64_t deadline_ns, bool *out_is_plain);

// Waits until bytes can be read, or the client sends no more. `wake`: a descriptor; -1: none.
// Returns 1, BEL_HTTP_LATE or BEL_HTTP_WOKEN.
int bel_http_stream_await(const bel_http_stream *stream, int wake, int64_t deadline_ns);

// Reads at most `most` bytes as soon as there is one.
ptrdiff_t bel_http_stream_read(const bel_http_stream *stream, void *to, size_t most,
                               int64_t deadline_ns);

// Writes all bytes. Each MiB may take `timeout_ms`. False: it took longer, or the connection is
// broken.
bool bel_http_stream_write(const bel_http_stream *stream, const void *bytes, size_t size,
                           int timeout_ms);

void bel_http_stream_end(const bel_http_stream *stream); // No more bytes are written.
void bel_http_stream_close(bel_http_stream *stream);

#endif
