// Control messages as plain structs, and their form on the wire: protobuf, each behind its length
// (u32, little-endian). docs/protocol.md is normative.
#ifndef BELFRY_WIRE_MESSAGE_H
#define BELFRY_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/optimizer.h"
#include "belfry/status.h"

enum { BEL_PROTOCOL_VERSION = 7, BEL_MESSAGE_MAX_BYTES = 64 << 20 };

// Kinds, and the fields of bel_message that each uses. Members put the generation of their state
// into all but pings: what belongs to another one is void.
typedef enum bel_message_kind {
    BEL_MESSAGE_PING = 1, // either way, every second
    BEL_MESSAGE_JOIN,     // member → master: protocol, text (version of Belfry), role,
                          // index, incarnation, host, pid, address, folder (token), settings;
                          // generation (of the state it holds, 0: none), step, clock
    BEL_MESSAGE_SETUP,  // master → member: begin anew with generation, folder (checkpoint), step
                        // (worker's first), addresses (of shards), schedule, replicas
                        // and incarnations (by worker), clock, clock_lead; for shards: variables,
                        // tables, optimizer, seed
    BEL_MESSAGE_STATUS, // member → master, every second: step, text (what it does or waits for),
                        // numbers (monitoring/numbers.h)
    BEL_MESSAGE_PROGRESS, // shard 0 → master: step, loss, examples, points, interrupted,
                          // paused, over, stale (reports by lateness, then those dropped)
    BEL_MESSAGE_SNAPSHOT, // shard → master: the snapshot of step is complete; save, eval, leased
    BEL_MESSAGE_SAVE,     // master → shard: write the snapshot of step into folder
    BEL_MESSAGE_SAVED,    // shard → master: step; data (bel_ckpt_shard), or code and text
    BEL_MESSAGE_VALUES,   // master → shard: send the snapshot of step on the master's lane
    BEL_MESSAGE_RELEASE,  // master → shard 0: the snapshot may be overwritten
    BEL_MESSAGE_STOP,     // member → master, master → shard 0: save and end (text: why)
    BEL_MESSAGE_ENDED,  // worker → master: step, code and text, times, numbers; evaluator: text;
                        // shard: only on failure
    BEL_MESSAGE_FINISH, // master → shard: training is over, take a snapshot of the end
    BEL_MESSAGE_END,    // master → member: the job is over; code, text
    BEL_MESSAGE_ADMIT,  // master → shard: worker index is replaced by this incarnation
    BEL_MESSAGE_ADMITTED, // shard → master: index, incarnation; step at which the shard stands;
                          // counted (from shard 0: the last step it counted in)
    BEL_MESSAGE_PAUSE, // master → shard 0: training stops at the next version, and goes on with
                       // another assignment of replicas
    BEL_MESSAGE_EVALUATED, // evaluator → master, before it has ended: index (of the evaluation),
                           // step, loss, examples, settings (mean loss of batches, metrics)
    BEL_MESSAGE_KIND_COUNT
} bel_message_kind;

typedef struct bel_message_setting {
    char *name, *value;
} bel_message_setting;

typedef struct bel_message_variable {
    char *name;
    int32_t kind; // bel_variable_kind
    bel_shape shape;
} bel_message_variable;

typedef struct bel_message_table {
    char *name;
    int32_t width, start; // bel_init_kind
    double start_value;
    int64_t ids; // that a replica's batch has at most
} bel_message_table;

typedef struct bel_message_point {
    int64_t step;
    double loss, examples_per_second;
} bel_message_point;

typedef struct bel_message_schedule {
    int64_t first_step, last_step, save_steps, eval_steps, series_steps;
    double save_secs;
    int64_t segment_first_step, segment_first_block, segment_replica_count;
    int32_t counting_workers; // bel_counting
    bool takes_stale;
    int64_t max_lead, block_end;
} bel_message_schedule;

typedef struct bel_message_times {
    int64_t input_ns, compute_ns, exchange_ns, total_ns, steps;
} bel_message_times;

// Zero-initialise. A sender's texts and lists are borrowed; a message that was read owns them.
// Texts are never NULL in a message that was read.
typedef struct bel_message {
    bel_message_kind kind;
    int32_t protocol;
    int32_t role, index;
    uint32_t generation, incarnation;
    int64_t step;
    int32_t code;
    char *text, *host, *address, *folder;
    int64_t pid;
    char **addresses;
    size_t address_count;
    bel_message_setting *settings;
    size_t setting_count;
    bel_message_schedule schedule;
    bel_message_variable *variables;
    size_t variable_count;
    bel_message_table *tables;
    size_t table_count;
    uint64_t seed; // of the job
    bel_optimizer optimizer;
    int32_t *replicas;
    size_t replica_count;
    uint32_t *incarnations;
    size_t incarnation_count;
    double loss;
    int64_t examples;
    bel_message_point *points;
    size_t point_count;
    bool save, eval, interrupted, paused, over;
    int64_t *stale; // reports by lateness, then those that were dropped
    size_t stale_count;
    int64_t leased, counted;
    double *numbers;
    size_t number_count;
    int64_t clock_ns;      // the sender's, when it sent this
    int64_t clock_lead_ns; // the master's when it took the join, less what the join said
    bel_message_times times;
    uint8_t *data;
    size_t data_bytes;
} bel_message;

// The message with its length in front; free with bel_free.
uint8_t *bel_message_write(const bel_message *message, size_t *out_bytes);

// Reads one message without its length. INVALID_ARGUMENT: it is none.
bel_status *bel_message_read(const uint8_t *bytes, size_t count,
                             bel_message *out_message) BEL_MUST_USE;

// Frees what a message that was read owns.
void bel_message_deinit(bel_message *message);

const char *bel_message_kind_name(bel_message_kind kind);

#endif
