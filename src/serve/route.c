#include "serve/route.h"

#include <string.h>

#include "base/str.h"

static const struct {
    const char *path, *method;
    bel_route_kind kind;
} fixed[] = {{"/", "GET", BEL_ROUTE_PAGE},
             {"/v2/repository/index", "POST", BEL_ROUTE_MODELS},
             {"/metrics", "GET", BEL_ROUTE_METRICS},
             {"/v2", "GET", BEL_ROUTE_SERVER},
             {"/v2/health/live", "GET", BEL_ROUTE_LIVE},
             {"/v2/health/ready", "GET", BEL_ROUTE_READY}};

// Ends of paths of models, after the name and the version.
static const struct {
    char protocol;
    const char *tail, *method;
    bel_route_kind kind;
} of_models[] = {{'2', "", "GET", BEL_ROUTE_V2_METADATA},
                 {'2', "/ready", "GET", BEL_ROUTE_V2_READY},
                 {'2', "/infer", "POST", BEL_ROUTE_V2_INFER},
                 {'1', "", "GET", BEL_ROUTE_V1_STATUS},
                 {'1', "/metadata", "GET", BEL_ROUTE_V1_METADATA},
                 {'1', ":predict", "POST", BEL_ROUTE_V1_PREDICT}};

static bel_route find_model(char protocol, const char *rest)
{
    static const char versions[] = "/versions/", labels[] = "/labels/";
    bel_route route = {.model = rest, .model_length = strcspn(rest, "/:"), .version = -1};
    rest += route.model_length;
    if (strncmp(rest, versions, sizeof versions - 1) == 0) {
        rest += sizeof versions - 1;
        size_t length = strcspn(rest, "/:");
        if (!bel_parse_i64(rest, length, &route.version) || route.version < 0) route.version = -2;
        rest += length;
    } else if (strncmp(rest, labels, sizeof labels - 1) == 0) {
        route.label = rest + sizeof labels - 1;
        route.label_length = strcspn(route.label, "/:");
        rest = route.label + route.label_length;
    }
    for (size_t i = 0; i < sizeof of_models / sizeof of_models[0]; i++) {
        if (of_models[i].protocol != protocol || strcmp(of_models[i].tail, rest) != 0) continue;
        route.kind = of_models[i].kind;
        route.method = of_models[i].method;
        return route;
    }
    return (bel_route){.kind = BEL_ROUTE_NONE};
}

bel_route bel_route_find(const char *path)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (strcmp(path, fixed[i].path) == 0)
            return (bel_route){.kind = fixed[i].kind, .method = fixed[i].method, .version = -1};
    bool is_model = strncmp(path, "/v1/models/", 11) == 0 || strncmp(path, "/v2/models/", 11) == 0;
    return is_model ? find_model(path[2], path + 11) : (bel_route){.kind = BEL_ROUTE_NONE};
}
