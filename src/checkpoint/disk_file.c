// File reads at any offset: open, pread until complete, checksum in blocks. The size is that at
// opening: a file that becomes shorter later is reported as data loss, one that becomes longer is
// not noticed. A disk error also counts as data loss, so that a reader may skip this checkpoint and
// use an older one.
#include "checkpoint/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

enum { CHECKSUM_BLOCK_BYTES = 1 << 20 };

bel_status *bel_disk_file_open(const char *path, bel_disk_file *out_file)
{
    // O_NONBLOCK: a pipe instead of a file is refused below without waiting for it.
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        bel_status *status = bel_file_error(errno, "read", path);
        close(descriptor);
        return status;
    }
    if (!S_ISREG(info.st_mode)) {
        close(descriptor);
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a regular file", path);
    }
    *out_file = (bel_disk_file){
        .path = bel_xstrdup(path),
        .descriptor = descriptor,
        .size_bytes = (uint64_t)info.st_size,
    };
    return NULL;
}

void bel_disk_file_close(bel_disk_file *file)
{
    if (file->path == NULL) return;
    close(file->descriptor);
    bel_free(file->path);
    *file = (bel_disk_file){0};
}

bel_status *bel_disk_file_read(const bel_disk_file *file, uint64_t offset, void *out_data,
                               size_t size)
{
    unsigned char *bytes = out_data;
    if (offset > file->size_bytes || size > file->size_bytes - offset) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %zu bytes at byte %llu, the file has %llu",
                       file->path, size, (unsigned long long)offset,
                       (unsigned long long)file->size_bytes);
    }
    while (size > 0) {
        ssize_t got = pread(file->descriptor, bytes, size, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            return BEL_ERR(BEL_DATA_LOSS, "%s: cannot read %zu bytes at byte %llu: %s", file->path,
                           size, (unsigned long long)offset,
                           got < 0 ? strerror(errno) : "the file has become shorter");
        }
        bytes += got;
        size -= (size_t)got;
        offset += (uint64_t)got;
    }
    return NULL;
}

bel_status *bel_disk_file_crc32c(const bel_disk_file *file, uint32_t *out_crc32c)
{
    unsigned char *block = bel_xmalloc(CHECKSUM_BLOCK_BYTES);
    bel_status *status = NULL;
    uint32_t crc = 0;
    for (uint64_t offset = 0; offset < file->size_bytes && status == NULL;) {
        uint64_t left = file->size_bytes - offset;
        size_t size = left < CHECKSUM_BLOCK_BYTES ? (size_t)left : CHECKSUM_BLOCK_BYTES;
        status = bel_disk_file_read(file, offset, block, size);
        if (status == NULL) crc = bel_crc32c(crc, block, size);
        offset += size;
    }
    bel_free(block);
    if (status == NULL) *out_crc32c = crc;
    return status;
}
