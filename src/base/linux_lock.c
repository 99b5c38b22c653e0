// flock: unlike fcntl's locks it belongs to the open file, not to the process.
#define _GNU_SOURCE
#include "base/linux_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

bel_status *bel_linux_lock(const char *path, double timeout_secs, int *out_lock)
{
    enum { NAP_MS = 10 };
    *out_lock = -1;
    int64_t deadline = bel_clock_ns() + (int64_t)(timeout_secs * 1e9);
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        bool held = errno == EWOULDBLOCK || errno == EINTR;
        if (held && bel_clock_ns() < deadline) {
            (void)poll(NULL, 0, NAP_MS);
            continue;
        }
        close(descriptor);
        if (!held) return NULL;
        return BEL_ERR(BEL_FAILED_PRECONDITION, "%s is locked by another process", path);
    }
    *out_lock = descriptor;
    return NULL;
}

void bel_linux_unlock(int lock)
{
    if (lock >= 0) close(lock);
}
