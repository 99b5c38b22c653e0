// Files without a name, by O_TMPFILE, and reads that do not wait, by RWF_NOWAIT. A file system may
// refuse both, so callers have another way. The small libraries have this file, too: it must need
// nothing but base/number.h.
#define _GNU_SOURCE
#include "base/linux_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/number.h"

int bel_linux_unnamed_open(const char *folder)
{
    return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

bool bel_linux_unnamed_link(int descriptor, const char *path)
{
    char own[64];
    bel_snprintf(own, sizeof own, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

bool bel_linux_read_cached(int descriptor, void *out_bytes, size_t size, int64_t offset)
{
    const struct iovec to = {.iov_base = out_bytes, .iov_len = size};
    ssize_t got = preadv2(descriptor, &to, 1, (off_t)offset, RWF_NOWAIT);
    return got == (ssize_t)size;
}
