// Requests of a connection, one after another. Bound to one thread.
#ifndef BELFRY_HTTP_HTTP_READER_H
#define BELFRY_HTTP_HTTP_READER_H

#include "base/str.h"
#include "http/http_head.h"
#include "http/http_stream.h"

// Zero-initialize, and open the stream.
typedef struct bel_http_reader {
    bel_http_stream stream;
    bel_http_head head; // points into `lines`
    bel_str lines, in;  // the text of the head; bytes that came, of which `used` are taken
    size_t used;
    bel_str body; // a body that came in pieces
} bel_http_reader;

void bel_http_reader_deinit(bel_http_reader *reader); // the stream stays open

// Forgets the request before. Returns true if bytes of the next one have come with it.
bool bel_http_reader_next(bel_http_reader *reader);

// Reads more bytes. Returns the result of bel_http_stream_read.
ptrdiff_t bel_http_reader_fill(bel_http_reader *reader, int64_t deadline_ns);

// Reads a head into `head`. Returns 0; the code of a refusal, with its message; or a negative
// number: the connection ended.
int bel_http_reader_head(bel_http_reader *reader, int64_t deadline_ns, const char **out_message);

// Reads the body of that head, with a zero byte after it. Returns 0, or a code: 413, it exceeds
// `most` bytes; 408, it ended early, or did not come in time; 400, its chunks are malformed. The
// body is valid until the next request.
int bel_http_reader_body(bel_http_reader *reader, size_t most, int64_t deadline_ns,
                         const char **out_body, size_t *out_size);

#endif
