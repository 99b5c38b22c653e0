// A shard: the part of the parameters that one parameter server holds, and the aggregator that sums
// reports and applies the update.
//
// A step at a shard: reports arrive by chunk and node → when all nodes of a chunk are in, the chunk
// is passed: sum over the tree, × 1/n, clip, update, written into the other buffer → when all
// chunks are passed, the version is published. Rules that need a norm over the whole model pass
// twice: sums and squares of grains first; partials to shard 0 and factors back; then the update.
//
// A worker begins by pulling the version on which it computes, and from then on gets every new one.
// One that replaces another is admitted under its own incarnation; as it may have to repeat a step
// that some shards have finished, a shard can send the version before its own as well: nothing is
// written over it before that worker has reported the next.
//
// With a ledger (bel_counting) steps are made of some workers' reports. Shard 0 names them, leases
// each worker the blocks of its next batches, and answers those whose reports were used or dropped
// with its newest version; it tells the other shards, which give them the same one. Every shard
// makes the same steps. What a worker computes on is copied for it first, so it never sees a
// version change.
//
// The work is done by the threads that call bel_shard_work: a server's own threads, or in one
// process the workers' threads while they would wait. Results do not depend on which thread does
// what, nor when.
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
#include "transport/lane.h"

typedef struct bel_shard bel_shard;

enum { BEL_DECIDE_LATER = 1 << 30 };

// Shard 0: can another step be made of what is left of the input? With a ledger that may depend on
// its function: a report of another one waits, or is dropped.
typedef enum bel_steps_left {
    BEL_STEPS_FOLLOW,
    BEL_STEPS_OVER,
    BEL_STEPS_UNASKED, // it had not been asked for yet
} bel_steps_left;

// Calls out of shard 0, and of every shard for snapshots. They run on whichever thread does the
// work, and but for function_of never under a lock.
typedef struct bel_shard_events {
    void *context;
    // What to do at `version`; `stats` sums the step before (NULL at the first version). May answer
    // BEL_DECIDE_LATER: then it is asked again, with a new look at the input, when bel_shard_work
    // is next called. With BEL_STEPS_UNASKED it answers that or BEL_DECIDE_STOP, also when the step
    // has been asked for meanwhile: once a version is published, nobody looks again.
    uint32_t (*decide)(void *context, int64_t version, const double *stats, bel_steps_left left);
    // Where there are several step functions: that of the step on `version`; -1: it is not asked
    // for yet. Under the shard's lock.
    int (*function_of)(void *context, int64_t version);
    // The snapshot of `version` is complete in this shard.
    void (*snapshot_ready)(void *context, int shard, int64_t version);
} bel_shard_events;

typedef struct bel_shard_config {
    const bel_layout *layout;
    int shard;
    const bel_assignment *assignment;
    bel_space *space;
    // Parameters lie on devices and are updated there. For a shard that is alone, where everybody
    // counts, each replica is a node, and there are neither tables nor values of replicas nor
    // several step functions; `space` lies over `snapshot` then. It must outlive the shard. NULL:
    // they lie in `space`.
    bel_updater *updater;
    float *snapshot; // values of the snapshot, laid out as the space; shards of a process share it
    float *snapshot_averages; // the same for moving averages, where the optimizer keeps them
    bel_shard_settings settings;
    uint32_t generation;
    bel_lane **worker_lanes;      // this shard's ends, by worker; bel_shard_admit replaces them
    bel_lane *const *shard_lanes; // shard 0: by shard, [0] is NULL; others: [0] leads to shard 0
    float *const *outboxes;    // with a ledger: by worker, its copy of the values, laid out as the
                               // space; the shard writes its own chunks
    int64_t table_memory;      // bytes that a table may take here; 0: no limit
    void *const *answer_rooms; // with tables: by worker, room for rows where its lane needs them to
                               // lie, as ps/layout/row_buffer.h says; NULL: the shard makes its own
} bel_shard_config;

typedef struct bel_shard_counters {
    int64_t versions;  // published
    int64_t late;      // frames of an older step, dropped
    int64_t repeated;  // second copies, dropped
    int64_t foreign;   // frames of another generation, incarnation or sender, dropped
    int64_t passes;    // chunk passes run
    int64_t pass_ns;   // time in them, over all threads
    int64_t gather_ns; // over all versions: how long complete reports waited for the last one of
                       // their step, mean of the workers that count
    int64_t apply_ns;  // over all versions: from that last report to the version
    int64_t received_bytes, sent_bytes; // payload of frames
    int64_t queue;                      // now: chunks to work on, and reports that do not count yet
} bel_shard_counters;

typedef struct bel_shard_reports {   // of a worker; shard 0 knows
    int64_t counted, stale, dropped; // stale ones are among the counted
} bel_shard_reports;

enum { BEL_STALENESS_BINS = 16 };

// Shard 0, with a ledger: what became of complete reports.
typedef struct bel_shard_staleness {
    int64_t counted[BEL_STALENESS_BINS]; // by how many versions they were late; the last: or more
    int64_t dropped;                     // too late to count, over all workers
} bel_shard_staleness;

// The lanes, layout, assignment and space must outlive the shard; the lanes may be put into their
// arrays later, until bel_shard_start. RESOURCE_EXHAUSTED without memory.
bel_status *bel_shard_create(const bel_shard_config *config, bel_shard **out_shard) BEL_MUST_USE;
void bel_shard_destroy(bel_shard *shard);

// --- Lanes without shared memory -----------------------------------------------------------------

// What is at the other end of such a lane: a worker, or a shard with worker = -1.
typedef struct bel_shard_peer {
    bel_shard *shard;
    int worker;
    int peer_shard;
} bel_shard_peer;

// Makes room for one report of a worker whose lane shares no memory. RESOURCE_EXHAUSTED.
bel_status *bel_shard_reserve(bel_shard *shard, int worker) BEL_MUST_USE;

// A bel_frame_place, with a bel_shard_peer as context: reports go into the room that was reserved.
void *bel_shard_place(void *peer, const bel_frame *frame);

// --- Running -------------------------------------------------------------------------------------

// Loads this shard's segments, values and slots, from a checkpoint; the shard then stands at the
// checkpoint's step. Errors: those of bel_ckpt_read, e.g. a wrong shape, with the variable's name.
bel_status *bel_shard_load(bel_shard *shard, const bel_ckpt_reader *reader) BEL_MUST_USE;

// Begins the step at which the shard stands, answers what workers pull, and calls `events` from
// then on.
void bel_shard_start(bel_shard *shard, const bel_shard_events *events);

// Puts another incarnation of a worker in the place of the one before, with a lane of its own:
// what its predecessor has reported for the unfinished step is forgotten where it was not used.
// Returns the predecessor's lane, which the caller closes, and the version at which the shard
// stands. What is complete is used first, and nothing is taken in before the newcomer is admitted;
// the caller rings the shard's bell. Any thread; before the start, too.
bel_lane *bel_shard_admit(bel_shard *shard, int worker, uint32_t incarnation, bel_lane *lane,
                          int64_t *out_step);

// Everything but memory becomes as it was when the shard was created, under another generation; the
// caller loads a checkpoint next. No thread may be in the shard. Frames under way are void.
void bel_shard_restart(bel_shard *shard, uint32_t generation);

// Takes frames and does one piece of work; false when there is nothing to do now. Thread-safe.
bool bel_shard_work(bel_shard *shard);

// The same with all threads of a team when there is more than one chunk to work on. For the thread
// that the team is bound to.
bool bel_shard_work_together(bel_shard *shard, bel_team *team);

// The error that stopped the shard (a malformed frame), as a new status, or NULL.
bel_status *bel_shard_check(bel_shard *shard) BEL_MUST_USE;

// Rises with each frame that it takes and each version that it publishes.
int64_t bel_shard_progress(bel_shard *shard);

bel_shard_counters bel_shard_count(bel_shard *shard);
bel_shard_reports bel_shard_count_reports(bel_shard *shard, int worker);

// --- With a ledger -------------------------------------------------------------------------------

// Shard 0, before the start: the first block of the input that is not yet used, and the one behind
// the last. When all are leased, no report is dropped any more and a step is made of as many as can
// still come; training ends when none can.
void bel_shard_lease_from(bel_shard *shard, int64_t first_block, int64_t block_end);

// Shard 0: how it stands, by worker in out_dropped (may be NULL).
bel_shard_staleness bel_shard_stale(bel_shard *shard, int64_t *out_dropped);

// Shard 0: the first block that was not leased when the newest snapshot was made. -1: no ledger.
int64_t bel_shard_leased(bel_shard *shard);

// Shard 0: the last step in which a worker counted, -1: none. A shard that stands at that step or
// before it when the worker is replaced cannot finish it any more: then state goes back.
int64_t bel_shard_counted_step(bel_shard *shard, int worker);

// The version it stands at, and in words what it does: "waits for reports of worker 1", "updates".
int64_t bel_shard_doing(bel_shard *shard, bel_str *out_words);

// --- Snapshots ----------------------------------------------------------------------------------

// Copies the live values and slots into the snapshot. Only while no step runs: at the end.
// RESOURCE_EXHAUSTED: for tables.
bel_status *bel_shard_snapshot_now(bel_shard *shard) BEL_MUST_USE;

// The same while steps run, where everybody counts. *out_version: the version that it is of; from
// then on nothing is taken in. -1: a part of the next version is made, so there is no snapshot.
// Errors as above.
bel_status *bel_shard_snapshot_whole(bel_shard *shard, int64_t *out_version) BEL_MUST_USE;

// Takes in again what comes.
void bel_shard_go_on(bel_shard *shard);

// Before the first load: rows of a table begin with the values that another training has made of
// them (bel_table_warm_up), and are the table's snapshot.
bel_status *bel_shard_warm_up_rows(bel_shard *shard, int table, const bel_ckpt_reader *reader,
                                   const char *there) BEL_MUST_USE;

// The rows of a table's snapshot in order of keys, block by block. Errors: those of `take`.
bel_status *bel_shard_read_rows(const bel_shard *shard, int table,
                                bel_status *(*take)(void *context, int64_t count,
                                                    const int64_t *keys, const float *rows),
                                void *context) BEL_MUST_USE;

// Sends the snapshot's values, or their averages where they are kept, for evaluation, on a lane
// without shared memory: a PARAMS frame for each of the shard's chunks and then VERSION `version`
// with their number. Goes on with frame *sent, 0 at first, as far as the lane has room, and raises
// it; *out_whole says that all are out. The snapshot must stay until they are taken.
// UNAVAILABLE: the lane is cut.
bel_status *bel_shard_send_snapshot(bel_shard *shard, bel_lane *lane, int64_t version, int *sent,
                                    bool *out_whole) BEL_MUST_USE;

// Writes this shard's part of a checkpoint, the snapshot's values and slots, into `folder`.
// ABORTED: a variable is not finite (named), so nothing may be saved. Else the errors of
// bel_ckpt_write_shard.
bel_status *bel_shard_write(const bel_shard *shard, const char *folder,
                            bel_ckpt_shard **out_shard) BEL_MUST_USE;

#endif
