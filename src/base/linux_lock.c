// flock: unlike fcntl's locks it belongs to the open file, not to the process.
#define _GNU_SOURCE
#include "base/linux_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"

bel_status *bel_linux_lock(const char *path, int *out_descriptor)
{
    *out_descriptor = -1;
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
        *out_descriptor = descriptor;
        return NULL;
    }
    int error = errno;
    close(descriptor);
    if (error != EWOULDBLOCK) return NULL;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "another process has locked %s", path);
}
