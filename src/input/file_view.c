// Mapping or memory, behind one pair of pointer and size. Plain files are mapped, so that
// processes of one host share the pages and only what is asked for is read. A pipe is recognised
// before it is opened, as its writer would take a second opening for an end; all else is opened
// without blocking.
//
// A mapping keeps a file that was removed or replaced, but not one that was made shorter: reading
// there is a bus error, which a check before each block makes unlikely and cannot exclude; then the
// handler of such errors finds out here which file it was. The check compares device and inode, so
// another file of the same name does not count.
#include "input/file_view.h"

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
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "base/unpack.h"

// What was unpacked or came through a pipe is in memory as a whole, which the log says.
static void keep_in_memory(const char *path, char *data, size_t size, bel_file_view *out_view)
{
    *out_view = (bel_file_view){.data = data, .size = size, .memory = data, .mapped = false};
    if (size == 0) return;
    char text[32];
    bel_log_write(BEL_LOG_INFO,
                  "%s: read into memory as a whole (%s), since it is packed or a pipe", path,
                  bel_bytes_text(size, text));
}

// --- Who is mapped where -------------------------------------------------------------------------

// A handler of bus errors cannot wait for a lock, so it reads what is published last: `start` is
// set when the rest is there, and cleared first. What finds no room has no name in such an error.
enum { KNOWN_MAPPINGS = 256, KNOWN_PATH = 240 };
static struct mapping {
    _Atomic(const char *) start;
    atomic_size_t size;
    char path[KNOWN_PATH];
} mappings[KNOWN_MAPPINGS];
static pthread_mutex_t mappings_mutex = PTHREAD_MUTEX_INITIALIZER; // of those who write

static void note_mapping(const char *start, size_t size, const char *path)
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

static void forget_mapping(const char *start)
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

// Maps a regular file, or unpacks it from its mapping; *out_view stays empty when it has to be read
// another way.
static bel_status *map_file(const char *path, int descriptor, bel_file_view *out_view)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) return bel_file_error(errno, "read", path);
    if (!S_ISREG(info.st_mode) || info.st_size == 0) return NULL;
    if ((uint64_t)info.st_size > SIZE_MAX) return bel_file_error(EFBIG, "map", path);
    size_t size = (size_t)info.st_size;
    void *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory == MAP_FAILED) return bel_file_error(errno, "map", path);
    if (bel_is_gzip(memory, size)) {
        char *data;
        bel_status *status = bel_unpack(path, memory, size, &data, &size);
        munmap(memory, (size_t)info.st_size);
        BEL_TRY(status);
        keep_in_memory(path, data, size, out_view);
        return NULL;
    }
    note_mapping(memory, size, path);
    *out_view = (bel_file_view){.data = memory,
                                .size = size,
                                .memory = memory,
                                .mapped = true,
                                .device = (uint64_t)info.st_dev,
                                .inode = (uint64_t)info.st_ino};
    return NULL;
}

static bel_status *read_into_memory(const char *path, bel_file_view *out_view)
{
    char *data;
    size_t size;
    BEL_TRY(bel_file_read(path, &data, &size));
    keep_in_memory(path, data, size, out_view);
    return NULL;
}

bel_status *bel_file_view_open(const char *path, bel_file_view *out_view)
{
    bel_file_view view = {0};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISFIFO(info.st_mode)) {
        // A pipe is opened once: its writer, too, learns of a second opening as an end.
        BEL_TRY(read_into_memory(path, &view));
        *out_view = view;
        return NULL;
    }
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    bel_status *status = map_file(path, descriptor, &view);
    close(descriptor);
    BEL_TRY(status);
    if (view.memory == NULL) BEL_TRY(read_into_memory(path, &view));
    *out_view = view;
    return NULL;
}

bel_status *bel_file_view_unpack(bel_file_view *view, const char *path)
{
    char *data;
    size_t size;
    BEL_TRY(bel_unpack(path, view->data, view->size, &data, &size));
    bel_file_view_close(view);
    keep_in_memory(path, data, size, view);
    return NULL;
}

void bel_file_view_close(bel_file_view *view)
{
    if (view->mapped) {
        forget_mapping(view->memory);
        munmap(view->memory, view->size);
    } else {
        bel_free(view->memory);
    }
    *view = (bel_file_view){0};
}

bel_status *bel_file_view_check(const bel_file_view *view, const char *path)
{
    struct stat info;
    if (!view->mapped) return NULL;
    if (stat(path, &info) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return bel_file_error(errno, "look at", path);
        return BEL_ERR(BEL_DATA_LOSS, "%s: it was there when it was opened, and has gone since",
                       path);
    }
    bool same = (uint64_t)info.st_dev == view->device && (uint64_t)info.st_ino == view->inode;
    if (!same || (uint64_t)info.st_size >= view->size) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: it had %zu bytes when it was opened, and has %lld now", path,
                   view->size, (long long)info.st_size);
}

int bel_file_view_turn(int64_t block, int count, int *out_end)
{
    enum { FILES_AT_A_TIME = 8 };
    int64_t turns = (count + (int64_t)FILES_AT_A_TIME - 1) / FILES_AT_A_TIME;
    int first = turns > 0 ? (int)(block % turns) * FILES_AT_A_TIME : 0;
    *out_end = count - first < FILES_AT_A_TIME ? count : first + FILES_AT_A_TIME;
    return first;
}
