// Reader of entire files in memory, which unpacks packed ones. Separate from file.c, which uses no
// library. The system's size is only a hint: a pipe has none, and a file may grow meanwhile. So
// only the end of the file ends the read.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/unpack.h"

// Doubles the buffer, as only the end shows the size of a pipe. Keeps one byte for a zero at the
// end.
static bel_status *read_to_end(int descriptor, const char *path, size_t size_hint, char **out_data,
                               size_t *out_size)
{
    size_t capacity = size_hint + 2, used = 0; // a file is read to its end in two calls
    char *data = bel_xmalloc(capacity);
    for (;;) {
        if (capacity - used < 2) {
            capacity = capacity * 2 + 65536;
            data = bel_xrealloc(data, capacity);
        }
        ssize_t got = read(descriptor, data + used, capacity - used - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            bel_status *status = bel_file_error(errno, "read", path);
            bel_free(data);
            return status;
        }
        if (got == 0) break;
        used += (size_t)got;
    }
    data[used] = '\0';
    *out_data = data;
    *out_size = used;
    return NULL;
}

bel_status *bel_file_read(const char *path, char **out_data, size_t *out_size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    struct stat info;
    if (fstat(descriptor, &info) != 0 || S_ISDIR(info.st_mode)) {
        int error = S_ISDIR(info.st_mode) ? EISDIR : errno;
        close(descriptor);
        return bel_file_error(error, "read", path);
    }
    char *data;
    size_t size;
    bel_status *status = read_to_end(descriptor, path, (size_t)info.st_size, &data, &size);
    close(descriptor);
    BEL_TRY(status);
    if (bel_is_gzip(data, size)) {
        char *packed = data;
        status = bel_unpack(path, packed, size, &data, &size);
        bel_free(packed);
        BEL_TRY(status);
    }
    *out_data = data;
    *out_size = size;
    return NULL;
}
