// Every role of a job in one process: shards, workers as threads, inproc lanes between them. The
// same shards, clients and worker loop as in a cluster; only this wiring is different.
#ifndef BELFRY_JOB_EMBEDDED_H
#define BELFRY_JOB_EMBEDDED_H

#include "estimator/estimator_inner.h"
#include "estimator/model.h"
#include "job/crew.h"

typedef struct bel_embedded_config {
    const bel_estimator *estimator;
    const bel_built *built; // TRAIN, with gradients added
    const bel_worker_model *model;
    const bel_layout *layout;
    bel_counting counting;
    const bel_input *input;
} bel_embedded_config;

// Memory, shards and lanes; nothing runs yet. Everything in the config must outlive the crew.
bel_status *bel_embedded_create(const bel_embedded_config *config,
                                bel_crew **out_crew) BEL_MUST_USE;

#endif
