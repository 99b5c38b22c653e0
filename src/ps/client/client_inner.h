// Inside view of the parameter client, for client.c (versions), client_reports.c (reports),
// client_rows.c (rows of tables) and client_exchange.c (collectives).
#ifndef BELFRY_PS_CLIENT_CLIENT_INNER_H
#define BELFRY_PS_CLIENT_CLIENT_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ps/client/client.h"
#include "ps/frames/frames.h"

// State of a shard's newest version. Without shared memory its values arrive before the version or,
// on disturbed lanes, after it.
typedef struct shard_view {
    atomic_llong published; // the newest version whose values have all arrived
    int64_t announced;      // the newest version that the shard announced; -1: no version
    int expected;           // number of its chunks of values
    unsigned char buffer;   // its buffer, if memory is shared between processes
    int64_t values_step;    // version of the latest values
    int values;             // number of its chunks that have arrived
} shard_view;

// Unread leases: a shard has at most two of a worker's under way.
enum { LEASES = 4 };
typedef struct leases {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    int64_t blocks[LEASES]; // by index mod LEASES
    int64_t numbers[LEASES];
    bool over;
} leases;

// Pulled rows: keys grouped by shard, and each shard's answer.
typedef struct table_view {
    int64_t *keys;         // in the order of sending, shard after shard
    int64_t *places;       // by position among the requested keys: index in `keys`
    int64_t *first;        // by shard: its first index in `keys`; one more entry
    const float **answers; // by shard; NULL: not yet arrived
    float *room;           // room for answers of lanes without shared memory; NULL: all share it
    int32_t pull;          // number of the pull within its step
    int64_t step;          // the pull's
    char **payloads;       // by shard: payload of a report
    int64_t *counts;       // by shard: rows of the report
    int64_t *filled;       // by shard: scratch
} table_view;

// Pieces of an exchange under way.
typedef struct exchange_view {
    int64_t step;
    int exchange;
    bel_client_piece *pieces; // the caller's
    int count;
} exchange_view;

// A worker's report to a shard that has no room for all of it (ps/layout/report_room.h): its frames
// wait here for their turn. A part is the frames of all nodes for one chunk, and step statistics
// follow the last part.
typedef struct held_report {
    bool will_be;    // the report on the newest version is limited
    bool limited;    // this step's report
    int64_t version; // version of `room` and `reported`; -1: none
    int room;        // leading parts that may be sent
    int reported;    // leading parts that need not be sent
    int next;        // the next part to send
    int next_stats;  // node, from the worker's first, whose statistics are sent next
} held_report;

typedef struct held_frame {
    bool waits;
    bel_frame frame;
} held_frame;

// Worker's threads add frames and lanes' threads send them, so all is under the mutex.
typedef struct held_reports {
    pthread_mutex_t mutex;
    int64_t step;        // the report in work; -1: none
    int function;        // whose order of parts is in `order`; -1: none
    held_report *shards; // by shard
    int *first;          // by shard: its first part in `order`, and one more entry
    int *order;          // by part: its chunk
    held_frame *sums;    // by chunk and node of the worker; NULL: no report was ever limited
    held_frame *stats;   // by shard and node of the worker
    bel_status *error;   // a failed send on a lane's thread; ends the next wait
} held_reports;

struct bel_client {
    bel_client_config config;
    bel_client_relayed relayed; // a copy, if config.relayed is set
    shard_view *shards;
    int64_t *value_steps; // by chunk: the version of its newest values
    bool *value_differs;  // by chunk: they came as differences
    bool attached;
    uint32_t decision; // shard 0's, for its newest version
    bel_status *error; // for an invalid frame; ends the next wait
    int64_t answers;   // with a ledger: number of versions that were waited for
    leases leases;
    table_view *tables; // by table
    exchange_view exchange;
    held_reports held;
};

// client.c: the object of a wait, polled repeatedly. is_there first takes the frames that have
// arrived; an error ends the wait.
typedef struct bel_client_awaited {
    const char *what; // "version"
    bel_status *(*is_there)(bel_client *client, int64_t version, bool *out_there);
    bool (*lacks)(const bel_client *client, int64_t version, int shard); // is a part missing?
} bel_client_awaited;
bel_status *bel_client_wait_until(bel_client *client, int64_t version,
                                  const bel_client_awaited *awaited) BEL_MUST_USE;
void bel_client_drain(bel_client *client);
// Stamps a frame and sends it; the error names worker, kind and shard. With a ledger it waits for
// room in the lane, until the stall timeout or a cancellation.
bel_status *bel_client_send(bel_client *client, int shard, bel_frame frame) BEL_MUST_USE;

// client_reports.c
void bel_client_create_reports(bel_client *client);
void bel_client_destroy_reports(bel_client *client);
void bel_client_take_room(bel_client *client, int shard, const bel_frame *frame);
void bel_client_take_limit(bel_client *client, int shard, const bel_version_frame *version);
void bel_client_begin_report(bel_client *client, int64_t step); // all shards have this version
bel_status *bel_client_reports_error(bel_client *client) BEL_MUST_USE;

// client_exchange.c
void bel_client_take_exchanged(bel_client *client, const bel_frame *frame);
void *bel_client_place_exchanged(const bel_client *client, const bel_frame *frame);

// client_rows.c
void bel_client_create_tables(bel_client *client);
void bel_client_destroy_tables(bel_client *client);
void bel_client_take_rows(bel_client *client, int shard, const bel_frame *frame);
void *bel_client_place_rows(bel_client *client, int shard, const bel_frame *frame);

#endif
