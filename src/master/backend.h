// A backend: the shards and workers of a job as its master sees them, whether they are threads of
// this process (embedded.c) or processes of a cluster (remote.c). The master's story, train.c, is
// the same for both. Bound to the master's thread.
#ifndef BELFRY_MASTER_BACKEND_H
#define BELFRY_MASTER_BACKEND_H

#include "checkpoint/checkpoint.h"
#include "estimator/evaluation.h"
#include "monitoring/board.h"
#include "ps/server/control.h"
#include "ps/table/rows.h"
#include "worker/worker.h"

typedef struct bel_backend bel_backend;

typedef struct bel_backend_ops {
    // Loads all shards from a checkpoint.
    bel_status *(*load)(bel_backend *backend, const bel_ckpt_reader *reader);
    // Waits for members, and assigns the replicas to the workers that are there.
    bel_status *(*gather)(bel_backend *backend);
    // Starts shards and workers, which read the blocks of `segment`, those of a ledger up to
    // `block_end`; they run until the schedule's last step, the end of the input, a request to
    // stop, a pause, or an error. After a loss or a pause it is called again, after load and
    // gather.
    bel_status *(*start)(bel_backend *backend, const bel_control_config *schedule,
                         const bel_input_segment *segment, int64_t block_end);
    // Waits until a snapshot is complete, all workers have ended, or `secs` have passed.
    void (*wait)(bel_backend *backend, double secs, bel_control_state *out_state);
    // As bel_control_take_points.
    int (*take_points)(bel_backend *backend, bel_control_point *out_points, int capacity);
    // The snapshot in hand: its values, complete when this returns; each shard's part of a
    // checkpoint written into `folder`; done with it.
    bel_status *(*read_values)(bel_backend *backend);
    // The rows of a table in the snapshot in hand replace those of `into` (rows.h). NULL: the
    // backend hands out none, they are read from a checkpoint.
    bel_status *(*read_rows)(bel_backend *backend, int table, bel_table *into);
    bel_status *(*write_shards)(bel_backend *backend, const char *folder,
                                bel_ckpt_shard **out_shards);
    void (*release_snapshot)(bel_backend *backend);
    // Others who run batches of evaluation number `evaluation` of the checkpoint, which holds the
    // snapshot in hand, until end_help; NULL: there are none. `input` is the fingerprint of its
    // data, which must be theirs. Results come with attend. Both may be NULL.
    const bel_evaluation_helpers *(*begin_help)(bel_backend *backend, int evaluation,
                                                const char *checkpoint, int64_t step,
                                                uint64_t input);
    void (*end_help)(bel_backend *backend);
    // Looks at what has happened meanwhile, for a master that is busy with something long; an error
    // says that there is no point in going on.
    bel_status *(*attend)(bel_backend *backend);
    // Ends training well at version `step`, or at the next one where that has come already. Before
    // a snapshot is released it is in time for the one that follows.
    void (*stop_at)(bel_backend *backend, int64_t step);
    // Asks shard 0 for a step, where the schedule says that steps are asked for; in order. Any
    // thread, from start until the workers have ended.
    void (*ask)(bel_backend *backend, int64_t version, int function, bool wanted);
    // Ends training at once.
    void (*cancel)(bel_backend *backend);
    // After the workers have ended: the error that ended them, or NULL.
    bel_status *(*join)(bel_backend *backend);
    // After training the last version, or in one process behind load the one that was loaded,
    // becomes the snapshot in hand.
    bel_status *(*snapshot_now)(bel_backend *backend);
    // After the last checkpoint: waits for what the backend still does with it.
    bel_status *(*finish)(bel_backend *backend);
    // Brings the rows of shards and workers up to now, and where the job stands.
    void (*show)(bel_backend *backend, bel_board *board);
    // The job is over: members end, `status` is what they are told (NULL: it went well).
    void (*dismiss)(bel_backend *backend, const bel_status *status);
    void (*destroy)(bel_backend *backend);
} bel_backend_ops;

struct bel_backend {
    const bel_backend_ops *ops;
    float *values; // of the snapshot, laid out as the space
    // Moving averages of the snapshot, laid out alike, which are evaluated in place of the values;
    // NULL: there are none, or `values` holds them (remote.c, which only evaluates).
    float *averages;
    int shard_count;
    bool interrupted;    // training ended because somebody asked; set when the workers have ended
    int worker_count;    // that play a part
    int replica_count;   // that they play
    bool paused;         // training ended for another assignment: saved and loaded, it goes on
    bool runs;           // after gather: members hold the state of a job that goes on
    bool leaves;         // it was paused as this process is told to go
    int64_t reached;     // the last step that any member has reached since load
    bool lost;           // state is gone with a member: calls fail until load and start
    bool spoiled;        // set by who uses snapshots: one was given up, so nothing is rescued
    bool rescued;        // training ended without a worker, and what it stood on is the snapshot
    uint32_t generation; // of the state; 0 before the first start
    // With a ledger: the first block of the input that was not leased when the snapshot in hand
    // was made, else -1; and what became of reports.
    int64_t leased;
    bel_shard_staleness staleness;
    bel_result evaluation; // of the end, by an evaluator of its own; 0 examples: there is none
};

#endif
