// Making a large copy uses the threads that serve transfers. bel_store_copy_begin runs on such a
// thread, where it must not wait for others. So it copies only objects of one range, of which there
// may be many. A large one is left to the function that opens it.
#include "store/copy.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/index.h"
#include "base/str.h"
#include "store/cache.h"
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

// --- Copying -------------------------------------------------------------------------------------

typedef struct copying {
    const char *url;
    const bel_store_info *info;
} copying;

static bel_status *copy_object(void *user, const char *path, int descriptor)
{
    const copying *c = user;
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
    bool named = info->tag[0] != '\0'; // otherwise no other copy is known to be of this state
    char *name =
        named ? bel_strf("%s\n%s\n%llu", url, info->tag, (unsigned long long)info->size_bytes)
              : bel_strf("%s\n%lld\n%u", url, (long long)getpid(), unnamed++);
    copying c = {.url = url, .info = info};
    const bel_cache_request request = {
        .name = name,
        .source = url,
        .doing = "being copied",
        .size_bytes = info->size_bytes,
        .patience_secs = patience_secs,
        .make = copy_object,
        .user = &c,
    };
    bel_status *status = bel_cache_open(&request, out_file);
    bel_free(name);
    return status;
}

bel_status *bel_store_copy_open(const char *url, bel_host_file *out_file, bel_store_info *out_info)
{
    bel_store_info info;
    BEL_TRY(bel_store_stat(url, &info));
    BEL_TRY(bel_store_copy_open_state(url, &info, out_file));
    if (out_info != NULL) *out_info = info;
    return NULL;
}

bel_status *bel_store_copy_open_state(const char *url, const bel_store_info *info,
                                      bel_host_file *out_file)
{
    note_seen(url, info);
    return open_copy(url, info, PATIENCE_SECS, out_file);
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
