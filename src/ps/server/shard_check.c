// Check that all workers compute on the same parameters. Shard 0 requests it in a step's decision:
// in the first of a generation, the first that it decides after a worker's replacement, and at
// intervals. Each worker then sends, with its step statistics, the hash of the dense parameters as
// it sees them. Shard 0 compares them when the last ones have arrived, before it publishes the
// version that the step makes. So a step of workers that differ is neither published nor saved.
// Only if all workers count: with a ledger workers compute on different versions. Parameters on
// several devices (shard_device.c) are compared in the same steps, before their update.
#include "base/log.h"
#include "ps/server/shard_inner.h"

static bool shard_plays(const bel_shard *shard, int worker)
{
    const bel_assignment *assignment = shard->config.assignment;
    return assignment->first_node[worker] < assignment->first_node[worker + 1];
}

uint32_t bel_shard_ask_for_hashes_locked(bel_shard *shard, uint32_t decision)
{
    int64_t every = shard->config.settings.check_steps;
    if (every == 0 || !shard->policy->lockstep || (decision & BEL_DECIDE_STOP) != 0)
        return decision;
    bool first = shard->counters.versions == 1;
    if (!first && !shard->has_newcomer && shard->step % every != 0) return decision;
    shard->has_newcomer = false;
    const bel_updater *updater = shard->config.updater;
    shard->decision.compares_devices = updater != NULL && updater->device_count > 1;
    int workers = 0;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        workers += shard_plays(shard, w);
    if (workers < 2) return decision;
    bel_log_write(BEL_LOG_DEBUG, "step %lld: all workers' parameters are compared",
                  (long long)shard->step);
    return decision | BEL_DECIDE_CHECK;
}

// Number of workers with the same hash as this one.
static int count_like(const bel_shard *shard, int worker)
{
    int count = 0;
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        count += shard_plays(shard, w) && shard->workers[w].hash == shard->workers[worker].hash;
    return count;
}

// The majority is taken to be right; of two, the first.
static int find_right(const bel_shard *shard)
{
    int right = -1, most = 0;
    for (int w = 0; w < shard->config.assignment->worker_count; w++) {
        int count = shard_plays(shard, w) ? count_like(shard, w) : 0;
        if (count <= most) continue;
        most = count;
        right = w;
    }
    return right;
}

// The first worker whose hash differs from that of `worker`; -1: all are equal.
static int find_other(const bel_shard *shard, int worker)
{
    for (int w = 0; w < shard->config.assignment->worker_count; w++)
        if (shard_plays(shard, w) && shard->workers[w].hash != shard->workers[worker].hash)
            return w;
    return -1;
}

void bel_shard_compare_hashes_locked(bel_shard *shard)
{
    bool asked = shard->config.shard == 0 && (shard->decision.now & BEL_DECIDE_CHECK) != 0;
    if (!asked || shard->error != NULL) return;
    int first = 0;
    while (!shard_plays(shard, first))
        first++;
    if (find_other(shard, first) < 0) return;
    int right = find_right(shard), wrong = find_other(shard, right);
    shard->error =
        BEL_ERR(BEL_DATA_LOSS,
                "worker %d computes step %lld on other parameters than worker %d: their "
                "hash is %016llx, expected %016llx",
                bel_shard_name(shard, wrong), (long long)shard->step, bel_shard_name(shard, right),
                (unsigned long long)shard->workers[wrong].hash,
                (unsigned long long)shard->workers[right].hash);
}
