// Within a process a thread claims blocks before it fetches them, and the others wait for it, but
// not for long: then they fetch the block, too. So may two processes. All write the same bytes. The
// file is in partial_blocks.c, and the fetching of all other blocks in partial_fill.c.
#include "store/partial.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/unpack.h"
#include "store/cache.h"
#include "store/partial_blocks.h"

enum { RUN_BLOCKS = 32 };                              // most blocks in one request
static const uint64_t MOST_BYTES = UINT64_C(64) << 40; // above what stores can keep

// --- Readers -------------------------------------------------------------------------------------

enum { TIME_BYTES = 32 };

static const char *begin_text(const bel_partial *p, char out_text[TIME_BYTES])
{
    time_t secs = (time_t)p->trailer->begun_secs;
    struct tm utc;
    bool good = gmtime_r(&secs, &utc) != NULL &&
                strftime(out_text, TIME_BYTES, "%Y-%m-%d %H:%M:%S UTC", &utc) > 0;
    return good ? out_text : "its copy began";
}

static bel_status *damaged(const bel_partial *p)
{
    char since[TIME_BYTES];
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: GET: the bytes do not match their checksum; hint: remove the checkpoints "
                   "and caches that were made of them since %s, then this host's copy: rm %s",
                   p->url, begin_text(p, since), p->file.path);
}

// The first damage that this process has seen in bytes that it used, until it is taken.
static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *seen;

char *bel_store_take_damage(void)
{
    pthread_mutex_lock(&seen_mutex);
    char *what = seen;
    seen = NULL;
    pthread_mutex_unlock(&seen_mutex);
    return what;
}

static bel_status *damaged_in_use(const bel_partial *p)
{
    char since[TIME_BYTES];
    pthread_mutex_lock(&seen_mutex);
    if (seen == NULL)
        seen = bel_strf("%s: GET: the bytes do not match their checksum; read since %s",
                        p->object.url.shown, begin_text(p, since));
    pthread_mutex_unlock(&seen_mutex);
    return damaged(p);
}

bel_status *bel_partial_check(bel_partial *p)
{
    pthread_mutex_lock(&p->mutex);
    bool changed = p->has_changed;
    pthread_mutex_unlock(&p->mutex);
    if (changed) return bel_object_changed(&p->object);
    return atomic_load(&p->trailer->state) == BEL_PARTIAL_DAMAGED ? damaged_in_use(p) : NULL;
}

bel_status *bel_partial_finish(bel_partial *p, int64_t deadline_ns, bool *out_compared)
{
    enum { LOOK_NS = 100000000 }; // the process that compares may be another one
    pthread_mutex_lock(&p->mutex);
    for (int64_t now = bel_clock_ns(); now < deadline_ns && !bel_end_requested();
         now = bel_clock_ns()) {
        bool over = p->has_changed || (p->is_compared && !p->is_comparing);
        if (over || atomic_load(&p->trailer->state) != BEL_PARTIAL_LACKS) break;
        bel_partial_begin_fill(p);
        bel_partial_release(p);
        pthread_mutex_lock(&p->mutex);
        int64_t look = now + LOOK_NS;
        (void)bel_cond_wait_until(&p->changed, &p->mutex, look < deadline_ns ? look : deadline_ns);
    }
    pthread_mutex_unlock(&p->mutex);
    uint64_t now_is = atomic_load(&p->trailer->state);
    *out_compared = now_is == BEL_PARTIAL_WHOLE;
    return now_is == BEL_PARTIAL_DAMAGED ? bel_partial_check(p) : NULL;
}

// Fetches claimed blocks for a reader. The others follow after that, so that the first record does
// not share the network with them.
static bel_status *fetch_for_reader(bel_partial *p, bel_block_run r)
{
    BEL_TRY(bel_partial_fetch_claimed(p, r));
    pthread_mutex_lock(&p->mutex);
    bel_partial_begin_fill(p);
    bel_partial_release(p);
    return NULL;
}

// Fetches an absent block and those after it, before `end`, or waits for the thread that does.
static bel_status *bring(bel_partial *p, size_t block, size_t end)
{
    enum { WAIT_NS = 2000000000 };
    int64_t until = bel_clock_ns() + WAIT_NS;
    bool waits = true;
    pthread_mutex_lock(&p->mutex);
    while (waits && !bel_partial_is_present(p, block) && bel_partial_is_claimed(p, block))
        waits = bel_cond_wait_until(&p->changed, &p->mutex, until);
    bel_block_run r = bel_partial_claim(p, block, end, RUN_BLOCKS);
    bool again = r.count == 0 && !bel_partial_is_present(p, block) && !waits;
    if (again) p->claims++;
    bel_partial_release(p);
    if (again) return bel_partial_fetch_again(p, block);
    return r.count > 0 ? fetch_for_reader(p, r) : NULL;
}

static bel_block_run blocks_of(uint64_t offset, uint64_t size)
{
    size_t first = (size_t)(offset / BEL_BLOCK_BYTES);
    return (bel_block_run){
        first, size > 0 ? (size_t)((offset + size - 1) / BEL_BLOCK_BYTES) + 1 - first : 0};
}

bel_status *bel_partial_need(bel_partial *p, uint64_t offset, uint64_t size)
{
    bel_block_run r = blocks_of(offset, size);
    for (size_t b = r.first; b < r.first + r.count; b++)
        while (!bel_partial_is_present(p, b))
            BEL_TRY(bring(p, b, r.first + r.count));
    return NULL;
}

typedef struct wanted {
    bel_partial *partial;
    bel_block_run blocks;
} wanted;

static void fetch_wanted(void *context)
{
    wanted *w = context;
    bel_partial *p = w->partial;
    pthread_mutex_lock(&p->mutex);
    bool closed = p->is_closed;
    if (closed) bel_partial_end_claim(p, w->blocks); // no reader waits for it
    bel_partial_release(p);
    if (!closed) bel_status_ignore(fetch_for_reader(p, w->blocks)); // the reader tries again
    bel_partial_leave(p);
    bel_free(w);
}

void bel_partial_want(bel_partial *p, uint64_t offset, uint64_t size)
{
    bel_block_run all = blocks_of(offset, size);
    for (size_t b = all.first; b < all.first + all.count; b++) {
        if (bel_partial_is_present(p, b)) continue;
        pthread_mutex_lock(&p->mutex);
        bel_block_run r = bel_partial_claim(p, b, all.first + all.count, RUN_BLOCKS);
        if (r.count > 0) p->users++;
        bel_partial_release(p);
        if (r.count == 0) continue;
        wanted *w = bel_xcalloc(1, sizeof *w);
        *w = (wanted){p, r};
        bel_store_begin_first(fetch_wanted, w);
    }
}

const char *bel_partial_data(const bel_partial *p)
{
    return p->data;
}

// --- Opening -------------------------------------------------------------------------------------

// Opens and maps the file. One that does not match its checksum stays: a training must not continue
// from what an earlier one made of it, before its user knows.
static bel_status *open_copy(bel_partial *p)
{
    BEL_TRY(bel_partial_open_file(p));
    return atomic_load(&p->trailer->state) == BEL_PARTIAL_DAMAGED ? damaged(p) : NULL;
}

// Reads the first block. *out_suits: the rest may be read in ranges.
static bel_status *begin(bel_partial *p, bool *out_suits)
{
    enum { MAGIC_BYTES = 18 };
    p->block_count = (size_t)((p->info.size_bytes + BEL_BLOCK_BYTES - 1) / BEL_BLOCK_BYTES);
    size_t words = bel_partial_words(p->block_count);
    p->trailer_bytes = sizeof *p->trailer + words * sizeof *p->trailer->present;
    p->claimed = bel_xcalloc(words, sizeof *p->claimed);
    BEL_TRY(open_copy(p));
    bel_block_run first = bel_partial_claim(p, 0, 1, 1); // no other thread knows it yet
    if (first.count > 0) BEL_TRY(bel_partial_fetch_claimed(p, first));
    *out_suits = !bel_is_gzip(p->data, MAGIC_BYTES) &&
                 bel_place_ask(p->object.place, BEL_PLACE_SERVES_RANGES) != BEL_PLACE_NO;
    if (!*out_suits) p->file.stays = false;
    return NULL;
}

bool bel_partial_is_named(const char *url, const bel_store_info *info)
{
    bel_store_url parts = {0};
    if (info->size_bytes < BEL_PARTIAL_BYTES || info->tag[0] == '\0') return false;
    bel_status *status = bel_store_url_init(&parts, url);
    bool named = status == NULL && parts.scheme != BEL_STORE_WEB;
    if (status == NULL) bel_store_url_deinit(&parts);
    bel_status_ignore(status); // an object of this URL was opened before
    return named;
}

bel_status *bel_partial_open(const char *url, bel_partial **out_partial, bel_store_info *out_info)
{
    bel_partial *p = bel_xcalloc(1, sizeof *p);
    p->fill_lock = -1;
    p->users = 1;
    pthread_mutex_init(&p->mutex, NULL);
    bel_cond_init(&p->changed);
    p->url = bel_xstrdup(url);
    bool suits = false;
    bel_status *status = bel_object_open(&p->object, url, false);
    if (status == NULL) status = bel_object_stat(&p->object, &p->info, NULL);
    if (status == NULL) {
        *out_info = p->info;
        suits = bel_partial_is_named(url, &p->info);
    }
    if (suits && p->info.size_bytes > MOST_BYTES)
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: expected at most 64 TiB, got %llu bytes",
                         p->object.url.shown, (unsigned long long)p->info.size_bytes);
    if (suits && status == NULL) status = begin(p, &suits);
    if (status != NULL || !suits) {
        bel_partial_leave(p);
        *out_partial = NULL;
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    if (bel_partial_is_whole(p)) bel_partial_begin_fill(p); // it may not have been compared yet
    bel_partial_release(p);
    *out_partial = p;
    return NULL;
}

void bel_partial_close(bel_partial *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->mutex);
    p->is_closed = true;
    pthread_mutex_unlock(&p->mutex);
    bel_partial_leave(p);
}
