#include "store/cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"

// --- Room ----------------------------------------------------------------------------------------

// Bytes of all files, as this process knows them; negative: not counted yet. Other processes add
// files that it does not know, so the limit holds when the next process counts.
static _Atomic int64_t cache_bytes = -1;

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

// Counts `size` more bytes, and removes unused files if all would take more than the limit. A
// folder of many files is listed only then, and once at the beginning.
static bel_status *make_room(const char *folder, uint64_t size)
{
    int64_t limit = 0, wanted = size > INT64_MAX ? INT64_MAX : (int64_t)size;
    BEL_TRY(find_limit(&limit));
    if (atomic_load(&cache_bytes) < 0)
        atomic_store(&cache_bytes, bel_host_file_make_room(folder, -1));
    int64_t sum = atomic_fetch_add(&cache_bytes, wanted) + wanted;
    if (sum > limit) {
        int64_t most = limit - limit / 10 - wanted; // not again for the next file
        atomic_store(&cache_bytes, bel_host_file_make_room(folder, most > 0 ? most : 0) + wanted);
    }
    return NULL;
}

typedef struct making {
    const bel_cache_request *request;
    const char *folder;
} making;

static bel_status *make_file(void *user, const char *path, int descriptor)
{
    const making *m = user;
    BEL_TRY(make_room(m->folder, m->request->size_bytes));
    return m->request->make(m->request->user, path, descriptor);
}

bel_status *bel_cache_explain(bel_status *status, const char *source, uint64_t size_bytes,
                              const char *doing)
{
    if (bel_status_code(status) != BEL_RESOURCE_EXHAUSTED) return status;
    return bel_status_wrap(status, __FILE__, __LINE__,
                           "%s: %llu bytes, %s to this host; hint: set " BEL_CACHE_DIR_VARIABLE
                           " to a folder with more room",
                           source, (unsigned long long)size_bytes, doing);
}

bel_status *bel_cache_open(const bel_cache_request *request, bel_host_file *out_file)
{
    char *folder = NULL;
    BEL_TRY(bel_host_folder(getenv(BEL_CACHE_DIR_VARIABLE), "belfry-objects", &folder));
    making m = {request, folder};
    const bel_host_file_request file = {
        .folder = folder,
        .name = request->name,
        .source = request->source,
        .doing = request->doing,
        .stays = true,
        .writable = request->writable,
        .patience_secs = request->patience_secs,
        .make = make_file,
        .user = &m,
    };
    bel_status *status = bel_cache_explain(bel_host_file_open(&file, out_file), request->source,
                                           request->size_bytes, request->doing);
    bel_free(folder);
    return status;
}
