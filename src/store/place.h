// Places of buckets: the server, the path and the region of each, with the things that this process
// learned about it. They stay until the process ends. Thread-safe.
#ifndef BELFRY_STORE_PLACE_H
#define BELFRY_STORE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"
#include "store/url.h"

typedef struct bel_place bel_place;

// Finds the place of a bucket or web server. Settings are read at the first call for it.
// INVALID_ARGUMENT: a variable has no valid URL or region.
bel_status *bel_place_get(const bel_store_url *url, bel_place **out_place) BEL_MUST_USE;

// Copy of a place for one request; end with bel_place_view_deinit.
typedef struct bel_place_view {
    char *origin; // "https://HOST:PORT"
    char *host;   // for the header Host
    char *path;   // the bucket's, "/BUCKET" or ""
    char *region;
    double skew_secs; // added to this machine's clock in signatures
} bel_place_view;
void bel_place_view_init(bel_place_view *view, bel_place *place);
void bel_place_view_deinit(bel_place_view *view);

// True if the server is Amazon's or Google's, of which the abilities are known.
bool bel_place_is_original(bel_place *place);

// Remembers the region that the store has named, else the host (NULL: unknown). False: it was
// known, or the host is in another domain, to which no credentials may go.
bool bel_place_move(bel_place *place, const char *region, const char *host);

// Remembers the clock of the server. `is_refused`: it has refused a signature for its time.
void bel_place_set_clock(bel_place *place, double offset_secs, bool is_refused);

// Abilities, found out once for each bucket.
typedef enum bel_place_fact {
    BEL_PLACE_KNOWS_ABSENT, // the condition that there is no object
    BEL_PLACE_KNOWS_TAGS,   // the condition that the object has a tag
    BEL_PLACE_SERVES_RANGES,
    BEL_PLACE_FACTS
} bel_place_fact;
typedef enum bel_place_answer { BEL_PLACE_UNKNOWN, BEL_PLACE_YES, BEL_PLACE_NO } bel_place_answer;
bel_place_answer bel_place_ask(bel_place *place, bel_place_fact fact);
// Returns the answer before.
bel_place_answer bel_place_learn(bel_place *place, bel_place_fact fact, bel_place_answer answer);

#endif
