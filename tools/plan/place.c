#include "plan/place.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

bool bel_place_names_hosts(const bel_cluster *cluster)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        if (cluster->roles[r].host_count > 0) return true;
    return false;
}

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

static void place_processes(bel_place *place, const bel_plan *plan, bool apart)
{
    int *towers = bel_xcalloc((size_t)plan->process_count, sizeof *towers), worker = 0;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *process = &plan->processes[i];
        bool server = process->role == BEL_ROLE_PS && process->index < place->deal.shard_count;
        if (process->towers == 0 && !server) continue;
        int host = host_of(place, plan, process, apart);
        if (server) place->shards[process->index].host = host;
        if (process->towers == 0) continue;
        towers[host] += process->towers;
        if (towers[host] > place->together) place->together = towers[host];
        place->workers[worker++].host = host;
    }
    worker = 0;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *process = &plan->processes[i];
        if (process->towers == 0) continue;
        bel_cost_worker *w = &place->workers[worker];
        int threads = process->thread_count; // 0: the host's cores
        if (threads == 0) threads = place->cores[w->host] / towers[w->host];
        if (threads == 0) threads = 1;
        if (worker++ == 0) place->threads = threads;
        w->threads = threads * process->towers;
    }
    bel_free(towers);
}

static void count_lanes(bel_place *place, const bel_plan *plan, const bel_layout *layout,
                        bel_lane_kind kind)
{
    bel_cost_deal *deal = &place->deal;
    int *replicas = bel_xcalloc((size_t)deal->worker_count, sizeof *replicas), worker = 0;
    for (int i = 0; i < plan->process_count; i++)
        if (plan->processes[i].towers > 0) replicas[worker++] = plan->processes[i].towers;
    bel_assignment *assignment = bel_assignment_create(replicas, deal->worker_count);
    for (int w = 0; w < deal->worker_count; w++) {
        place->workers[w].reports = assignment->first_node[w + 1] - assignment->first_node[w];
        for (int k = 0; k < deal->shard_count; k++) {
            kind.in_place = bel_cost_lane_of(deal, w, k) == BEL_COST_SHM;
            place->lanes[(size_t)w * (size_t)deal->shard_count + (size_t)k] =
                bel_step_counts(layout, assignment, w, k, kind);
        }
    }
    bel_assignment_destroy(assignment);
    bel_free(replicas);
}

void bel_place_init(bel_place *place, bel_plan *plan, const bel_layout *layout,
                    const bel_place_links *links, bel_stats_shape stats, bool rounded, bool grpc)
{
    size_t workers = (size_t)plan->worker_count, shards = (size_t)layout->shard_count;
    if (links->apart || links->hosts) bel_plan_move(plan, links->apart);
    *place = (bel_place){
        .workers = bel_xcalloc(workers, sizeof *place->workers),
        .shards = bel_xcalloc(shards, sizeof *place->shards),
        .cores = bel_xcalloc((size_t)plan->process_count, sizeof *place->cores),
        .hosts = bel_xcalloc((size_t)plan->process_count, sizeof *place->hosts),
        .lanes = bel_xcalloc(workers * shards, sizeof *place->lanes),
    };
    place->deal = (bel_cost_deal){.workers = place->workers,
                                  .worker_count = plan->worker_count,
                                  .shards = place->shards,
                                  .shard_count = layout->shard_count,
                                  .cores = place->cores,
                                  .lanes = place->lanes,
                                  .grpc = grpc,
                                  .link_ns = links->byte_ns,
                                  .latency_ns = links->latency_ns};
    for (int c = 0; c < layout->chunk_count; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (!bel_chunk_changes(chunk, 0)) continue;
        place->shards[chunk->shard].floats += (double)chunk->count;
        place->shards[chunk->shard].chunks++;
    }
    place_processes(place, plan, links->apart);
    bool ledger = bel_counting_has_ledger(&plan->counting);
    count_lanes(place, plan, layout,
                (bel_lane_kind){.rounded = rounded, .ledger = ledger, .stats = stats});
}

void bel_place_deinit(bel_place *place)
{
    bel_free(place->workers);
    bel_free(place->shards);
    bel_free(place->cores);
    bel_free(place->hosts);
    bel_free(place->lanes);
}

void bel_place_set_steps(bel_place *place, double compute_ns, double pass_ns)
{
    double floats = 0;
    for (int k = 0; k < place->deal.shard_count; k++)
        floats += place->shards[k].floats;
    place->deal.pass_ns = floats > 0 ? pass_ns / floats : 0;
    for (int w = 0; w < place->deal.worker_count; w++)
        place->workers[w].compute_ns = compute_ns;
}

bel_lane_counts bel_place_all(const bel_place *place)
{
    bel_lane_counts all = {0};
    size_t lanes = (size_t)place->deal.worker_count * (size_t)place->deal.shard_count;
    for (size_t i = 0; i < lanes; i++) {
        all.up_frames += place->lanes[i].up_frames;
        all.up_bytes += place->lanes[i].up_bytes;
        all.down_frames += place->lanes[i].down_frames;
        all.down_bytes += place->lanes[i].down_bytes;
    }
    return all;
}
