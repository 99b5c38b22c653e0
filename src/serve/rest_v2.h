// Open Inference Protocol, version 2, over REST: infer and metadata, with the extension for binary
// tensors (docs/serve.md).
#ifndef BELFRY_SERVE_REST_V2_H
#define BELFRY_SERVE_REST_V2_H

#include "base/json.h"
#include "http/http_server.h"
#include "serve/infer.h"
#include "serve/models.h"

// Body of a request for an inference, in an arena and the request.
typedef struct bel_v2_request {
    const bel_json_value *root;
    const char *id;           // NULL: none
    const char *binary, *end; // the data of binary tensors
} bel_v2_request;

// INVALID_ARGUMENT: the body is not JSON, or has another size.
bel_status *bel_v2_parse(bel_arena *arena, const bel_http_request *request,
                         bel_v2_request *out_request) BEL_MUST_USE;

// Reads the inputs, runs and writes the answer. The answer is the caller's to free, also after an
// error. INVALID_ARGUMENT, DATA_LOSS: the request is wrong. Otherwise errors of the run.
bel_status *bel_v2_infer(bel_infer *infer, const bel_v2_request *request,
                         bel_http_answer *answer) BEL_MUST_USE;

// Writes the metadata of a model, in the form of a version.
void bel_v2_metadata(bel_model *model, const bel_served *version, bel_str *out);

#endif
