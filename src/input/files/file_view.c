// View of a file as one pair of pointer and size, backed by a mapping or by memory. Plain files are
// mapped, so that processes of one host share the pages and read only the pages in use. The
// unpacked form of a large packed file is mapped, too. open_view recognizes a pipe before it opens
// it, since the pipe's writer would take a second opening for an end. It opens all other files
// without blocking.
//
// A mapping keeps a file that was removed or replaced, but not the end of a file that became
// shorter: reading there is a bus error. A check before each block makes this unlikely but cannot
// exclude it. The handler of bus errors finds the file with bel_file_view_at. The check compares
// device and inode, so that it ignores another file of the same name. Writes to a file in place
// show through the mapping. The check detects them by the modification time. A sample of the bytes
// distinguishes a new time (touch) from new bytes.
#include "input/files/file_view_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_memory.h"
#include "base/log.h"
#include "base/long_wait.h"
#include "base/str.h"
#include "base/unpack.h"
#include "store/copy.h"

// Makes a view of a pipe's or a small packed file's data in memory, and logs it.
static void keep_in_memory(const char *path, char *data, size_t size, bel_file_view *out_view)
{
    *out_view = (bel_file_view){.data = data, .size = size, .memory = data, .mapped = false};
    if (size == 0) return;
    char text[32];
    bel_log_write(BEL_LOG_INFO,
                  "%s: read into memory as a whole (%s), since it is packed or a pipe", path,
                  bel_bytes_text(size, text));
}

// --- Known mappings ------------------------------------------------------------------------------

// Table of mappings that a handler of bus errors reads without a lock. `start` publishes an entry:
// it is set last and cleared first. A mapping that finds no free entry has no name in such an
// error.
enum { KNOWN_MAPPINGS = 256, KNOWN_PATH = 240 };
static struct mapping {
    _Atomic(const char *) start;
    atomic_size_t size;
    char path[KNOWN_PATH];
} mappings[KNOWN_MAPPINGS];
static pthread_mutex_t mappings_mutex = PTHREAD_MUTEX_INITIALIZER; // held by writers

void bel_file_view_note(const char *start, size_t size, const char *path)
{
    size_t length = strlen(path);
    if (length >= KNOWN_PATH) path += length - KNOWN_PATH + 1;
    pthread_mutex_lock(&mappings_mutex);
    for (int i = 0; i < KNOWN_MAPPINGS; i++) {
        if (atomic_load(&mappings[i].start) != NULL) continue;
        memcpy(mappings[i].path, path, strlen(path) + 1);
        atomic_store(&mappings[i].size, size);
        atomic_store(&mappings[i].start, start);
        break;
    }
    pthread_mutex_unlock(&mappings_mutex);
}

void bel_file_view_forget(const char *start)
{
    pthread_mutex_lock(&mappings_mutex);
    for (int i = 0; i < KNOWN_MAPPINGS; i++)
        if (atomic_load(&mappings[i].start) == start) atomic_store(&mappings[i].start, NULL);
    pthread_mutex_unlock(&mappings_mutex);
}

const char *bel_file_view_at(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    for (int i = 0; i < KNOWN_MAPPINGS; i++) {
        uintptr_t start = (uintptr_t)atomic_load(&mappings[i].start);
        if (start != 0 && at >= start && at - start < atomic_load(&mappings[i].size))
            return mappings[i].path;
    }
    return NULL;
}

// --- Opening -------------------------------------------------------------------------------------

bel_file_version bel_file_view_version(const struct stat *info)
{
    return (bel_file_version){
        .device = (uint64_t)info->st_dev,
        .inode = (uint64_t)info->st_ino,
        .size = (uint64_t)info->st_size,
        .changed_ns = info->st_ctim.tv_sec * INT64_C(1000000000) + info->st_ctim.tv_nsec,
        .modified_ns = info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec,
    };
}

// Hash of at most SAMPLES pieces, evenly spaced from the first byte to the last.
static uint64_t sample_of(const char *data, size_t size)
{
    enum { SAMPLES = 64, PIECE = 4096 };
    if (size <= (size_t)SAMPLES * PIECE) return bel_hash64(data, size);
    size_t stride = (size - PIECE) / (SAMPLES - 1);
    uint64_t hash = 0;
    for (size_t i = 0; i < SAMPLES; i++)
        hash = bel_hash64_more(hash, data + i * stride, PIECE);
    return bel_hash64_more(hash, data + size - PIECE, PIECE);
}

// True if huge pages suit a file of this size. They make reads in any order cheaper: a page-table
// walk is shorter and covers more. A page fault then reads megabytes from the disk, so a file that
// is likely to leave memory again keeps small pages.
static bool stays_in_memory(size_t size)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t all = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t limit = bel_cgroup_memory_limit("");
    return size <= (all < limit ? all : limit) / 2;
}

// Maps `size` > 0 bytes. Its errors name `path`.
static bel_status *file_view_map(const char *path, int descriptor, size_t size, bel_file_view *view)
{
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) return bel_file_error(errno, "map", path);
    if (stays_in_memory(size)) bel_linux_read_huge_pages(memory, size);
    bel_file_view_note(memory, size, path);
    view->data = view->memory = memory;
    view->size = size;
    view->mapped = true;
    return NULL;
}

bel_status *bel_file_view_unpack(bel_file_view *view, const char *path)
{
    enum { PATIENCE_SECS = 60 };
    bel_file_view unpacked = {.version = view->version};
    char *data;
    size_t size;
    BEL_TRY(bel_unpack_at_most(path, view->data, view->size, BEL_UNPACKED_IN_MEMORY, &data, &size));
    if (data != NULL) {
        keep_in_memory(path, data, size, &unpacked);
        unpacked.version = view->version;
    } else {
        bel_host_file *file = &unpacked.mapped_instead;
        BEL_TRY(bel_unpacked_file_open(path, &view->version, view->data, view->size, PATIENCE_SECS,
                                       file));
        bel_status *status = file_view_map(path, file->descriptor, file->size, &unpacked);
        if (status != NULL) {
            bel_host_file_close(file);
            return status;
        }
    }
    bel_file_view_close(view);
    *view = unpacked;
    return NULL;
}

// Maps a regular file, and unpacks it from the mapping if it is packed. *out_view stays empty for
// other files and for an empty one.
static bel_status *map_file(const char *path, int descriptor, bel_file_view *out_view)
{
    struct stat info;
    bel_file_view view = {0};
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "read", path);
    if (!S_ISREG(info.st_mode) || info.st_size == 0) return NULL;
    if ((uint64_t)info.st_size > SIZE_MAX) return bel_file_error(EFBIG, "map", path);
    view.version = bel_file_view_version(&info);
    BEL_TRY(file_view_map(path, descriptor, (size_t)info.st_size, &view));
    bel_status *status = NULL;
    if (bel_is_gzip(view.data, view.size)) status = bel_file_view_unpack(&view, path);
    if (status == NULL && view.mapped_instead.path == NULL)
        view.sample = sample_of(view.data, view.size);
    if (status != NULL)
        bel_file_view_close(&view);
    else
        *out_view = view;
    return status;
}

// Maps view->mapped_instead, which is open. Its errors name `name`.
static bel_status *map_instead(const char *name, bel_file_view *view)
{
    struct stat info;
    const bel_host_file *file = &view->mapped_instead;
    if (fstat(file->descriptor, &info) != 0) return bel_file_error(errno, "look at", file->path);
    view->version = bel_file_view_version(&info);
    view->data = ""; // stays for an empty file, which cannot be mapped
    return file->size > 0 ? file_view_map(name, file->descriptor, file->size, view) : NULL;
}

// Each opening changes the times of the copy, but not its content.
static bel_file_version version_of_object(const char *url, const bel_store_info *info)
{
    uint64_t state = bel_hash64_more(bel_hash64(url, strlen(url)), info->tag, strlen(info->tag));
    return (bel_file_version){.inode = state, .size = info->size_bytes};
}

static uint64_t identity_of(const bel_store_info *info)
{
    uint64_t hash = bel_hash64(info->tag, strlen(info->tag));
    return hash != 0 ? hash : 1;
}

// Maps a partial copy of an object. *out_view stays empty if the object does not suit; its state is
// found in each case.
static bel_status *map_partial(const char *url, bel_file_view *out_view, bel_store_info *out_info)
{
    bel_file_view view = {0};
    BEL_TRY(bel_partial_open(url, &view.partial, out_info));
    if (view.partial == NULL) return NULL;
    view.data = bel_partial_data(view.partial);
    view.size = (size_t)out_info->size_bytes;
    view.identity = identity_of(out_info);
    bel_file_view_note(view.data, view.size, url);
    *out_view = view;
    return NULL;
}

// Maps the copy of an object, and unpacks it if it is packed. `may_lack`: it may be partial.
static bel_status *map_object(const char *url, bool may_lack, bel_file_view *out_view)
{
    bel_file_view view = {0};
    bel_store_info info;
    if (may_lack) {
        BEL_TRY(map_partial(url, out_view, &info));
        if (out_view->partial != NULL) return NULL;
        BEL_TRY(bel_store_copy_open_state(url, &info, &view.mapped_instead));
    } else {
        BEL_TRY(bel_store_copy_open(url, &view.mapped_instead, &info));
    }
    bel_status *status = map_instead(url, &view);
    view.version = version_of_object(url, &info);
    bool packed = status == NULL && bel_is_gzip(view.data, view.size);
    if (packed) status = bel_file_view_unpack(&view, url);
    // A process that may read ranges has another copy of these bytes, but the same identity.
    if (may_lack && !packed && bel_partial_is_named(url, &info)) view.identity = identity_of(&info);
    if (status != NULL)
        bel_file_view_close(&view);
    else
        *out_view = view;
    return status;
}

bel_status *bel_file_view_open_made(const bel_cache_request *request, bel_file_view *out_view)
{
    bel_file_view view = {0};
    BEL_TRY(bel_cache_open(request, &view.mapped_instead));
    bel_status *status = map_instead(request->source, &view);
    if (status != NULL)
        bel_file_view_close(&view);
    else
        *out_view = view;
    return status;
}

static bel_status *read_into_memory(const char *path, bel_file_view *out_view)
{
    char *data;
    size_t size;
    BEL_TRY(bel_file_read(path, &data, &size));
    keep_in_memory(path, data, size, out_view);
    return NULL;
}

static bel_status *open_view(const char *path, bool may_lack, bel_file_view *out_view)
{
    bel_file_view view = {0};
    struct stat info;
    if (bel_store_is_url(path)) return map_object(path, may_lack, out_view);
    if (stat(path, &info) == 0 && S_ISFIFO(info.st_mode)) {
        // A pipe is opened only once, since its writer would take a second opening for an end.
        BEL_TRY(read_into_memory(path, &view));
        *out_view = view;
        return NULL;
    }
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    if (fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
        close(descriptor);
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s is a folder, expected a file; hint: a pattern, such as '%s/*.csv'", path,
                       path);
    }
    bel_status *status = map_file(path, descriptor, &view);
    close(descriptor);
    BEL_TRY(status);
    if (view.memory == NULL) BEL_TRY(read_into_memory(path, &view));
    *out_view = view;
    return NULL;
}

// --- Files ---------------------------------------------------------------------------------------

static bel_status *open_patiently(const char *path, bool may_lack, bel_file_view *out_view)
{
    bel_long_wait wait;
    char *what = bel_strf("reading %s", path);
    bel_long_wait_begin(&wait, what);
    bel_status *status = open_view(path, may_lack, out_view);
    bel_long_wait_end(&wait);
    bel_free(what);
    return status;
}

bel_status *bel_file_view_open(const char *path, bel_file_view *out_view)
{
    return open_patiently(path, false, out_view);
}

bel_status *bel_file_view_open_partial(const char *path, bel_file_view *out_view)
{
    *out_view = (bel_file_view){0};
    return open_patiently(path, true, out_view);
}

uint64_t bel_file_view_content(const bel_file_view *view, uint64_t hash)
{
    if (view->identity == 0) return bel_hash64_more(hash, view->data, view->size);
    uint64_t state[] = {view->identity, view->size};
    return bel_hash64_more(hash, state, sizeof state);
}

void bel_file_views_begin(const char *const *paths, int count)
{
    for (int i = 0; count > 1 && i < count; i++)
        if (bel_store_is_url(paths[i])) bel_store_copy_begin(paths[i]);
}

void bel_file_view_close(bel_file_view *view)
{
    if (view->head != NULL) munmap(view->head, BEL_GROWING_HEAD);
    if (view->mapped) {
        bel_file_view_forget(view->memory);
        munmap(view->memory, view->reserved > 0 ? view->reserved : view->size);
    } else {
        bel_free(view->memory);
    }
    if (view->partial != NULL) bel_file_view_forget(view->data);
    bel_partial_close(view->partial);
    bel_host_file_close(&view->mapped_instead);
    *view = (bel_file_view){0};
}

// Gives an error of the store, which is about all records, a code that is not about one of them.
static bel_status *end_run(bel_status *status)
{
    bel_code code = bel_status_code(status);
    bool looks_bad = code == BEL_DATA_LOSS || code == BEL_NOT_FOUND ||
                     code == BEL_INVALID_ARGUMENT || code == BEL_OUT_OF_RANGE ||
                     code == BEL_UNKNOWN;
    if (!looks_bad) return status;
    bel_status *other = BEL_ERR(BEL_ABORTED, "%s", bel_status_message(status));
    bel_status_ignore(status); // replaced
    return other;
}

bel_status *bel_file_view_need_partial(const bel_file_view *view, uint64_t offset, uint64_t size)
{
    return end_run(bel_partial_need(view->partial, offset, size));
}

bel_status *bel_file_view_finish(const bel_file_view *view, int64_t deadline_ns, bool *out_compared)
{
    *out_compared = true;
    if (view->partial == NULL) return NULL;
    return end_run(bel_partial_finish(view->partial, deadline_ns, out_compared));
}

bel_status *bel_file_view_check(const bel_file_view *view, const char *path)
{
    struct stat info;
    if (view->partial != NULL) return end_run(bel_partial_check(view->partial));
    if (!view->mapped || view->mapped_instead.path != NULL) return NULL;
    if (view->reserved > 0) return bel_file_view_check_growing(view, path);
    if (stat(path, &info) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return bel_file_error(errno, "look at", path);
        return BEL_ERR(BEL_DATA_LOSS, "%s: it was removed after it was opened", path);
    }
    bool same = (uint64_t)info.st_dev == view->version.device &&
                (uint64_t)info.st_ino == view->version.inode;
    if (!same) return NULL;
    if ((uint64_t)info.st_size < view->size) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: it had %zu bytes when it was opened, and has %lld now",
                       path, view->size, (long long)info.st_size);
    }
    bool written = bel_file_view_version(&info).modified_ns != view->version.modified_ns;
    if (!written || sample_of(view->data, view->size) == view->sample) return NULL;
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: it was written to while it was read, and has other data now; hint: write "
                   "new data to another file, then rename it",
                   path);
}

bel_status *bel_file_view_check_whole(const bel_file_view *view, const char *path)
{
    const char *hint = "hint: put each file into place whole, by a rename, and leave it as it is";
    bel_file_version now;
    if (bel_store_is_url(path)) {
        bel_store_info info;
        BEL_TRY(bel_store_stat(path, &info));
        now = version_of_object(path, &info);
    } else {
        struct stat info;
        if (stat(path, &info) != 0) {
            if (errno != ENOENT && errno != ENOTDIR) return bel_file_error(errno, "look at", path);
            return BEL_ERR(BEL_DATA_LOSS, "%s: it was removed while it was followed", path);
        }
        now = bel_file_view_version(&info);
    }
    if (now.size != view->version.size)
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: it had %llu bytes when it was read, and has %llu now; %s", path,
                       (unsigned long long)view->version.size, (unsigned long long)now.size, hint);
    if (now.device != view->version.device || now.inode != view->version.inode)
        return BEL_ERR(BEL_DATA_LOSS, "%s: it was replaced after it was read; %s", path, hint);
    bool unpacked = !view->mapped || view->mapped_instead.path != NULL;
    if (unpacked && now.modified_ns != view->version.modified_ns)
        return BEL_ERR(BEL_DATA_LOSS, "%s: it was written to after it was read; %s", path, hint);
    return bel_file_view_check(view, path);
}

int bel_file_view_turn(int64_t block, int count, int *out_end)
{
    enum { FILES_AT_A_TIME = 8 };
    int64_t turns = (count + (int64_t)FILES_AT_A_TIME - 1) / FILES_AT_A_TIME;
    int first = turns > 0 ? (int)(block % turns) * FILES_AT_A_TIME : 0;
    *out_end = count - first < FILES_AT_A_TIME ? count : first + FILES_AT_A_TIME;
    return first;
}
