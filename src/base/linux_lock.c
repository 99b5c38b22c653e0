// Locks by flock. Unlike fcntl's locks they belong to the open file, not to the process. A lock can
// therefore be passed to a child as a descriptor, and it ends with the last process that has it,
// however that ends: no lock is ever left over.
#define _GNU_SOURCE
#include "base/linux_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"

// Tries every 10 ms until the timeout. A file system without locks is no error: *out_lock is -1.
static bel_status *lock_opened(const char *path, int flags, int kind, double timeout_secs,
                               int *out_lock)
{
    enum { NAP_MS = 10 };
    *out_lock = -1;
    int64_t deadline = bel_clock_ns() + (int64_t)(timeout_secs * 1e9);
    int first = open(path, flags | O_CLOEXEC, 0644);
    if (first < 0) return bel_file_error(errno, "open", path);
    int descriptor = fcntl(first, F_DUPFD_CLOEXEC, 3); // not 0, 1 or 2, as a child may inherit it
    int error = errno;
    close(first);
    if (descriptor < 0) return bel_file_error(error, "open", path);
    while (flock(descriptor, kind | LOCK_NB) != 0) {
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

bel_status *bel_linux_lock(const char *path, double timeout_secs, int *out_lock)
{
    return lock_opened(path, O_RDWR | O_CREAT, LOCK_EX, timeout_secs, out_lock);
}

bel_status *bel_linux_lock_folder(const char *path, int *out_lock)
{
    return lock_opened(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, LOCK_EX, 0, out_lock);
}

bel_status *bel_linux_share_folder(const char *path, int *out_lock)
{
    enum { SECS = 1 }; // a cleanup that looks at it ends soon
    return lock_opened(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, LOCK_SH, SECS, out_lock);
}

void bel_linux_unlock(int lock)
{
    if (lock >= 0) close(lock);
}

bel_status *bel_linux_open_bytes(const char *path, int *out_descriptor)
{
    *out_descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return *out_descriptor < 0 ? bel_file_error(errno, "open", path) : NULL;
}

static struct flock one_byte(int64_t byte)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

bool bel_linux_lock_byte(int descriptor, int64_t byte)
{
    struct flock lock = one_byte(byte);
    return fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

void bel_linux_unlock_byte(int descriptor, int64_t byte)
{
    struct flock lock = one_byte(byte);
    lock.l_type = F_UNLCK;
    (void)fcntl(descriptor, F_OFD_SETLK, &lock);
}

bool bel_linux_byte_is_locked(int descriptor, int64_t byte)
{
    struct flock lock = one_byte(byte);
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bel_status *bel_linux_is_open_on(int descriptor, const char *path, bool *out_is)
{
    struct stat open_file, named;
    *out_is = false;
    if (stat(path, &named) != 0) {
        bool is_gone = errno == ENOENT || errno == ENOTDIR;
        return is_gone ? NULL : bel_file_error(errno, "look at", path);
    }
    if (fstat(descriptor, &open_file) != 0) return bel_file_error(errno, "inspect the open", path);
    *out_is = open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
    return NULL;
}

void bel_linux_keep_lock(int lock)
{
    (void)fcntl(lock, F_SETFD, FD_CLOEXEC);
}

// A line of /proc/net/unix ends with the socket's bound path.
bool bel_linux_has_socket_below(const char *folder)
{
    char *list, *start = bel_strf(" %s/", folder);
    size_t size;
    bel_status *status = bel_file_read("/proc/net/unix", &list, &size);
    bool found = status != NULL || strstr(list, start) != NULL;
    if (status == NULL) bel_free(list);
    bel_status_ignore(status); // then it is unknown
    bel_free(start);
    return found;
}
