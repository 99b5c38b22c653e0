// From a cluster to its processes.
#include "launch/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

// --- Making --------------------------------------------------------------------------------------

static bel_status *towers_of(const bel_cluster_role *role, const char *what, int wanted,
                             int *out_towers)
{
    int devices = role->machine.devices;
    *out_towers = wanted > 0 ? wanted : devices > 0 ? devices : 1;
    if (devices == 0 || wanted <= devices) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%d towers are asked for each %s, but its machine%s%s has %d %s", wanted, what,
                   role->machine.name[0] != '\0' ? " " : "", role->machine.name, devices,
                   devices == 1 ? "device" : "devices");
}

static const char *host_of(const bel_cluster_role *role, int index)
{
    return role->host_count > 0 ? role->hosts[(size_t)index % role->host_count] : NULL;
}

static void add(bel_plan *plan, bel_role role, int first, int towers, bool has_shard)
{
    const bel_cluster_role *r = &plan->cluster->roles[role];
    int count = r->count + first;
    for (int i = first; i < count; i++) {
        plan->processes[plan->process_count++] = (bel_plan_process){.role = role,
                                                                    .index = i,
                                                                    .host = host_of(r, i - first),
                                                                    .towers = towers,
                                                                    .has_shard = has_shard};
    }
}

static bool same_host(const bel_plan_process *a, const bel_plan_process *b)
{
    if (a->host == NULL || b->host == NULL) return a->host == b->host;
    return strcmp(a->host, b->host) == 0;
}

// The cores of a process's machine, divided by the towers of all processes there.
static int threads_of(const bel_plan *plan, const bel_plan_process *process)
{
    int cores = plan->cluster->roles[process->role].machine.cores, towers = 0;
    if (cores == 0) cores = bel_available_cores();
    for (int i = 0; i < plan->process_count; i++)
        if (same_host(&plan->processes[i], process)) towers += plan->processes[i].towers;
    return towers > 0 && cores > towers ? cores / towers : 1;
}

bel_status *bel_plan_create(const bel_cluster *cluster, int towers, int threads,
                            bel_plan **out_plan)
{
    const bel_cluster_role *roles = cluster->roles;
    int master_towers = 0, worker_towers;
    BEL_TRY(towers_of(&roles[BEL_ROLE_WORKER], "worker", towers, &worker_towers));
    if (cluster->master_trains) {
        BEL_TRY(towers_of(&roles[BEL_ROLE_MASTER], "master", towers, &master_towers));
    }
    bel_plan *plan = bel_xcalloc(1, sizeof *plan);
    plan->cluster = cluster;
    size_t most = 1;
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        most += (size_t)roles[r].count;
    plan->processes = bel_xcalloc(most, sizeof *plan->processes);
    bool alone = roles[BEL_ROLE_PS].count == 0; // workers hold the shards
    int first_worker = cluster->master_trains ? 1 : 0;
    add(plan, BEL_ROLE_MASTER, 0, master_towers, alone && cluster->master_trains);
    add(plan, BEL_ROLE_PS, 0, 0, true);
    add(plan, BEL_ROLE_WORKER, first_worker, worker_towers, alone);
    add(plan, BEL_ROLE_EVALUATOR, 0, 0, false);
    plan->worker_count = first_worker + roles[BEL_ROLE_WORKER].count;
    plan->replica_count = master_towers + roles[BEL_ROLE_WORKER].count * worker_towers;
    plan->shard_count = alone ? plan->worker_count : roles[BEL_ROLE_PS].count;
    for (int i = 0; i < plan->process_count; i++) {
        bel_plan_process *process = &plan->processes[i];
        process->thread_count = threads > 0 ? threads : threads_of(plan, process);
    }
    *out_plan = plan;
    return NULL;
}

void bel_plan_destroy(bel_plan *plan)
{
    if (plan == NULL) return;
    bel_free(plan->processes);
    bel_free(plan);
}

bel_task *bel_plan_task(const bel_plan *plan, const char *job, int process)
{
    const bel_plan_process *p = &plan->processes[process];
    const bel_cluster *cluster = plan->cluster;
    bel_task *task = bel_xcalloc(1, sizeof *task);
    *task = (bel_task){.job = bel_xstrdup(job),
                       .role = p->role,
                       .index = p->index,
                       .worker_count = plan->worker_count,
                       .ps_count = cluster->roles[BEL_ROLE_PS].count,
                       .evaluator_count = cluster->roles[BEL_ROLE_EVALUATOR].count,
                       .master_trains = cluster->master_trains,
                       .thread_count = p->thread_count,
                       .join_timeout_secs = cluster->join_timeout_secs,
                       .silence_timeout_secs = cluster->silence_timeout_secs};
    task->towers = bel_xcalloc((size_t)plan->worker_count, sizeof *task->towers);
    for (int i = 0, w = 0; i < plan->process_count; i++)
        if (plan->processes[i].towers > 0) task->towers[w++] = plan->processes[i].towers;
    if (cluster->tls_ca != NULL) {
        task->tls_ca = bel_xstrdup(cluster->tls_ca);
        task->tls_certificate = bel_xstrdup(cluster->tls_certificate);
        task->tls_key = bel_xstrdup(cluster->tls_key);
    }
    return task;
}

// --- Showing -------------------------------------------------------------------------------------

static double memory_of(const bel_plan *plan, const bel_plan_process *p, const bel_plan_sizes *s)
{
    double parameters = (double)s->parameters * 4, slots = (double)s->slot_elements * 4, bytes = 0;
    if (p->has_shard) {
        double share = 1.0 / plan->shard_count;
        bytes += share * (2 * parameters + slots + parameters + slots); // the last two: to save
        bytes += share * parameters * plan->worker_count;               // a report of each worker
    }
    if (p->towers > 0) {
        bytes += 2 * parameters + p->towers * (parameters + (double)s->activation_bytes);
    }
    if (p->role == BEL_ROLE_MASTER) bytes += parameters;
    if (p->role == BEL_ROLE_EVALUATOR) bytes += parameters;
    return bytes;
}

static void write_process(const bel_plan *plan, const bel_plan_process *p,
                          const bel_plan_sizes *sizes, bel_str *out)
{
    char name[32], memory[32] = "", size[32];
    if (sizes != NULL) {
        bel_bytes_text((uint64_t)memory_of(plan, p, sizes), memory);
        if (p->has_shard && sizes->shard_bytes != NULL) {
            bel_bytes_text((uint64_t)sizes->shard_bytes[p->index], size);
        }
    }
    bool sized = sizes != NULL && sizes->shard_bytes != NULL;
    const char *shard = !p->has_shard ? "-" : sized ? size : "yes";
    bel_str_printf(out, "%-13s %-16s %7d %8d %10s %10s\n", bel_task_name(p->role, p->index, name),
                   p->host != NULL ? p->host : "this host", p->towers,
                   p->towers > 0 ? p->thread_count : 1, shard, memory);
}

void bel_plan_write(const bel_plan *plan, const bel_plan_sizes *sizes, bel_str *out)
{
    bel_str_printf(out, "%-13s %-16s %7s %8s %10s %10s\n", "process", "host", "towers", "threads",
                   "shard", sizes != NULL ? "memory" : "");
    for (int i = 0; i < plan->process_count; i++)
        write_process(plan, &plan->processes[i], sizes, out);
    bel_str_printf(
        out, "T = %d worker%s, all counted (N = %d); R = %d replica%s in a step; %d shard%s\n",
        plan->worker_count, plan->worker_count == 1 ? "" : "s", plan->worker_count,
        plan->replica_count, plan->replica_count == 1 ? "" : "s", plan->shard_count,
        plan->shard_count == 1 ? "" : "s");
    if (sizes == NULL) return;
    char bytes[32];
    bel_str_printf(out, "%lld parameters, %s\n", (long long)sizes->parameters,
                   bel_bytes_text((uint64_t)sizes->parameters * 4, bytes));
}
