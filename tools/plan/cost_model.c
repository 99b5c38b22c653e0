// Processes of one host share its cores: where they have more threads than cores, each takes
// longer in proportion. Shards work while the workers of their host wait, so the two do not share.
#include "plan/cost_model.h"

#include "base/alloc.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static bool is_remote(const bel_cost_deal *deal, int worker, int shard)
{
    return deal->workers[worker].host != deal->shards[shard].host;
}

bel_cost_lane bel_cost_lane_of(const bel_cost_deal *deal, int worker, int shard)
{
    return deal->grpc || is_remote(deal, worker, shard) ? BEL_COST_GRPC : BEL_COST_SHM;
}

static const bel_lane_counts *counts_of(const bel_cost_deal *deal, int worker, int shard)
{
    return &deal->lanes[(int64_t)worker * deal->shard_count + shard];
}

static void add_counts(bel_lane_counts *sum, const bel_lane_counts *more)
{
    sum->up_frames += more->up_frames;
    sum->up_bytes += more->up_bytes;
    sum->down_frames += more->down_frames;
    sum->down_bytes += more->down_bytes;
}

static void keep_most(bel_lane_counts *most, const bel_lane_counts *counts)
{
    if (counts->up_bytes + counts->down_bytes < most->up_bytes + most->down_bytes) return;
    *most = *counts;
}

// Processor time of one end of a lane, in a step.
static double lane_ns(const bel_cost_deal *deal, const bel_cost_rates *rates, int worker, int shard)
{
    const bel_lane_counts *counts = counts_of(deal, worker, shard);
    bel_cost_lane lane = bel_cost_lane_of(deal, worker, shard);
    return (double)(counts->up_frames + counts->down_frames) * rates->lanes[lane].frame +
           (double)(counts->up_bytes + counts->down_bytes) * rates->lanes[lane].byte;
}

// Factor by which processes of a host with that many busy threads take longer.
static double crowding(const bel_cost_deal *deal, int host, int threads)
{
    return larger(1, (double)threads / deal->cores[host]);
}

static double computing(const bel_cost_deal *deal)
{
    int *threads = bel_xcalloc((size_t)deal->host_count, sizeof *threads);
    double longest = 0;
    for (int w = 0; w < deal->worker_count; w++)
        threads[deal->workers[w].host] += deal->workers[w].threads;
    for (int w = 0; w < deal->worker_count; w++) {
        const bel_cost_worker *worker = &deal->workers[w];
        longest = larger(longest,
                         worker->compute_ns * crowding(deal, worker->host, threads[worker->host]));
    }
    bel_free(threads);
    return longest;
}

// Fills in the workers' bytes and the time of the one with most work for its lanes.
static double workers_lanes(const bel_cost_deal *deal, const bel_cost_rates *rates, bel_cost *cost)
{
    int *there = bel_xcalloc((size_t)deal->host_count, sizeof *there);
    double longest = 0;
    for (int w = 0; w < deal->worker_count; w++)
        there[deal->workers[w].host]++;
    for (int w = 0; w < deal->worker_count; w++) {
        bel_lane_counts counts = {0};
        double ns = 0, exchange = 0;
        for (int k = 0; k < deal->shard_count; k++) {
            add_counts(&counts, counts_of(deal, w, k));
            ns += lane_ns(deal, rates, w, k);
            exchange = larger(exchange, rates->lanes[bel_cost_lane_of(deal, w, k)].exchange);
        }
        int host = deal->workers[w].host;
        longest = larger(longest, exchange + ns * crowding(deal, host, there[host]));
        keep_most(&cost->worker, &counts);
    }
    bel_free(there);
    return longest;
}

// Fills in the shards' bytes, the chunks of the busiest shard and its time.
static double shards_pass(const bel_cost_deal *deal, const bel_cost_rates *rates, bel_cost *cost,
                          int *out_pieces)
{
    int *there = bel_xcalloc((size_t)deal->host_count, sizeof *there), reports = 0;
    double longest = 0;
    for (int w = 0; w < deal->worker_count; w++)
        reports += deal->workers[w].reports;
    for (int k = 0; k < deal->shard_count; k++)
        there[deal->shards[k].host]++;
    *out_pieces = 1;
    for (int k = 0; k < deal->shard_count; k++) {
        const bel_cost_shard *shard = &deal->shards[k];
        bel_lane_counts counts = {0};
        double ns = shard->floats * (deal->pass_ns + (reports - 1) * rates->add);
        for (int w = 0; w < deal->worker_count; w++) {
            add_counts(&counts, counts_of(deal, w, k));
            ns += lane_ns(deal, rates, w, k);
        }
        ns *= crowding(deal, shard->host, there[shard->host]);
        keep_most(&cost->shard, &counts);
        if (ns < longest) continue;
        longest = ns;
        *out_pieces = shard->chunks > 1 ? shard->chunks : 1;
    }
    bel_free(there);
    return longest;
}

// Bytes on the link of a host, each way, of its workers' lanes and of its shards'.
typedef struct link_bytes {
    double worker_up, worker_down, shard_up, shard_down;
} link_bytes;

// Returns the largest bytes of each kind over all hosts, and whether any lane is remote.
static link_bytes busiest_links(const bel_cost_deal *deal, bool *out_remote)
{
    link_bytes *hosts = bel_xcalloc((size_t)deal->host_count, sizeof *hosts), most = {0};
    *out_remote = false;
    for (int w = 0; w < deal->worker_count; w++) {
        for (int k = 0; k < deal->shard_count; k++) {
            if (!is_remote(deal, w, k)) continue;
            const bel_lane_counts *counts = counts_of(deal, w, k);
            *out_remote = true;
            hosts[deal->workers[w].host].worker_up += (double)counts->up_bytes;
            hosts[deal->workers[w].host].worker_down += (double)counts->down_bytes;
            hosts[deal->shards[k].host].shard_up += (double)counts->up_bytes;
            hosts[deal->shards[k].host].shard_down += (double)counts->down_bytes;
        }
    }
    for (int h = 0; h < deal->host_count; h++) {
        most.worker_up = larger(most.worker_up, hosts[h].worker_up);
        most.worker_down = larger(most.worker_down, hosts[h].worker_down);
        most.shard_up = larger(most.shard_up, hosts[h].shard_up);
        most.shard_down = larger(most.shard_down, hosts[h].shard_down);
    }
    bel_free(hosts);
    return most;
}

bel_cost bel_cost_of(const bel_cost_deal *deal, const bel_cost_rates *rates)
{
    bel_cost cost = {0};
    bool remote;
    int pieces;
    double *parts = cost.parts_ns;
    link_bytes bytes = busiest_links(deal, &remote);
    parts[BEL_COST_COMPUTING] = computing(deal);
    parts[BEL_COST_PASS] = shards_pass(deal, rates, &cost, &pieces);
    parts[BEL_COST_SHARD_LINK] = (bytes.shard_up + bytes.shard_down) * deal->link_ns;
    parts[BEL_COST_WORKER_LINK] = (bytes.worker_up + bytes.worker_down) * deal->link_ns;
    parts[BEL_COST_LATENCY] = remote ? 2 * deal->latency_ns : 0;
    parts[BEL_COST_WAKE_UPS] = workers_lanes(deal, rates, &cost);
    double up = larger(bytes.shard_up, bytes.worker_up) * deal->link_ns;
    double down = larger(bytes.shard_down, bytes.worker_down) * deal->link_ns;
    double longest = larger(parts[BEL_COST_PASS], larger(up, down));
    double rest = up + down + parts[BEL_COST_PASS] - longest;
    cost.step_ns = parts[BEL_COST_COMPUTING] + longest + rest / pieces + parts[BEL_COST_LATENCY] +
                   parts[BEL_COST_WAKE_UPS];
    for (int p = 1; p < BEL_COST_PARTS; p++)
        if (parts[p] > parts[cost.bottleneck]) cost.bottleneck = (bel_cost_part)p;
    return cost;
}

const char *bel_cost_part_text(bel_cost_part part)
{
    static const char *const texts[BEL_COST_PARTS] = {
        [BEL_COST_COMPUTING] = "computing",       [BEL_COST_PASS] = "the shards' pass",
        [BEL_COST_SHARD_LINK] = "a shard's link", [BEL_COST_WORKER_LINK] = "a worker's link",
        [BEL_COST_LATENCY] = "latency",           [BEL_COST_WAKE_UPS] = "wake-ups"};
    return texts[part];
}
