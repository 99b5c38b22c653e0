// Inside view for endpoint.c (life, server, thread) and stream.c (one call).
#ifndef BELFRY_TRANSPORT_GRPC_ENDPOINT_INNER_H
#define BELFRY_TRANSPORT_GRPC_ENDPOINT_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpc/api.h"
#include "transport/grpc/endpoint.h"

#define BEL_SECRET_KEY "belfry-secret"

// Tag of an event of the completion queue: its owner.
typedef struct bel_grpc_op bel_grpc_op;
struct bel_grpc_op {
    void (*done)(bel_grpc_op *op, bool ok);
    void *owner;
};

typedef struct bel_channel {
    char *address;
    grpc_channel *channel;
} bel_channel;

typedef struct bel_alarm bel_alarm;
struct bel_alarm {
    int64_t due_ns;
    void (*each)(void *context, bool due);
    void *context;
    bel_alarm *next;
};

typedef struct bel_stream_links bel_stream_links;
struct bel_stream_links {
    bel_stream *stream; // the owner of the links
    bel_stream_links *previous, *next;
};

struct bel_endpoint {
    bel_endpoint_config config; // with copies of the texts
    char *address;
    grpc_completion_queue *queue;
    grpc_server *server;
    pthread_t thread;
    bool has_thread;

    bel_grpc_op accept_op; // one call is always requested
    grpc_call *accepted_call;
    grpc_call_details accepted_details;
    grpc_metadata_array accepted_metadata;
    bel_grpc_op shutdown_op;
    int64_t stranger_ns; // time of the last log of a call without the secret; only for the thread
    bel_alarm *alarms;   // only for the thread
    atomic_ullong dispatches; // counts its events: odd while one runs

    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bel_channel *channels;
    size_t channel_count, channel_capacity;
    bel_stream_links *streams; // list of all streams that have not ended
    int opening;               // calls of bel_stream_open under way
    int local_socket;          // listening descriptor; -1: none
    pthread_t acceptor;        // accepts its connections
    bool has_acceptor;
    bool stopping, server_down;
};

// stream.c
// A client's stream owns `channel`; NULL: the endpoint's channel is used.
bel_stream *bel_stream_create(bel_endpoint *endpoint, grpc_call *call, grpc_channel *channel,
                              bool is_server);
void bel_stream_start(bel_stream *stream, const bel_stream_events *events);
void bel_stream_cancel(bel_stream *stream);

// stream_list.c: the list of streams. Each stream has its links, which stay in place.
void bel_endpoint_add(bel_endpoint *endpoint, bel_stream_links *links);
void bel_endpoint_remove(bel_endpoint *endpoint, bel_stream_links *links);

#endif
