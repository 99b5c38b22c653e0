// File reads at any offset: open, pread until complete, and by all cores where a read is large, as
// for the checksum: one core copies from the system's cache slower than memory is. The size is
// that at opening: a file that becomes shorter later is reported as data loss, one that becomes
// longer is not noticed. A disk error also counts as data loss, so that a reader may skip this
// checkpoint and use an older one.
#include "checkpoint/disk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"

// A block stays in the second-level cache. Starting threads takes as long as a few parts.
enum { BLOCK_BYTES = 256 << 10, PART_BYTES = 4 << 20, FEW_PARTS = 4 };

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

static bel_status *read_bytes(const bel_disk_file *file, uint64_t offset, unsigned char *bytes,
                              size_t size)
{
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

// A read in parts of PART_BYTES.
typedef struct large_read {
    const bel_disk_file *file;
    uint64_t offset;
    unsigned char *bytes;
    size_t size;
} large_read;

static bel_status *read_part(void *argument, int64_t number)
{
    const large_read *r = argument;
    size_t begin = (size_t)number * PART_BYTES, left = r->size - begin;
    return read_bytes(r->file, r->offset + begin, r->bytes + begin,
                      left < PART_BYTES ? left : PART_BYTES);
}

bel_status *bel_disk_file_read(const bel_disk_file *file, uint64_t offset, void *out_data,
                               size_t size)
{
    if (offset > file->size_bytes || size > file->size_bytes - offset) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected %zu bytes at byte %llu, the file has %llu",
                       file->path, size, (unsigned long long)offset,
                       (unsigned long long)file->size_bytes);
    }
    if (size < (size_t)FEW_PARTS * PART_BYTES) return read_bytes(file, offset, out_data, size);
    large_read r = {.file = file, .offset = offset, .bytes = out_data, .size = size};
    bel_team *team = bel_team_create_some(bel_available_cores());
    bel_status *status =
        bel_team_try(team, read_part, &r, (int64_t)((size + PART_BYTES - 1) / PART_BYTES));
    bel_team_destroy(team);
    return status;
}

// --- Checksum ------------------------------------------------------------------------------------

// Parts of a file.
typedef struct parts {
    const bel_disk_file *file;
    uint32_t *crcs;
} parts;

static uint64_t part_size(const bel_disk_file *file, uint64_t number)
{
    uint64_t left = file->size_bytes - number * PART_BYTES;
    return left < PART_BYTES ? left : PART_BYTES;
}

static bel_status *check_part(void *argument, int64_t number)
{
    const parts *p = argument;
    uint64_t begin = (uint64_t)number * PART_BYTES;
    uint64_t end = begin + part_size(p->file, (uint64_t)number);
    unsigned char *block = bel_xmalloc(BLOCK_BYTES);
    bel_status *status = NULL;
    uint32_t crc = 0;
    for (uint64_t at = begin; at < end && status == NULL; at += BLOCK_BYTES) {
        size_t size = end - at < BLOCK_BYTES ? (size_t)(end - at) : BLOCK_BYTES;
        status = bel_disk_file_read(p->file, at, block, size);
        if (status == NULL) crc = bel_crc32c(crc, block, size);
    }
    p->crcs[number] = crc;
    bel_free(block);
    return status;
}

bel_status *bel_disk_file_crc32c(const bel_disk_file *file, uint32_t *out_crc32c)
{
    size_t count = (size_t)((file->size_bytes + PART_BYTES - 1) / PART_BYTES);
    parts p = {.file = file, .crcs = bel_xcalloc(count + 1, sizeof(uint32_t))};
    bel_team *team = bel_team_create_some(count < FEW_PARTS ? 1 : bel_available_cores());
    bel_status *status = bel_team_try(team, check_part, &p, (int64_t)count);
    bel_team_destroy(team);
    uint32_t crc = 0;
    for (size_t i = 0; i < count; i++)
        crc = bel_crc32c_joined(crc, p.crcs[i], part_size(file, i));
    bel_free(p.crcs);
    if (status == NULL) *out_crc32c = crc;
    return status;
}
