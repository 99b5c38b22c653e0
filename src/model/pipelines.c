// Input of several pipelines as one stream: blocks of the pipelines in turn, as many in a row as a
// worker's replicas read in a step. The place of a record thus follows from its number. A worker
// that is replaced, or whose replicas others play, needs no special handling.
#include "base/alloc.h"
#include "belfry/replica.h"
#include "estimator/estimator_inner.h"

bel_status *bel_batch_per_replica(const bel_estimator *estimator, int64_t global,
                                  int64_t *out_batch)
{
    int replicas = estimator->replica_count;
    if (global <= 0 || global % replicas != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a global batch must be a positive multiple of the %d replicas, got %lld",
                       replicas, (long long)global);
    }
    *out_batch = global / replicas;
    return NULL;
}

// Computes the number of pipelines, and of the replicas that read each.
static bel_status *count_pipelines(const bel_estimator *estimator, bel_input_mode mode,
                                   int *out_pipelines, int *out_replicas)
{
    int workers = estimator->config.num_workers, replicas = estimator->replica_count;
    *out_pipelines = mode == BEL_INPUT_SINGLE       ? 1
                     : mode == BEL_INPUT_PER_WORKER ? workers
                                                    : replicas;
    *out_replicas = replicas / *out_pipelines;
    for (int w = 0; w < workers && mode == BEL_INPUT_PER_WORKER; w++) {
        if (estimator->replicas_of[w] == *out_replicas) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "a pipeline per worker needs the same number of replicas at each, but worker %d has %d "
            "of %d; hint: a pipeline per replica",
            w, estimator->replicas_of[w], replicas);
    }
    return NULL;
}

bel_status *bel_input_pipelines(const bel_estimator *estimator, bel_input_mode mode,
                                bel_pipeline_fn *fn, void *user, int64_t batch,
                                bel_dataset **out_dataset)
{
    int count, replicas;
    if (batch <= 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a batch must have at least one example, got %lld",
                       (long long)batch);
    }
    BEL_TRY(count_pipelines(estimator, mode, &count, &replicas));
    bel_dataset **datasets = bel_xcalloc((size_t)count, sizeof(bel_dataset *));
    bel_status *status = NULL;
    int made = 0;
    for (; made < count && status == NULL; made++) {
        const bel_input_context context = {
            .pipeline = made, .pipelines = count, .replicas = estimator->replica_count};
        status = fn(user, &context, &datasets[made]);
        if (status == NULL && datasets[made] == NULL)
            status = BEL_ERR(BEL_INVALID_ARGUMENT, "there is no dataset");
        if (status != NULL)
            status = bel_status_wrap(status, __FILE__, __LINE__, "pipeline %d of %d", made, count);
    }
    if (status == NULL) {
        *out_dataset =
            count == 1 ? datasets[0] : bel_dataset_interleave(datasets, count, 0, batch * replicas);
    } else {
        for (int i = 0; i < made; i++)
            if (datasets[i] != NULL) bel_dataset_destroy(datasets[i]);
    }
    bel_free(datasets);
    return status;
}
