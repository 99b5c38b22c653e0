// Names and addresses may be known only some time after a process has started, as those of pods.
#include "driver/reach.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_host.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/secret.h"
#include "base/str.h"

// Waits until the name in the address resolves. It may be known only after its process has started,
// as with a pod's name in Kubernetes. A name that stays unknown fails where it is used. The
// master's name is awaited where it is called. CANCELLED: the process was asked to end.
static bel_status *await_name(const bel_task *task)
{
    enum { PAUSE_NS = 200000000 };
    const char *own = task->listen_address, *address = own[0] == '*' ? task->master_address : own;
    bool listens = task->role == BEL_ROLE_MASTER || task->role == BEL_ROLE_PS ||
                   (task->role == BEL_ROLE_WORKER && task->ps_count == 0);
    bool needed = !task->follows && (listens || own[0] == '*');
    int64_t end = bel_clock_ns() + (int64_t)(task->join_timeout_secs * 1e9);
    bool told = false;
    while (needed && !bel_linux_host_is_known(address) && bel_clock_ns() < end) {
        if (bel_end_requested()) {
            return BEL_ERR(BEL_CANCELLED,
                           "ended, as it was told to, while the name of %s did not "
                           "resolve",
                           address);
        }
        if (!told) {
            bel_log_write(BEL_LOG_INFO, "waiting for the name of %s to resolve", address);
        }
        told = true;
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return NULL;
}

// Finds the listening address that others receive; they may not know this host's name.
static bel_status *find_address(bel_task *task)
{
    if (task->listen_address[0] != '*') return NULL;
    char *host = bel_linux_host_toward(task->master_address);
    if (host == NULL) {
        return BEL_ERR(
            BEL_UNAVAILABLE, "there is no way to the master at %s: %s", task->master_address,
            bel_linux_host_is_known(task->master_address) ? "no network of this host leads there"
                                                          : "its host name does not resolve");
    }
    char *address = bel_strf("%s%s", host, task->listen_address + 1);
    bel_free(host);
    bel_free(task->listen_address);
    task->listen_address = address;
    return NULL;
}

// Requires a secret or TLS beyond the loopback; without TLS it is no protection against readers of
// the network.
static bel_status *check_secret(const bel_task *task)
{
    const char *address = task->master_address;
    bool needless = task->follows || bel_linux_address_is_loopback(address);
    if (needless || task->secret[0] != '\0' || task->tls_ca != NULL) return NULL;
    int host = (int)(strrchr(address, ':') - address);
    return BEL_ERR(BEL_INVALID_ARGUMENT, BEL_SECRET_MISSING, host, address, address + host + 1);
}

bel_status *bel_task_reach(bel_task *task)
{
    BEL_TRY(check_secret(task));
    BEL_TRY(await_name(task));
    return find_address(task);
}
