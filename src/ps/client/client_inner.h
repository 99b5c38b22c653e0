// The inside of the parameter client, for client.c (versions and reports), client_rows.c (rows
// of tables) and client_exchange.c (collectives).
#ifndef BELFRY_PS_CLIENT_CLIENT_INNER_H
#define BELFRY_PS_CLIENT_CLIENT_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "ps/client/client.h"
#include "ps/frames/frames.h"

// What is known of a shard's newest version. Where memory is not shared its values come first or,
// with disturbed lanes, last.
typedef struct shard_view {
    atomic_llong published; // the newest version whose values are all here
    int64_t announced;      // the newest version that the shard has spoken of; -1: none
    int expected;           // chunks of values that belong to it
    unsigned char buffer;   // in which it lies, where memory is shared between processes
    int64_t values_step;    // version of the values that came last
    int values;             // chunks of it
} shard_view;

// Leases that are not read yet: a shard has at most two of a worker's under way.
enum { LEASES = 4 };
typedef struct leases {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    int64_t blocks[LEASES]; // by index mod LEASES
    int64_t numbers[LEASES];
    bool over;
} leases;

// Rows that were pulled: keys grouped by shard, and where each shard's answer lies.
typedef struct table_view {
    int64_t *keys;         // as they were sent, shard after shard
    int64_t *places;       // by position among the keys that were asked for: which of these
    int64_t *first;        // by shard: its first among these; one more entry
    const float **answers; // by shard; NULL: not yet
    float *room;           // where answers come that share no memory; NULL: they all do
    int32_t pull;          // number of the pull within its step
    int64_t step;          // of the pull
    char **payloads;       // by shard: those of a report
    int64_t *counts;       // by shard: rows of it
    int64_t *filled;       // by shard: scratch
} table_view;

// Pieces of an exchange that are under way.
typedef struct exchange_view {
    int64_t step;
    int exchange;
    bel_client_piece *pieces; // the caller's
    int count;
} exchange_view;

struct bel_client {
    bel_client_config config;
    shard_view *shards;
    int64_t *value_steps; // by chunk: the version of its newest values
    bool attached;
    uint32_t decision; // shard 0's, of its newest version
    bel_status *error; // of a frame that cannot be; ends the next wait
    int64_t answers;   // with a ledger: versions that were waited for
    leases leases;
    table_view *tables; // by table
    exchange_view exchange;
};

// client.c: what a wait waits for; asked again and again. is_there takes what has come first; an
// error ends the wait.
typedef struct bel_client_awaited {
    const char *what; // "version"
    bel_status *(*is_there)(bel_client *client, int64_t version, bool *out_there);
    bool (*lacks)(const bel_client *client, int64_t version, int shard); // something of that shard
} bel_client_awaited;
bel_status *bel_client_wait_until(bel_client *client, int64_t version,
                                  const bel_client_awaited *awaited) BEL_MUST_USE;
void bel_client_drain(bel_client *client);
// Stamps a frame and sends it; the error names worker, kind and shard.
bel_status *bel_client_send(bel_client *client, int shard, bel_frame frame) BEL_MUST_USE;

// client_exchange.c
void bel_client_take_exchanged(bel_client *client, const bel_frame *frame);
void *bel_client_place_exchanged(const bel_client *client, const bel_frame *frame);

// client_rows.c
void bel_client_create_tables(bel_client *client);
void bel_client_destroy_tables(bel_client *client);
void bel_client_take_rows(bel_client *client, int shard, const bel_frame *frame);
void *bel_client_place_rows(bel_client *client, int shard, const bel_frame *frame);

#endif
