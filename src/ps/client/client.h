// Parameter client: a worker's view of all shards. It waits for versions and sends reports.
//
// If all workers count, it waits for each version in turn. With a ledger (bel_counting) shard 0
// decides which version comes next, and leases the blocks of the batches; the other shards send the
// same version.
#ifndef BELFRY_PS_CLIENT_CLIENT_H
#define BELFRY_PS_CLIENT_CLIENT_H

#include "base/str.h"
#include "ps/layout/assignment.h"
#include "ps/layout/row_buffer.h"
#include "ps/layout/space.h"
#include "ps/layout/step_stats.h"
#include "transport/lane.h"

typedef struct bel_client bel_client;

// The job's numbers of a worker whose reports a relay takes (ps/layout/fan_in.h).
typedef struct bel_client_relayed {
    int worker;     // for messages
    int parent;     // the same: the worker in whose process its relay is; -1: it has none
    int first_node; // as callers number its nodes
} bel_client_relayed;

typedef struct bel_client_config {
    int worker;
    const bel_client_relayed
        *relayed; // the relay's reporters have the numbers of `assignment`, and
                  // `worker` is one of them; NULL: no relay, callers have them
    uint32_t generation, incarnation;
    const bel_layout *layout;
    const bel_assignment *assignment;
    bel_lane *const *lanes; // this worker's ends, by shard; may be set until the first call
    // destination of parameters from lanes without shared memory; NULL: no such lanes
    bel_space *space;
    int first_buffer; // in which the first version's values go; frozen ones are in buffer 0
    // For shared memory of other processes, where each shard names the buffer that holds a version:
    // maps them. The waiting thread calls it once, when the first version has arrived. NULL: all
    // shards are in this process or share no memory.
    bel_status *(*attach)(void *context);
    void *attach_context;
    // With tables or exchanges, laid out as in ps/layout/row_buffer.h: room for keys and reports,
    // at the address that the lanes need.
    void *row_buffer, *answer_room; // room for answers; NULL if all lanes share memory
    bool ledger;                    // with a ledger shards copy values into the first buffer
    // For lanes without shared memory if sums and updates are rounded: room for differences of
    // values, and then for the sums of each of this worker's nodes, layout->size each of the narrow
    // type. NULL: they are not.
    void *rounded_room;
    bel_rounding rounding; // read only if there is that room
    bel_doorbell *bell;    // all lanes ring it
    // Work for a waiting worker: in one process it works for the shards. Returns false if there was
    // no work and no thread has done any; true restarts the stall timeout. May be NULL.
    bool (*help)(void *context);
    void *help_context;
    // Called while waiting: true ends the wait with CANCELLED. May be NULL.
    bool (*cancelled)(void *context);
    void *cancelled_context;
    double stall_timeout_secs;
    bel_stats_shape stats; // the step statistics
} bel_client_config;

// Whether `cancelled` says so: the step's result would not be used.
bool bel_client_is_cancelled(const bel_client *client);

bel_client *bel_client_create(const bel_client_config *config);
void bel_client_destroy(bel_client *client);

// A bel_frame_place for the lane to shard `shard`, with a bel_client_peer as context. Values of the
// next version go into the buffers that are not current, rows to the place of their request.
typedef struct bel_client_peer {
    bel_client *client;
    int shard;
} bel_client_peer;
void *bel_client_place(void *peer, const bel_frame *frame);

// Takes a frame ROOM on a lane's thread, so that reports continue while the worker computes: a
// bel_stream_lane_config.at_once, with the same context. The frame may be taken again in a wait.
void bel_client_take_at_once(void *peer, const bel_frame *frame);

// Asks every shard for `version`, on which the worker begins; the shards send later versions
// automatically. With a ledger it asks only shard 0, for the newest version. UNAVAILABLE: a lane is
// cut.
bel_status *bel_client_pull(bel_client *client, int64_t version) BEL_MUST_USE;

// Appends the shards whose version `version` is still missing, as " of shard 0, 2", or the relay,
// as " of the relay of worker 32"; appends nothing if none is missing. For messages. Any thread.
void bel_client_missing(const bel_client *client, int64_t version, bel_str *out);

// Waits until every shard has published `version`; *out_decision is shard 0's decision for that
// step. DEADLINE_EXCEEDED after the stall timeout, naming the missing shards; CANCELLED;
// UNAVAILABLE: a lane is cut.
bel_status *bel_client_wait(bel_client *client, int64_t version,
                            uint32_t *out_decision) BEL_MUST_USE;

// Takes the frames that have arrived and returns at once, for a relay. *out_there: every shard has
// published `version`, and *out_decision is set. Errors as those of bel_client_wait, but no
// DEADLINE_EXCEEDED and CANCELLED.
bel_status *bel_client_look(bel_client *client, int64_t version, bool *out_there,
                            uint32_t *out_decision) BEL_MUST_USE;

// True if the values of that version have arrived for a chunk, also before the version has. For the
// thread that waits or looks.
bool bel_client_has_values(const bel_client *client, int chunk, int64_t version);

// True if the newest values of a chunk came as differences, which are in the rounded room until the
// next ones come.
bool bel_client_has_differences(const bel_client *client, int chunk);

// With a ledger: waits for the next version of shard 0's answers, later than `*version`, and for
// the other shards' values of it. Errors as above.
bel_status *bel_client_wait_next(bel_client *client, int64_t *version,
                                 uint32_t *out_decision) BEL_MUST_USE;

// With a ledger: waits for the lease and returns the first block for this worker's step number
// `index`, from 0. BEL_LEASE_NONE: no blocks are left, or bel_client_end_leases was called
// meanwhile, as at the worker's end. Any thread.
int64_t bel_client_lease(bel_client *client, int64_t index);
void bel_client_end_leases(bel_client *client);

// Sends node `node`'s sums of chunk `chunk`, with their weight (assignment.h), to its shard. The
// caller keeps the data unchanged until the next version is published. Rounded sums have the narrow
// type on a lane without shared memory. A shard that has no room yet gets the frame later, from a
// lane's thread or a wait. Any thread.
bel_status *bel_client_report(bel_client *client, int64_t step, uint32_t decision, int chunk,
                              int node, bel_weight weight, const float *data) BEL_MUST_USE;

// Sends node `node`'s step statistics, bel_stats_size numbers, to shard 0, and the step's decision
// to all shards. `hash` is the parameters' hash, if the decision includes BEL_DECIDE_CHECK.
bel_status *bel_client_stats(bel_client *client, int64_t step, uint32_t decision, int node,
                             uint64_t hash, const double *stats) BEL_MUST_USE;

// --- Rows of tables ------------------------------------------------------------------------------

// Asks the shards for the rows `keys` (ascending, distinct) of a table as of `step`. A worker that
// plays its replicas in turns asks once for each. All pulls of a step together must fit the room.
// UNAVAILABLE: a lane is cut.
bel_status *bel_client_pull_rows(bel_client *client, int64_t step, int table, const int64_t *keys,
                                 int64_t count) BEL_MUST_USE;

// Waits for the requested rows of all tables. Errors as those of bel_client_wait.
bel_status *bel_client_wait_rows(bel_client *client, int64_t step) BEL_MUST_USE;

// Returns the row of keys[index], `width` floats, valid until the next pull of that table.
const float *bel_client_row(const bel_client *client, int table, int64_t index);

// Sends node `node`'s sums of rows, with their weight, each to its shard. Every shard gets a
// report, even an empty one. Copies the set into the room. For one thread.
bel_status *bel_client_report_rows(bel_client *client, int64_t step, uint32_t decision, int table,
                                   int node, bel_weight weight,
                                   const bel_row_set *set) BEL_MUST_USE;

// --- Collectives ---------------------------------------------------------------------------------

// A piece of a value (ps/layout/exchange.h).
typedef struct bel_client_piece {
    int32_t part, piece; // index of the collective in the exchange, and of the piece in its value
    uint32_t at;         // offset of the contribution in the room, `bytes` long
    size_t bytes;
    uint32_t answer_at; // offset of the answer in its room, answer_bytes long
    size_t answer_bytes;
    const char *answer; // out: the answer, valid until the next call; NULL before
} bel_client_piece;

// Returns the room for contributions, BEL_EXCHANGE_ROOM bytes.
char *bel_client_exchange_room(const bel_client *client);

// Sends up to BEL_EXCHANGE_PIECES pieces of exchange `exchange` of the step, whose contributions
// are in the room, and waits for all answers. Errors as those of bel_client_wait. For the worker's
// thread.
bel_status *bel_client_exchange(bel_client *client, int64_t step, int exchange,
                                bel_client_piece *pieces, int count) BEL_MUST_USE;

// Reports that no replica of the worker has examples in this step: no other worker waits for it in
// the step's exchanges.
bel_status *bel_client_no_exchange(bel_client *client, int64_t step) BEL_MUST_USE;

#endif
