// Two readers that fill the same struct. Absent values have TF_CONFIG's defaults, with one
// exception: a launcher of ranks ends all of them when one has died and restarts all or none. So
// the job does not wait for lost members.
#include "launch/task/task_launcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/linux_host.h"
#include "base/str.h"
#include "launch/folder/sockets.h"

enum { MOST_RANKS = 1024 }; // workers of a job, as in cluster files

// --- Ranks ---------------------------------------------------------------------------------------

bel_status *bel_task_set_rank(const bel_launch *launch, bel_task *task)
{
    bool master = task->role == BEL_ROLE_MASTER;
    if (launch->local_size == launch->size) {
        task->socket_folder = bel_sockets_of(launch->job);
        task->master_address = bel_strf("unix:%s/master", task->socket_folder);
        task->listen_address = master ? bel_xstrdup(task->master_address)
                                      : bel_strf("unix:%s/%s-%d", task->socket_folder,
                                                 bel_role_name(task->role), task->index);
        return NULL;
    }
    if (launch->host[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the %d ranks of %s run on several hosts, and it does not say where rank 0 "
                       "is: expected BELFRY_ADDRESS=HOST:PORT in the environment of all ranks, "
                       "where rank 0 can listen",
                       launch->size, launch->name);
    }
    bool colons = strchr(launch->host, ':') != NULL;
    task->master_address =
        bel_strf("%s%s%s:%d", colons ? "[" : "", launch->host, colons ? "]" : "", launch->port);
    task->listen_address = bel_xstrdup(master ? task->master_address : BEL_TASK_ANY_ADDRESS);
    return NULL;
}

static bel_status *be_rank(const bel_launch *launch, bool chief_trains, bel_task *task)
{
    int first = chief_trains ? 0 : 1; // rank of worker 0
    task->worker_count = launch->size - first;
    task->master_trains = chief_trains;
    task->role = launch->rank == 0 ? BEL_ROLE_MASTER : BEL_ROLE_WORKER;
    task->index = launch->rank == 0 ? 0 : launch->rank - first;
    // The master is rank 0 of its host, so if it does not train the others move up.
    bool with_master = launch->rank == launch->local_rank;
    bool trains = launch->rank > 0 || chief_trains;
    task->local_size = launch->local_size - (with_master ? first : 0);
    task->local_rank = trains ? launch->local_rank - (with_master ? first : 0) : -1;
    return bel_task_set_rank(launch, task);
}

// --- ps-lite -------------------------------------------------------------------------------------

static bel_status *read_dmlc_role(bel_task *task)
{
    static const char *const names[] = {"scheduler", "worker", "server"};
    static const bel_role roles[] = {BEL_ROLE_MASTER, BEL_ROLE_WORKER, BEL_ROLE_PS};
    const char *text = getenv("DMLC_ROLE");
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        task->role = roles[i];
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable DMLC_ROLE: expected scheduler, worker or server, got %s",
                   text);
}

// ps-lite numbers its nodes in order of arrival; here a number affects the computation.
static bel_status *read_dmlc_index(bel_task *task)
{
    bool worker = task->role == BEL_ROLE_WORKER;
    const char *own = worker ? "DMLC_WORKER_ID" : "DMLC_SERVER_ID";
    int count = worker ? task->worker_count : task->ps_count;
    if (getenv(own) != NULL) return bel_launch_number(own, 0, count - 1, &task->index);
    if (getenv("DMLC_TASK_ID") != NULL) {
        int first = worker ? 0 : task->worker_count; // dmlc_tracker counts servers after workers
        BEL_TRY(bel_launch_number("DMLC_TASK_ID", first, first + count - 1, &task->index));
        task->index -= first;
        return NULL;
    }
    bel_launch launch;
    BEL_TRY(bel_launch_find(MOST_RANKS, &launch));
    task->index = launch.rank;
    if (launch.size == count) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable %s: expected which of the %d %ss this is, from 0; neither "
                   "it nor DMLC_TASK_ID is set",
                   own, count, worker ? "worker" : "server");
}

static bel_status *be_dmlc(bel_task *task)
{
    int port = 0;
    const char *host = getenv("DMLC_PS_ROOT_URI"), *own = getenv("DMLC_NODE_HOST");
    BEL_TRY(read_dmlc_role(task));
    BEL_TRY(bel_launch_number("DMLC_NUM_WORKER", 1, MOST_RANKS, &task->worker_count));
    BEL_TRY(bel_launch_number("DMLC_NUM_SERVER", 0, MOST_RANKS, &task->ps_count));
    BEL_TRY(bel_launch_number("DMLC_PS_ROOT_PORT", 1, UINT16_MAX, &port));
    if (host == NULL || host[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable DMLC_PS_ROOT_URI: expected the "
                                             "host of the scheduler, got nothing");
    }
    if (task->role != BEL_ROLE_MASTER) BEL_TRY(read_dmlc_index(task));
    task->master_address = bel_strf("%s:%d", host, port);
    bool is_master = task->role == BEL_ROLE_MASTER;
    task->listen_address = is_master     ? bel_xstrdup(task->master_address)
                           : own != NULL ? bel_strf("%s:0", own)
                                         : bel_xstrdup(BEL_TASK_ANY_ADDRESS);
    // Hosts are unknown; only with the scheduler on the loopback all are on one host.
    bool one_host = bel_linux_host_is_loopback(host);
    bool worker = task->role == BEL_ROLE_WORKER;
    task->local_size = one_host ? task->worker_count : worker ? 1 : 0;
    task->local_rank = !worker ? -1 : one_host ? task->index : 0;
    task->recovers = true;
    return NULL;
}

// --- Either --------------------------------------------------------------------------------------

bel_status *bel_task_of_launcher(bool chief_trains, bel_task *task, bool *out_found)
{
    const char *role = getenv("DMLC_ROLE");
    *out_found = role != NULL && role[0] != '\0';
    if (*out_found) {
        task->job = bel_xstrdup("job");
        return be_dmlc(task);
    }
    bel_launch launch;
    if (bel_launch_is_claimed()) return NULL;
    BEL_TRY(bel_launch_find(MOST_RANKS, &launch));
    if (launch.size == 1) return NULL;
    *out_found = true;
    task->job = bel_xstrdup("job");
    return be_rank(&launch, chief_trains, task);
}
