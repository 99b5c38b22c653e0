// Making a large copy uses the threads that serve transfers. bel_store_copy_begin runs on such a
// thread, where it must not wait for others. So it copies only objects of one range, of which there
// may be many. A large one is left to the function that opens it.
#include "store/copy.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/index.h"
#include "base/str.h"
#include "store/download.h"

enum { PATIENCE_SECS = 300 };

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

// Bytes of all copies, as this process knows them; negative: not counted yet. Other processes add
// copies that it does not know, so the limit holds when the next process counts.
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
    if (atomic_load(&copy_bytes) < 0)
        atomic_store(&copy_bytes, bel_host_file_make_room(folder, -1));
    int64_t sum = atomic_fetch_add(&copy_bytes, wanted) + wanted;
    if (sum > limit) {
        int64_t most = limit - limit / 10 - wanted; // not again for the next copy
        atomic_store(&copy_bytes, bel_host_file_make_room(folder, most > 0 ? most : 0) + wanted);
    }
    return NULL;
}

// --- Copying -------------------------------------------------------------------------------------

typedef struct copying {
    const char *url;
    const bel_store_info *info;
    const char *folder;
} copying;

static bel_status *copy_object(void *user, const char *path, int descriptor)
{
    const copying *c = user;
    BEL_TRY(make_room(c->folder, c->info->size_bytes));
    if (c->info->size_bytes == 0) return NULL;
    const char *tag = c->info->tag[0] != '\0' ? c->info->tag : NULL;
    return bel_download_to(c->url, tag, path, descriptor, NULL);
}

// Opens the copy of this state. It waits up to `patience_secs` for another thread or process that
// makes the same copy and makes no progress.
static bel_status *open_copy(const char *url, const bel_store_info *info, double patience_secs,
                             bel_host_file *out_file)
{
    static atomic_uint unnamed;
    char *folder = NULL;
    BEL_TRY(bel_host_folder(getenv(BEL_CACHE_DIR_VARIABLE), "belfry-objects", &folder));
    bool named = info->tag[0] != '\0'; // otherwise no other copy is known to be of this state
    char *name =
        named ? bel_strf("%s\n%s\n%llu", url, info->tag, (unsigned long long)info->size_bytes)
              : bel_strf("%s\n%lld\n%u", url, (long long)getpid(), unnamed++);
    copying c = {.url = url, .info = info, .folder = folder};
    bel_host_file_request request = {
        .folder = folder,
        .name = name,
        .source = url,
        .doing = "being copied",
        .stays = true,
        .patience_secs = patience_secs,
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
    BEL_TRY(open_copy(url, &info, PATIENCE_SECS, out_file));
    if (out_info != NULL) *out_info = info;
    return NULL;
}

bel_status *bel_store_copy_open_known(const char *url, bel_host_file *out_file,
                                      bel_store_info *out_info)
{
    bel_store_info info;
    if (!was_seen(url, &info)) return bel_store_copy_open(url, out_file, out_info);
    BEL_TRY(open_copy(url, &info, PATIENCE_SECS, out_file));
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
        bool small = info.size_bytes <= BEL_DOWNLOAD_RANGE_BYTES;
        if (small) status = open_copy(url, &info, 0, &file);
    }
    bel_status_ignore(status); // the function that opens the copy reports it
    bel_host_file_close(&file);
    bel_free(url);
}

void bel_store_copy_begin(const char *url)
{
    bel_store_begin(begin_copy, bel_xstrdup(url));
}
