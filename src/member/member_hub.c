// The hub of a member: its lanes through shared memory. In a job on one host all lanes between
// workers and shards are such, and sockets are beside the members' addresses. In a job with TCP
// only workers of one host use it, to report to a relay there (member_relay.c).
//
// Such workers find each other's sockets in a folder of this user, whose name follows from the job.
// Two processes may see folders of the same name that are different ones, as in containers. So a
// worker sends the master a text with the kernel's boot and the folder's identity, its place, and
// only workers of equal places are put into a group. A worker that cannot connect to a socket that
// it sees there has no place. Then, and without such a folder, its lanes use gRPC.
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/linux_shared.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/sockets.h"
#include "member/member_inner.h"

static const char unix_prefix[] = "unix:";

char *bel_member_shm_path(const char *address)
{
    size_t skip = sizeof unix_prefix - 1;
    if (strncmp(address, unix_prefix, skip) != 0) return NULL;
    return bel_strf("%s.shm", address + skip);
}

char *bel_member_relay_path(const member *m, int worker, uint32_t incarnation)
{
    return bel_strf("%s/" BEL_SOCKETS_WORKER, m->shm.folder, worker, incarnation);
}

static bel_status *create_hub(member *m, const char *path, bel_lane_find *find)
{
    const bel_shm_hub_config config = {
        .listen_path = path, .secret = m->task->secret, .find = find, .context = m};
    return bel_shm_hub_create(&config, &m->shm.hub);
}

// Chunks could not be mapped side by side with larger pages.
static bool pages_fit(void)
{
    return sysconf(_SC_PAGESIZE) <= (long)(BEL_LAYOUT_PAGE * sizeof(float));
}

static bel_status *open_on_one_host(member *m, bel_lane_find *find)
{
    if (!pages_fit() && m->estimator->config.lane == BEL_LANE_SHM) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--lane shm needs pages of %zu bytes, and this kernel's have %ld; hint: "
                       "--lane grpc, or a kernel with smaller pages",
                       BEL_LAYOUT_PAGE * sizeof(float), sysconf(_SC_PAGESIZE));
    }
    if (!pages_fit()) return NULL;
    char *path = m->shard.here ? bel_member_shm_path(m->task->listen_address) : NULL;
    m->shm.one_host = true;
    bel_status *status = create_hub(m, path, find);
    bel_free(path);
    return status;
}

// --- Several hosts -------------------------------------------------------------------------------

// Names the host as the cluster file does, or else as this process does.
static bel_status *find_place(member *m)
{
    char *there = bel_linux_shared_place(m->shm.folder), own[256] = "?";
    const char *host = m->task->host;
    if (there == NULL)
        return BEL_ERR(BEL_UNIMPLEMENTED, "the kernel does not say which boot this is, in /proc");
    if (host == NULL) (void)gethostname(own, sizeof own - 1); // "?" on failure
    m->shm.place = bel_strf("%s %s", host != NULL ? host : own, there);
    bel_free(there);
    return NULL;
}

static bel_status *enter_folder(member *m, bel_lane_find *find)
{
    char *job = bel_strf("%s\n%s", m->task->master_address, m->task->job);
    bel_status *status = bel_sockets_meet(job, &m->shm.folder, &m->shm.lock);
    bel_free(job);
    BEL_TRY(status);
    uint32_t incarnation = m->task->incarnation;
    if (incarnation > 0) {
        char *before = bel_member_relay_path(m, m->task->index, incarnation - 1);
        (void)unlink(before); // a killed predecessor's, if it was here
        bel_free(before);
    }
    char *path = bel_member_relay_path(m, m->task->index, incarnation);
    status = create_hub(m, path, find);
    bel_free(path);
    BEL_TRY(status);
    BEL_TRY(bel_sockets_check(m->shm.folder));
    return find_place(m);
}

static void open_between_hosts(member *m, bel_lane_find *find)
{
    if (!m->worker.here || m->task->ps_count == 0 || !pages_fit()) return;
    if (bel_trainable_why_no_relays(&m->worker.trainable) != NULL) return;
    m->shm.lock = -1;
    bel_status *status = enter_folder(m, find);
    if (status == NULL) return;
    bel_log_write(BEL_LOG_INFO, "this worker shares no memory with others of its host: %s",
                  bel_status_message(status));
    bel_status_ignore(status); // logged
    bel_member_close_hub(m);
}

bel_status *bel_member_open_hub(member *m, bel_lane_find *find)
{
    const bel_task *task = m->task;
    bel_lane_choice choice = m->estimator->config.lane;
    bool local = strncmp(task->master_address, unix_prefix, sizeof unix_prefix - 1) == 0;
    if (choice == BEL_LANE_SHM && !local) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "--lane shm needs members that reach each other through unix sockets, but "
                       "the master is at %s",
                       task->master_address);
    }
    if (choice != BEL_LANE_GRPC && local) BEL_TRY(open_on_one_host(m, find));
    if (choice != BEL_LANE_GRPC && !local) open_between_hosts(m, find);
    bel_log_write(BEL_LOG_DEBUG, "lanes: %s",
                  m->shm.hub == NULL ? "grpc"
                  : local            ? "shm where the other end allows it"
                                     : "grpc, and shm between workers of a host");
    return NULL;
}

void bel_member_close_hub(member *m)
{
    bel_shm_hub_destroy(m->shm.hub);
    m->shm.hub = NULL;
    if (m->shm.folder == NULL) return;
    bel_sockets_part(m->shm.folder, m->shm.lock);
    bel_free(m->shm.folder);
    bel_free(m->shm.place);
    m->shm.folder = m->shm.place = NULL;
}
