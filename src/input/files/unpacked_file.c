// Training reads records repeatedly in a shuffled order, which a packed stream does not allow: even
// with an index into it, each record costs the unpacking of a stretch. So data that does not fit
// memory is unpacked to disk once, in the order of the stream, and mapped from there like any plain
// file: the system caches the pages that are read, for all processes.
#include "input/files/unpacked_file.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/unpack.h"

typedef struct unpacking {
    const char *source; // path of the packed file
    const void *packed;
    size_t packed_size;
    const char *folder, *part;
    int descriptor;
    size_t size;
} unpacking;

static bel_status *unpacked_file_append(void *user, const void *data, size_t size)
{
    unpacking *u = user;
    const char *bytes = data;
    if (bel_fault_write_fails()) return bel_file_error(ENOSPC, "write", u->part);
    while (size > 0) {
        ssize_t wrote = write(u->descriptor, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return bel_file_error(errno, "write", u->part);
        bytes += wrote;
        size -= (size_t)wrote;
        u->size += (size_t)wrote;
    }
    return NULL;
}

static bel_status *unpack(void *user, const char *path, int descriptor)
{
    unpacking *u = user;
    char text[32];
    u->part = path;
    u->descriptor = descriptor;
    bel_log_write(BEL_LOG_INFO, "%s: being unpacked into %s, as it is too large for memory",
                  u->source, u->folder);
    BEL_TRY(bel_unpack_to(u->source, u->packed, u->packed_size, unpacked_file_append, u));
    bel_log_write(BEL_LOG_INFO, "%s: unpacked (%s)", u->source, bel_bytes_text(u->size, text));
    return NULL;
}

bel_status *bel_unpacked_file_open(const char *path, const bel_file_version *version,
                                   const void *packed, size_t size, double patience_secs,
                                   bel_host_file *out_file)
{
    char *folder = NULL, *name;
    bel_status *status = bel_host_folder(NULL, "belfry-unpacked", &folder);
    unpacking u = {.source = path, .packed = packed, .packed_size = size, .folder = folder};
    name = bel_strf("%016llx", (unsigned long long)bel_hash64_more(0, version, sizeof *version));
    bel_host_file_request request = {
        .folder = folder,
        .name = name,
        .source = path,
        .doing = "being unpacked",
        .patience_secs = patience_secs,
        .make = unpack,
        .user = &u,
    };
    *out_file = (bel_host_file){0};
    if (status == NULL) status = bel_host_file_open(&request, out_file);
    bel_free(name);
    bel_free(folder);
    if (status == NULL || bel_status_code(status) == BEL_DATA_LOSS) return status;
    return bel_status_wrap(status, __FILE__, __LINE__,
                           "unpacking %s into a folder below $TMPDIR, or else /var/tmp", path);
}
