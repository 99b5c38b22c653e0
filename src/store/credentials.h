// Credentials of this process: found once, renewed five minutes before they expire, by one thread
// at a time. docs/stores.md has the places in their order. Their texts never appear in messages.
#ifndef BELFRY_STORE_CREDENTIALS_H
#define BELFRY_STORE_CREDENTIALS_H

#include <stdbool.h>

#include "base/str.h"
#include "belfry/status.h"
#include "store/http.h"
#include "store/url.h"

// Without credentials, for public objects: "1".
#define BEL_STORE_ANONYMOUS_VARIABLE "BELFRY_STORE_ANONYMOUS"

// Immutable, and shared by the requests that use it.
typedef struct bel_credentials {
    int users;             // under the mutex of credentials.c
    char *key_id, *secret; // for signatures; NULL: there is a bearer
    char *token;           // for temporary keys; NULL: unset
    char *bearer;          // an access token of Google
    double expires;        // bel_clock_wall; 0: never
    const char *source;    // for messages, static: "the environment"
} bel_credentials;

// Returns the credentials for a store; NULL: requests are anonymous. `refused`: those that the
// store has refused, which are renewed if they can be; NULL: none. End with
// bel_credentials_release. Ends within the thread's patience. PERMISSION_DENIED: no place has
// credentials, and the message names the places, or one refuses them; INVALID_ARGUMENT: a setting
// is wrong; UNAVAILABLE: the service or program that issues them did not answer. No other code.
bel_status *bel_credentials_get(bel_store_scheme scheme, const bel_credentials *refused,
                                bel_credentials **out_credentials) BEL_MUST_USE;
void bel_credentials_release(bel_credentials *credentials); // accepts NULL

// --- For the places (credentials_*.c)

void bel_credentials_destroy(bel_credentials *credentials); // unshared ones; accepts NULL

// Loads from the first place that has credentials; NULL in *out_credentials: anonymous. Errors may
// have any code.
bel_status *bel_credentials_load_aws(int64_t deadline_ns,
                                     bel_credentials **out_credentials) BEL_MUST_USE;
bel_status *bel_credentials_load_google(int64_t deadline_ns,
                                        bel_credentials **out_credentials) BEL_MUST_USE;

// Asks a service that issues credentials, up to `tries` times if it does not answer, until the
// deadline (bel_clock_ns). `what` names it. Its answer is appended to `out`; an answer that is no
// success is an error of PERMISSION_DENIED. `tries` 1: a service that may not exist; then NOT_FOUND
// if it does not answer, or with an error.
bel_status *bel_credentials_ask(const bel_http_request *request, const char *what, int tries,
                                int64_t deadline_ns, bel_str *out) BEL_MUST_USE;

// Seconds since 1970 of "2026-08-01T12:00:00Z"; 0: it is no such text. A fraction may follow the
// seconds. Instead of Z there may be UTC, an offset such as +02:00, or nothing.
double bel_credentials_time(const char *text);

// One-line contents of a file without spaces at its end.
bel_status *bel_credentials_read_line(const char *path, const char *what,
                                      char **out_text) BEL_MUST_USE;

#endif
