// One request to a store: signed, sent, and repeated until it succeeds, fails for a lasting reason,
// or the patience ends.
#ifndef BELFRY_STORE_REQUEST_H
#define BELFRY_STORE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "store/http.h"
#include "store/place.h"
#include "store/url.h"

// Kinds of requests, for messages and the permission that each needs.
typedef enum bel_store_action {
    BEL_STORE_READS,
    BEL_STORE_LISTS,
    BEL_STORE_WRITES,
    BEL_STORE_REMOVES,
    BEL_STORE_ABORTS,
    BEL_STORE_LISTS_UPLOADS,
    BEL_STORE_ACTIONS
} bel_store_action;

typedef struct bel_store_call {
    const bel_store_url *url;
    bel_place *place;
    bel_store_action action;
    const char *method;
    const char *query;    // encoded, sorted by name; NULL: none
    bool is_of_bucket;    // the URL's key is not a part of the request's
    bel_headers *headers; // may be NULL; a copy is signed
    bel_http_body body;
    bool is_summed;      // the body has a checksum that the store compares
    bel_http_take *take; // see bel_http_request
    void *taker;
    uint64_t skip;
    size_t most;
    bool is_single;      // see bel_http_request
    bool is_slow;        // the store works for minutes before it answers: it copies
    bool may_have_error; // an answer with status 200 may be an error
    const int *accepted; // statuses besides 2xx that are outcomes, 0 at the end; NULL: none
    // Compares an answer with its lengths and checksums. Returns the text of a mismatch, NULL: it
    // is whole.
    const char *(*check)(void *context, const bel_http_answer *answer);
    void *context;
    // out
    int tries;          // requests that may have reached the store
    const char *source; // the place of the credentials; NULL: the request was anonymous
} bel_store_call;

// UNAVAILABLE, PERMISSION_DENIED, …: see store.h. End the answer with bel_http_answer_deinit.
bel_status *bel_store_send(bel_store_call *call, bel_http_answer *out_answer) BEL_MUST_USE;

// Error of a store, read from its answer.
typedef struct bel_store_problem {
    char code[64]; // "" if the answer has none
    char message[256];
    char request[128];  // the request's id
    char region[64];    // in which the bucket is; "": unknown
    char endpoint[256]; // host at which it is
} bel_store_problem;
void bel_store_problem_read(const bel_http_answer *answer, bel_store_problem *out_problem);

// Makes the error of a call.
bel_status *bel_store_error(const bel_store_call *call, const bel_http_answer *answer,
                            const bel_store_problem *problem) BEL_MUST_USE;

// An answer that should have been XML of a store and is not.
bel_status *bel_store_no_store(const bel_store_call *call, bel_status *cause) BEL_MUST_USE;

#endif
