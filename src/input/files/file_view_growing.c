// View of a file that grows, through a window. The window is mapped beyond the end of the file:
// pages there can be read as soon as the file has them. Its room is address space and no memory.
// The window moves on with the readers, so that a file may grow without a limit. A second mapping
// keeps the first bytes, as a file that was written anew differs there.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/unpack.h"
#include "input/files/file_view_inner.h"

#define ONLY_APPEND "hint: only append to a file that is followed"

enum { COMPARED = 4096 }; // bytes at each end

uint64_t bel_file_view_ends(const bel_file_view *view, uint64_t end, size_t piece)
{
    if (piece > end) piece = (size_t)end;
    const char *first = view->head != NULL ? view->head : view->data;
    const char *last = view->data + (end - piece - view->base);
    return bel_hash64_more(bel_hash64(first, piece), last, piece);
}

static bool is_same_file(const bel_file_view *view, const struct stat *info)
{
    return (uint64_t)info->st_dev == view->version.device &&
           (uint64_t)info->st_ino == view->version.inode;
}

static bel_status *other_file(const char *path)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: another file has its name now; " ONLY_APPEND, path);
}

// Whether the file still begins with the bytes of the view.
static bel_status *check_grown(const bel_file_view *view, const char *path, const struct stat *info)
{
    const uint64_t seen = view->base + view->size;
    if (!is_same_file(view, info)) return other_file(path);
    if ((uint64_t)info->st_size < seen) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected it to grow from %llu bytes, got %lld; " ONLY_APPEND, path,
                       (unsigned long long)seen, (long long)info->st_size);
    }
    if (bel_file_view_version(info).modified_ns == view->version.modified_ns) return NULL;
    if (bel_file_view_ends(view, seen, COMPARED) == view->sample) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: it was written anew while it was followed; " ONLY_APPEND,
                   path);
}

static bel_status *look_at_growing(const bel_file_view *view, const char *path,
                                   struct stat *out_info)
{
    if (stat(path, out_info) == 0) return check_grown(view, path, out_info);
    if (errno != ENOENT && errno != ENOTDIR) return bel_file_error(errno, "look at", path);
    return BEL_ERR(BEL_DATA_LOSS, "%s: it was removed while it was followed", path);
}

bel_status *bel_file_view_check_growing(const bel_file_view *view, const char *path)
{
    struct stat info;
    return look_at_growing(view, path, &info);
}

// Notes the bytes of the file that the window shows.
static void see(bel_file_view *view, const struct stat *info)
{
    uint64_t size = (uint64_t)info->st_size - view->base;
    view->size = size < view->reserved ? (size_t)size : view->reserved;
    view->sample = bel_file_view_ends(view, view->base + view->size, COMPARED);
    view->version.modified_ns = bel_file_view_version(info).modified_ns;
}

// Maps `bytes` from `base` on. Its errors name `path`.
static bel_status *map_from(const char *path, int descriptor, uint64_t base, size_t bytes,
                            void **out_memory)
{
    void *memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, (off_t)base);
    if (memory == MAP_FAILED) return bel_file_error(errno, "map", path);
    *out_memory = memory;
    return NULL;
}

static bel_status *map_growing(const char *path, int descriptor, bel_file_view *view)
{
    struct stat info;
    void *memory = NULL, *head = NULL;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "read", path);
    if (!S_ISREG(info.st_mode))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected a plain file to follow", path);
    BEL_TRY(map_from(path, descriptor, 0, BEL_GROWING_ROOM, &memory));
    view->version = bel_file_view_version(&info);
    view->reserved = BEL_GROWING_ROOM;
    bel_file_view_note(memory, view->reserved, path);
    view->data = view->memory = memory;
    view->mapped = true;
    BEL_TRY(map_from(path, descriptor, 0, BEL_GROWING_HEAD, &head));
    view->head = head;
    view->sample = bel_file_view_ends(view, 0, COMPARED);
    return NULL;
}

bel_status *bel_file_view_open_growing(const char *path, bel_file_view *out_view)
{
    bel_file_view view = {0};
    if (bel_store_is_url(path)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: expected a file to follow, got the URL of an object", path);
    }
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = map_growing(path, descriptor, &view);
    close(descriptor);
    if (status == NULL) status = bel_file_view_grow(&view, path);
    if (status == NULL && view.size > 0 && bel_is_gzip(view.data, view.size))
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s: a packed file cannot be followed", path);
    if (status != NULL) {
        bel_file_view_close(&view);
        return status;
    }
    *out_view = view;
    return NULL;
}

// Reads bytes of the file. On a network file system a stat may know appended bytes before the
// mapped page does. An opening and a read bring the page up to date.
static bel_status *read_bytes(const char *path, int descriptor, uint64_t from, uint64_t end)
{
    char bytes[4096];
    while (from < end) {
        size_t some = end - from < sizeof bytes ? (size_t)(end - from) : sizeof bytes;
        ssize_t got = pread(descriptor, bytes, some, (off_t)from);
        if (got <= 0) return bel_file_error(got < 0 ? errno : EAGAIN, "read", path);
        from += (uint64_t)got;
    }
    return NULL;
}

// Reads the bytes beside the old end and the new one.
static bel_status *refresh(const bel_file_view *view, const char *path, uint64_t size)
{
    const uint64_t seen = view->base + view->size;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = seen > 0 ? read_bytes(path, descriptor, seen - 1, seen) : NULL;
    if (status == NULL) status = read_bytes(path, descriptor, size - 1, size);
    close(descriptor);
    return status;
}

bel_status *bel_file_view_grow(bel_file_view *view, const char *path)
{
    struct stat info;
    BEL_TRY(look_at_growing(view, path, &info));
    if ((uint64_t)info.st_size == view->base + view->size || view->size == view->reserved)
        return NULL;
    BEL_TRY(refresh(view, path, (uint64_t)info.st_size));
    see(view, &info);
    return NULL;
}

// The bytes before `from` are read, as their hash may be compared with a mark.
static bel_status *map_window(bel_file_view *view, const char *path, int descriptor, uint64_t from)
{
    struct stat info;
    void *memory = NULL;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t before = from > BEL_GROWING_HEAD ? from - BEL_GROWING_HEAD : 0;
    const uint64_t base = before / page * page;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "read", path);
    BEL_TRY(check_grown(view, path, &info));
    const uint64_t size = (uint64_t)info.st_size;
    if (size < from)
        return BEL_ERR(BEL_NOT_FOUND, "%s: expected at least %llu bytes, got only %llu", path,
                       (unsigned long long)from, (unsigned long long)size);
    BEL_TRY(read_bytes(path, descriptor, before, from));
    BEL_TRY(read_bytes(path, descriptor, size > 0 ? size - 1 : 0, size));
    BEL_TRY(map_from(path, descriptor, base, view->reserved, &memory));
    bel_file_view_forget(view->memory);
    munmap(view->memory, view->reserved);
    bel_file_view_note(memory, view->reserved, path);
    view->data = view->memory = memory;
    view->base = base;
    see(view, &info);
    return NULL;
}

bel_status *bel_file_view_move(bel_file_view *view, const char *path, uint64_t from)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = map_window(view, path, descriptor, from);
    close(descriptor);
    return status;
}
