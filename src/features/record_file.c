// Finding and reading the file that a record names. Nothing here blocks: an object that is no
// regular file (a pipe, a device) is refused before reading, and the size is checked before
// allocation. A file that shrinks meanwhile is an error; one that grows is read up to its old size.
#include "features/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "store/copy.h"

static const char *copy_text(const char *text)
{
    return text == NULL ? NULL : bel_xstrdup(text);
}

void bel_file_options_copy(const bel_file_options *from, bel_file_options *out_copy)
{
    *out_copy = *from;
    out_copy->path_field = copy_text(from->path_field);
    out_copy->folder = copy_text(from->folder);
}

void bel_file_options_deinit(bel_file_options *options)
{
    bel_free((void *)(uintptr_t)options->path_field); // this copy's
    bel_free((void *)(uintptr_t)options->folder);
    *options = (bel_file_options){0};
}

bel_status *bel_record_file_path(const bel_record *record, const bel_file_options *options,
                                 bel_str *out_path)
{
    const char *name = bel_drop_path(options).names[0];
    const bel_tensor *field = bel_record_get(record, name);
    if (field == NULL || field->dtype != BEL_DTYPE_STRING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected a text field \"%s\" with the path of a file, got %s", name,
                       field == NULL ? "no such field" : bel_dtype_name(field->dtype));
    }
    const char *path = bel_record_path(record, name, options->folder);
    if (path == NULL) {
        return BEL_ERR(BEL_DATA_LOSS, "field \"%s\": expected the path of a file, got %s", name,
                       field->shape.dims[0] == 0 ? "an empty text"
                                                 : "a text with a zero byte in it");
    }
    bel_str_puts(out_path, path);
    return NULL;
}

// Reads exactly `size` bytes.
static bel_status *read_bytes(int descriptor, const char *path, uint8_t *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(descriptor, data + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bel_file_error(errno, "read", path);
        if (got == 0) {
            return BEL_ERR(BEL_DATA_LOSS, "%s: expected %zu bytes, got %zu: the file was shortened",
                           path, size, done);
        }
        done += (size_t)got;
    }
    return NULL;
}

static bel_status *read_open(int descriptor, const char *path, int64_t max_bytes,
                             uint8_t **out_data, size_t *out_size)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "look at", path);
    if (!S_ISREG(info.st_mode)) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected a file, got %s", path,
                       S_ISDIR(info.st_mode) ? "a folder" : "something else");
    }
    if (info.st_size == 0) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected content, got an empty file", path);
    }
    if (info.st_size > max_bytes) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected at most %lld bytes (max_bytes), got %lld", path,
                       (long long)max_bytes, (long long)info.st_size);
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = bel_xmalloc(size + 1);
    bel_status *status = read_bytes(descriptor, path, data, size);
    if (status != NULL) {
        bel_free(data);
        return status;
    }
    data[size] = 0;
    *out_data = data;
    *out_size = size;
    return NULL;
}

bel_status *bel_feature_file_read(const char *path, int64_t max_bytes, uint8_t **out_data,
                                  size_t *out_size)
{
    if (max_bytes < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected max_bytes of 0 (default) or more, got %lld",
                       (long long)max_bytes);
    }
    if (max_bytes == 0) max_bytes = BEL_FEATURE_MAX_BYTES;
    if (bel_store_is_url(path)) {
        bel_host_file copy;
        BEL_TRY(bel_store_copy_open_known(path, &copy, NULL));
        bel_status *status = read_open(copy.descriptor, path, max_bytes, out_data, out_size);
        bel_host_file_close(&copy);
        return status;
    }
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = read_open(descriptor, path, max_bytes, out_data, out_size);
    close(descriptor);
    return status;
}
