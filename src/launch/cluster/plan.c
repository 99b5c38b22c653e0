// From a cluster to its processes. Other code relies on their order: the master is the first (the
// supervisor's child 0), and training processes are in the order of worker indices. So one pass
// over them fills a task's `towers`. A master that trains is worker 0; other workers then start at
// index 1.
//
// Threads are assigned when all processes are known, because the towers of one host share its
// cores. The plan's memory is an estimate for people: it warns and refuses nothing.
#include "launch/cluster/plan.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/linux_host.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"
#include "ps/layout/layout.h"
#include "ps/layout/mirror_place.h"
#include "ps/layout/report_room.h"

// --- Making --------------------------------------------------------------------------------------

// Towers of each worker of a role: the requested number, else the machine's devices, else one.
static bel_status *towers_of(const bel_cluster_role *role, const char *what, int wanted,
                             int *out_towers)
{
    int devices = role->machine.devices;
    int towers = wanted > 0 ? wanted : devices > 0 ? devices : 1;
    if (devices > 0 && towers > devices && !role->machine.devices_by_type) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%d towers are asked for each %s, but its machine%s%s has %d %s", towers,
                       what, role->machine.name[0] != '\0' ? " " : "", role->machine.name, devices,
                       devices == 1 ? "device" : "devices");
    }
    if (towers > BEL_CLUSTER_MOST_DEVICES) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d towers are asked for each %s; expected at most %d",
                       towers, what, BEL_CLUSTER_MOST_DEVICES);
    }
    *out_towers = towers;
    return NULL;
}

// NULL: this host. Workers of a host are neighbors, which add their reports there (ps/relay); those
// that are added later, and all other processes, are assigned to hosts in turn.
static const char *host_of(const bel_cluster *cluster, bel_role role, int index)
{
    const bel_cluster_role *r = &cluster->roles[role];
    size_t hosts = r->host_count, count = (size_t)r->count, i = (size_t)index;
    if (hosts == 0) return NULL;
    bool neighbors = role == BEL_ROLE_WORKER && i < count;
    return r->hosts[neighbors ? i * hosts / count : i % hosts];
}

const char *bel_plan_host(const bel_plan *plan, const bel_task *task)
{
    int first = task->role == BEL_ROLE_WORKER && plan->cluster->master_trains ? 1 : 0;
    return host_of(plan->cluster, task->role, task->index - first + task->moves);
}

int bel_plan_moves(const bel_plan *plan, const bel_task *task, const int *moved, int *out_mate)
{
    int hosts = (int)plan->cluster->roles[BEL_ROLE_PS].host_count, servers = task->ps_count;
    *out_mate = -1;
    if (task->role != BEL_ROLE_PS || task->copies == 0 || hosts < 2) return 0;
    int distance = bel_mirror_distance(servers, hosts);
    int copy = (task->index + distance) % servers;
    int copied = (task->index + servers - distance) % servers; // its copy is here
    int second = 0;
    for (int moves = task->moves + 1; moves < task->moves + hosts; moves++) {
        int host = (task->index + moves) % hosts;
        if (host == (copy + moved[copy]) % hosts) continue;
        if (host != (copied + moved[copied]) % hosts) return moves;
        if (second == 0) second = moves;
    }
    *out_mate = second > 0 ? copied : copy;
    return second > 0 ? second : task->moves + 1;
}

// Adds processes of a role, numbered from `first`.
static void plan_add(bel_plan *plan, bel_role role, int first, int towers, bool has_shard)
{
    const bel_cluster_role *r = &plan->cluster->roles[role];
    int count = r->count + first;
    for (int i = first; i < count; i++) {
        plan->processes[plan->process_count++] =
            (bel_plan_process){.role = role,
                               .index = i,
                               .host = host_of(plan->cluster, role, i - first),
                               .towers = towers,
                               .has_shard = has_shard};
    }
}

static bool same_host(const bel_plan_process *a, const bel_plan_process *b)
{
    if (a->host == NULL || b->host == NULL) return a->host == b->host;
    return strcmp(a->host, b->host) == 0;
}

// True if both share a host.
static bool are_together(const bel_plan *plan, const bel_plan_process *a, const bel_plan_process *b)
{
    return plan->apart ? a == b : same_host(a, b);
}

// Returns the cores of a process's machine, divided by the towers of all processes there. If no
// process there trains, divided by the processes.
static int threads_of(const bel_plan *plan, const bel_plan_process *process)
{
    enum { MOST_THREADS = 1024 }; // as in bel_run_config
    int cores = plan->cluster->roles[process->role].machine.cores, towers = 0, processes = 0;
    if (cores == 0) cores = bel_available_cores();
    for (int i = 0; i < plan->process_count; i++) {
        if (!same_host(&plan->processes[i], process)) continue;
        towers += plan->processes[i].towers;
        processes++;
    }
    int shares = towers > 0 ? towers : processes, threads = cores > shares ? cores / shares : 1;
    return threads < MOST_THREADS ? threads : MOST_THREADS;
}

// Order: counts, processes, threads. Threads depend on which processes share a host.
bel_status *bel_plan_create(const bel_cluster *cluster, int towers, int threads,
                            bel_plan **out_plan)
{
    const bel_cluster_role *roles = cluster->roles;
    int master_towers = 0, worker_towers = 0;
    if (roles[BEL_ROLE_WORKER].count > 0) {
        BEL_TRY(towers_of(&roles[BEL_ROLE_WORKER], "worker", towers, &worker_towers));
    }
    if (cluster->master_trains) {
        BEL_TRY(towers_of(&roles[BEL_ROLE_MASTER], "master", towers, &master_towers));
    }
    bel_plan *plan = bel_xcalloc(1, sizeof *plan);
    plan->cluster = cluster;
    plan->stall_timeout_secs = cluster->stall_timeout_secs;
    plan->threads_given = threads > 0;
    size_t most = 1;
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        most += (size_t)roles[r].count;
    plan->processes = bel_xcalloc(most, sizeof *plan->processes);
    bool alone = roles[BEL_ROLE_PS].count == 0; // workers hold the shards
    int first_worker = cluster->master_trains ? 1 : 0;
    plan_add(plan, BEL_ROLE_MASTER, 0, master_towers, alone && cluster->master_trains);
    plan_add(plan, BEL_ROLE_PS, 0, 0, true);
    plan_add(plan, BEL_ROLE_WORKER, first_worker, worker_towers, alone);
    plan_add(plan, BEL_ROLE_EVALUATOR, 0, 0, false);
    plan->worker_count = first_worker + roles[BEL_ROLE_WORKER].count;
    plan->shard_count = alone ? plan->worker_count : roles[BEL_ROLE_PS].count;
    for (int i = 0; i < plan->process_count; i++) {
        bel_plan_process *process = &plan->processes[i];
        bool server = process->role == BEL_ROLE_PS; // sums and updates on one thread
        process->thread_count = server ? 1 : threads > 0 ? threads : threads_of(plan, process);
    }
    bel_plan_set_counting(plan, BEL_COUNTING_BACKUPS, 0, 1, 0); // the default: all reports
    *out_plan = plan;
    return NULL;
}

void bel_plan_move(bel_plan *plan, bool apart)
{
    plan->apart = apart;
    for (int i = 0; i < plan->process_count; i++) {
        bel_plan_process *p = &plan->processes[i];
        bool here = !apart && (p->host == NULL || bel_linux_host_is_here(p->host));
        if (here || p->role == BEL_ROLE_MASTER || p->role == BEL_ROLE_PS || plan->threads_given) {
            continue;
        }
        int cores = plan->cluster->roles[p->role].machine.cores, towers = p->towers;
        if (cores == 0) {
            p->thread_count = 0;
        } else if (apart) {
            p->thread_count = towers > 1 && cores > towers ? cores / towers
                              : towers > 1                 ? 1
                                                           : cores;
        }
    }
}

// One pass also counts the workers, because training processes are in the order of workers.
void bel_plan_set_counting(bel_plan *plan, bel_counting_kind asked, int replicas_to_aggregate,
                           int accumulate_steps, int64_t max_staleness)
{
    int *replicas_of = bel_xcalloc((size_t)plan->worker_count + 1, sizeof *replicas_of);
    int worker = 0;
    plan->counting = bel_counting_of(asked, replicas_to_aggregate, accumulate_steps,
                                     plan->worker_count, max_staleness);
    for (int i = 0; i < plan->process_count; i++) {
        if (plan->processes[i].towers == 0) continue;
        int turns = bel_counting_turns(&plan->counting, plan->worker_count, worker);
        replicas_of[worker++] = plan->processes[i].towers * turns;
    }
    plan->replica_count = bel_counting_replicas(&plan->counting, replicas_of, plan->worker_count);
    bel_free(replicas_of);
}

void bel_plan_destroy(bel_plan *plan)
{
    if (plan == NULL) return;
    bel_free(plan->processes);
    bel_free(plan);
}

// Relies on the order: training processes are in the order of workers.
static void count_local(const bel_plan *plan, int process, bel_task *task)
{
    task->local_rank = -1;
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *other = &plan->processes[i];
        if (other->towers == 0 || !are_together(plan, other, &plan->processes[process])) continue;
        if (i == process) task->local_rank = task->local_size;
        task->local_size++;
    }
}

// The host on which a process is sure to be.
static char *known_host(const bel_plan *plan, const bel_task *task)
{
    const char *host = plan->apart ? NULL : bel_plan_host(plan, task);
    return host != NULL ? bel_xstrdup(host) : NULL;
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
                       .silence_timeout_secs = cluster->silence_timeout_secs,
                       .stall_timeout_secs = plan->stall_timeout_secs,
                       .min_workers = cluster->min_workers,
                       .ps_hosts = (int)cluster->roles[BEL_ROLE_PS].host_count,
                       .copies = cluster->roles[BEL_ROLE_PS].copies,
                       .recovers = cluster->restarts > 0};
    task->host = known_host(plan, task);
    task->towers = bel_xcalloc((size_t)plan->worker_count, sizeof *task->towers);
    for (int i = 0, w = 0; i < plan->process_count; i++)
        if (plan->processes[i].towers > 0) task->towers[w++] = plan->processes[i].towers;
    count_local(plan, process, task);
    if (cluster->tls_ca != NULL) {
        task->tls_ca = bel_xstrdup(cluster->tls_ca);
        task->tls_certificate = bel_xstrdup(cluster->tls_certificate);
        task->tls_key = bel_xstrdup(cluster->tls_key);
    }
    return task;
}

int bel_plan_towers(const bel_plan *plan, int workers)
{
    int towers = 0, last = 0, found = 0;
    for (int i = 0; i < plan->process_count && found < workers; i++) {
        if (plan->processes[i].towers == 0) continue;
        last = plan->processes[i].towers;
        towers += last;
        found++;
    }
    return towers + (workers - found) * last;
}

bel_task *bel_plan_added_task(const bel_plan *plan, const char *job, int index)
{
    int last = 0;
    for (int i = 0; i < plan->process_count; i++)
        if (plan->processes[i].role == BEL_ROLE_WORKER) last = i;
    bel_task *task = bel_plan_task(plan, job, last);
    task->role = BEL_ROLE_WORKER;
    task->index = index;
    bel_free(task->host);
    task->host = known_host(plan, task);
    task->local_rank = plan->apart ? 0 : task->local_size + index - plan->worker_count;
    task->added = true;
    return task;
}

// --- Showing -------------------------------------------------------------------------------------

// Room for reports if not all of them fit it: slots as large as a chunk (ps/layout/report_room.h),
// for one node a worker.
static double limited_room(int workers, double own)
{
    const double most = 4 << 20, least = 64 << 10; // bytes of a chunk (bel_layout_create)
    double chunk = fmin(most, fmax(least, own / 8));
    int levels = 0;
    while (1 << levels < workers)
        levels++;
    return (fmax(floor(BEL_REPORT_ROOM / chunk), 2 * levels) + 1) * chunk;
}

static double shard_bytes(const bel_plan *plan, int shard, const bel_plan_sizes *s)
{
    double exchanged = (double)(s->exchanged > 0 ? s->exchanged : s->parameters) * 4;
    return s->shard_bytes != NULL ? (double)s->shard_bytes[shard] : exchanged / plan->shard_count;
}

// The sums for this shard's mirror, and the mirror of another shard.
static double mirror_memory(const bel_plan *plan, const bel_plan_process *p,
                            const bel_plan_sizes *s, double slots)
{
    const bel_cluster_role *servers = &plan->cluster->roles[BEL_ROLE_PS];
    if (servers->copies == 0) return 0;
    int shards = plan->shard_count;
    int distance = bel_mirror_distance(shards, (int)servers->host_count);
    double own = shard_bytes(plan, p->index, s);
    double other = shard_bytes(plan, (p->index + shards - distance) % shards, s);
    return own + other * (3 + slots);
}

// The terms are those of bel_plan_memory's comment in plan.h.
static double memory_of(const bel_plan *plan, const bel_plan_process *p, const bel_plan_sizes *s)
{
    enum { PROGRAM_MIB = 16 }; // code, libraries, connections and their buffers, as measured
    const int64_t some = BEL_LAYOUT_PAGE;
    double parameters = (double)s->parameters * 4, slots = (double)s->slot_elements * 4;
    double exchanged = s->exchanged > 0 ? (double)s->exchanged * 4 : parameters;
    bool rounds = s->rounding != BEL_ROUNDING_NONE;
    double narrow =
        (double)bel_rounding_bytes(s->rounding, some) / (double)(some * (int64_t)sizeof(float));
    double bytes = PROGRAM_MIB * 1048576.0;
    if (p->has_shard) {
        double own = shard_bytes(plan, p->index, s);
        double own_slots = exchanged > 0 ? slots * (own / exchanged) : 0;
        bytes += 2 * own + own_slots; // double buffering
        bytes += own + own_slots;     // the version that is being saved
        double reports = own * plan->worker_count * narrow;
        bool limited = !bel_counting_has_ledger(&plan->counting) && reports > BEL_REPORT_ROOM;
        bytes += limited ? limited_room(plan->worker_count, own) : reports;
        bytes += rounds ? own * narrow : 0; // differences of values
        bytes += (double)s->row_bytes * plan->worker_count / plan->shard_count;
        bytes += mirror_memory(plan, p, s, exchanged > 0 ? slots / exchanged : 0);
    }
    if (p->towers > 0) {
        bytes += 2 * exchanged + p->towers * (exchanged + (double)s->activation_bytes);
        bytes += rounds ? 2 * exchanged * narrow : 0; // differences, and a rounded report
        bytes += (double)s->data_bytes + (double)s->row_bytes;
    }
    if (p->role == BEL_ROLE_MASTER || p->role == BEL_ROLE_EVALUATOR) bytes += exchanged;
    return bytes;
}

double bel_plan_memory(const bel_plan *plan, int process, const bel_plan_sizes *sizes)
{
    return memory_of(plan, &plan->processes[process], sizes);
}

static const char *host_text(const bel_plan *plan, const bel_plan_process *process)
{
    if (plan->apart && process->role != BEL_ROLE_MASTER) return "any node";
    return process->host != NULL ? process->host : "this host";
}

static void write_process(const bel_plan *plan, const bel_plan_process *p,
                          const bel_plan_sizes *sizes, int host_width, bel_str *out)
{
    char name[32], bytes[32];
    const char *shard = p->has_shard ? "yes" : "-";
    if (p->has_shard && sizes != NULL && sizes->shard_bytes != NULL) {
        shard = bel_bytes_text((uint64_t)sizes->shard_bytes[p->index], bytes);
    }
    char threads[16] = "-"; // number of cores
    if (p->thread_count > 0) bel_snprintf(threads, sizeof threads, "%d", p->thread_count);
    bel_str_printf(out, "%-13s %-*s %7d %8s %10s", bel_role_text(p->role, p->index, name),
                   host_width, host_text(plan, p), p->towers, threads, shard);
    if (sizes != NULL) {
        bel_str_printf(out, " %10s", bel_bytes_text((uint64_t)memory_of(plan, p, sizes), bytes));
    }
    bel_str_puts(out, "\n");
}

// One line for each host whose machine has less memory than its processes need.
static void write_shortage(const bel_plan *plan, const bel_plan_sizes *sizes, bel_str *out)
{
    for (int i = 0; i < plan->process_count; i++) {
        const bel_plan_process *p = &plan->processes[i];
        const bel_cluster_machine *machine = &plan->cluster->roles[p->role].machine;
        double needed = 0;
        bool said = false; // reported with an earlier process of this host
        for (int k = 0; k < plan->process_count; k++) {
            const bel_plan_process *other = &plan->processes[k];
            if (!are_together(plan, other, p)) continue;
            needed += memory_of(plan, other, sizes);
            said |= k < i && plan->cluster->roles[other->role].machine.memory_bytes > 0;
        }
        if (said || machine->memory_bytes == 0 || needed <= (double)machine->memory_bytes) continue;
        char bytes[32], limit[32];
        bel_str_printf(out, "too little memory: %s needs %s, its machine %s has %s\n",
                       host_text(plan, p), bel_bytes_text((uint64_t)needed, bytes), machine->name,
                       bel_bytes_text((uint64_t)machine->memory_bytes, limit));
    }
}

static void write_counting(const bel_plan *plan, bel_str *out)
{
    int workers = plan->worker_count, counted = plan->counting.workers;
    int replicas = plan->replica_count;
    bel_str_printf(out, "T = %d worker%s, ", workers, workers == 1 ? "" : "s");
    if (bel_counting_takes_stale(&plan->counting)) {
        bel_str_puts(out, "counted as they come");
    } else if (bel_counting_has_ledger(&plan->counting)) {
        bel_str_printf(out, "the first %d counted", counted);
    } else {
        bel_str_printf(out, "all counted%s", counted > workers ? ", taking turns" : "");
    }
    bel_str_printf(out, " (N = %d); R = %d replica%s in a step; %d shard%s\n", counted, replicas,
                   replicas == 1 ? "" : "s", plan->shard_count, plan->shard_count == 1 ? "" : "s");
}

void bel_plan_write(const bel_plan *plan, const bel_plan_sizes *sizes, bel_str *out)
{
    int host_width = 16;
    for (int i = 0; i < plan->process_count; i++) {
        int width = (int)strlen(host_text(plan, &plan->processes[i]));
        if (width > host_width) host_width = width;
    }
    bel_str_printf(out, "%-13s %-*s %7s %8s %10s", "process", host_width, "host", "towers",
                   "threads", "shard");
    if (sizes != NULL) bel_str_printf(out, " %10s", "memory");
    bel_str_puts(out, "\n");
    for (int i = 0; i < plan->process_count; i++)
        write_process(plan, &plan->processes[i], sizes, host_width, out);
    write_counting(plan, out);
    if (sizes == NULL) return;
    char bytes[32];
    bel_str_printf(out, "%lld parameters, %s\n", (long long)sizes->parameters,
                   bel_bytes_text((uint64_t)sizes->parameters * 4, bytes));
    write_shortage(plan, sizes, out);
}
