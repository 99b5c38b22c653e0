// A shard: one parameter server's part of the parameters, and the aggregator that sums reports and
// applies the update.
//
// A step at a shard: reports arrive by chunk and node. When all nodes of a chunk have reported, the
// chunk is passed: sum over the tree, × 1/n, clip, update into the other buffer. When all chunks
// are passed, the version is published. Rules that need a norm over the whole model pass twice:
// sums and squares of grains first; partials to shard 0 and factors back; then the update.
//
// A worker begins by pulling the version on which it computes, and then gets every new one. A
// replacement is admitted under another incarnation. It may have to repeat a step that some shards
// have finished, so a shard can also send its preceding version: that one is not overwritten before
// the worker has reported the next step.
//
// With a ledger (bel_counting) steps are made of some workers' reports. Shard 0 names these
// workers, leases each worker the blocks of its next batches, and answers workers whose reports
// were used or dropped with its newest version. It notifies the other shards, which send the same
// version. Every shard makes the same steps. Each worker computes on a copy, so it never sees a
// version change.
//
// The threads that call bel_shard_work do the work: a server's threads or, in one process, the
// workers' threads while they would wait. Results do not depend on threads or timing.
#ifndef BELFRY_PS_SERVER_SHARD_H
#define BELFRY_PS_SERVER_SHARD_H

#include "base/str.h"
#include "base/thread.h"
#include "belfry/optimizer.h"
#include "checkpoint/checkpoint.h"
#include "optim/updater.h"
#include "ps/frames/frames.h"
#include "ps/layout/assignment.h"
#include "ps/layout/shard_settings.h"
#include "ps/layout/space.h"
#include "ps/layout/step_stats.h"
#include "ps/server/kept.h"
#include "transport/lane.h"

typedef struct bel_shard bel_shard;

enum { BEL_DECIDE_LATER = 1 << 30 };

// Shard 0: can another step be made from the rest of the input? With a ledger that may depend on
// its function: a report of another function waits, or is dropped.
typedef enum bel_steps_left {
    BEL_STEPS_FOLLOW,
    BEL_STEPS_OVER,
    BEL_STEPS_UNASKED, // no loop has asked for it yet
} bel_steps_left;

// Callbacks of shard 0, and of every shard for snapshots. They run on the thread that does the work
// and, except function_of, never under a lock.
typedef struct bel_shard_events {
    void *context;
    // Decides the step at `version`; `stats` sums the preceding step (NULL at the first version).
    // It may return BEL_DECIDE_LATER: then the next bel_shard_work looks at the input again and
    // repeats the call. For BEL_STEPS_UNASKED it returns BEL_DECIDE_LATER or BEL_DECIDE_STOP, even
    // if the step was requested meanwhile: once a version is published, its input is not looked at
    // again.
    uint32_t (*decide)(void *context, int64_t version, const double *stats, bel_steps_left left);
    // With several step functions: returns the function of the step on `version`; -1: not requested
    // yet. Called under the shard's lock.
    int (*function_of)(void *context, int64_t version);
    // Called when the snapshot of `version` is complete in this shard.
    void (*snapshot_ready)(void *context, int shard, int64_t version);
} bel_shard_events;

// Parent of a relay's shard (ps/relay/relay.h), to which sums go and from which values come. It
// does not update: a chunk is passed when its sums were reported and its next values have come.
typedef struct bel_shard_parent {
    void *context;
    const bel_assignment *assignment; // the parent's, in which this relay is a worker:
    int reporter;
    float *const *sums; // by node of that worker: its sums, laid out as the space
    double *stats;      // by the same: its step statistics
    // Under the shard's lock: takes what has come. An error stops the shard.
    bel_status *(*poll)(void *context);
    // Under the lock: true if the values of that version of a chunk are in the buffer that is not
    // current.
    bool (*has_values)(void *context, int chunk, int64_t version);
    // With rounding: true if these came as differences, and where those are, laid out as the space.
    bool (*has_differences)(void *context, int chunk);
    void *differences;
    // Report one node of the assignment above; the memory stays until the next version. Any thread.
    bel_status *(*report)(void *context, int64_t step, uint32_t decision, int chunk, int node,
                          bel_weight weight, const float *sums);
    bel_status *(*report_stats)(void *context, int64_t step, uint32_t decision, int node,
                                uint64_t hash, const double *stats);
} bel_shard_parent;

typedef struct bel_shard_config {
    const bel_layout *layout;
    int shard;
    const bel_assignment *assignment;
    const int *names; // by worker of the assignment: its number in messages; NULL: the same number
    const bel_shard_parent *parent; // NULL: this is no relay's shard
    // This is the mirror of a shard in another process (mirror.c): that shard is its only worker,
    // plays all replicas and gets no values.
    bool mirrors;
    bel_lane *const *mirror_lane; // this shard's end of the lane to its mirror; NULL: it has none
    bel_space *space;
    // Holds and updates the parameters on devices; must outlive the shard. It requires a single
    // shard on which all workers count and each replica is a node, without tables, values of
    // replicas or several step functions; `space` then uses `snapshot`'s memory. NULL: the
    // parameters are in `space`.
    bel_updater *updater;
    // Memory of slots and averages, in which the shard records how far each chunk is. `space` is
    // over its buffers. It must outlive the shard. NULL: the shard allocates them.
    bel_kept *kept;
    // The snapshot's values, laid out as the space; shards of a process share it, and with `kept`
    // they are there. With reads_space the caller reads the space after bel_shard_snapshot_now, if
    // it is in place.
    float *snapshot;
    bool reads_space;
    float *snapshot_averages; // the same for moving averages, if the optimizer keeps them
    bel_shard_settings settings;
    uint32_t generation;
    bel_lane **worker_lanes;      // this shard's ends, by worker; bel_shard_admit replaces them
    bel_lane *const *shard_lanes; // shard 0: by shard, [0] is NULL; others: [0] leads to shard 0
    // If `space` has one buffer and the assignment one node: where that node reports, laid out as
    // the space. The shard may change the gradients until the next version. NULL: not so.
    float *gradients;
    float *const *outboxes;    // with a ledger: by worker, its copy of the values, laid out as the
                               // space; the shard writes its chunks
    size_t report_room;        // ps/layout/report_room.h, in bytes; 0: BEL_REPORT_ROOM
    int64_t stream_from;       // trainable elements of this shard from which new values go past
                               // the caches (base/stream.h); 0: BEL_SHARD_STREAM_FROM
    int64_t table_memory;      // maximum bytes of a table here; 0: no limit
    const char *table_disk;    // folder for the rows beyond that; NULL or empty: none
    void *const *answer_rooms; // with tables: by worker, room for rows at the address that its lane
                               // needs, as in ps/layout/row_buffer.h; NULL: the shard allocates it
} bel_shard_config;

typedef struct bel_shard_counters {
    int64_t versions;  // published
    int64_t late;      // frames of an older step, dropped
    int64_t repeated;  // second copies, dropped
    int64_t foreign;   // frames of another generation, incarnation or sender, dropped
    int64_t passes;    // chunk passes run
    int64_t pass_ns;   // time in passes, over all threads
    int64_t gather_ns; // over all versions: wait of complete reports for the step's last one, mean
                       // over the counting workers
    int64_t apply_ns;  // over all versions: from the last report to the version
    int64_t received_bytes, sent_bytes;  // payload of frames
    int64_t refused_rows;                // keys of updates that a full table gave no row
    int64_t rows, waiting_keys;          // now, of all tables: bel_table_tally
    int64_t admitted_rows, expired_rows; // the same
    int64_t queue; // now: chunks to work on, and reports that do not count yet
} bel_shard_counters;

typedef struct bel_shard_reports {   // a worker's, at shard 0
    int64_t counted, stale, dropped; // the counted include the stale
} bel_shard_reports;

enum { BEL_STALENESS_BINS = 16 };

// Shard 0, with a ledger: outcomes of complete reports.
typedef struct bel_shard_staleness {
    int64_t counted[BEL_STALENESS_BINS]; // by lateness in versions; the last: or later
    int64_t dropped;                     // too late to count, over all workers
} bel_shard_staleness;

// The lanes, layout, assignment and space must outlive the shard. The caller may set the lanes in
// their arrays until bel_shard_start. RESOURCE_EXHAUSTED: no memory.
bel_status *bel_shard_create(const bel_shard_config *config, bel_shard **out_shard) BEL_MUST_USE;
void bel_shard_destroy(bel_shard *shard);

// --- Lanes without shared memory -----------------------------------------------------------------

// The other end of such a lane: a worker, or a shard with worker = -1 (of a shard's mirror
// peer_shard is the shard itself).
typedef struct bel_shard_peer {
    bel_shard *shard;
    int worker;
    int peer_shard;
} bel_shard_peer;

// Reserves room for one report of a worker whose lane shares no memory. RESOURCE_EXHAUSTED.
bel_status *bel_shard_reserve(bel_shard *shard, int worker) BEL_MUST_USE;

// A bel_frame_place, with a bel_shard_peer as context: reports go into the reserved room.
void *bel_shard_place(void *peer, const bel_frame *frame);

// The same for lanes between shards and mirrors, which also carry states.
void *bel_shard_place_mirrored(void *peer, const bel_frame *frame);

// --- Running -------------------------------------------------------------------------------------

// Loads this shard's segments, values and slots, from a checkpoint; the shard's step is then the
// checkpoint's. Errors: those of bel_ckpt_read, e.g. a wrong shape, with the variable's name.
bel_status *bel_shard_load(bel_shard *shard, const bel_ckpt_reader *reader) BEL_MUST_USE;

// Instead of a load: continues at `version` with the state that the shard holds, or that a
// predecessor left in `kept`. Chunks whose next version is made already keep it: in this step they
// are not updated. No step runs. INTERNAL: a chunk that is not frozen has neither version.
bel_status *bel_shard_continue(bel_shard *shard, int64_t version) BEL_MUST_USE;

// Instead of a load: begins at `version` with a state that another process sends, which
// bel_shard_take_state takes before the start. No step runs, and the shard's lanes are not open.
void bel_shard_expect_state(bel_shard *shard, int64_t version);

// Takes frames of that state from a lane that bel_shard_place_mirrored serves. Returns true once,
// when it is complete: the shard then continues with it (bel_shard_continue). bel_shard_check has
// the error of a malformed one.
bool bel_shard_take_state(bel_shard *shard, bel_lane *lane);

// Returns the points that came with it; the list belongs to the shard.
const bel_control_point *bel_shard_taken_points(const bel_shard *shard, int *out_count);

// After a load or bel_shard_continue, before the start: sends the state to a process that expects
// it, with up to BEL_KEPT_POINTS points. The lane has room (bel_lane_frames_of_mirror).
void bel_shard_send_state(bel_shard *shard, bel_lane *lane, const bel_control_point *points,
                          int count);

// For a relay, instead of a load: begins at a version whose values the parent will send, in the
// first buffer. No step runs.
void bel_shard_begin_at(bel_shard *shard, int64_t version);

// Returns the buffer of a version's values, but for frozen ones, which are in buffer 0.
int bel_shard_buffer_of(const bel_shard *shard, int64_t version);

// Begins the shard's step, answers the workers' pulls, and calls `events` from then on.
void bel_shard_start(bel_shard *shard, const bel_shard_events *events);

// Replaces a worker by another incarnation with another lane. Forgets the predecessor's unused
// reports for the unfinished step. Returns the predecessor's lane, which the caller closes, and the
// shard's version. The shard first uses what is complete, and takes no frames before the
// replacement is admitted. The caller rings the shard's bell. Any thread; allowed before the start.
bel_lane *bel_shard_admit(bel_shard *shard, int worker, uint32_t incarnation, bel_lane *lane,
                          int64_t *out_step);

// Resets all state but memory to that of a new shard, under another generation; the caller loads a
// checkpoint next, or continues. No thread may be in the shard. Frames under way become invalid.
void bel_shard_restart(bel_shard *shard, uint32_t generation);

// Takes frames and runs one job. Returns false if there is no work now. Thread-safe.
bool bel_shard_work(bel_shard *shard);

// As bel_shard_work, with all threads of a team if there is more than one chunk to work on, or if
// many rows of a table are to be updated. For the thread to which the team is bound.
bool bel_shard_work_together(bel_shard *shard, bel_team *team);

// Returns the error that stopped the shard (a malformed frame), as a new status, or NULL.
bel_status *bel_shard_check(bel_shard *shard) BEL_MUST_USE;

// Increases with each frame that the shard takes and each version that it publishes.
int64_t bel_shard_progress(bel_shard *shard);

bel_shard_counters bel_shard_count(bel_shard *shard);
bel_shard_reports bel_shard_count_reports(bel_shard *shard, int worker);

// --- With a ledger -------------------------------------------------------------------------------

// Shard 0, before the start: sets the first unused block of the input, and the end of the last
// block. When all blocks are leased, no report is dropped any more, and a step is made of as many
// reports as can still come. Training ends when no report can come.
void bel_shard_lease_from(bel_shard *shard, int64_t first_block, int64_t block_end);

// Shard 0: returns the staleness, and dropped reports by worker in out_dropped (may be NULL).
bel_shard_staleness bel_shard_stale(bel_shard *shard, int64_t *out_dropped);

// Shard 0: returns the first unleased block at the time of the newest snapshot. -1: no ledger.
int64_t bel_shard_leased(bel_shard *shard);

// Shard 0: returns the last step that counted a worker; -1: no step. A shard that is at or before
// that step when the worker is replaced can no longer finish it: then state goes back.
int64_t bel_shard_counted_step(bel_shard *shard, int worker);

// Returns the shard's version, and its activity in words: "waits for reports of worker 1",
// "updates".
int64_t bel_shard_doing(bel_shard *shard, bel_str *out_words);

// --- Snapshots ----------------------------------------------------------------------------------

// Makes the live values and slots the snapshot, until the next start. Only while no step runs: at
// the end. RESOURCE_EXHAUSTED: for tables.
bel_status *bel_shard_snapshot_now(bel_shard *shard) BEL_MUST_USE;

// Returns the version of the complete snapshot that a step's decision ordered; 0: no snapshot, or
// another one overwrites it. It outlives bel_shard_restart and, in `kept`, the process.
int64_t bel_shard_snapshot_of(bel_shard *shard);

// Ends the snapshot of bel_shard_snapshot_now, whose arrays change from bel_shard_start on.
// bel_shard_restart does so, too. Both belong to the thread that makes snapshots: the engine may
// start later than it, and make no step.
void bel_shard_void_snapshot(bel_shard *shard);

// Frees the snapshot's copy of the slots; the next snapshot makes it again. Only between snapshots.
void bel_shard_forget_slots(bel_shard *shard);

// Makes such a snapshot while steps run, if all workers count. *out_version: its version; the shard
// then takes no frames until bel_shard_go_on. -1: a part of the next version is made, so there is
// no snapshot. Errors as above.
bel_status *bel_shard_snapshot_whole(bel_shard *shard, int64_t *out_version) BEL_MUST_USE;

// Takes frames again.
void bel_shard_go_on(bel_shard *shard);

// Before the first load: loads start values of a table's rows from another training
// (bel_table_warm_up), and makes them the table's snapshot.
bel_status *bel_shard_warm_up_rows(bel_shard *shard, int table, const bel_ckpt_reader *reader,
                                   const char *there) BEL_MUST_USE;

// Reads the rows of a table's snapshot in order of keys, block by block. Errors: those of `take`.
bel_status *bel_shard_read_rows(const bel_shard *shard, int table,
                                bel_status *(*take)(void *context, int64_t count,
                                                    const int64_t *keys, const float *rows),
                                void *context) BEL_MUST_USE;

// Sends the snapshot's values, or their averages if they are kept, for evaluation, on a lane
// without shared memory: a PARAMS frame for each of the shard's chunks, then VERSION `version` with
// their number. Continues with frame *sent, 0 at first, as far as the lane has room, and advances
// it; *out_whole: all are sent. The snapshot must stay until the receiver has taken the frames.
// UNAVAILABLE: the lane is cut.
bel_status *bel_shard_send_snapshot(bel_shard *shard, bel_lane *lane, int64_t version, int *sent,
                                    bool *out_whole) BEL_MUST_USE;

// Writes this shard's part of a checkpoint, the values and slots of the snapshot, that of `step`,
// into `folder`. With a
// `base` (0: none), the step of the last part that had all rows since the load, only rows of tables
// that differ from that one. ABORTED: the named variable is not finite, so nothing may be saved.
// FAILED_PRECONDITION: there is no such base. Other errors are those of bel_ckpt_write_shard.
bel_status *bel_shard_write(const bel_shard *shard, const char *folder, int64_t step, int64_t base,
                            bel_ckpt_shard **out_shard) BEL_MUST_USE;

#endif
