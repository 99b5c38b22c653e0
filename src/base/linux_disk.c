// A reservation takes milliseconds, since it writes no bytes. It also makes the writes cheaper that
// follow: each finds its blocks, instead of asking for room. The free room is compared first, since
// ext4 and xfs take all free blocks before they fail, and other files need some meanwhile.
#define _GNU_SOURCE
#include "base/linux_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/file.h"

bel_status *bel_linux_reserve(const char *path, int descriptor, uint64_t size)
{
    struct statfs disk;
    struct stat info;
    if (size > INT64_MAX) return bel_file_error(EFBIG, "extend", path);
    bool known = fstatfs(descriptor, &disk) == 0 && fstat(descriptor, &info) == 0;
    if (known && disk.f_blocks > 0) { // some file systems report no sizes
        enum { BLOCK_BYTES = 512 };
        uint64_t taken = (uint64_t)info.st_blocks * BLOCK_BYTES;
        uint64_t room = (uint64_t)disk.f_bavail * (uint64_t)disk.f_bsize;
        if (taken < size && room < size - taken) return bel_file_error(ENOSPC, "extend", path);
    }
    if (known && disk.f_type == TMPFS_MAGIC) return NULL;
    int result;
    do {
        result = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
    } while (result != 0 && errno == EINTR);
    bool full = result != 0 && (errno == ENOSPC || errno == EDQUOT);
    return full ? bel_file_error(errno, "extend", path) : NULL; // else the writes find it
}
