// The parameter client: a worker's view of all shards. It waits for versions and sends reports.
//
// Where everybody counts it waits for each version in turn. With a ledger (bel_counting) shard 0
// says which version comes next, and leases the blocks of the batches; the other shards give the
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

typedef struct bel_client_config {
    int worker;
    uint32_t generation, incarnation;
    const bel_layout *layout;
    const bel_assignment *assignment;
    bel_lane *const *lanes; // this worker's ends, by shard; may be filled in until the first call
    bel_space *space;       // where lanes without shared memory put parameters; NULL: there is none
    // Shared memory of other processes: each shard says in which buffer a version lies. Called once
    // by the thread that waits, when the first version is there, so that it can map them. NULL: all
    // shards are in this process or share none.
    bel_status *(*attach)(void *context);
    void *attach_context;
    // With tables, as ps/layout/row_buffer.h lays them out: room for keys and reports, where the
    // lanes need it to lie; and for answers, NULL when all lanes share memory.
    void *row_buffer, *answer_room; // likewise with exchanges
    bool ledger;        // whose values lie in the first buffer, where the shards copy them
    bel_doorbell *bell; // rung by all of them
    // What a waiting worker does meanwhile: in one process it works for the shards. Returns false
    // when there was nothing to do and nobody has done anything; else the stall timeout begins
    // anew. May be NULL.
    bool (*help)(void *context);
    void *help_context;
    // Asked while waiting: true ends the wait with CANCELLED. May be NULL.
    bool (*cancelled)(void *context);
    void *cancelled_context;
    double stall_timeout_secs;
    bel_stats_shape stats; // the step statistics
} bel_client_config;

bel_client *bel_client_create(const bel_client_config *config);
void bel_client_destroy(bel_client *client);

// A bel_frame_place for the lane to shard `shard`, with a bel_client_peer as context: values of the
// next version go into the buffers that are not current, rows to where they were asked for.
typedef struct bel_client_peer {
    bel_client *client;
    int shard;
} bel_client_peer;
void *bel_client_place(void *peer, const bel_frame *frame);

// Asks every shard for `version`, on which the worker begins; they send each later one by
// themselves. With a ledger shard 0 is asked for whatever is newest. UNAVAILABLE: a lane was cut.
bel_status *bel_client_pull(bel_client *client, int64_t version) BEL_MUST_USE;

// Appends the shards whose version `version` is still missing, as " of shard 0, 2"; nothing when it
// has come. For messages. Any thread.
void bel_client_missing(const bel_client *client, int64_t version, bel_str *out);

// Waits until every shard has published `version`; *out_decision is shard 0's word for that step.
// DEADLINE_EXCEEDED after the stall timeout, naming the shards that are missing; CANCELLED;
// UNAVAILABLE: a lane was cut.
bel_status *bel_client_wait(bel_client *client, int64_t version,
                            uint32_t *out_decision) BEL_MUST_USE;

// With a ledger: waits for the next version that shard 0 answers with, later than `*version`, and
// for the other shards' values of it. Errors as above.
bel_status *bel_client_wait_next(bel_client *client, int64_t *version,
                                 uint32_t *out_decision) BEL_MUST_USE;

// With a ledger: the first block of the blocks that this worker's step number `index`, from 0,
// reads; waits for the lease. BEL_LEASE_NONE: none are left, or bel_client_end_leases was called
// meanwhile, as when the worker ends. Any thread.
int64_t bel_client_lease(bel_client *client, int64_t index);
void bel_client_end_leases(bel_client *client);

// Sends node `node`'s sums of chunk `chunk`, with their weight (assignment.h), to its shard. The
// data stays as it is until the next version is published. Any thread.
bel_status *bel_client_report(bel_client *client, int64_t step, uint32_t decision, int chunk,
                              int node, bel_weight weight, const float *data) BEL_MUST_USE;

// Sends node `node`'s step statistics, bel_stats_size of them, to shard 0, and to the others the
// step's decision with them. `hash` is that of the parameters, where the decision says check.
bel_status *bel_client_stats(bel_client *client, int64_t step, uint32_t decision, int node,
                             uint64_t hash, const double *stats) BEL_MUST_USE;

// --- Rows of tables ------------------------------------------------------------------------------

// Asks the shards for the rows `keys` (ascending, distinct) of a table as they are at `step`; a
// worker that plays its replicas in turns asks for each. All pulls of a step together ask for no
// more than there is room for.
// UNAVAILABLE: a lane was cut.
bel_status *bel_client_pull_rows(bel_client *client, int64_t step, int table, const int64_t *keys,
                                 int64_t count) BEL_MUST_USE;

// Waits for the rows of all tables that were asked for. Errors as those of bel_client_wait.
bel_status *bel_client_wait_rows(bel_client *client, int64_t step) BEL_MUST_USE;

// Where the row of keys[index] lies, `width` floats, until rows of that table are asked for again.
const float *bel_client_row(const bel_client *client, int table, int64_t index);

// Sends node `node`'s sums of rows, with their weight, each to its shard; every shard gets a
// report, even an empty one. The set is copied into the room. For one thread.
bel_status *bel_client_report_rows(bel_client *client, int64_t step, uint32_t decision, int table,
                                   int node, bel_weight weight,
                                   const bel_row_set *set) BEL_MUST_USE;

// --- Collectives ---------------------------------------------------------------------------------

// A piece of a value (ps/layout/exchange.h).
typedef struct bel_client_piece {
    int32_t part, piece; // which collective of the exchange, and which piece of its value
    uint32_t at;         // of the contribution in the room, `bytes` long
    size_t bytes;
    uint32_t answer_at; // of the answer in its room, answer_bytes long
    size_t answer_bytes;
    const char *answer; // out: where it lies until the next call; NULL before
} bel_client_piece;

// Room for contributions, BEL_EXCHANGE_ROOM bytes.
char *bel_client_exchange_room(const bel_client *client);

// Sends up to BEL_EXCHANGE_PIECES pieces of exchange `exchange` of the step, whose contributions
// lie in the room, and waits for all answers. Errors as those of bel_client_wait. For the worker's
// thread.
bel_status *bel_client_exchange(bel_client *client, int64_t step, int exchange,
                                bel_client_piece *pieces, int count) BEL_MUST_USE;

// No replica of the worker has examples in this step: nobody is to wait for it in its exchanges.
bel_status *bel_client_no_exchange(bel_client *client, int64_t step) BEL_MUST_USE;

#endif
