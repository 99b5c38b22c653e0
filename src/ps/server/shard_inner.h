// The inside of a shard, for shard_life.c (its memory), shard.c (steps), shard_frames.c (what comes
// in), policy_all.c and policy_ledger.c (who counts, who is answered) with ledger.c (pages of the
// ledger), lease.c and answer.c, norms.c, shard_check.c (do workers see the
// same), values.c (what workers are sent), shard_rows.c (tables),
// inbox.c, groups.c (a step's numbers), pass.c (arithmetic), shard_device.c (the same on devices),
// shard_state.c (files).
#ifndef BELFRY_PS_SERVER_SHARD_INNER_H
#define BELFRY_PS_SERVER_SHARD_INNER_H

#include <pthread.h>

#include "optim/groups.h"
#include "ps/layout/exchange.h"
#include "ps/layout/row_buffer.h"
#include "ps/server/policy.h"
#include "ps/server/shard.h"
#include "ps/table/table.h"

enum { BEL_SHARD_PIECE = 1024 }; // elements worked on at a time: they stay in the first-level cache

typedef enum bel_job_kind {
    BEL_JOB_PASS,   // everything in one pass
    BEL_JOB_SUM,    // sums and grain squares
    BEL_JOB_UPDATE, // the update from the sums
    BEL_JOB_COPY,   // the values for a worker
    BEL_JOB_ROWS,   // rows that a worker asked for; `local` is the table
    BEL_JOB_TABLE,  // the update of table `local`
} bel_job_kind;

enum { BEL_ALL_CHUNKS = -1 }; // of a job, where parameters lie on devices

typedef struct bel_shard_job {
    bel_job_kind kind;
    int local;  // index among the shard's chunks, or BEL_ALL_CHUNKS
    int worker; // COPY, ROWS
} bel_shard_job;

typedef struct bel_shard_chunk {
    int chunk;            // index in the layout
    int reported;         // nodes whose report is in
    bool queued;          // all that count have reported: its pass is queued, or done
    const float **nodes;  // by node: where its sums lie, NULL until it is in
    bel_weight *weights;  // by node: of these sums
    const float **taken;  // by node: the same in a pass, NULL: it does not count in the step
    const float **inputs; // by node: the same at the piece in work
    int64_t replicas;     // that count in the step, once its first pass has begun
    int64_t inbox_offset; // of this chunk in each inbox
    float *scratch;       // rows of the summation tree, and one piece of the gradient
    bool passed;          // its new values are there
} bel_shard_chunk;

// What a worker has of the values. One that is behind gets the next version as a whole when it is
// published; one that follows gets every chunk as soon as it is passed.
typedef enum bel_shard_reader {
    BEL_READER_NONE,
    BEL_READER_BEHIND,
    BEL_READER_FOLLOWS
} bel_shard_reader;

typedef struct bel_shard_worker {
    uint32_t incarnation;
    bel_shard_reader reader;
    int64_t version;     // that it was sent last
    bool complete;       // its report on that version is in, with all step statistics
    uint64_t hash;       // that these said
    int64_t complete_ns; // since when
    int64_t counted;     // its reports that were counted
    // With a ledger:
    int function;         // the step function that its report is of
    bool handed;          // shard 0: that was handed to it (lease.c), and is not counted yet
    int copies;           // chunks that are still copied for it
    int64_t answer;       // the version that they belong to
    int64_t counted_step; // shard 0: the last that it counted in, -1: none
    int64_t dropped;      // shard 0: its reports that were dropped
    int64_t stale;        // shard 0: its counted reports on older versions
    bool held;            // shard 0: is owed a version, when it may go on
    int64_t leases[2];    // shard 0: first blocks leased and not used up, in order
    int lease_count;
    int64_t leased; // shard 0: leases so far
} bel_shard_worker;

// A page of the ledger: who counts in a step.
typedef struct bel_ledger_page {
    bool known;
    uint32_t decision;
    bool *counts;    // by worker
    int named;       // workers that count, as far as they are known
    int needed;      // other shards: so many will be; 0: not known yet
    int64_t answers; // other shards: so many were given before this step was closed
} bel_ledger_page;

// Shard 0: what another shard has still to be told, in order. Its lane may be full for a moment, as
// nothing goes back on it that would say what was taken.
typedef struct bel_ledger_mail {
    bel_frame *frames;
    size_t count, capacity;
} bel_ledger_mail;

typedef struct bel_ledger {
    bel_ledger_page *pages; // by step mod page_count
    int page_count;
    bel_ledger_mail *mail; // shard 0: by shard
    int *queue; // shard 0: workers whose reports are complete and do not count yet, as they came
    int queue_count;
    int64_t next_block; // shard 0: the first that was never leased
    int64_t block_end;  // shard 0: behind the last
    int64_t *returned;  // shard 0: first blocks whose worker was lost with them
    int returned_count;
    int64_t leased; // next_block when the newest snapshot was made
    // Shard 0, with several step functions, whose reports may be of a later step than is made: so
    // many reports of the step on that version are still to be handed out, …
    int64_t asked_step;
    int asked_left;
    int *regained; // … but those first that workers were lost with
    int regained_count;
    bool starved;    // a worker that may go on waits for a step to be asked for …
    int turn;        // … and is the first that gets one
    int64_t answers; // shard 0: given so far; other shards: the first that is not given yet
    bel_answer_frame *waiting; // other shards: those of versions to come
    size_t waiting_count, waiting_capacity;
    int64_t stale[BEL_STALENESS_BINS];
} bel_ledger;

// Rows that a worker asks for in a step, in one pull or several. The answers stay until it
// asks in the next step: its successor may have to repeat this one when the rows are updated.
typedef struct bel_shard_pull {
    bool busy;           // the newest is not yet answered …
    bool waits;          // … and is not being worked on, either
    int64_t step;        // -1: none
    int32_t limit;       // pulls of a step
    int32_t number;      // of the newest
    int32_t again;       // a successor may ask from this one on once more; `limit`: it may not
    const int64_t *keys; // of the newest; NULL: not known any more
    int64_t *counts;     // by number: rows, -1: none were asked for
    int64_t *firsts;     // by number: where they begin in `rows`, in floats
    int64_t asked, most; // rows of the step so far, and at most
    int64_t used;        // of `rows`, in floats
    float *rows;
    uint32_t *places; // where the newest's rows are in the table
} bel_shard_pull;

typedef struct bel_shard_exchange_step bel_shard_exchange_step;

typedef struct bel_shard_table {
    bel_table *table;
    bel_row_set *reports; // by node
    bel_weight *weights;  // by node: of these
    bool *reported;       // by node
    bel_row_set *sets;    // by node: scratch of a sum
    bel_weight *set_weights;
    bool queued;           // all that count have reported: its update is due, queued or done
    int readers;           // answers being worked on; then nothing is updated …
    bool due;              // … but will be, as soon as they are done
    bool updating;         // then nothing is answered
    bel_shard_pull *pulls; // by worker
    bel_row_sum sum;
    uint32_t *places; // of the rows that are updated
    size_t place_capacity;
    float *means; // where a row's mean is that over its contributors
    size_t mean_capacity;
    bool has_snapshot;
} bel_shard_table;

struct bel_shard {
    bel_shard_config config;
    bel_shard_events events;
    const bel_policy *policy;
    // A variable that several step functions update has the slots of each: the first one's in layer
    // 0, the next one's in layer 1, …
    int slot_counts[BEL_MAX_STEP_FUNCTIONS]; // by layer: the most that a rule has
    bool trusts;                             // a rule does
    bool needs_norm;

    // Memory, laid out as the space; only this shard's chunks are touched.
    float *slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS]; // by layer
    float *averages;                                          // of the values; NULL: not kept
    float *sums;           // needs_norm: scaled gradients between the two passes
    double *grain_squares; // needs_norm: by grain; of rules that trust, then those of the values
    float *factors;        // needs_norm: by variable
    float *snapshot_slots[BEL_MAX_STEP_FUNCTIONS][BEL_RULE_MAX_SLOTS];

    // What lanes without shared memory bring in.
    float **inboxes;        // by node: the sums of this shard's chunks; NULL: not reserved
    int64_t inbox_elements; // of each
    double *stats_inbox;    // by node, bel_stats_size each
    void **row_inboxes;  // by worker: keys and reports of rows, as in its room; NULL: not reserved
    double *norm_inbox;  // shard 0, by shard, bel_shard_norm_count each
    float *factor_inbox; // other shards

    pthread_mutex_t mutex;  // guards all below
    bool has_newcomer;      // a worker was replaced, and no step was checked since (shard_check.c)
    int paused;             // calls for which nothing new is taken in
    bool stands;            // one of them is to last: the snapshot is of this version
    int64_t published_ns;   // when this step began
    int64_t loaded;         // the version that a checkpoint brought
    int64_t step;           // the version that workers compute on
    uint32_t decision;      // of this step; other shards learn it from reports
    bool compares_devices;  // before this step's pass over them (shard_check.c)
    uint32_t last_decision; // shard 0: of the step before
    bool decision_known;
    bool snapshot_told;
    bel_shard_worker *workers;
    bel_rule_groups groups;
    int *group_of;                        // by function, each by variable and then by table; fixed
    int64_t runs[BEL_MAX_STEP_FUNCTIONS]; // steps of each function before this version
    float average_rest;                   // of this step
    bel_shard_chunk *chunks;
    int chunk_count;
    bel_shard_job *ready; // a stack
    int ready_count, running;
    int summed, passed;        // chunks through the first and the last pass
    int values_sent;           // chunks with new values: all passed ones but the frozen
    int copies;                // for workers, of chunks and rows, under way
    double *stats_values;      // by node: a copy of its step statistics
    const double **stats_list; // by node: where it lies, NULL until they are in
    const double **counting;   // by node: the same of those who count; shard 0 sums them
    int stats_count;           // nodes whose step statistics are in
    double *stats_sum;
    const double **norms; // shard 0, by shard: its grain squares
    int norm_count;
    bool norms_sent, factors_known;
    bool publishing; // some thread is between the last pass and the publication
    bool starting;   // it is not decided yet what the first step does
    bool started;
    bel_status *error;
    bel_shard_counters counters;
    int64_t progress; // frames taken and versions published
    bel_ledger ledger;
    bel_shard_table *tables; // by table of the layout
    void **answer_rooms;     // by worker: the shard's own; NULL: they are the configuration's
    int tables_done;         // updated in this step
    int *node_firsts;        // by node of the assignment
    // Shard 0, where workers exchange: this step's and the one's before, by step mod 2; or NULL.
    bel_exchange_slot *exchange_slots; // by replica: of the frame that is read
    bel_shard_exchange_step *exchange_steps;
};

// That of a variable, or of a table behind the last one, in a step function.
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

// Which layer of slots of a variable, or of a table behind the last one, is a function's: those
// before it that update it, too.
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

// Whether a step of the function updates a trainable variable.
static inline bool bel_shard_updates(const bel_shard *shard, int function, int variable)
{
    const bel_layout_variable *v = &shard->config.layout->variables[variable];
    return v->kind == BEL_VARIABLE_TRAINABLE && (v->kept_by >> function & 1) == 0;
}

// Whether this step brings a chunk of this shard new values.
static inline bool bel_shard_changes(const bel_shard *shard, int local)
{
    return bel_chunk_changes(&shard->config.layout->chunks[shard->chunks[local].chunk],
                             bel_shard_function(shard));
}

// Whether this step updates rows of a table.
static inline bool bel_shard_changes_table(const bel_shard *shard, int table)
{
    return bel_layout_table_changes(&shard->config.layout->tables[table],
                                    bel_shard_function(shard));
}

// Parameters lie on devices: nothing goes chunk by chunk there, and one job passes them all.
static inline bool bel_shard_on_devices(const bel_shard *shard)
{
    return shard->config.updater != NULL;
}

// How many sums of squares a shard has: of directions, and of values where a rule trusts.
static inline size_t bel_shard_norm_count(const bel_shard *shard)
{
    return (shard->trusts ? 2 : 1) * (size_t)shard->config.layout->grain_count;
}

// pass.c
// Errors: RESOURCE_EXHAUSTED, for rows of a table.
bel_status *bel_shard_run_job(bel_shard *shard, bel_shard_job job) BEL_MUST_USE;
void bel_shard_combine_norms(bel_shard *shard); // shard 0: norms → factors
void bel_shard_copy_to_snapshot(bel_shard *shard, const bel_chunk *chunk, const float *values);

// shard_steps.c: stamps a frame and sends it; a lane that is NULL, cut or full is passed over.
void bel_shard_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame);
// The same; the error is the lane's.
bel_status *bel_shard_try_send_locked(bel_shard *shard, bel_lane *lane,
                                      bel_frame frame) BEL_MUST_USE;
void bel_shard_fail_locked(bel_shard *shard, const bel_frame *frame, const char *what);
void bel_shard_push_locked(bel_shard *shard, bel_shard_job job);
void bel_shard_push_chunk_locked(bel_shard *shard, int local); // the first job of a chunk
void bel_shard_decision_known_locked(bel_shard *shard, uint32_t decision);
bool bel_shard_is_stopping(const bel_shard *shard);      // this step is not run, as far as is known
bool bel_shard_counts(const bel_shard *shard, int node); // is its worker one of this step's?
int bel_shard_local_chunk(const bel_shard *shard, int chunk); // its index here, -1: another's
// A worker as it was before its first report; what was counted stays.
void bel_shard_reset_worker(bel_shard_worker *worker);
// What a worker has reported since it was given its version, rows as well.
void bel_shard_forget_report_locked(bel_shard *shard, int worker);

// ready.c. Queues a chunk, a table, or all of them, for which all who count have reported.
void bel_shard_look_at_chunk_locked(bel_shard *shard, int local);
void bel_shard_look_at_table_locked(bel_shard *shard, int table);
void bel_shard_look_at_all_locked(bel_shard *shard);
void bel_shard_push_kept_locked(bel_shard *shard); // what this step does not update

// shard_check.c. Shard 0: a decision that also says check, where that is due; what workers have
// said of a step whose step statistics are all in is compared, and the shard fails if it differs.
uint32_t bel_shard_ask_for_hashes_locked(bel_shard *shard, uint32_t decision);
void bel_shard_compare_hashes_locked(bel_shard *shard);

// shard_frames.c
void bel_shard_drain_locked(bel_shard *shard); // takes what has come on all lanes

// policy_all.c, policy_ledger.c
extern const bel_policy bel_policy_all, bel_policy_backups, bel_policy_async, bel_policy_bounded;

// ledger.c: pages
void bel_ledger_create(bel_shard *shard);
void bel_ledger_destroy(bel_shard *shard);
void bel_ledger_reset_locked(bel_shard *shard);
void bel_ledger_clear_page(const bel_shard *shard, bel_ledger_page *page);
void bel_ledger_close_page_locked(bel_shard *shard); // shard 0: if there are enough reports
void bel_ledger_page_known_locked(bel_shard *shard); // looks at what may be ready by that
// Shard 0, when all blocks are leased: can a report of the worker still count in a step of that
// function? `used_up`: what it has under way counts in the step before that one.
bool bel_ledger_may_report(const bel_shard *shard, int worker, int function, bool used_up);
// Shard 0: one more thing that another shard is to be told; and tells all of them, as far as their
// lanes have room.
void bel_ledger_put_mail(bel_shard *shard, int other, bel_frame frame);
void bel_ledger_send_mail_locked(bel_shard *shard);
static inline bel_ledger_page *bel_ledger_page_of(const bel_shard *shard, int64_t step)
{
    return &shard->ledger.pages[step % shard->ledger.page_count];
}

// lease.c. Shard 0.
bool bel_ledger_has_blocks(const bel_ledger *ledger); // that are not leased
void bel_ledger_lease_locked(bel_shard *shard, int worker);
void bel_ledger_use_up_lease(bel_shard_worker *worker);
void bel_ledger_return_leases(bel_shard *shard, bel_shard_worker *worker);

// The step function that the worker reports next, as its answer says it; -1: none is asked for.
int bel_ledger_hand_function(bel_shard *shard, int worker);
void bel_ledger_regain_function(bel_ledger *ledger, bel_shard_worker *worker); // it is lost

// answer.c. The worker has nothing under way and gets the values of this step, which is `version`,
// to compute on by that step function.
void bel_ledger_answer_locked(bel_shard *shard, int worker, int64_t version, int function);
void bel_ledger_copied_locked(bel_shard *shard, int worker);
void bel_ledger_take_answer_locked(bel_shard *shard, const bel_frame *frame);
// Other shards: what shard 0 has answered by now; says so on the page when that was all.
void bel_ledger_give_answers_locked(bel_shard *shard);

// norms.c. Moves them on when they are due; takes what is computed from them.
void bel_shard_move_norms_locked(bel_shard *shard);
void bel_shard_take_norms_locked(bel_shard *shard, const bel_frame *frame);

// values.c. Those who follow get a chunk's new values as soon as it is passed …
void bel_shard_send_passed_locked(bel_shard *shard, int local);
// … and then the version, of which `chunks` chunks were sent.
void bel_shard_send_version_locked(bel_shard *shard, int worker, int64_t version, int chunks);
// The whole of this step's version, or of the one before.
void bel_shard_send_whole_locked(bel_shard *shard, int worker, int64_t version);
// True for a worker that needs no frames of values; so is one that is not there.
bool bel_shard_reads_in_place(const bel_shard *shard, int worker);
// With a ledger: a chunk's values of this step into the worker's outbox. Without the lock.
void bel_shard_copy_values(const bel_shard *shard, int local, int worker);

// groups.c
void bel_shard_make_groups(bel_shard *shard);
void bel_shard_begin_numbers(bel_shard *shard); // those of shard->step

// shard_rows.c
// shard_exchange.c
void bel_shard_create_exchanges(bel_shard *shard);
void bel_shard_destroy_exchanges(bel_shard *shard);
void bel_shard_take_exchange_locked(bel_shard *shard, const bel_frame *frame, int worker);
void bel_shard_forget_exchanges_locked(bel_shard *shard); // another generation begins
// The worker is another process now, which has been given nothing.
void bel_shard_forget_voice_locked(bel_shard *shard, int worker);
// Who is waited for in an exchange that is under way, in words; nothing when there is none.
void bel_shard_exchange_missing(const bel_shard *shard, bel_str *out);

bel_status *bel_shard_create_tables(bel_shard *shard) BEL_MUST_USE;
void bel_shard_destroy_tables(bel_shard *shard);
void bel_shard_begin_tables_locked(bel_shard *shard);
void bel_shard_take_row_pull_locked(bel_shard *shard, const bel_frame *frame, int worker);
// Keeps a worker's report of a node of its own; false: it was there, or is malformed.
bool bel_shard_keep_rows_locked(bel_shard *shard, const bel_frame *frame,
                                const bel_row_report_frame *report, bel_weight weight);
void bel_shard_forget_pulls_locked(bel_shard *shard,
                                   int worker);                // those of a step that is repeated
void bel_shard_end_pulls_locked(bel_shard *shard, int worker); // its successor does not repeat it
void bel_shard_answer_waiting_locked(bel_shard *shard);        // row pulls that had to wait
void bel_shard_table_updated_locked(bel_shard *shard, int table);
void bel_shard_table_due_locked(bel_shard *shard, int table); // it is updated once nobody reads
void bel_shard_answer_rows(bel_shard *shard, int table, int worker); // without the lock
void bel_shard_rows_answered_locked(bel_shard *shard, int table, int worker);
bel_status *bel_shard_update_table(bel_shard *shard, int table) BEL_MUST_USE; // without the lock
bel_status *bel_shard_load_tables(bel_shard *shard, const bel_ckpt_reader *reader) BEL_MUST_USE;
bel_status *bel_shard_mark_tables(bel_shard *shard) BEL_MUST_USE; // the snapshot of now

// shard_device.c, on devices: what is to be updated, once all arrays are made; the job of a pass
// over all chunks, of kind PASS, SUM or UPDATE, and the pass.
bel_status *bel_shard_plan_devices(bel_shard *shard) BEL_MUST_USE;
void bel_shard_push_all_locked(bel_shard *shard, bel_job_kind kind);
bel_status *bel_shard_pass_devices(bel_shard *shard, bel_job_kind kind) BEL_MUST_USE;
bel_status *bel_shard_save_devices(bel_shard *shard) BEL_MUST_USE; // to the snapshot

// inbox.c
void bel_shard_free_inboxes(bel_shard *shard);

#endif
