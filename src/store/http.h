// One HTTP request and its answer, by libcurl, which is opened at run time: the program starts
// without it. Its types appear only in http_curl.c. Without its headers the build has http_absent.c
// instead.
//
// A transfer never hangs: the connection has a deadline, and a transfer that stalls ends with a
// fault. Connections are kept for the next request. Any thread.
#ifndef BELFRY_STORE_HTTP_H
#define BELFRY_STORE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"
#include "store/crypto.h"

// Lines "name: value", with names in lower case.
typedef struct bel_headers {
    char **lines;
    size_t count, capacity;
} bel_headers;
void bel_headers_add(bel_headers *headers, const char *name, const char *format, ...)
    BEL_PRINTF(3, 4);
const char *bel_headers_find(const bel_headers *headers, const char *name); // NULL: it has none
void bel_headers_deinit(bel_headers *headers);

// Bytes of a request: memory, or a range of an open file if `data` is NULL and `size` is not 0.
typedef struct bel_http_body {
    const void *data;
    int file;
    uint64_t offset, size;
} bel_http_body;

// Reads a part of the body. FAILED_PRECONDITION: the file became shorter; errors of files.
bel_status *bel_http_body_read(const bel_http_body *body, uint64_t from, void *out,
                               size_t size) BEL_MUST_USE;

// Adds all bytes of the body to a digest. Errors as above.
bel_status *bel_http_body_digest(const bel_http_body *body, bel_digest *digest) BEL_MUST_USE;

// Takes a piece of a body, which begins `at` bytes after the first wanted one. Pieces come in
// order; another try begins again at 0. An error ends the transfer, and is returned.
typedef bel_status *bel_http_take(void *context, uint64_t at, const void *data, size_t size);

// One for memory that has room for all: `context` is its address.
bel_status *bel_http_take_memory(void *context, uint64_t at, const void *data,
                                 size_t size) BEL_MUST_USE;

typedef struct bel_http_request {
    const char *method;
    const char *url; // is sent as it is
    const bel_headers *headers;
    bel_http_body body;
    bel_http_take *take; // gets a body with status 200 or 206; NULL: answer.text does
    void *taker;         // context of `take`
    uint64_t skip;       // bytes of a body with status 200 that come before the wanted ones
    size_t most;         // limit of the bytes taken, or of answer.text
    double connect_secs; // limits
    double stall_secs;   // for less than 1,000 bytes a second
    bool direct;         // without a proxy
    bool follow;         // redirects of a web server
    bool is_single;      // a second time would differ: libcurl repeats a request silently
                         // if an open connection breaks, so this one gets a new connection
} bel_http_request;

typedef struct bel_http_answer {
    int status;          // 0: no answer
    bel_headers headers; // the last answer's, after redirects
    bel_str text;        // the body, unless it was taken
    size_t got;          // bytes taken
    bool is_larger;      // the body has more than `most` bytes; the rest was not transferred
    char fault[256];     // reason for which the transfer did not end well; "": it did
    bool is_lasting;     // the fault is one that another try cannot mend: a certificate
    double retry_secs;   // Retry-After; 0: none
    bool has_clock;
    double clock_offset_secs; // the header Date minus this machine's clock when it arrived
} bel_http_answer;

// Sends a request. The outcome is in the answer, also a fault; end it with bel_http_answer_deinit.
// UNIMPLEMENTED: there is no libcurl. Errors of the body, and of `take`.
bel_status *bel_http_send(const bel_http_request *request,
                          bel_http_answer *out_answer) BEL_MUST_USE;
void bel_http_answer_deinit(bel_http_answer *answer);

#endif
