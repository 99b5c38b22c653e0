// Inside view for endpoint.c (life), endpoint_thread.c (thread, alarms, errands), stream.c (what
// every stream has) and the two carriers of streams: socket_streams.c on one host, and grpc_side.c
// with grpc_stream.c between hosts. gRPC's library is opened when the first address needs it.
#ifndef BELFRY_TRANSPORT_STREAMS_ENDPOINT_INNER_H
#define BELFRY_TRANSPORT_STREAMS_ENDPOINT_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "transport/streams/endpoint.h"

// A ping is sent after this time without a byte from the peer.
enum { BEL_KEEPALIVE_MS = 10000 };

// --- Messages ------------------------------------------------------------------------------------

enum { BEL_MESSAGE_PIECES = 128 };

typedef struct bel_piece {
    const uint8_t *bytes;
    size_t count;
    bel_spans *spans; // counts the reference to `bytes`; NULL: the piece owns them
} bel_piece;

struct bel_stream_message {
    bel_piece pieces[BEL_MESSAGE_PIECES];
    size_t piece_count, byte_count;
};

void bel_piece_release(const bel_piece *piece);
void bel_stream_message_clear(bel_stream_message *message); // releases all pieces

// --- Streams -------------------------------------------------------------------------------------

// The functions of a kind of stream. Any thread may call these; endpoint.h says when.
typedef struct bel_carrier {
    void (*kick)(bel_stream *stream);
    void (*close)(bel_stream *stream);
    void (*cancel)(bel_stream *stream); // the closed event follows
    void (*end)(bel_stream *stream, bel_code code, const char *message);
    void (*destroy)(bel_stream *stream); // after the last reference
} bel_carrier;

// The first member of each kind. The endpoint holds a reference until the closed event is over.
struct bel_stream {
    const bel_carrier *carrier;
    bel_endpoint *endpoint;
    bool is_server;
    bel_stream_events events;
    atomic_int references;
    bel_stream *previous, *next; // the endpoint's list, guarded by its mutex
};

// Sets the members above. A stream is in the list from bel_stream_begin to bel_stream_finish, which
// releases the endpoint's reference.
void bel_stream_init(bel_stream *stream, const bel_carrier *carrier, bel_endpoint *endpoint,
                     bool is_server);
void bel_stream_begin(bel_stream *stream);
void bel_stream_finish(bel_stream *stream);

// --- The endpoint --------------------------------------------------------------------------------

// A descriptor that the endpoint's thread watches: `ready` is called with epoll's events.
typedef struct bel_watch bel_watch;
struct bel_watch {
    void (*ready)(bel_watch *watch, uint32_t events);
    void *owner;
};

// Work for the endpoint's thread.
typedef struct bel_errand bel_errand;
struct bel_errand {
    void (*run)(bel_errand *errand);
    void *owner;
    bool waits;
    bel_errand *next;
};

typedef struct bel_alarm bel_alarm;
typedef struct bel_sockets bel_sockets;
typedef struct bel_calls bel_calls;

struct bel_endpoint {
    bel_endpoint_config config; // with copies of the texts
    char *address;
    int poll, wake; // epoll and the eventfd that wakes its thread
    bel_watch wake_watch;
    pthread_t thread;
    bool has_thread;
    atomic_bool ending;

    pthread_mutex_t event_mutex; // held while an event runs, on any of the endpoint's threads
    atomic_ullong dispatches;    // counts events: odd while one runs
    bel_alarm *alarms;           // guarded by event_mutex
    int64_t alarm_ns;            // the earliest, or INT64_MAX
    int64_t stranger_ns;         // time of the last log of a stranger; guarded by event_mutex

    pthread_mutex_t errand_mutex; // guards the list
    bel_errand *first_errand, *last_errand;

    bel_sockets *sockets; // NULL until a unix address is used; guarded by mutex
    bel_calls *calls;     // NULL until another address is used; guarded by mutex

    pthread_mutex_t mutex; // guards what follows
    pthread_cond_t cond;
    bel_stream *streams; // all that have not ended
    int opening;         // calls of bel_stream_open under way
    bool stopping;
};

// endpoint_thread.c: starts the thread; RESOURCE_EXHAUSTED. Stops it, also after an error.
bel_status *bel_endpoint_start(bel_endpoint *endpoint) BEL_MUST_USE;
void bel_endpoint_stop(bel_endpoint *endpoint);

// An event runs between these two, and no other one of this endpoint.
void bel_endpoint_enter(bel_endpoint *endpoint);
void bel_endpoint_leave(bel_endpoint *endpoint);

// Any thread. False: it waits already.
bool bel_endpoint_post(bel_endpoint *endpoint, bel_errand *errand);
void bel_endpoint_wake(bel_endpoint *endpoint);

// Watches a descriptor, or changes for what. They fail only for a lack of memory in the kernel, or
// of watches of this user (fs.epoll.max_user_watches), which ends the process.
void bel_endpoint_watch(bel_endpoint *endpoint, int descriptor, bel_watch *watch, uint32_t events);
void bel_endpoint_rewatch(bel_endpoint *endpoint, int descriptor, bel_watch *watch,
                          uint32_t events);
void bel_endpoint_unwatch(bel_endpoint *endpoint, int descriptor);

// True once the end has cancelled the streams of the list: one that comes later cancels itself.
bool bel_endpoint_is_stopping(bel_endpoint *endpoint);

// At most once a second, however often strangers call: a user waiting for a member should know.
void bel_endpoint_say_stranger(bel_endpoint *endpoint, const char *peer);

// Returns for how long a peer may be silent after a ping.
int bel_endpoint_patience_ms(const bel_endpoint *endpoint);

// socket_streams.c: streams on unix sockets. Listening: errors of bel_local_listen.
bel_status *bel_sockets_listen(bel_endpoint *endpoint) BEL_MUST_USE;
bel_stream *bel_sockets_open(bel_endpoint *endpoint, const char *address, const char *path,
                             const bel_stream_events *events);
// A stream that only brings its owner this error, which it takes.
bel_stream *bel_sockets_fail(bel_endpoint *endpoint, bel_status *status,
                             const bel_stream_events *events);
void bel_sockets_shut(bel_endpoint *endpoint);  // no new connections, before the thread ends
void bel_sockets_destroy(bel_sockets *sockets); // after that; NULL is allowed

// grpc_side.c: streams as calls of gRPC. Its status has errors of bel_rpc_begin and of listening;
// opening reports them with the closed event.
bel_status *bel_calls_listen(bel_endpoint *endpoint, char **out_address) BEL_MUST_USE;
bel_stream *bel_calls_open(bel_endpoint *endpoint, const char *address, const char *path,
                           const bel_stream_events *events);
int64_t bel_calls_processor_ns(const bel_calls *calls); // their thread's processor time
void bel_calls_shut(bel_calls *calls);    // no new calls, and all are cancelled; NULL is allowed
void bel_calls_destroy(bel_calls *calls); // after all streams ended; NULL is allowed

#endif
