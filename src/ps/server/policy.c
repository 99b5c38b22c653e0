// The policy of each way to count, and public queries: lateness of reports, number of dropped
// reports, leased part of the input. The calls are the same for all policies. If all workers count,
// the results are those of an unused ledger: zeros, and -1 for blocks.
#include "ps/server/policy.h"

#include <string.h>

#include "ps/server/shard_inner.h"

const bel_policy *bel_policy_of(const bel_counting *counting)
{
    static const bel_policy *const policies[BEL_COUNTING_KIND_COUNT] = {
        [BEL_COUNTING_ALL] = &bel_policy_all,
        [BEL_COUNTING_BACKUPS] = &bel_policy_backups,
        [BEL_COUNTING_ASYNC] = &bel_policy_async,
        [BEL_COUNTING_BOUNDED] = &bel_policy_bounded,
    };
    return policies[counting->kind];
}

// --- Queries -------------------------------------------------------------------------------------

bel_shard_staleness bel_shard_stale(bel_shard *shard, int64_t *out_dropped)
{
    bel_shard_staleness staleness = {.dropped = 0};
    pthread_mutex_lock(&shard->mutex);
    memcpy(staleness.counted, shard->ledger.stale, sizeof staleness.counted);
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        staleness.dropped += shard->workers[w].dropped;
        if (out_dropped != NULL) out_dropped[w] = shard->workers[w].dropped;
    }
    pthread_mutex_unlock(&shard->mutex);
    return staleness;
}

int64_t bel_shard_leased(bel_shard *shard)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t leased = shard->ledger.leased;
    pthread_mutex_unlock(&shard->mutex);
    return leased;
}

int64_t bel_shard_counted_step(bel_shard *shard, int worker)
{
    pthread_mutex_lock(&shard->mutex);
    int64_t step = shard->workers[worker].counted_step;
    pthread_mutex_unlock(&shard->mutex);
    return step;
}
