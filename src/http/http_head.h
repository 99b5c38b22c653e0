// Head of a request of HTTP/1.0 and 1.1 (RFC 9112): its request line and its fields.
//
// The parser accepts only what all readers of HTTP divide in the same way. A proxy must not find
// another end of a request: its rest could pass as a request of another client.
#ifndef BELFRY_HTTP_HTTP_HEAD_H
#define BELFRY_HTTP_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BEL_HTTP_HEAD_BYTES = 16 << 10, BEL_HTTP_HEAD_FIELDS = 63 };

typedef struct bel_http_field {
    const char *name, *value;
} bel_http_field;

typedef struct bel_http_head {
    const char *method;
    char *target; // as it came: path and query
    bel_http_field fields[BEL_HTTP_HEAD_FIELDS];
    int field_count;
    uint64_t content_length; // 0 without the field
    bool is_chunked, awaits_continue;
    bool keeps;  // the client wants to send more requests on this connection
    bool is_old; // HTTP/1.0
} bel_http_head;

// Returns the size of the head with its empty line; 0: the text does not have it yet. `from`: bytes
// that an earlier call has seen.
size_t bel_http_head_size(const char *text, size_t size, size_t from);

// Reads a head in place: zero bytes end its parts, which the result points to. Returns 0, or the
// code of a refusal with its message, which repeats nothing of the request.
int bel_http_head_parse(char *text, size_t size, bel_http_head *out_head, const char **out_message);

// Returns a field's value; NULL: absent. Names are case-insensitive.
const char *bel_http_head_find(const bel_http_head *head, const char *name);

#endif
