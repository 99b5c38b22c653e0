// Stages are lists of bursts, summed by host. An actor has one burst in a stage: its work for lanes
// is on the thread of its endpoint, and its sums and updates are on its team, so the two overlap
// like stages do.
#include "plan/cost_model.h"

#include "base/alloc.h"

// Bursts of one stage on a host.
typedef struct stage {
    double longest, longest_work; // the longest burst, and its processor time
    double work;                  // processor time of all
    int threads;
} stage;

// Work of an actor for its lanes.
typedef struct lane_work {
    double ns;
    bool from_below[BEL_COST_MEDIA], from_above[BEL_COST_MEDIA];
    bel_lane_counts counts;
} lane_work;

typedef struct model {
    const bel_cost_deal *deal;
    const bel_cost_rates *rates;
    bel_cost *cost;
    lane_work *lanes;  // by actor, without mirrors'
    lane_work *mirror; // by actor: those to and from mirrors
    stage *stage;      // in work, by host
    double *exchange;  // by host: work of all stages of the exchange
    double longest, sum;
    int chunks; // the busiest shard's
} model;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

// Two or more parts that overlap chunk by chunk.
static double overlap(double longest, double sum, int chunks)
{
    return longest + (sum - longest) / (chunks > 1 ? chunks : 1);
}

static double overlap_two(double a, double b, int chunks)
{
    return overlap(larger(a, b), a + b, chunks);
}

// --- Stages --------------------------------------------------------------------------------------

static void begin_stage(model *m)
{
    for (int h = 0; h < m->deal->host_count; h++)
        m->stage[h] = (stage){.threads = 0};
}

// Adds a burst of that many threads.
static void add_burst(model *m, int host, int threads, double longest, double work)
{
    stage *at = &m->stage[host];
    if (longest > at->longest || (longest == at->longest && work > at->longest_work)) {
        at->longest = longest;
        at->longest_work = work;
    }
    at->work += work;
    at->threads += threads;
}

// With more threads than cores the longest burst may begin when the others are over.
static double end_stage(const model *m)
{
    double ns = 0;
    for (int h = 0; h < m->deal->host_count; h++) {
        const stage *at = &m->stage[h];
        int cores = m->deal->cores[h];
        double others = at->threads > cores ? (at->work - at->longest_work) / cores : 0;
        ns = larger(ns, larger(at->longest + others, at->work / cores));
    }
    return ns;
}

// Adds the time of a part of the exchange.
static void exchange_part(model *m, double ns)
{
    m->longest = larger(m->longest, ns);
    m->sum += ns;
}

// The same of the stage in work. Returns its time.
static double end_exchange_stage(model *m)
{
    double ns = end_stage(m);
    for (int h = 0; h < m->deal->host_count; h++)
        m->exchange[h] += m->stage[h].work;
    exchange_part(m, ns);
    return ns;
}

// --- Lanes ---------------------------------------------------------------------------------------

static bool is_to_mirror(const bel_cost_deal *deal, const bel_cost_lane *lane)
{
    return deal->actors[lane->low].role == BEL_COST_SHARD;
}

static bool is_remote(const bel_cost_deal *deal, const bel_cost_lane *lane)
{
    return deal->actors[lane->low].host != deal->actors[lane->high].host;
}

static void add_lane(const model *m, lane_work *work, const bel_cost_lane *lane)
{
    const bel_lane_counts *counts = &lane->counts;
    work->ns +=
        (double)(counts->up_messages + counts->down_messages) *
            m->rates->media[lane->medium].message +
        (double)(counts->up_bytes + counts->down_bytes) * m->rates->media[lane->medium].byte;
    bel_lane_counts_add(&work->counts, counts);
}

static void add_lanes(model *m)
{
    const bel_cost_deal *deal = m->deal;
    for (int i = 0; i < deal->lane_count; i++) {
        const bel_cost_lane *lane = &deal->lanes[i];
        lane_work *works = is_to_mirror(deal, lane) ? m->mirror : m->lanes;
        lane_work *low = &works[lane->low], *high = &works[lane->high];
        add_lane(m, low, lane);
        add_lane(m, high, lane);
        low->from_above[lane->medium] = high->from_below[lane->medium] = true;
    }
    for (int a = 0; a < 2 * deal->actor_count; a++) {
        lane_work *work = a < deal->actor_count ? &m->lanes[a] : &m->mirror[a - deal->actor_count];
        for (int k = 0; k < BEL_COST_MEDIA; k++)
            work->ns += (work->from_below[k] + work->from_above[k]) * m->rates->media[k].wake;
    }
}

static void keep_most(bel_lane_counts *most, const bel_lane_counts *counts)
{
    if (counts->up_bytes + counts->down_bytes < most->up_bytes + most->down_bytes) return;
    *most = *counts;
}

static void find_most(model *m)
{
    for (int a = 0; a < m->deal->actor_count; a++) {
        bel_lane_counts counts = m->lanes[a].counts;
        bel_lane_counts_add(&counts, &m->mirror[a].counts);
        keep_most(&m->cost->most[m->deal->actors[a].role], &counts);
    }
}

// --- Work of actors ------------------------------------------------------------------------------

// Sums, and a shard's update.
static double pass_work(const model *m, const bel_cost_actor *actor)
{
    double more = actor->reports > 1 ? (actor->reports - 1) * m->rates->add : 0;
    return actor->floats * (more + (actor->role == BEL_COST_SHARD ? m->deal->pass_ns : 0));
}

// A sum for the mirror is written before the pass reads it. The update of the mirror here follows
// that of the shard, on the same threads.
static double copies_work(const model *m, const bel_cost_actor *actor)
{
    return (actor->mirrored ? actor->floats * m->rates->add : 0) + actor->mirror * m->deal->pass_ns;
}

static void compute(model *m)
{
    begin_stage(m);
    for (int a = 0; a < m->deal->actor_count; a++) {
        const bel_cost_actor *actor = &m->deal->actors[a];
        if (actor->role != BEL_COST_WORKER) continue;
        double work = actor->compute_ns * actor->threads + actor->input_ns;
        add_burst(m, actor->host, actor->threads, larger(actor->compute_ns, actor->input_ns), work);
        m->cost->processor_ns[BEL_COST_WORKER] += work;
    }
    m->cost->parts_ns[BEL_COST_COMPUTING] = end_stage(m);
}

// The actors of a role and level work for their lanes, and add or update.
static double work_of(model *m, bel_cost_role role, int level)
{
    begin_stage(m);
    for (int a = 0; a < m->deal->actor_count; a++) {
        const bel_cost_actor *actor = &m->deal->actors[a];
        if (actor->role != role || actor->level != level) continue;
        double lanes = m->lanes[a].ns + m->mirror[a].ns;
        double pass = pass_work(m, actor) + copies_work(m, actor);
        int threads = role != BEL_COST_WORKER && actor->threads > 1 ? actor->threads : 1;
        add_burst(m, actor->host, threads, overlap_two(lanes, pass / threads, actor->chunks),
                  lanes + pass);
        m->cost->processor_ns[role] += lanes + pass;
    }
    return end_exchange_stage(m);
}

static void find_copies(model *m)
{
    double *most = &m->cost->parts_ns[BEL_COST_COPIES];
    for (int a = 0; a < m->deal->actor_count; a++) {
        const bel_cost_actor *actor = &m->deal->actors[a];
        double pass = copies_work(m, actor) / (actor->threads > 1 ? actor->threads : 1);
        *most = larger(*most, overlap_two(m->mirror[a].ns, pass, actor->chunks));
    }
}

// The chunks of the shard with the most elements.
static int busiest_chunks(const bel_cost_deal *deal)
{
    const bel_cost_actor *most = NULL;
    for (int a = 0; a < deal->actor_count; a++) {
        const bel_cost_actor *actor = &deal->actors[a];
        if (actor->role != BEL_COST_SHARD) continue;
        if (most == NULL || actor->floats > most->floats) most = actor;
    }
    return most != NULL ? most->chunks : 1;
}

// --- Links ---------------------------------------------------------------------------------------

// Level of a lane: relays of that level take its reports; levels + 1: shards; + 2: mirrors.
static int level_of(const bel_cost_deal *deal, const bel_cost_lane *lane)
{
    const bel_cost_actor *high = &deal->actors[lane->high];
    if (high->role == BEL_COST_RELAY) return high->level;
    return deal->levels + (is_to_mirror(deal, lane) ? 2 : 1);
}

// Bytes on the link of a host, which has both directions at the same time: of one level by end, of
// its actors of a role, and of all.
typedef struct link_bytes {
    double low_up, low_down, high_up, high_down;
    double role_in[BEL_COST_ROLES], role_out[BEL_COST_ROLES];
    double in, out;
} link_bytes;

static void add_link(const bel_cost_deal *deal, link_bytes *hosts, const bel_cost_lane *lane)
{
    const bel_cost_actor *low = &deal->actors[lane->low], *high = &deal->actors[lane->high];
    double up = (double)lane->counts.up_bytes, down = (double)lane->counts.down_bytes;
    link_bytes *below = &hosts[low->host], *above = &hosts[high->host];
    below->low_up += up;
    below->low_down += down;
    above->high_up += up;
    above->high_down += down;
    below->role_out[low->role] += up;
    below->role_in[low->role] += down;
    above->role_in[high->role] += up;
    above->role_out[high->role] += down;
    below->out += up;
    below->in += down;
    above->in += up;
    above->out += down;
}

// The lanes of a level, with the latency if any of them is between hosts.
static void link_level(model *m, link_bytes *hosts, int level)
{
    const bel_cost_deal *deal = m->deal;
    bool remote = false;
    double up = 0, down = 0;
    for (int h = 0; h < deal->host_count; h++)
        hosts[h].low_up = hosts[h].low_down = hosts[h].high_up = hosts[h].high_down = 0;
    for (int i = 0; i < deal->lane_count; i++) {
        const bel_cost_lane *lane = &deal->lanes[i];
        if (level_of(deal, lane) != level || !is_remote(deal, lane)) continue;
        add_link(deal, hosts, lane);
        remote = true;
    }
    for (int h = 0; h < deal->host_count; h++) {
        up = larger(up, larger(hosts[h].low_up, hosts[h].high_up));
        down = larger(down, larger(hosts[h].low_down, hosts[h].high_down));
    }
    exchange_part(m, up * deal->link_ns);
    exchange_part(m, down * deal->link_ns);
    if (remote) m->cost->parts_ns[BEL_COST_LATENCY] += 2 * deal->latency_ns;
}

// Returns the least time of an exchange: no link is faster.
static double link_all(model *m)
{
    static const bel_cost_part parts[BEL_COST_ROLES] = {[BEL_COST_WORKER] = BEL_COST_WORKER_LINK,
                                                        [BEL_COST_RELAY] = BEL_COST_RELAY_LINK,
                                                        [BEL_COST_SHARD] = BEL_COST_SHARD_LINK};
    const bel_cost_deal *deal = m->deal;
    link_bytes *hosts = bel_xcalloc((size_t)deal->host_count, sizeof *hosts);
    double least = 0;
    for (int level = 1; level <= deal->levels + 2; level++)
        link_level(m, hosts, level);
    for (int h = 0; h < deal->host_count; h++) {
        least = larger(least, larger(hosts[h].in, hosts[h].out) * deal->link_ns);
        for (int r = 0; r < BEL_COST_ROLES; r++) {
            double *most = &m->cost->parts_ns[parts[r]];
            double bytes = larger(hosts[h].role_in[r], hosts[h].role_out[r]);
            *most = larger(*most, bytes * deal->link_ns);
        }
    }
    bel_free(hosts);
    return least;
}

// A step passes each level of lanes once, up and down: a message and its answer, of which the
// processor time is counted as work.
static double wake_ups(const model *m)
{
    const bel_cost_deal *deal = m->deal;
    double sum = 0;
    for (int level = 1; level <= deal->levels + 2; level++) {
        double most = 0;
        for (int i = 0; i < deal->lane_count; i++) {
            const bel_cost_lane *lane = &deal->lanes[i];
            if (level_of(deal, lane) != level) continue;
            double work =
                4 * m->rates->media[lane->medium].message + 2 * m->rates->media[lane->medium].wake;
            most = larger(most, m->rates->media[lane->medium].exchange - work);
        }
        sum += most;
    }
    return sum;
}

// --- The step ------------------------------------------------------------------------------------

static void predict(model *m)
{
    const bel_cost_deal *deal = m->deal;
    double *parts = m->cost->parts_ns;
    m->chunks = busiest_chunks(deal);
    add_lanes(m);
    find_most(m);
    find_copies(m);
    compute(m);
    parts[BEL_COST_WORKER_LANES] = work_of(m, BEL_COST_WORKER, 0);
    for (int level = 1; level <= deal->levels; level++)
        parts[BEL_COST_RELAYS] += work_of(m, BEL_COST_RELAY, level);
    parts[BEL_COST_PASS] = work_of(m, BEL_COST_SHARD, 0);
    double least = link_all(m);
    for (int h = 0; h < deal->host_count; h++)
        least = larger(least, m->exchange[h] / deal->cores[h]);
    parts[BEL_COST_WAKE_UPS] = wake_ups(m);
    m->cost->step_ns = parts[BEL_COST_COMPUTING] +
                       larger(least, overlap(m->longest, m->sum, m->chunks)) +
                       parts[BEL_COST_LATENCY] + parts[BEL_COST_WAKE_UPS];
    for (int p = 1; p < BEL_COST_PARTS; p++)
        if (parts[p] > parts[m->cost->bottleneck]) m->cost->bottleneck = (bel_cost_part)p;
}

bel_cost bel_cost_of(const bel_cost_deal *deal, const bel_cost_rates *rates)
{
    size_t hosts = (size_t)deal->host_count, actors = (size_t)deal->actor_count;
    bel_cost cost = {0};
    model m = {.deal = deal,
               .rates = rates,
               .cost = &cost,
               .lanes = bel_xcalloc(2 * actors, sizeof *m.lanes),
               .stage = bel_xcalloc(hosts, sizeof *m.stage),
               .exchange = bel_xcalloc(hosts, sizeof(double))};
    m.mirror = m.lanes + actors;
    predict(&m);
    bel_free(m.lanes);
    bel_free(m.stage);
    bel_free(m.exchange);
    return cost;
}

const char *bel_cost_part_text(bel_cost_part part)
{
    static const char *const texts[BEL_COST_PARTS] = {[BEL_COST_COMPUTING] = "computing",
                                                      [BEL_COST_WORKER_LANES] = "a worker's lanes",
                                                      [BEL_COST_RELAYS] = "the relays",
                                                      [BEL_COST_PASS] = "the shards' pass",
                                                      [BEL_COST_COPIES] = "copies",
                                                      [BEL_COST_WORKER_LINK] = "a worker's link",
                                                      [BEL_COST_RELAY_LINK] = "a relay's link",
                                                      [BEL_COST_SHARD_LINK] = "a shard's link",
                                                      [BEL_COST_LATENCY] = "latency",
                                                      [BEL_COST_WAKE_UPS] = "wake-ups"};
    return texts[part];
}
