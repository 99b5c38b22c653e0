// A job whose workers are hollow: many workers in one process that speak the protocol and compute
// nothing. hollow.c has the model, the processes and the figures, hollow_workers.c the workers.
#ifndef BELFRY_BENCH_HOLLOW_H
#define BELFRY_BENCH_HOLLOW_H

#include "launch/task/task.h"
#include "trainable/trainable.h"

typedef struct hollow_job {
    int worker_count, shard_count;
    int64_t variable_count;
    int64_t parameters; // elements of all variables
    bool grpc;          // the lanes; otherwise shared memory
    bel_exchange_precision precision;
    int64_t fan_in; // workers whose reports meet at a relay; 0: workers do not listen: no relays
    char *plan;     // folder with figures of `belfry plan`; NULL: no prediction
    int64_t drops;  // times that all connections of this process are broken; only over gRPC
    int64_t steps;  // steps that are measured, after a tenth as many that warm up
    char *folder;   // folder for sockets and checkpoints
} hollow_job;

// Called after the warm-up, and at the last version, while all processes still hold all they have.
// HOLLOW_DROP also breaks all connections of this process. At HOLLOW_BACK all workers have called
// the master again, and all lanes have brought a report. On a worker's thread, or the main thread.
typedef enum hollow_moment {
    HOLLOW_WARM,
    HOLLOW_LAST,
    HOLLOW_DROP,
    HOLLOW_BACK,
    HOLLOW_MOMENTS
} hollow_moment;
typedef void hollow_look(void *context, hollow_moment moment);

// Counts of all workers together, from the first version to the last.
typedef struct hollow_counts {
    int64_t setup_bytes;              // largest setup message of a worker
    int64_t sent, sent_bytes;         // frames to the shards, and their payloads
    int64_t received, received_bytes; // frames from the shards, and their payloads
    int64_t versions;                 // seen by each worker
    int64_t calls, most_calls; // to the master until it listened: of all, and the most of a worker
    int64_t relays, reporters; // reporters: those of relays, without those in their processes
    int64_t most_drop_calls;   // to the master by a worker after one of the drops
    int64_t most_drop_streams; // opened by a lane after one of the drops
} hollow_counts;

// Names of threads: those of workers, with their endpoint and their connections to the master, and
// those of relays, with theirs. Others are gRPC's.
#define HOLLOW_WORKERS "hollow-workers"
#define HOLLOW_RELAYS "hollow-relays"

// Plays all workers until the master ends the job. `task` is worker 0's, and `trainable` the model
// of all of them. Errors: the master's; UNAVAILABLE: a process of the job is gone. After an
// error its threads still run: exit.
bel_status *hollow_play(const hollow_job *job, const bel_task *task, const bel_trainable *trainable,
                        hollow_look *look, void *context, hollow_counts *out_counts) BEL_MUST_USE;

#endif
