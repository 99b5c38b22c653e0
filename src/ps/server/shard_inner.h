// Inside view of a shard, for the files shard*.c of this folder and
//
//   policy_all.c, policy_ledger.c  counting and answers, with ledger.c, lease.c and answer.c
//   norms.c, values.c, inbox.c     norms, values for workers, destination of frames
//   report_room.c, merge.c         slots for reports, if there is no room for all; their merging
//   groups.c, pass.c, ready.c      a step's numbers, arithmetic, work that can begin
//   upward.c                       the same for a relay, which reports its sums
//   mirror.c, mirror_state.c       a second copy of the state in another process
//   kept.c                         state in memory that outlives the process
#ifndef BELFRY_PS_SERVER_SHARD_INNER_H
#define BELFRY_PS_SERVER_SHARD_INNER_H

#include <pthread.h>

#include "ps/layout/rounding.h"
#include "ps/server/kept.h"
#include "ps/server/shard_parts.h"

enum { BEL_SHARD_PIECE = 1024 };          // elements worked on at a time: they stay in the L1 cache
enum { BEL_SHARD_STREAM_FROM = 1 << 22 }; // with reports they fill most L3 caches

struct bel_shard {
    bel_shard_config config;
    bel_shard_events events;
    const bel_policy *policy;
    bel_shard_rules rules;
    bel_shard_memory memory;
    bel_shard_inbox inbox;
    bel_shard_room room;
    void **answer_rooms; // by worker: the shard's own; NULL: the configuration's
    int *node_firsts;    // by node of the assignment
    bool streams;        // new values go past the caches

    pthread_mutex_t mutex; // guards all below
    bool has_newcomer;     // a worker was replaced, and no step was checked since (shard_check.c)
    bool starting;         // the first step's decision is not known yet
    bool started;
    int64_t loaded;       // version of the loaded checkpoint
    int64_t step;         // the version that workers compute on
    int64_t snapshot;     // version of the complete snapshot that a step made; 0: none
    int64_t published_ns; // time at which this step began
    bel_shard_decision decision;
    bel_shard_pause pause;
    bel_shard_worker *workers;
    bel_shard_chunk *chunks;
    int chunk_count;
    bel_shard_table *tables; // by table of the layout
    bel_shard_step_work work;
    bel_shard_stats stats;
    bel_shard_norms norms;
    bel_shard_exchanges exchange;
    bel_shard_mirror mirror;
    bel_shard_transfer transfer;
    bel_ledger ledger;
    bel_status *error;
    bel_shard_counters counters;
    int64_t progress; // frames taken and versions published
};

// Group of a variable, or of a table with index variable_count + table, in a step function.
static inline const bel_rule_group *bel_shard_group_in(const bel_shard *shard, int function,
                                                       int variable)
{
    const bel_layout *layout = shard->config.layout;
    int count = layout->variable_count + layout->table_count;
    return &shard->rules.groups.items[shard->rules.group_of[function * count + variable]];
}

// The function of this step, once the decision is known.
static inline int bel_shard_function(const bel_shard *shard)
{
    return bel_decision_function(shard->decision.now);
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

// True if a step of the function updates a trainable variable by its rule. With local steps
// replicas do that, and this shard takes the mean of their values.
static inline bool bel_shard_updates(const bel_shard *shard, int function, int variable)
{
    const bel_layout_variable *v = &shard->config.layout->variables[variable];
    return v->kind == BEL_VARIABLE_TRAINABLE && (v->kept_by >> function & 1) == 0 &&
           !bel_counting_is_local(&shard->config.settings.counting);
}

// True if this step gives a chunk of this shard new values.
static inline bool bel_shard_changes(const bel_shard *shard, int local)
{
    return bel_chunk_changes(&shard->config.layout->chunks[shard->chunks[local].chunk],
                             bel_shard_function(shard));
}

// Rounding of sums and updates of a chunk of the layout.
static inline bel_rounding bel_shard_rounding(const bel_shard *shard, int chunk)
{
    bool rounds = shard->config.layout->chunks[chunk].kind == BEL_VARIABLE_TRAINABLE;
    return rounds ? shard->config.settings.rounding : BEL_ROUNDING_NONE;
}

// True if this step updates rows of a table.
static inline bool bel_shard_changes_table(const bel_shard *shard, int table)
{
    return bel_layout_table_changes(&shard->config.layout->tables[table],
                                    bel_shard_function(shard));
}

// Each step changes the buffer of the variables that it updates, so a version's parity determines
// its buffer. Frozen ones stay in buffer 0.
static inline int bel_shard_buffer_at(const bel_shard *shard, int64_t version)
{
    return (int)((version - shard->loaded) % 2);
}

// True if parameters are on devices: no work is done chunk by chunk there; one job passes all
// chunks.
static inline bool bel_shard_on_devices(const bel_shard *shard)
{
    return shard->config.updater != NULL;
}

// Planes of sums of squares: of directions, and of values if a rule has trust ratios.
static inline int bel_shard_norm_planes(const bel_shard *shard)
{
    return shard->rules.trusts ? 2 : 1;
}

// Bytes of the sums that shard k sends to shard 0.
static inline size_t bel_shard_norm_bytes(const bel_shard *shard, int k)
{
    return bel_norms_count(shard->config.layout, k) * (size_t)bel_shard_norm_planes(shard) *
           sizeof(double);
}

// True for the shard of a relay.
static inline bool bel_shard_relays(const bel_shard *shard)
{
    return shard->config.parent != NULL;
}

// A worker's number in messages.
static inline int bel_shard_name(const bel_shard *shard, int worker)
{
    return shard->config.names != NULL ? shard->config.names[worker] : worker;
}

// True for a shard that has a mirror.
static inline bool bel_shard_is_mirrored(const bel_shard *shard)
{
    return shard->config.mirror_lane != NULL;
}

// mirror.c. Adds a chunk's reports into its sum for the mirror; without the lock. Then sends it.
void bel_shard_sum_for_mirror(bel_shard *shard, int local);
void bel_shard_send_sum_locked(bel_shard *shard, int local);
// Sends the step statistics when all have come and all sums were sent.
void bel_shard_stats_to_mirror_locked(bel_shard *shard);
void bel_shard_factors_to_mirror_locked(bel_shard *shard);
void bel_shard_begin_mirror_locked(bel_shard *shard); // a step begins
void bel_shard_ask_mirror_locked(bel_shard *shard);   // the shard starts
void bel_shard_drain_mirror_locked(bel_shard *shard);
bool bel_shard_has_mirrored_locked(const bel_shard *shard); // the mirror has made this step
bel_status *bel_shard_allocate_mirror(bel_shard *shard) BEL_MUST_USE;
void bel_shard_free_mirror(bel_shard *shard);

// mirror_state.c. Returns the destination of a frame of a state; NULL: none is expected, or it does
// not fit. Runs on a lane's thread.
void *bel_shard_place_state(const bel_shard *shard, const bel_frame *frame);

// upward.c. Adds a chunk's reports into the nodes of the relay, and reports them; without the lock.
bel_status *bel_shard_sum_up(bel_shard *shard, int local) BEL_MUST_USE;
// Reports the step statistics when all have come and all sums were reported.
void bel_shard_stats_up_locked(bel_shard *shard);
// Takes what has come from the parent.
void bel_shard_poll_parent_locked(bel_shard *shard);

// pass.c
// Errors: RESOURCE_EXHAUSTED, for rows of a table.
// `team`: threads for the update of a table; NULL: the caller's.
bel_status *bel_shard_run_job(bel_shard *shard, bel_shard_job job, bel_team *team) BEL_MUST_USE;
void bel_shard_combine_norms(bel_shard *shard); // shard 0: norms → factors
void bel_shard_copy_to_snapshot(bel_shard *shard, const bel_chunk *chunk, const float *values);
void bel_shard_snapshot_values(bel_shard *shard, const bel_chunk *chunk, const float *values);

// shard_steps.c. The snapshot is complete, of that version; 0: it is no longer.
void bel_shard_set_snapshot(bel_shard *shard, int64_t version);

// Like bel_shard_snapshot_now, but copies, so steps may run when it is read.
bel_status *bel_shard_snapshot_copied(bel_shard *shard) BEL_MUST_USE;

// shard_steps.c: stamps a frame and sends it; skips a lane that is NULL, cut or full.
void bel_shard_send_locked(bel_shard *shard, bel_lane *lane, bel_frame frame);
// As bel_shard_send_locked, with the lane's error.
bel_status *bel_shard_try_send_locked(bel_shard *shard, bel_lane *lane,
                                      bel_frame frame) BEL_MUST_USE;
// True for a worker that needs no frames of values, and for an absent worker.
bool bel_shard_reads_in_place(const bel_shard *shard, int worker);
// True if this worker's report goes into slots (report_room.c).
bool bel_shard_limits(const bel_shard *shard, int worker);
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
bel_status *bel_shard_answer_rows(bel_shard *shard, int table,
                                  int worker) BEL_MUST_USE; // without the lock
void bel_shard_rows_answered_locked(bel_shard *shard, int table, int worker);
bel_status *bel_shard_update_table(bel_shard *shard, int table,
                                   bel_team *team) BEL_MUST_USE; // without the lock
bool bel_shard_has_many_rows(const bel_shard *shard, int table); // reports of this step
// Resets a table to its state before its first frame, at the start and in another generation.
void bel_shard_forget_frames(const bel_shard *shard, bel_shard_table *table);

// shard_saved_rows.c. A snapshot of the present state, which is of that version. The preceding
// one ends. Logs the table's size; training `ends`: always, else for debugging.
bel_status *bel_shard_mark_table(bel_shard *shard, int table, bool ends,
                                 int64_t version) BEL_MUST_USE;
bel_status *bel_shard_mark_tables(bel_shard *shard) BEL_MUST_USE;
// Ends the snapshot, if there is one: nothing reads it. By the thread that updates the table.
void bel_shard_release_table(bel_shard_table *table);
// FAILED_PRECONDITION: a table's snapshot was released, so that none can be read.
bel_status *bel_shard_check_tables(const bel_shard *shard) BEL_MUST_USE;
bel_status *bel_shard_load_tables(bel_shard *shard, const bel_ckpt_reader *reader) BEL_MUST_USE;

// shard_device.c, on devices. Plans the update, after all arrays are created.
bel_status *bel_shard_plan_devices(bel_shard *shard) BEL_MUST_USE;
// Queues the job of a pass over all chunks, of kind PASS, SUM or UPDATE.
void bel_shard_push_all_locked(bel_shard *shard, bel_job_kind kind);
// Runs that pass.
bel_status *bel_shard_pass_devices(bel_shard *shard, bel_job_kind kind) BEL_MUST_USE;
bel_status *bel_shard_save_devices(bel_shard *shard) BEL_MUST_USE; // to the snapshot

// shard_life.c. Gives the sums between two passes a place apart from the buffer of the next
// version, which has values already.
bel_status *bel_shard_separate_sums(bel_shard *shard) BEL_MUST_USE;

// inbox.c
void bel_shard_free_inboxes(bel_shard *shard);

// report_room.c
void bel_shard_create_room(bel_shard *shard);
void bel_shard_destroy_room(bel_shard *shard);
bel_status *bel_shard_reserve_room(bel_shard *shard) BEL_MUST_USE; // allocates the slots, once
// A step begins: the first parts get slots. The following versions say so.
void bel_shard_begin_room_locked(bel_shard *shard);
// Returns the destination of a report whose size is right; NULL: it has no room. Runs on a lane's
// thread.
void *bel_shard_place_in_room(const bel_shard *shard, const bel_report_frame *report, int local);
// A report of a node has arrived: false, and the shard fails, if it is not in the node's slot. Then
// the node's sums may be merged with others.
bool bel_shard_take_room_locked(bel_shard *shard, const bel_frame *frame, int local, int node);
void bel_shard_climb_locked(bel_shard *shard, int local, int node);
void bel_shard_merged_locked(bel_shard *shard, bel_shard_job job); // continues after the job
// The chunk's reports are not read any more: its slots go to the next parts.
void bel_shard_free_room_locked(bel_shard *shard, int local);
// Fills a version's fields for a worker.
void bel_shard_tell_room_locked(const bel_shard *shard, int worker, bel_version_frame *version);
// True if reports of the worker on this version are in slots, or were: a predecessor's, if it has
// just begun.
bool bel_shard_has_parts(const bel_shard *shard, int worker);
// True if the worker has sent all for which there is room: the step waits for others.
bool bel_shard_waits_for_room(const bel_shard *shard, int worker);
// The step's function is known: it may have more parts than are sure before.
void bel_shard_function_known_locked(bel_shard *shard);

// Returns the slot of a node for a chunk. It must have one.
char *bel_shard_slot_of(const bel_shard *shard, int local, int node);

// merge.c. Merges a subtree of reports into the slot of its first node. Without the lock.
void bel_shard_merge(bel_shard *shard, bel_shard_job job);
// Adds the values of subtree `level` at `node`, which all have come, into a place for the chunk.
// With `packs` they have the narrow type if sums are rounded, else they are floats.
void bel_shard_merge_into(bel_shard *shard, int index, int node, int level, void *to, bool packs);
// Returns the number of replicas in the value at a node, which may be a merged subtree's.
int bel_shard_span(const bel_shard *shard, const bel_shard_chunk *chunk, int node);

#endif
