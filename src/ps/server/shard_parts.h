// Parts of a shard: its jobs, chunks, workers, ledger and tables, and what one step needs.
//
// bel_shard (shard_inner.h) has one of each, or an array. Its mutex guards all of them but the
// rules, the memory and the inboxes: the first are fixed, and a pass or a lane writes the others
// without the lock, each chunk by one thread.
#ifndef BELFRY_PS_SERVER_SHARD_PARTS_H
#define BELFRY_PS_SERVER_SHARD_PARTS_H

#include <stdatomic.h>

#include "optim/groups.h"
#include "ps/layout/exchange.h"
#include "ps/layout/norms.h"
#include "ps/layout/report_room.h"
#include "ps/layout/row_buffer.h"
#include "ps/server/policy.h"
#include "ps/server/shard.h"
#include "ps/table/table.h"

typedef enum bel_job_kind {
    BEL_JOB_PASS,   // everything in one pass
    BEL_JOB_SUM,    // sums and grain squares
    BEL_JOB_UPDATE, // the update from the sums
    BEL_JOB_COPY,   // a copy of the values for a worker
    BEL_JOB_ROWS,   // rows requested by a worker; `local` is the table
    BEL_JOB_TABLE,  // the update of table `local`
    BEL_JOB_MERGE,  // a subtree of a chunk's reports into one slot (report_room.c)
    BEL_JOB_MIRROR, // the sum of a chunk's reports, which goes to the mirror (mirror.c)
} bel_job_kind;

enum { BEL_ALL_CHUNKS = -1 }; // in a job, if parameters are on devices

typedef struct bel_shard_job {
    bel_job_kind kind;
    int local;  // index among the shard's chunks, or BEL_ALL_CHUNKS
    int worker; // COPY, ROWS
    int node;   // MERGE: the first of the subtree
    int level;  // MERGE: the subtree's
} bel_shard_job;

typedef struct bel_shard_chunk {
    int chunk;            // index in the layout
    int reported;         // nodes whose report has arrived
    bool queued;          // all counting workers have reported: its pass is queued, or done
    const float **nodes;  // by node: its sums; NULL until they arrive
    bool *packed;         // by node: its sums have the narrow type
    bel_weight *weights;  // by node: weight of these sums
    const float **taken;  // by node: as `nodes`, in a pass; NULL: it does not count in the step
    const void **inputs;  // by node: as `taken`, at the piece in work
    int64_t replicas;     // number that count in the step, set at its first pass
    int64_t inbox_offset; // this chunk's offset in each inbox
    float *scratch;       // rows of the summation tree, and two pieces
    bool passed;          // its new values are ready
    bool summed;          // a relay: its sums were reported
    const void *sum;      // the reports' sum, which was sent to the mirror; NULL: not yet
    bool differs;         // memory.differences has what they differ by from the old ones
    int64_t version;      // its values' version; after bel_shard_continue perhaps the next one
    unsigned arrays;      // those of its state that have come, a bit for each (mirror_state.c)
    // If reports are merged:
    signed char *levels; // by node: level of the subtree whose sum is there; -1: part of another
    bool *merging;       // by node: a job reads it
    int merges;          // jobs queued or running
} bel_shard_chunk;

// State of a worker's values. A late worker gets all of the next version when it is published; one
// that follows gets every chunk as soon as it is passed.
typedef enum bel_shard_reader {
    BEL_READER_NONE,
    BEL_READER_BEHIND,
    BEL_READER_FOLLOWS
} bel_shard_reader;

typedef struct bel_shard_worker {
    uint32_t incarnation;
    bel_shard_reader reader;
    int64_t version;     // the last version that was sent to it
    bool complete;       // its report on that version has arrived, with all step statistics
    uint64_t hash;       // from these statistics
    int64_t complete_ns; // time of completion
    int64_t counted;     // its reports that were counted
    // With a ledger:
    int function;   // step function of its report
    bool handed;    // shard 0: that function was assigned to it (lease.c), and is not counted yet
    int copies;     // chunks whose copies for it are not finished
    int64_t answer; // version of these copies
    int64_t counted_step; // shard 0: the last step that counted it; -1: no step
    int64_t dropped;      // shard 0: its reports that were dropped
    int64_t stale;        // shard 0: its counted reports on older versions
    bool held;            // shard 0: is owed a version, when it may continue
    int64_t leases[2];    // shard 0: first blocks of its leases that are not used up, in order
    int lease_count;
    int64_t leased; // shard 0: number of leases so far
} bel_shard_worker;

// A page of the ledger: the workers that count in a step.
typedef struct bel_ledger_page {
    bool known;
    uint32_t decision;
    bool *counts;    // by worker
    int named;       // number of counting workers known so far
    int needed;      // other shards: number of counting workers; 0: not known yet
    int64_t answers; // other shards: number of answers given before this step was closed
} bel_ledger_page;

// Shard 0: frames to send to another shard, in order. Its lane may be full for a moment, as no
// frames come back on it that would confirm the received ones.
typedef struct bel_ledger_mail {
    bel_frame *frames;
    size_t count, capacity;
} bel_ledger_mail;

typedef struct bel_ledger {
    bel_ledger_page *pages; // by step mod page_count
    int page_count;
    bel_ledger_mail *mail; // shard 0: by shard
    int *queue; // shard 0: workers with complete reports that do not count yet, by arrival
    int queue_count;
    int64_t next_block; // shard 0: the first block that was never leased
    int64_t block_end;  // shard 0: end of the last block
    int64_t *returned;  // shard 0: first blocks of the leases of lost workers
    int returned_count;
    int64_t leased; // next_block when the newest snapshot was made
    // Shard 0, with several step functions, where a report may be of a later step than the one in
    // progress: the number of reports still to be assigned for the step on that version …
    int64_t asked_step;
    int asked_left;
    int *regained; // … after these functions of lost workers
    int regained_count;
    bool starved;    // a worker that may continue waits for a request for a step …
    int turn;        // … and is the first that gets one
    int64_t answers; // shard 0: number given so far; other shards: the first not given yet
    bel_answer_frame *waiting; // other shards: answers for later versions
    size_t waiting_count, waiting_capacity;
    int64_t stale[BEL_STALENESS_BINS];
} bel_ledger;

// A worker's requests for rows in a step, in one pull or several. The answers stay until its
// requests in the next step: its successor may have to repeat this step after the rows are updated.
typedef struct bel_shard_pull {
    bool busy;           // the newest pull is not yet answered …
    bool waits;          // … and its job is not queued, either
    int64_t step;        // -1: no step
    int32_t limit;       // maximum number of pulls of a step
    int32_t number;      // the newest pull's
    int32_t again;       // a successor may repeat pulls from this one on; `limit`: no pull
    const int64_t *keys; // the newest pull's; NULL: no longer known
    int64_t *counts;     // by number: rows; -1: no pull
    int64_t *firsts;     // by number: their offset in `rows`, in floats
    int64_t asked, most; // rows of the step so far, and their maximum
    int64_t used;        // part of `rows` in use, in floats
    float *rows;
    uint32_t *places; // places of the newest pull's rows in the table
} bel_shard_pull;

typedef struct bel_shard_exchange_step bel_shard_exchange_step;

typedef struct bel_shard_table {
    bel_table *table;
    bel_row_set *reports; // by node
    bel_weight *weights;  // by node: weight of these reports
    bool *reported;       // by node
    bel_row_set *sets;    // by node: scratch of a sum
    bel_weight *set_weights;
    bool queued;           // all counting workers have reported: its update is due, queued or done
    int readers;           // answers being copied; they delay an update …
    bool due;              // … that is due and starts when they are done
    bool updating;         // answers wait meanwhile
    bel_shard_pull *pulls; // by worker
    bel_row_sum sum;
    uint32_t *places; // places of the updated rows
    size_t place_capacity;
    float *means; // for rows whose mean is over their contributors
    size_t mean_capacity;
    // bel_table_refused and bel_table_count_all as of the last update.
    int64_t refused;
    bel_table_tally tally;
    bool has_snapshot;
    atomic_bool released; // the snapshot is over, and there is no next one yet
} bel_shard_table;

// How variables and tables are updated. Fixed, but for the numbers of the step.
typedef struct bel_shard_rules {
    // A variable that several step functions update has separate slots for each: the first
    // function's in layer 0, the next one's in layer 1, …
    int slot_counts[BEL_MAX_STEP_FUNCTIONS]; // by layer: maximum over the rules
    bool trusts;                             // a rule has trust ratios
    bool needs_norm;
    bel_rule_groups groups;
    int *group_of;                        // by function, each by variable and then by table
    int64_t runs[BEL_MAX_STEP_FUNCTIONS]; // steps of each function before this version
    float average_rest;                   // this step's
} bel_shard_rules;

// Arrays laid out as the space; only this shard's chunks are touched. A pass writes them without
// the lock, chunk by chunk.
typedef struct bel_shard_memory {
    float *slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS]; // by layer
    float *averages; // moving averages of the values; NULL: not kept
    // needs_norm: scaled gradients between the two passes; NULL: they are in the buffer of the next
    // version
    float *sums;
    // needs_norm: by grain; for rules with trust ratios, the values' squares follow
    double *grain_squares;
    float *factors; // needs_norm: by variable
    // If updates are rounded and values go to workers: the last ones, in the narrow type.
    void *differences;
    float *snapshot_slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS];
    // No step runs: the snapshot is not a copy, but `slots`, and perhaps the values in the space.
    bool slots_live, values_live;
} bel_shard_memory;

// Destinations of frames from lanes without shared memory (inbox.c).
typedef struct bel_shard_inbox {
    float **sums;     // by node: the sums of this shard's chunks; NULL: not reserved
    int64_t elements; // length of each of `sums`
    double *stats;    // by node, bel_stats_size each
    void **rows;      // by worker: keys and reports of rows, as in its room; NULL: not reserved
    double **norms;   // shard 0, by shard: bel_shard_norm_bytes each
    float *factors;   // other shards
} bel_shard_inbox;

// Slots for reports, if there is no room for all of them (ps/layout/report_room.h). The lanes'
// threads read `places` and `version` without the lock.
typedef struct bel_shard_room {
    bel_report_room plan;
    char *memory; // the slots, and one more for reports that come again; NULL: there is no limit,
                  // or no worker needs room
    int *free;    // a stack of free slots
    int free_count;
    int *slots;           // by part and node: its slot; -1: it has none
    atomic_int *places;   // the same for lanes; plan.slots: its report has come
    atomic_llong version; // version that these reports are computed on
    int *parts;           // by function and chunk of the shard: its part; -1: not changed
    int counts[BEL_MAX_STEP_FUNCTIONS]; // parts of a report, by function
    int *given;                         // by worker: its parts that have got slots
    int part, worker;                   // the next ones that get slots
} bel_shard_room;

// Decision about this step: its function, and whether it saves, evaluates, checks or stops.
typedef struct bel_shard_decision {
    uint32_t now;  // once `known`; other shards learn it from reports
    uint32_t last; // shard 0: the preceding step's
    bool known;
    bool compares_devices; // before this step's pass over the devices (shard_check.c)
} bel_shard_decision;

// Calls that suspend the taking of frames.
typedef struct bel_shard_pause {
    int calls;
    bool stands; // one of them persists: the snapshot is of this version
    bool snapshot_told;
} bel_shard_pause;

// This step's work: jobs that can begin, and how many are done.
typedef struct bel_shard_step_work {
    bel_shard_job *ready; // a stack
    int ready_count, running;
    int summed, passed; // chunks after the first and after the last pass
    int values_sent;    // chunks with new values: all passed chunks but the frozen ones
    int copies;         // copies for workers, of chunks and rows, under way
    int tables_done;    // updated in this step
    bool publishing;    // a thread is between the last pass and the publication
} bel_shard_step_work;

// Step statistics by node.
typedef struct bel_shard_stats {
    double *values;          // a copy of each node's
    const double **list;     // each node's copy; NULL until the statistics arrive
    const double **counting; // as `list`, for counting workers; shard 0 sums them
    int count;               // nodes whose step statistics have arrived
    double *sum;
    bool told; // a relay: they were reported
} bel_shard_stats;

// Norms of this step, with which shard 0 makes factors for all shards (norms.c).
typedef struct bel_shard_norms {
    const double **squares; // shard 0, by shard: the squares that it has sent
    double *list;           // other shards: their squares, as they are sent
    int count;
    bool sent, factors_known;
} bel_shard_norms;

// The part of this step that goes to the shard's mirror (mirror.c).
typedef struct bel_shard_mirror {
    float *sums;     // laid out as the space; NULL: the shard has no mirror
    double *stats;   // sums of the step statistics
    int sent;        // chunks whose sums were sent
    bool told;       // the step statistics were sent, after all sums
    int64_t version; // the mirror's newest version; -1: not known yet
    // A mirror:
    bool has_factors; // they have come
} bel_shard_mirror;

// A state that comes from another process (mirror_state.c), or goes to one. Lanes' threads read
// `expects`.
typedef struct bel_shard_transfer {
    atomic_bool expects;
    double *numbers; // received points, or points that are sent: the shard's life long, as a closed
                     // lane may still read them
    bel_control_point *points; // the received ones
    int point_count;
} bel_shard_transfer;

// Shard 0, if workers exchange: this step's and the preceding step's, by step mod 2; or NULL.
typedef struct bel_shard_exchanges {
    bel_exchange_slot *slots; // by replica: slots of the frame being read
    bel_shard_exchange_step *steps;
} bel_shard_exchanges;

#endif
