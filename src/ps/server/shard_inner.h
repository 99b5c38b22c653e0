// Inside view of a shard, for the files shard*.c of this folder and
//
//   policy_all.c, policy_ledger.c  counting and answers, with ledger.c, lease.c and answer.c
//   norms.c, values.c, inbox.c     norms, values for workers, destination of frames
//   groups.c, pass.c, ready.c      a step's numbers, arithmetic, work that can begin
#ifndef BELFRY_PS_SERVER_SHARD_INNER_H
#define BELFRY_PS_SERVER_SHARD_INNER_H

#include <pthread.h>

#include "optim/groups.h"
#include "ps/layout/exchange.h"
#include "ps/layout/row_buffer.h"
#include "ps/server/policy.h"
#include "ps/server/shard.h"
#include "ps/table/table.h"

enum { BEL_SHARD_PIECE = 1024 }; // elements worked on at a time: they stay in the L1 cache

typedef enum bel_job_kind {
    BEL_JOB_PASS,   // everything in one pass
    BEL_JOB_SUM,    // sums and grain squares
    BEL_JOB_UPDATE, // the update from the sums
    BEL_JOB_COPY,   // a copy of the values for a worker
    BEL_JOB_ROWS,   // rows requested by a worker; `local` is the table
    BEL_JOB_TABLE,  // the update of table `local`
} bel_job_kind;

enum { BEL_ALL_CHUNKS = -1 }; // in a job, if parameters are on devices

typedef struct bel_shard_job {
    bel_job_kind kind;
    int local;  // index among the shard's chunks, or BEL_ALL_CHUNKS
    int worker; // COPY, ROWS
} bel_shard_job;

typedef struct bel_shard_chunk {
    int chunk;            // index in the layout
    int reported;         // nodes whose report has arrived
    bool queued;          // all counting workers have reported: its pass is queued, or done
    const float **nodes;  // by node: its sums; NULL until they arrive
    bel_weight *weights;  // by node: weight of these sums
    const float **taken;  // by node: as `nodes`, in a pass; NULL: it does not count in the step
    const float **inputs; // by node: as `taken`, at the piece in work
    int64_t replicas;     // number that count in the step, set at its first pass
    int64_t inbox_offset; // this chunk's offset in each inbox
    float *scratch;       // rows of the summation tree, and one piece of the gradient
    bool passed;          // its new values are ready
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
    bool has_snapshot;
} bel_shard_table;

struct bel_shard {
    bel_shard_config config;
    bel_shard_events events;
    const bel_policy *policy;
    // A variable that several step functions update has separate slots for each: the first
    // function's in layer 0, the next one's in layer 1, …
    int slot_counts[BEL_MAX_STEP_FUNCTIONS]; // by layer: maximum over the rules
    bool trusts;                             // a rule has trust ratios
    bool needs_norm;

    // Memory, laid out as the space; only this shard's chunks are touched.
    float *slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS]; // by layer
    float *averages; // moving averages of the values; NULL: not kept
    float *sums;     // needs_norm: scaled gradients between the two passes
    // needs_norm: by grain; for rules with trust ratios, the values' squares follow
    double *grain_squares;
    float *factors; // needs_norm: by variable
    float *snapshot_slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS];

    // Data received from lanes without shared memory.
    float **inboxes;        // by node: the sums of this shard's chunks; NULL: not reserved
    int64_t inbox_elements; // elements of each inbox
    double *stats_inbox;    // by node, bel_stats_size each
    void **row_inboxes;  // by worker: keys and reports of rows, as in its room; NULL: not reserved
    double *norm_inbox;  // shard 0, by shard, bel_shard_norm_count each
    float *factor_inbox; // other shards

    pthread_mutex_t mutex;  // guards all below
    bool has_newcomer;      // a worker was replaced, and no step was checked since (shard_check.c)
    int paused;             // number of calls that suspend the taking of frames
    bool stands;            // one of them persists: the snapshot is of this version
    int64_t published_ns;   // time at which this step began
    int64_t loaded;         // version of the loaded checkpoint
    int64_t step;           // the version that workers compute on
    uint32_t decision;      // this step's; other shards learn it from reports
    bool compares_devices;  // before this step's pass over the devices (shard_check.c)
    uint32_t last_decision; // shard 0: the preceding step's
    bool decision_known;
    bool snapshot_told;
    bel_shard_worker *workers;
    bel_rule_groups groups;
    int *group_of;                        // by function, each by variable and then by table; fixed
    int64_t runs[BEL_MAX_STEP_FUNCTIONS]; // steps of each function before this version
    float average_rest;                   // this step's
    bel_shard_chunk *chunks;
    int chunk_count;
    bel_shard_job *ready; // a stack
    int ready_count, running;
    int summed, passed;        // chunks after the first and after the last pass
    int values_sent;           // chunks with new values: all passed chunks but the frozen ones
    int copies;                // copies for workers, of chunks and rows, under way
    double *stats_values;      // by node: a copy of its step statistics
    const double **stats_list; // by node: its copy; NULL until the statistics arrive
    const double **counting;   // by node: as stats_list, for counting workers; shard 0 sums them
    int stats_count;           // nodes whose step statistics have arrived
    double *stats_sum;
    const double **norms; // shard 0, by shard: its grain squares
    int norm_count;
    bool norms_sent, factors_known;
    bool publishing; // a thread is between the last pass and the publication
    bool starting;   // the first step's decision is not known yet
    bool started;
    bel_status *error;
    bel_shard_counters counters;
    int64_t progress; // frames taken and versions published
    bel_ledger ledger;
    bel_shard_table *tables; // by table of the layout
    void **answer_rooms;     // by worker: the shard's own; NULL: the configuration's
    int tables_done;         // updated in this step
    int *node_firsts;        // by node of the assignment
    // Shard 0, if workers exchange: this step's and the preceding step's, by step mod 2; or NULL.
    bel_exchange_slot *exchange_slots; // by replica: slots of the frame being read
    bel_shard_exchange_step *exchange_steps;
};

// Group of a variable, or of a table with index variable_count + table, in a step function.
static inline const bel_rule_group *bel_shard_group_in(const bel_shard *shard, int function,
                                                       int variable)
{
    const bel_layout *layout = shard->config.layout;
    int count = layout->variable_count + layout->table_count;
    return &shard->groups.items[shard->group_of[function * count + variable]];
}

// The function of this step, once the decision is known.
static inline int bel_shard_function(const bel_shard *shard)
{
    return bel_decision_function(shard->decision);
}

// A variable's group in this step.
static inline const bel_rule_group *bel_shard_group_of(const bel_shard *shard, int variable)
{
    return bel_shard_group_in(shard, bel_shard_function(shard), variable);
}

// Layer of a function's slots of a variable, or of a table with index variable_count + table: the
// number of earlier functions that update it.
static inline int bel_shard_layer(const bel_shard *shard, int function, int variable)
{
    const bel_layout *layout = shard->config.layout;
    int table = variable - layout->variable_count;
    uint32_t kept = table < 0 ? layout->variables[variable].kept_by : layout->tables[table].kept_by;
    int layer = 0;
    for (int f = 0; f < function; f++)
        layer += (kept >> f & 1) == 0;
    return layer;
}

// True if a step of the function updates a trainable variable.
static inline bool bel_shard_updates(const bel_shard *shard, int function, int variable)
{
    const bel_layout_variable *v = &shard->config.layout->variables[variable];
    return v->kind == BEL_VARIABLE_TRAINABLE && (v->kept_by >> function & 1) == 0;
}

// True if this step gives a chunk of this shard new values.
static inline bool bel_shard_changes(const bel_shard *shard, int local)
{
    return bel_chunk_changes(&shard->config.layout->chunks[shard->chunks[local].chunk],
                             bel_shard_function(shard));
}

// True if this step updates rows of a table.
static inline bool bel_shard_changes_table(const bel_shard *shard, int table)
{
    return bel_layout_table_changes(&shard->config.layout->tables[table],
                                    bel_shard_function(shard));
}

// True if parameters are on devices: no work is done chunk by chunk there; one job passes all
// chunks.
static inline bool bel_shard_on_devices(const bel_shard *shard)
{
    return shard->config.updater != NULL;
}

// Number of a shard's sums of squares: of directions, and of values if a rule has trust ratios.
static inline size_t bel_shard_norm_count(const bel_shard *shard)
{
    return (shard->trusts ? 2 : 1) * (size_t)shard->config.layout->grain_count;
}

// pass.c
// Errors: RESOURCE_EXHAUSTED, for rows of a table.
bel_status *bel_shard_run_job(bel_shard *shard, bel_shard_job job) BEL_MUST_USE;
void bel_shard_combine_norms(bel_shard *shard); // shard 0: norms → factors
void bel_shard_copy_to_snapshot(bel_shard *shard, const bel_chunk *chunk, const float *values);

// shard_steps.c: stamps a frame and sends it; skips a lane that is NULL, cut or full.
void bel_shard_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame);
// As bel_shard_send_locked, with the lane's error.
bel_status *bel_shard_try_send_locked(bel_shard *shard, bel_lane *lane,
                                      bel_frame frame) BEL_MUST_USE;
void bel_shard_fail_locked(bel_shard *shard, const bel_frame *frame, const char *what);
void bel_shard_push_locked(bel_shard *shard, bel_shard_job job);
void bel_shard_push_chunk_locked(bel_shard *shard, int local); // the first job of a chunk
void bel_shard_decision_known_locked(bel_shard *shard, uint32_t decision);
bool bel_shard_is_stopping(const bel_shard *shard);      // this step is not run, as far as is known
bool bel_shard_counts(const bel_shard *shard, int node); // does its worker count in this step?
int bel_shard_local_chunk(const bel_shard *shard, int chunk); // its index here; -1: another shard's
// Resets a worker to its state before its first report; keeps the counters.
void bel_shard_reset_worker(bel_shard_worker *worker);
// Forgets a worker's reports since it got its version, including rows.
void bel_shard_forget_report_locked(bel_shard *shard, int worker);

// ready.c. Queues a chunk, a table, or all of them, for which all counting workers have reported.
void bel_shard_look_at_chunk_locked(bel_shard *shard, int local);
void bel_shard_look_at_table_locked(bel_shard *shard, int table);
void bel_shard_look_at_all_locked(bel_shard *shard);
// chunks and tables that this step does not update
void bel_shard_push_kept_locked(bel_shard *shard);

// shard_check.c. Shard 0: adds BEL_DECIDE_CHECK to a decision if it is due. Compares the workers'
// hashes of a step when all its step statistics have arrived; the shard fails if they differ.
uint32_t bel_shard_ask_for_hashes_locked(bel_shard *shard, uint32_t decision);
void bel_shard_compare_hashes_locked(bel_shard *shard);

// shard_frames.c
void bel_shard_drain_locked(bel_shard *shard); // takes all frames that have arrived

// policy_all.c, policy_ledger.c
extern const bel_policy bel_policy_all, bel_policy_backups, bel_policy_async, bel_policy_bounded;

// ledger.c: pages
void bel_ledger_create(bel_shard *shard);
void bel_ledger_destroy(bel_shard *shard);
void bel_ledger_reset_locked(bel_shard *shard);
void bel_ledger_clear_page(const bel_shard *shard, bel_ledger_page *page);
void bel_ledger_close_page_locked(bel_shard *shard); // shard 0: if there are enough reports
void bel_ledger_page_known_locked(bel_shard *shard); // queues the work that is ready now
// Shard 0, when all blocks are leased: can a report of the worker still count in a step of that
// function? `used_up`: its report under way counts in the step before that one.
bool bel_ledger_may_report(const bel_shard *shard, int worker, int function, bool used_up);
// Shard 0: adds a frame for another shard.
void bel_ledger_put_mail(bel_shard *shard, int other, bel_frame frame);
// Sends the frames for all other shards, as far as their lanes have room.
void bel_ledger_send_mail_locked(bel_shard *shard);
static inline bel_ledger_page *bel_ledger_page_of(const bel_shard *shard, int64_t step)
{
    return &shard->ledger.pages[step % shard->ledger.page_count];
}

// lease.c. Shard 0.
bool bel_ledger_has_blocks(const bel_ledger *ledger); // blocks that are not leased
void bel_ledger_lease_locked(bel_shard *shard, int worker);
void bel_ledger_use_up_lease(bel_shard_worker *worker);
void bel_ledger_return_leases(bel_shard *shard, bel_shard_worker *worker);

// Assigns the step function that the worker reports next, as its answer names it; -1: no step is
// requested.
int bel_ledger_hand_function(bel_shard *shard, int worker);
void bel_ledger_regain_function(bel_ledger *ledger, bel_shard_worker *worker); // the worker is lost

// answer.c. Answers a worker that has no report under way with the values of this step, which is
// `version`, to compute on with that step function.
void bel_ledger_answer_locked(bel_shard *shard, int worker, int64_t version, int function);
void bel_ledger_copied_locked(bel_shard *shard, int worker);
void bel_ledger_take_answer_locked(bel_shard *shard, const bel_frame *frame);
// Other shards: gives the answers of shard 0 that are due; updates the page when all are given.
void bel_ledger_give_answers_locked(bel_shard *shard);

// norms.c. Sends or combines norms when they are due.
void bel_shard_move_norms_locked(bel_shard *shard);
// Takes received norms, or the factors that follow from them.
void bel_shard_take_norms_locked(bel_shard *shard, const bel_frame *frame);

// values.c. Sends a chunk's new values to workers that follow, as soon as it is passed …
void bel_shard_send_passed_locked(bel_shard *shard, int local);
// … and then the version, with the number of chunks that were sent.
void bel_shard_send_version_locked(bel_shard *shard, int worker, int64_t version, int chunks);
// Sends all of this step's version, or of the preceding one.
void bel_shard_send_whole_locked(bel_shard *shard, int worker, int64_t version);
// True for a worker that needs no frames of values, and for an absent worker.
bool bel_shard_reads_in_place(const bel_shard *shard, int worker);
// With a ledger: copies a chunk's values of this step into the worker's outbox. Without the lock.
void bel_shard_copy_values(const bel_shard *shard, int local, int worker);

// groups.c
void bel_shard_make_groups(bel_shard *shard);
void bel_shard_begin_numbers(bel_shard *shard); // for shard->step

// shard_exchange.c
void bel_shard_create_exchanges(bel_shard *shard);
void bel_shard_destroy_exchanges(bel_shard *shard);
void bel_shard_take_exchange_locked(bel_shard *shard, const bel_frame *frame, int worker);
void bel_shard_forget_exchanges_locked(bel_shard *shard); // another generation begins
// Another process is the worker now; it has received no answers.
void bel_shard_forget_voice_locked(bel_shard *shard, int worker);
// Appends the workers that an exchange under way waits for, in words; nothing without an exchange.
void bel_shard_exchange_missing(const bel_shard *shard, bel_str *out);

// shard_rows.c
bel_status *bel_shard_create_tables(bel_shard *shard) BEL_MUST_USE;
void bel_shard_destroy_tables(bel_shard *shard);
void bel_shard_begin_tables_locked(bel_shard *shard);
void bel_shard_take_row_pull_locked(bel_shard *shard, const bel_frame *frame, int worker);
// Keeps a worker's report of one of its nodes; false: it is a repeat, or malformed.
bool bel_shard_keep_rows_locked(bel_shard *shard, const bel_frame *frame,
                                const bel_row_report_frame *report, bel_weight weight);
void bel_shard_forget_pulls_locked(bel_shard *shard,
                                   int worker); // for a step that is repeated
// its successor does not repeat the step
void bel_shard_end_pulls_locked(bel_shard *shard, int worker);
void bel_shard_answer_waiting_locked(bel_shard *shard); // row pulls that had to wait
void bel_shard_table_updated_locked(bel_shard *shard, int table);
void bel_shard_table_due_locked(bel_shard *shard, int table); // updates it once it has no readers
void bel_shard_answer_rows(bel_shard *shard, int table, int worker); // without the lock
void bel_shard_rows_answered_locked(bel_shard *shard, int table, int worker);
bel_status *bel_shard_update_table(bel_shard *shard, int table) BEL_MUST_USE; // without the lock
bel_status *bel_shard_load_tables(bel_shard *shard, const bel_ckpt_reader *reader) BEL_MUST_USE;
bel_status *bel_shard_mark_tables(bel_shard *shard) BEL_MUST_USE; // snapshot of the present state

// shard_device.c, on devices. Plans the update, after all arrays are created.
bel_status *bel_shard_plan_devices(bel_shard *shard) BEL_MUST_USE;
// Queues the job of a pass over all chunks, of kind PASS, SUM or UPDATE.
void bel_shard_push_all_locked(bel_shard *shard, bel_job_kind kind);
// Runs that pass.
bel_status *bel_shard_pass_devices(bel_shard *shard, bel_job_kind kind) BEL_MUST_USE;
bel_status *bel_shard_save_devices(bel_shard *shard) BEL_MUST_USE; // to the snapshot

// inbox.c
void bel_shard_free_inboxes(bel_shard *shard);

#endif
