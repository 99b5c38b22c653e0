// Files over POSIX calls. Replacement is atomic: the new file is written beside the old one, under
// a name that no other process uses, and renamed. Errors name the path; a writer remembers its
// first one.
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/str.h"

struct bel_file_writer {
    int descriptor;
    int error; // errno of the first failure, 0 so far
    uint64_t size;
    uint32_t crc32c;
    char *path;
    char *temporary; // renamed to `path` at the end; NULL: writes to `path` itself
    bool passing;    // useless after a crash of the machine: not synced, and no place for faults
};

bel_status *bel_file_error(int error, const char *action, const char *path)
{
    bel_code code = BEL_UNKNOWN;
    if (error == ENOENT || error == ENOTDIR) code = BEL_NOT_FOUND;
    if (error == EACCES || error == EPERM || error == EROFS) code = BEL_PERMISSION_DENIED;
    if (error == ENOSPC || error == EDQUOT || error == EMFILE) code = BEL_RESOURCE_EXHAUSTED;
    return BEL_ERR(code, "cannot %s %s: %s", action, path, strerror(error));
}

bel_status *bel_file_cut(const char *path, int descriptor, uint64_t size)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "look at", path);
    bool longer = (uint64_t)info.st_size > size;
    if (!longer || ftruncate(descriptor, (off_t)size) == 0) return NULL;
    return bel_file_error(errno, "cut", path);
}

bel_status *bel_file_writer_open(const char *path, bel_file_writer **out_writer)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "create", path);
    bel_file_writer *writer = bel_xcalloc(1, sizeof *writer);
    writer->descriptor = descriptor;
    writer->path = bel_xstrdup(path);
    *out_writer = writer;
    return NULL;
}

void bel_file_writer_write(bel_file_writer *writer, const void *data, size_t size)
{
    if (writer->error != 0) return;
    if (!writer->passing) bel_fault_point("file_writes");
    if (!writer->passing && bel_fault_write_fails()) {
        writer->error = ENOSPC;
        return;
    }
    writer->crc32c = bel_crc32c(writer->crc32c, data, size);
    writer->size += size;
    const char *bytes = data;
    while (size > 0) {
        ssize_t wrote = write(writer->descriptor, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) {
            writer->error = errno;
            return;
        }
        bytes += wrote;
        size -= (size_t)wrote;
    }
}

static void writer_free(bel_file_writer *writer)
{
    close(writer->descriptor);
    bel_free(writer->temporary);
    bel_free(writer->path);
    bel_free(writer);
}

bel_status *bel_file_writer_finish(bel_file_writer *writer, uint64_t *out_size,
                                   uint32_t *out_crc32c)
{
    if (!writer->passing) bel_fault_point("file_syncs");
    if (!writer->passing && writer->error == 0 && fsync(writer->descriptor) != 0)
        writer->error = errno;
    bel_status *status =
        writer->error == 0 ? NULL : bel_file_error(writer->error, "write", writer->path);
    if (writer->temporary != NULL) {
        if (status == NULL) status = bel_file_rename(writer->temporary, writer->path);
        if (status != NULL) unlink(writer->temporary);
    }
    if (status == NULL && out_size != NULL) *out_size = writer->size;
    if (status == NULL && out_crc32c != NULL) *out_crc32c = writer->crc32c;
    writer_free(writer);
    return status;
}

void bel_file_writer_abandon(bel_file_writer *writer)
{
    if (writer == NULL) return;
    if (writer->temporary != NULL) unlink(writer->temporary);
    writer_free(writer);
}

bel_status *bel_file_writer_open_beside(const char *path, bel_file_writer **out_writer)
{
    static atomic_uint count;
    char *temporary = NULL;
    int descriptor = -1;
    do {
        bel_free(temporary);
        temporary = bel_strf("%s.tmp-%lld-%u", path, (long long)getpid(),
                             (unsigned)atomic_fetch_add(&count, 1));
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    } while (descriptor < 0 && errno == EEXIST); // left over, or another host's
    if (descriptor < 0) {
        bel_status *status = bel_file_error(errno, "create", path);
        bel_free(temporary);
        return status;
    }
    bel_file_writer *writer = bel_xcalloc(1, sizeof *writer);
    writer->descriptor = descriptor;
    writer->path = bel_xstrdup(path);
    writer->temporary = temporary;
    *out_writer = writer;
    return NULL;
}

// `passing`: without syncing.
static bel_status *write_beside(const char *path, const void *data, size_t size, bool passing)
{
    bel_file_writer *writer;
    BEL_TRY(bel_file_writer_open_beside(path, &writer));
    writer->passing = passing;
    bel_file_writer_write(writer, data, size);
    return bel_file_writer_finish(writer, NULL, NULL);
}

bel_status *bel_file_write_atomic(const char *path, const void *data, size_t size)
{
    return write_beside(path, data, size, false);
}

bel_status *bel_file_replace(const char *path, const void *data, size_t size)
{
    return write_beside(path, data, size, true);
}

bel_status *bel_dir_create(const char *path)
{
    char *partial = bel_xstrdup(path);
    bel_status *status = NULL;
    for (char *slash = partial; status == NULL && slash != NULL;) {
        slash = strchr(slash + 1, '/');
        if (slash != NULL) *slash = '\0';
        struct stat info;
        if (mkdir(partial, 0755) != 0) {
            int error = errno;
            bool is_dir = stat(partial, &info) == 0 && S_ISDIR(info.st_mode);
            if (!is_dir && (error == EEXIST || error == ENOTDIR)) {
                status = BEL_ERR(BEL_INVALID_ARGUMENT,
                                 "cannot create folder %s: a file is in the way", path);
            } else if (!is_dir) {
                status = bel_file_error(error, "create folder", path);
            }
        }
        if (slash != NULL) *slash = '/';
    }
    bel_free(partial);
    return status;
}

bel_status *bel_dir_sync(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return bel_file_error(errno, "open folder", path);
    int result = fsync(descriptor);
    int error = errno;
    close(descriptor);
    return result == 0 ? NULL : bel_file_error(error, "sync folder", path);
}

// After unlink or rmdir: returns true if this process, or another at the same time, removed it.
static bool is_gone(int result)
{
    return result == 0 || errno == ENOENT;
}

bel_status *bel_dir_remove(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? NULL : bel_file_error(errno, "remove", path);
    }
    if (!S_ISDIR(info.st_mode)) {
        return is_gone(unlink(path)) ? NULL : bel_file_error(errno, "remove", path);
    }
    char **names;
    size_t count;
    bel_status *status = bel_dir_list(path, &names, &count);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // another process removed it meanwhile
        return NULL;
    }
    BEL_TRY(status);
    for (size_t i = 0; i < count; i++) {
        char *child = bel_path_join(path, names[i]);
        if (status == NULL) status = bel_dir_remove(child);
        bel_free(child);
    }
    bel_dir_names_free(names, count);
    if (status == NULL && !is_gone(rmdir(path))) status = bel_file_error(errno, "remove", path);
    return status;
}

bel_status *bel_file_rename(const char *from, const char *to)
{
    return rename(from, to) == 0 ? NULL : bel_file_error(errno, "rename to", to);
}

bool bel_file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool bel_dir_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bel_status *bel_dir_list(const char *path, char ***out_names, size_t *out_count)
{
    DIR *dir = opendir(path);
    if (dir == NULL) return bel_file_error(errno, "list", path);
    char **names = NULL;
    size_t count = 0, capacity = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        names = bel_xgrow(names, &capacity, count + 1, sizeof *names);
        names[count++] = bel_xstrdup(entry->d_name);
    }
    closedir(dir);
    if (count > 0) qsort(names, count, sizeof *names, compare_names);
    *out_names = names;
    *out_count = count;
    return NULL;
}

void bel_dir_names_free(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bel_free(names[i]);
    bel_free(names);
}

char *bel_path_join(const char *folder, const char *name)
{
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] == '/';
    return bel_strf("%s%s%s", folder, slash ? "" : "/", name);
}

char *bel_cache_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') return bel_path_join(cache, "belfry");
    return home != NULL && home[0] == '/' ? bel_strf("%s/.cache/belfry", home) : NULL;
}
