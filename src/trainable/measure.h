// Sizes of a job's model, before any of its processes is started.
#ifndef BELFRY_ESTIMATOR_MEASURE_H
#define BELFRY_ESTIMATOR_MEASURE_H

#include "belfry/estimator.h"
#include "launch/cluster/plan.h"
#include "trainable/trainable.h"

// Builds the model for `shard_count` shards, without training. Sets *out_shard_bytes instead of
// out_sizes->shard_bytes; free it with bel_free. Errors: those of input and model function.
bel_status *bel_estimator_measure(bel_estimator *estimator, const bel_train_spec *train,
                                  int worker_count, int shard_count, bel_plan_sizes *out_sizes,
                                  int64_t **out_shard_bytes) BEL_MUST_USE;

// The same for a trainable that the caller has built. Errors: those of compiling its program.
bel_status *bel_trainable_measure(const bel_trainable *trainable, bel_plan_sizes *out_sizes,
                                  int64_t **out_shard_bytes) BEL_MUST_USE;

#endif
