// Inside view for grpc_side.c (server, channels, queue) and grpc_stream.c (one call).
#ifndef BELFRY_TRANSPORT_STREAMS_GRPC_INNER_H
#define BELFRY_TRANSPORT_STREAMS_GRPC_INNER_H

#include "rpc/api.h"
#include "transport/streams/endpoint_inner.h"

#define BEL_SECRET_KEY "belfry-secret"

// Tag of an event of the completion queue: its owner.
typedef struct bel_grpc_op bel_grpc_op;
struct bel_grpc_op {
    void (*done)(bel_grpc_op *op, bool ok);
    void *owner;
};

// A stream of one call, which it owns once it is started.
bel_stream *bel_call_create(bel_endpoint *endpoint, grpc_call *call, bool is_server);
void bel_call_start(bel_stream *stream, const bel_stream_events *events);

#endif
