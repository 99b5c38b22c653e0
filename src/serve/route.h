// Meaning of a request's path.
#ifndef BELFRY_SERVE_ROUTE_H
#define BELFRY_SERVE_ROUTE_H

#include <stddef.h>
#include <stdint.h>

typedef enum bel_route_kind {
    BEL_ROUTE_NONE, // no such path
    BEL_ROUTE_PAGE,
    BEL_ROUTE_MODELS, // all of them
    BEL_ROUTE_METRICS,
    BEL_ROUTE_SERVER, // metadata of the server
    BEL_ROUTE_LIVE,
    BEL_ROUTE_READY,
    BEL_ROUTE_V2_METADATA, // from here on of a model
    BEL_ROUTE_V2_READY,
    BEL_ROUTE_V2_INFER,
    BEL_ROUTE_V1_STATUS,
    BEL_ROUTE_V1_METADATA,
    BEL_ROUTE_V1_PREDICT,
} bel_route_kind;

typedef struct bel_route {
    bel_route_kind kind;
    const char *method; // the expected one: "GET" (or HEAD) or "POST"
    const char *model;  // its name, a part of the path; NULL: none
    size_t model_length;
    int64_t version;   // -1: the newest; -2: no number
    const char *label; // a part of the path, instead of a version; NULL: none
    size_t label_length;
} bel_route;

bel_route bel_route_find(const char *path);

#endif
