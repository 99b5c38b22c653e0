// The room for a copy is reserved before the first byte, so that a full disk is an error and not a
// signal: the bytes of the ranges are received into a mapping of the file.
//
// A large object is read in ranges by the threads that serve transfers, a small one in one range by
// the caller. bel_store_copy_begin runs on such a thread, where it must not wait for others. So it
// copies only small objects, of which there are many. A large one is left to the function that opens
// it, which reads its ranges together.
#include "store/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/index.h"
#include "base/str.h"

enum { RANGE_BYTES = 8 << 20, RANGES_AT_ONCE = 16, MOST_BEGUN_BYTES = 4 * RANGE_BYTES };

// --- States seen ---------------------------------------------------------------------------------

typedef struct seen_object {
    char *url;
    bel_store_info info;
} seen_object;

static struct {
    pthread_mutex_t mutex;
    seen_object *items;
    size_t count, capacity;
    bel_index by_url;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static seen_object *find_seen(const char *url)
{
    size_t at = 0;
    int number;
    while ((number = bel_index_next_text(&seen.by_url, url, &at)) >= 0)
        if (strcmp(seen.items[number].url, url) == 0) return &seen.items[number];
    return NULL;
}

static void note_seen(const char *url, const bel_store_info *info)
{
    pthread_mutex_lock(&seen.mutex);
    seen_object *object = find_seen(url);
    if (object == NULL && seen.count < INT_MAX) {
        seen.items = bel_xgrow(seen.items, &seen.capacity, seen.count + 1, sizeof *seen.items);
        object = &seen.items[seen.count];
        object->url = bel_xstrdup(url);
        bel_index_put_text(&seen.by_url, url, (int)seen.count++);
    }
    if (object != NULL) object->info = *info;
    pthread_mutex_unlock(&seen.mutex);
}

static bool was_seen(const char *url, bel_store_info *out_info)
{
    pthread_mutex_lock(&seen.mutex);
    const seen_object *object = find_seen(url);
    if (object != NULL) *out_info = object->info;
    pthread_mutex_unlock(&seen.mutex);
    return object != NULL;
}

// --- Room ----------------------------------------------------------------------------------------

// Bytes of all copies, as this process knows them; negative: not counted yet.
static _Atomic int64_t copy_bytes = -1;

static bel_status *find_limit(int64_t *out_bytes)
{
    const char *text = getenv(BEL_CACHE_SIZE_VARIABLE);
    int64_t mib = 16384;
    char *rest = NULL;
    if (text != NULL && text[0] != '\0') {
        errno = 0;
        mib = strtoll(text, &rest, 10);
        if (*rest != '\0' || errno != 0 || mib < 0 || mib > INT64_MAX >> 20) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "environment variable " BEL_CACHE_SIZE_VARIABLE
                           ": expected a number of MiB, got \"%s\"",
                           text);
        }
    }
    *out_bytes = mib << 20;
    return NULL;
}

// Counts `size` more bytes, and removes unused copies if all would take more than the limit. A
// folder of many copies is listed only then, and once at the beginning.
static bel_status *make_room(const char *folder, uint64_t size)
{
    int64_t limit = 0, wanted = size > INT64_MAX ? INT64_MAX : (int64_t)size;
    BEL_TRY(find_limit(&limit));
    int64_t before = atomic_load(&copy_bytes);
    if (before < 0) before = bel_host_file_make_room(folder, -1);
    if (before > limit - wanted) {
        int64_t most = limit - limit / 10 - wanted; // not again for the next copy
        before = bel_host_file_make_room(folder, most > 0 ? most : 0);
    }
    atomic_store(&copy_bytes, before + wanted);
    return NULL;
}

// --- Copying -------------------------------------------------------------------------------------

typedef struct copying {
    const char *url;
    bel_store_info info;
    const char *folder;
    bool together; // ranges are read by several threads
    char *memory;  // mapping of the copy

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t next;      // offset of the next range
    int active;         // threads at work
    bel_status *status; // the first error
} copying;

static bel_status *read_range(copying *c, uint64_t offset)
{
    uint64_t left = c->info.size_bytes - offset;
    size_t size = left < RANGE_BYTES ? (size_t)left : RANGE_BYTES, got = 0;
    const char *tag = c->info.tag[0] != '\0' ? c->info.tag : NULL;
    BEL_TRY(bel_store_read(c->url, tag, offset, size, c->memory + offset, &got, NULL));
    if (got == size) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s: it became shorter while it was copied", c->url);
}

// Reads ranges until none is left or one fails.
static void read_ranges(void *context)
{
    copying *c = context;
    pthread_mutex_lock(&c->mutex);
    while (c->status == NULL && c->next < c->info.size_bytes) {
        uint64_t offset = c->next;
        c->next += RANGE_BYTES;
        pthread_mutex_unlock(&c->mutex);
        bel_status *status = read_range(c, offset);
        pthread_mutex_lock(&c->mutex);
        if (c->status == NULL)
            c->status = status;
        else
            bel_status_ignore(status); // the first error is reported
    }
    c->active--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->mutex);
}

// Reads all ranges. Each request ends by the store's patience, so the wait for all ends, too.
static bel_status *read_all(copying *c)
{
    uint64_t ranges = (c->info.size_bytes + RANGE_BYTES - 1) / RANGE_BYTES;
    int threads = ranges < RANGES_AT_ONCE ? (int)ranges : RANGES_AT_ONCE;
    if (!c->together || threads == 1) {
        c->active = 1;
        read_ranges(c);
        return c->status;
    }
    c->active = threads;
    for (int i = 0; i < threads; i++)
        bel_store_begin(read_ranges, c);
    pthread_mutex_lock(&c->mutex);
    while (c->active > 0)
        pthread_cond_wait(&c->changed, &c->mutex);
    pthread_mutex_unlock(&c->mutex);
    return c->status;
}

static bel_status *copy_object(void *user, const char *path, int descriptor)
{
    copying *c = user;
    uint64_t size = c->info.size_bytes;
    BEL_TRY(make_room(c->folder, size));
    if (size == 0) return NULL;
    int error = bel_fault_write_fails() ? ENOSPC : posix_fallocate(descriptor, 0, (off_t)size);
    if (error != 0) return bel_file_error(error, "reserve room in", path);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return bel_file_error(errno, "map", path);
    c->memory = memory;
    bel_status *status = read_all(c);
    munmap(memory, size);
    return status;
}

// Opens the copy of this state. On a thread that serves transfers it reads range after range, and
// does not wait for another thread or process that makes the same copy: that one may wait for this
// thread.
static bel_status *open_copy(const char *url, const bel_store_info *info, bool together,
                             bel_host_file *out_file)
{
    enum { PATIENCE_SECS = 300 };
    static atomic_uint unnamed;
    char *folder = NULL;
    BEL_TRY(bel_host_folder(getenv(BEL_CACHE_DIR_VARIABLE), "belfry-objects", &folder));
    bool named = info->tag[0] != '\0'; // otherwise no other copy is known to be of this state
    char *name =
        named ? bel_strf("%s\n%s\n%llu", url, info->tag, (unsigned long long)info->size_bytes)
              : bel_strf("%s\n%lld\n%u", url, (long long)getpid(), unnamed++);
    copying c = {
        .url = url,
        .info = *info,
        .folder = folder,
        .together = together,
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    bel_host_file_request request = {
        .folder = folder,
        .name = name,
        .source = url,
        .doing = "being copied",
        .stays = true,
        .patience_secs = together ? PATIENCE_SECS : 0,
        .make = copy_object,
        .user = &c,
    };
    bel_status *status = bel_host_file_open(&request, out_file);
    if (bel_status_code(status) == BEL_RESOURCE_EXHAUSTED) {
        status = bel_status_wrap(
            status, __FILE__, __LINE__,
            "%s: copying its %llu bytes to this host; hint: set " BEL_CACHE_DIR_VARIABLE
            " to a folder with more room",
            url, (unsigned long long)info->size_bytes);
    }
    bel_free(name);
    bel_free(folder);
    return status;
}

bel_status *bel_store_copy_open(const char *url, bel_host_file *out_file, bel_store_info *out_info)
{
    bel_store_info info;
    BEL_TRY(bel_store_stat(url, &info));
    note_seen(url, &info);
    BEL_TRY(open_copy(url, &info, true, out_file));
    if (out_info != NULL) *out_info = info;
    return NULL;
}

bel_status *bel_store_copy_open_known(const char *url, bel_host_file *out_file,
                                      bel_store_info *out_info)
{
    bel_store_info info;
    if (!was_seen(url, &info)) return bel_store_copy_open(url, out_file, out_info);
    BEL_TRY(open_copy(url, &info, true, out_file));
    if (out_info != NULL) *out_info = info;
    return NULL;
}

static void begin_copy(void *context)
{
    char *url = context;
    bel_store_info info;
    bel_host_file file = {0};
    bel_status *status = bel_store_stat(url, &info);
    if (status == NULL) {
        note_seen(url, &info);
        bool small = info.size_bytes <= MOST_BEGUN_BYTES;
        if (small) status = open_copy(url, &info, false, &file);
    }
    bel_status_ignore(status); // the function that opens the copy reports it
    bel_host_file_close(&file);
    bel_free(url);
}

void bel_store_copy_begin(const char *url)
{
    bel_store_begin(begin_copy, bel_xstrdup(url));
}
