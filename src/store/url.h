// URLs of objects: their parts, and percent-encoding.
#ifndef BELFRY_STORE_URL_H
#define BELFRY_STORE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "belfry/status.h"

typedef enum bel_store_scheme { BEL_STORE_S3, BEL_STORE_GS, BEL_STORE_WEB } bel_store_scheme;

// Parts of a URL. `shown` is the text for messages: without query and user, which may be secrets.
typedef struct bel_store_url {
    bel_store_scheme scheme;
    char *bucket; // for a web server: "https://HOST"
    char *key;    // not encoded; "": the bucket; for a web server the rest of the URL
    char *shown;
} bel_store_url;

// INVALID_ARGUMENT: see bel_store_check_url. End with bel_store_url_deinit.
bel_status *bel_store_url_init(bel_store_url *url, const char *text) BEL_MUST_USE;
// The same for a URL that must name an object.
bel_status *bel_store_url_init_object(bel_store_url *url, const char *text) BEL_MUST_USE;
void bel_store_url_deinit(bel_store_url *url);

// Returns the query of an object's URL, from "?" on; NULL: it has none. A "?" without "NAME=" after
// it is a pattern's.
const char *bel_store_find_query(const char *url);

// Appends `text` with %XX for all bytes but the unreserved ones of RFC 3986, and slashes if they
// are kept.
void bel_url_encode(bel_str *out, const char *text, bool keep_slashes);

// Splits the URL of a server, "http(s)://HOST[:PORT][/PATH]". The origin lacks the port that its
// scheme implies, as libcurl leaves that out of the header Host; the path has no slash at its end.
// INVALID_ARGUMENT: it is no such URL, or has a user or a query; `what` names the setting.
bel_status *bel_url_split_endpoint(const char *url, const char *what, char **out_origin,
                                   char **out_path) BEL_MUST_USE;
void bel_url_cut_usual_port(char *origin);
const char *bel_url_host(const char *origin); // with its port

// True if all are letters, digits or in `more`: such a text cannot change another part of a URL.
bool bel_url_is_name(const char *text, const char *more);

// Replaces %XX in place; `plus`: also + by a space.
void bel_url_decode(char *text, bool plus);

#endif
