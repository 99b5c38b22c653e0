// A backend: the shards and workers of a job from its master's view, either threads of this process
// (embedded.c) or processes of a cluster (remote.c). train.c, the master's main program, is the
// same for both. Bound to the master's thread.
#ifndef BELFRY_MASTER_BACKEND_BACKEND_H
#define BELFRY_MASTER_BACKEND_BACKEND_H

#include "checkpoint/checkpoint.h"
#include "evaluate/evaluation.h"
#include "monitoring/board.h"
#include "ps/server/control.h"
#include "ps/table/rows.h"
#include "worker/worker.h"

typedef struct bel_backend bel_backend;

// An evaluator's answer: all evaluations of a checkpoint, in the order of the job's specs, or the
// reason why they failed. Free it with bel_evaluated_deinit.
typedef struct bel_evaluated {
    int64_t step;
    bel_status *failure; // NULL: the results are there
    bel_result *results;
    bel_details *details;
    int count;
} bel_evaluated;
void bel_evaluated_deinit(bel_evaluated *evaluated); // sets all fields to zero

typedef struct bel_backend_ops {
    // Loads all shards from a checkpoint.
    bel_status *(*load)(bel_backend *backend, const bel_ckpt_reader *reader);
    // Waits for members, and assigns the replicas to the present workers.
    bel_status *(*gather)(bel_backend *backend);
    // Starts shards and workers, which read the blocks of `segment`, or with a ledger those up to
    // `block_end`. They run until the schedule's last step, the end of the input, a request to
    // stop, a pause, or an error. After a loss or a pause it is called again, after load and
    // gather.
    bel_status *(*start)(bel_backend *backend, const bel_control_config *schedule,
                         const bel_input_segment *segment, int64_t block_end);
    // Waits until a snapshot is complete, all workers have finished, or `secs` have passed.
    void (*wait)(bel_backend *backend, double secs, bel_control_state *out_state);
    // Like bel_control_take_points.
    int (*take_points)(bel_backend *backend, bel_control_point *out_points, int capacity);
    // Reads the values of the current snapshot; they are complete on return.
    bel_status *(*read_values)(bel_backend *backend);
    // Replaces the rows of `into` by the table's rows in the current snapshot (rows.h). NULL: the
    // backend provides no rows, and they are read from a checkpoint.
    bel_status *(*read_rows)(bel_backend *backend, int table, bel_table *into);
    // Writes each shard's part of a checkpoint of the current snapshot, that of `step`, into
    // `folder`: of tables the rows that differ from those of the checkpoint of step `base`, the
    // last full one since `start`; 0: all rows.
    bel_status *(*write_shards)(bel_backend *backend, const char *folder, int64_t step,
                                int64_t base, bel_ckpt_shard **out_shards);
    // Releases the current snapshot.
    void (*release_snapshot)(bel_backend *backend);
    // Returns helpers that run batches of evaluation number `evaluation` of the checkpoint, which
    // holds the current snapshot, until end_help; NULL: no helpers. `input` is the fingerprint of
    // its data, which must equal theirs. Results arrive through attend. begin_help and end_help may
    // be NULL.
    const bel_evaluation_helpers *(*begin_help)(bel_backend *backend, int evaluation,
                                                const char *checkpoint, int64_t step,
                                                uint64_t input);
    void (*end_help)(bel_backend *backend);
    // Handles the events of up to `secs`, for a master in a long operation. An error means that
    // continuing is pointless.
    bel_status *(*attend)(bel_backend *backend, double secs);
    // Asks the evaluator for all evaluations of the checkpoint of `step`, instead of those for
    // which it was asked before. This and the next two are NULL without members.
    void (*ask_evaluator)(bel_backend *backend, int64_t step);
    // Takes its answer to the last request; false: it has not come. Answers arrive through wait and
    // attend.
    bool (*take_evaluated)(bel_backend *backend, bel_evaluated *out_evaluated);
    // After the last checkpoint: only the evaluator is needed from now on. False: nothing was
    // trained and it has not joined, so it is not awaited.
    bool (*await_evaluator)(bel_backend *backend);
    // Ends training without error at version `step`, or at the next one if `step` has passed.
    // Before the release of a snapshot, it is in time for the next snapshot.
    void (*stop_at)(bel_backend *backend, int64_t step);
    // Asks shard 0 for a step, if steps are made on request by the schedule; in order. Any thread,
    // from start until the workers have finished.
    void (*ask)(bel_backend *backend, int64_t version, int function, bool wanted);
    // After a loss: returns the version at which all shards can continue, as the lost one has come
    // back with its state; all their points can be taken. A snapshot that is not released becomes
    // current again after the start. -1: load is needed. NULL: always.
    int64_t (*hold)(bel_backend *backend);
    // Before start: reads the values of a checkpoint, those of evaluations until then.
    bel_status *(*read_saved)(bel_backend *backend, const bel_ckpt_reader *reader);
    // Ends training at once.
    void (*cancel)(bel_backend *backend);
    // After the workers have finished: the error that ended them, or NULL.
    bel_status *(*join)(bel_backend *backend);
    // Makes the last version after training, or in one process after load the loaded one, the
    // current snapshot, until the next start. `values` may then be at another address.
    bel_status *(*snapshot_now)(bel_backend *backend);
    // Updates the rows of shards and workers, and the job's state.
    void (*show)(bel_backend *backend, bel_board *board);
    // Ends the members and sends them `status` (NULL: success).
    void (*dismiss)(bel_backend *backend, const bel_status *status);
    void (*destroy)(bel_backend *backend);
} bel_backend_ops;

struct bel_backend {
    const bel_backend_ops *ops;
    // Values of the snapshot, in the layout of the space. The address may change in snapshot_now
    // and start.
    float *values;
    // Moving averages of the snapshot, in the same layout, which are evaluated instead of the
    // values. NULL: absent, or `values` holds them (remote.c, which only evaluates).
    float *averages;
    int shard_count;
    bool interrupted;    // training ended by request; set when the workers have finished
    int relay_levels;    // levels of relays between workers and shards, those of hosts included
    int host_levels;     // levels among them whose relays add the reports of one host: 0 or 1
    bool one_copy;       // all workers are on one host, and read one copy of the values
    int worker_count;    // workers with replicas
    int replica_count;   // their replicas
    bool paused;         // training ended for another assignment; it continues after save and load
    bool runs;           // after gather: members hold the state of a running job
    bool held;           // after hold: shards continue with the state that they have
    int64_t missed;      // after gather: version of a snapshot that not all of them have; 0: none
    bool missed_save;    // it was for a checkpoint
    int missed_shard;    // a shard that lacks it
    bool leaves;         // paused because this process was told to leave
    int64_t reached;     // last step that any member has reached since load
    bool lost;           // a lost member's state is gone: calls fail until load and start
    bool spoiled;        // set by users of snapshots: one was abandoned after an error, so nothing
                         // is rescued
    bool rescued;        // training ended without a worker, and its version is the snapshot
    uint32_t generation; // generation of the state; 0 before the first start
    // With a ledger: the first block of the input that was not leased at the current snapshot, else
    // -1; and statistics of stale reports.
    int64_t leased;
    bel_shard_staleness staleness;
    int64_t evaluating; // step that the evaluator was asked for; -1: none, also after gather. The
                        // user of its answer sets -1 when the checkpoint may go
    char *damage;       // damaged data that a member has used (store/store.h); owned; NULL: none
};

#endif
