// Lanes follow the tree of relays from above (ps/layout/fan_in.h): each relay, and the shards, have
// reporters, and a reporter is the highest relay below them in its worker's process, or the worker.
#include "plan/place.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "ps/layout/mirror_place.h"
#include "transport/streams/stream_lane.h"

bool bel_place_names_hosts(const bel_cluster *cluster)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        if (cluster->roles[r].host_count > 0) return true;
    return false;
}

// --- Hosts ---------------------------------------------------------------------------------------

// Returns the number of a process's host, which is new if `apart`.
static int host_of(bel_place *place, const bel_plan *plan, const bel_plan_process *process,
                   bool apart)
{
    bel_cost_deal *deal = &place->deal;
    int cores = plan->cluster->roles[process->role].machine.cores;
    int host = apart ? deal->host_count : 0;
    for (; host < deal->host_count; host++) {
        const char *name = place->hosts[host];
        if (name == process->host) break;
        if (name != NULL && process->host != NULL && strcmp(name, process->host) == 0) break;
    }
    if (host < deal->host_count) return host;
    place->hosts[host] = process->host;
    place->cores[host] = cores > 0 ? cores : bel_available_cores();
    return deal->host_count++;
}

static bel_cost_actor *shard_at(bel_place *place, int shard)
{
    return &place->actors[place->worker_count + shard];
}

// With named hosts the master's counts too: it is paid for.
static void place_processes(bel_place *place, const bel_plan *plan, const bel_place_links *links)
{
    int *towers = bel_xcalloc((size_t)plan->process_count, sizeof *towers), worker = 0;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *process = &plan->processes[i];
        bool server = process->role == BEL_ROLE_PS && process->index < place->shard_count;
        bool master = process->role == BEL_ROLE_MASTER && links->hosts;
        if (process->towers == 0 && !server && !master) continue;
        int host = host_of(place, plan, process, links->apart);
        if (server) shard_at(place, process->index)->host = host;
        if (process->towers == 0) continue;
        towers[host] += process->towers;
        if (towers[host] > place->together) place->together = towers[host];
        place->towers[worker] = process->towers;
        place->actors[worker++] = (bel_cost_actor){.role = BEL_COST_WORKER, .host = host};
    }
    worker = 0;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *process = &plan->processes[i];
        if (process->towers == 0) continue;
        bel_cost_actor *w = &place->actors[worker];
        int threads = process->thread_count; // 0: the host's cores
        if (threads == 0) threads = place->cores[w->host] / towers[w->host];
        if (threads == 0) threads = 1;
        if (worker++ == 0) place->threads = threads;
        int cores = place->cores[w->host]; // more threads do no more work
        w->threads = (threads < cores ? threads : cores) * process->towers;
    }
    bel_free(towers);
}

// --- Actors --------------------------------------------------------------------------------------

// A server or relay has a thread for each chunk, up to its host's cores.
static void set_threads(const bel_place *place, bel_cost_actor *actor)
{
    int cores = place->cores[actor->host];
    actor->threads = actor->chunks < cores ? actor->chunks : cores;
}

static void make_shards(bel_place *place, const bel_plan *plan, const bel_layout *layout)
{
    const bel_cluster_role *servers = &plan->cluster->roles[BEL_ROLE_PS];
    int shards = place->shard_count;
    bool copies = servers->copies > 0 && shards > 1;
    int distance = copies ? bel_mirror_distance(shards, (int)servers->host_count) : 0;
    for (int k = 0; k < shards; k++) {
        bel_cost_actor *shard = shard_at(place, k);
        shard->role = BEL_COST_SHARD;
        shard->mirrored = copies;
    }
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (!bel_chunk_changes(chunk, 0)) continue;
        bel_cost_actor *shard = shard_at(place, chunk->shard);
        shard->floats += (double)chunk->count;
        shard->chunks++;
        if (copies)
            shard_at(place, (chunk->shard + distance) % shards)->mirror += (double)chunk->count;
    }
    for (int k = 0; k < shards; k++)
        set_threads(place, shard_at(place, k));
}

static void make_relays(bel_place *place, const bel_fan_in *fan_in)
{
    double floats = 0;
    int chunks = 0, first = place->worker_count + place->shard_count;
    for (int k = 0; k < place->shard_count; k++) {
        floats += shard_at(place, k)->floats;
        chunks += shard_at(place, k)->chunks;
    }
    for (int w = 0; w < place->worker_count; w++) {
        int levels[BEL_FAN_IN_LEVELS];
        int count = bel_fan_in_relays(fan_in, w, levels);
        for (int i = 0; i < count; i++) {
            bel_cost_actor *relay = &place->actors[first + place->relay_count++];
            *relay = (bel_cost_actor){.role = BEL_COST_RELAY,
                                      .host = place->actors[w].host,
                                      .level = levels[i],
                                      .floats = floats,
                                      .chunks = chunks};
            set_threads(place, relay);
        }
    }
}

// --- Lanes ---------------------------------------------------------------------------------------

// A worker's relays, in the order of the actors.
typedef struct tree {
    const bel_place_config *config;
    const bel_fan_in *fan_in;
    bel_layout *joined;
    bel_lane_kind kind;
    int *first_relay; // by worker, and one more entry: index of an actor
} tree;

static void find_relays(const bel_place *place, tree *t)
{
    int levels[BEL_FAN_IN_LEVELS], at = place->worker_count + place->shard_count;
    t->first_relay = bel_xcalloc((size_t)place->worker_count + 1, sizeof *t->first_relay);
    for (int w = 0; w < place->worker_count; w++) {
        t->first_relay[w] = at;
        at += bel_fan_in_relays(t->fan_in, w, levels);
    }
    t->first_relay[place->worker_count] = at;
}

// The actor of a worker's process that reports to a relay of that level, or to the shards.
static int reporter_of(const bel_place *place, const tree *t, int worker, int level)
{
    int actor = worker;
    for (int i = t->first_relay[worker]; i < t->first_relay[worker + 1]; i++)
        if (place->actors[i].level < level) actor = i;
    return actor;
}

static void add_lane(bel_place *place, bool in_place, int low, int high, bel_lane_counts counts)
{
    place->lanes[place->deal.lane_count++] =
        (bel_cost_lane){.low = low,
                        .high = high,
                        .medium = in_place ? BEL_COST_SHM : BEL_COST_GRPC,
                        .counts = counts};
}

// A relay's first reporter is in its process.
static void add_lanes_of_relay(bel_place *place, const tree *t, int worker, int actor)
{
    bel_cost_actor *relay = &place->actors[actor];
    bel_lane_kind kind = t->kind;
    kind.in_place = bel_fan_in_is_host(t->fan_in, relay->level);
    bel_reporters below = bel_fan_in_members(t->fan_in, worker, relay->level);
    relay->reports = below.assignment->node_count;
    for (int i = 1; i < below.count; i++) {
        int low = reporter_of(place, t, below.workers[i], relay->level);
        add_lane(place, kind.in_place, low, actor,
                 bel_step_counts(t->joined, below.assignment, i, 0, kind));
    }
    bel_reporters_deinit(&below);
}

static void add_lanes_of_shards(bel_place *place, const tree *t)
{
    bel_reporters top = bel_fan_in_top(t->fan_in);
    for (int i = 0; i < top.count; i++) {
        int low = reporter_of(place, t, top.workers[i], BEL_FAN_IN_LEVELS + 1);
        for (int k = 0; k < place->shard_count; k++)
            add_lane(place, t->kind.in_place, low, place->worker_count + k,
                     bel_step_counts(t->config->layout, top.assignment, i, k, t->kind));
    }
    for (int k = 0; k < place->shard_count; k++)
        shard_at(place, k)->reports = top.assignment->node_count;
    bel_reporters_deinit(&top);
}

// A mirror takes the frames of a worker, over gRPC, and answers with versions only.
static void add_lanes_of_mirrors(bel_place *place, tree *t, const bel_plan *plan)
{
    int shards = place->shard_count;
    int distance = bel_mirror_distance(shards, (int)plan->cluster->roles[BEL_ROLE_PS].host_count);
    bel_assignment *only = bel_assignment_create((const int[]){1}, 1);
    t->kind.in_place = false;
    for (int k = 0; k < shards && shard_at(place, k)->mirrored; k++) {
        bel_lane_counts counts = bel_step_counts(t->config->layout, only, 0, k, t->kind);
        counts.down_frames = counts.down_messages = 1;
        counts.down_bytes = 0;
        add_lane(place, false, place->worker_count + k,
                 place->worker_count + (k + distance) % shards, counts);
    }
    bel_assignment_destroy(only);
}

static void add_lanes(bel_place *place, const bel_plan *plan, const bel_place_config *config,
                      const bel_fan_in *fan_in)
{
    bool shm = !config->grpc && !config->links.hosts && !config->links.apart;
    tree t = {.config = config,
              .fan_in = fan_in,
              .joined = bel_layout_join(config->layout),
              .kind = {.in_place = shm,
                       .rounding = config->rounding,
                       .joined_bytes = BEL_STREAM_LANE_JOINED_BYTES,
                       .ledger = bel_counting_has_ledger(&plan->counting),
                       .stats = config->stats}};
    find_relays(place, &t);
    int reporters = place->worker_count + place->relay_count; // the shards', and each relay's
    int top = place->relay_count > 0 ? config->fan_in : place->worker_count;
    size_t most = (size_t)reporters + (size_t)(top + 1) * (size_t)place->shard_count;
    place->lanes = bel_xcalloc(most, sizeof *place->lanes);
    add_lanes_of_shards(place, &t);
    for (int w = 0; w < place->worker_count; w++)
        for (int i = t.first_relay[w]; i < t.first_relay[w + 1]; i++)
            add_lanes_of_relay(place, &t, w, i);
    add_lanes_of_mirrors(place, &t, plan);
    place->deal.lanes = place->lanes;
    bel_layout_destroy_joined(t.joined);
    bel_free(t.first_relay);
}

// --- The tree ------------------------------------------------------------------------------------

// Workers of one host add there, as neighbors, unless lanes use gRPC (master/backend).
static bel_fan_in *make_fan_in(const bel_place *place, const bel_place_config *config,
                               const bel_assignment *assignment)
{
    int *sizes = bel_xcalloc((size_t)place->worker_count, sizeof *sizes);
    bel_fan_in_rule rule = {.fan_in = config->fan_in, .hosts = sizes};
    bool shared = false;
    for (int w = 0; w < place->worker_count; w++) {
        bool same = w > 0 && place->actors[w].host == place->actors[w - 1].host;
        sizes[same ? rule.host_count - 1 : rule.host_count++]++;
        shared = shared || same;
    }
    bool groups = config->fan_in > 0 && config->links.hosts && !config->links.apart;
    if (!shared || !groups || config->grpc) rule.host_count = 0;
    bel_fan_in *fan_in = bel_fan_in_create(assignment, &rule);
    bel_free(sizes);
    return fan_in;
}

// --- The place -----------------------------------------------------------------------------------

static void set_deal(bel_place *place, const bel_fan_in *fan_in, const bel_place_config *config)
{
    bel_cost_deal *deal = &place->deal;
    deal->actors = place->actors;
    deal->actor_count = place->worker_count + place->shard_count + place->relay_count;
    deal->cores = place->cores;
    deal->link_ns = config->links.byte_ns;
    deal->latency_ns = config->links.latency_ns;
    deal->levels = bel_fan_in_levels(fan_in);
}

void bel_place_init(bel_place *place, bel_plan *plan, const bel_place_config *config)
{
    const bel_place_links *links = &config->links;
    size_t workers = (size_t)plan->worker_count, shards = (size_t)config->layout->shard_count;
    if (links->apart || links->hosts) bel_plan_move(plan, links->apart);
    *place = (bel_place){
        .worker_count = plan->worker_count,
        .shard_count = config->layout->shard_count,
        .actors = bel_xcalloc(2 * workers + shards, sizeof *place->actors),
        .towers = bel_xcalloc(workers, sizeof *place->towers),
        .cores = bel_xcalloc((size_t)plan->process_count, sizeof *place->cores),
        .hosts = bel_xcalloc((size_t)plan->process_count, sizeof *place->hosts),
    };
    place_processes(place, plan, links);
    make_shards(place, plan, config->layout);
    bel_assignment *assignment = bel_assignment_create(place->towers, place->worker_count);
    bel_fan_in *fan_in = make_fan_in(place, config, assignment);
    make_relays(place, fan_in);
    add_lanes(place, plan, config, fan_in);
    set_deal(place, fan_in, config);
    bel_fan_in_destroy(fan_in);
    bel_assignment_destroy(assignment);
}

void bel_place_deinit(bel_place *place)
{
    bel_free(place->actors);
    bel_free(place->lanes);
    bel_free(place->towers);
    bel_free(place->cores);
    bel_free(place->hosts);
}

void bel_place_set_steps(bel_place *place, double compute_ns, double input_ns, double pass_ns)
{
    double floats = 0;
    for (int k = 0; k < place->shard_count; k++)
        floats += shard_at(place, k)->floats;
    place->deal.pass_ns = floats > 0 ? pass_ns / floats : 0;
    for (int w = 0; w < place->worker_count; w++) {
        place->actors[w].compute_ns = compute_ns;
        place->actors[w].input_ns = input_ns * place->towers[w];
    }
}

bel_lane_counts bel_place_all(const bel_place *place)
{
    bel_lane_counts all = {0};
    for (int i = 0; i < place->deal.lane_count; i++)
        bel_lane_counts_add(&all, &place->lanes[i].counts);
    return all;
}
