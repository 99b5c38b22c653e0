// Every role of a job in one process: shards, workers as threads, inproc lanes between them. The
// same shards, clients and worker loop as in a cluster; only this wiring is different.
#ifndef BELFRY_JOB_EMBEDDED_H
#define BELFRY_JOB_EMBEDDED_H

#include "estimator/estimator_inner.h"
#include "estimator/model.h"
#include "job/control.h"
#include "worker/worker.h"

typedef struct bel_embedded bel_embedded;

typedef struct bel_embedded_config {
    const bel_estimator *estimator;
    const bel_built *built; // TRAIN, with gradients added
    const bel_worker_model *model;
    const bel_layout *layout;
    const bel_input *input;
    uint32_t generation;
} bel_embedded_config;

// Memory, shards and lanes; nothing runs yet. Everything in the config must outlive it.
bel_status *bel_embedded_create(const bel_embedded_config *config,
                                bel_embedded **out_embedded) BEL_MUST_USE;
void bel_embedded_destroy(bel_embedded *embedded);

// Loads all shards from a checkpoint.
bel_status *bel_embedded_load(bel_embedded *embedded, const bel_ckpt_reader *reader) BEL_MUST_USE;

// Starts shards and workers at `first_step`, reading the blocks of `segment`; they run until the
// control says stop.
bel_status *bel_embedded_start(bel_embedded *embedded, bel_control *control,
                               const bel_input_segment *segment, int64_t first_step) BEL_MUST_USE;

// Waits for the workers' threads to end; call when the control's state is not running.
void bel_embedded_join(bel_embedded *embedded);

int bel_embedded_shard_count(const bel_embedded *embedded);
bel_shard *bel_embedded_shard(bel_embedded *embedded, int shard);
float *bel_embedded_snapshot(bel_embedded *embedded); // values, laid out as the space

// Times of the workers' steps, the mean over workers.
bel_worker_times bel_embedded_times(const bel_embedded *embedded);

#endif
