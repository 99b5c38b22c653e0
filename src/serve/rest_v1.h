// TensorFlow Serving's REST interface: predict in rows and columns, metadata and status
// (docs/serve.md).
#ifndef BELFRY_SERVE_REST_V1_H
#define BELFRY_SERVE_REST_V1_H

#include "http/http_server.h"
#include "serve/infer.h"
#include "serve/models.h"

// Reads a request, runs it and writes the answer, in rows if the request is. The answer is the
// caller's to free, also after an error. INVALID_ARGUMENT, DATA_LOSS: the request is wrong.
// Otherwise errors of the run.
bel_status *bel_v1_predict(bel_infer *infer, const bel_http_request *request,
                           bel_http_answer *answer) BEL_MUST_USE;

// Writes the inputs and outputs of a version.
void bel_v1_metadata(bel_model *model, const bel_served *version, bel_str *out);

// Writes the state of version `number`, or of all loaded ones if it is below 0.
void bel_v1_model_status(bel_model *model, int64_t number, bel_str *out);

#endif
