// Signatures of requests: version 4 of Amazon, and that of Google for HMAC keys, which differs in
// its names. libcurl 7.88 can sign, too, but it neither sorts and encodes queries nor sends the
// payload's hash, which S3 needs.
#ifndef BELFRY_STORE_SIGN_H
#define BELFRY_STORE_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "store/http.h"

// Payload hash of a request whose bytes TLS protects.
#define BEL_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

typedef struct bel_sign_input {
    const char *method;
    const char *host;    // as in the header Host
    const char *path;    // encoded, from the first slash on
    const char *query;   // encoded, sorted by name; "": none
    const char *payload; // SHA-256 in hexadecimal, or BEL_UNSIGNED_PAYLOAD
    const char *key_id, *secret;
    const char *region, *service;
    bool google;  // GOOG4 instead of AWS4
    int64_t time; // seconds since 1970
} bel_sign_input;

// Signs all `headers`, host and date, and adds the date and the signature to them.
void bel_sign_request(const bel_sign_input *input, bel_headers *headers);

#endif
