// Open Inference Protocol, version 2, over gRPC (proto/inference.proto, docs/serve.md).
#ifndef BELFRY_SERVE_GRPC_V2_H
#define BELFRY_SERVE_GRPC_V2_H

#include "rpc/rpc_server.h"
#include "serve/service.h"

// The methods, for bel_rpc_config.
extern const char *const bel_grpc_v2_methods[];
extern const int bel_grpc_v2_method_count;

// Answers a request to one of the methods. Any thread.
bel_status *bel_grpc_v2_answer(bel_service *service, const bel_rpc_request *request,
                               bel_str *out_body) BEL_MUST_USE;

#endif
