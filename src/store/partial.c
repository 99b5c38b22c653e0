// The file of a partial copy has the object's bytes, with holes, and from the next page on a
// trailer: its state, and a bit for each block that is present. A bit is set after its bytes are
// written. The file system's cache keeps both, so a kill at any moment leaves a correct copy. The
// name of a file of the cache has the machine's boot id, so a power failure leaves none.
//
// Within a process a thread claims blocks before it fetches them, and the others wait for it, but
// not for long: then they fetch the block, too. So may two processes. All write the same bytes.
// One process of a host, which locks a file beside this one, also fetches all other blocks in
// order, by WIDTH works that each begin the next one when they end. They have a low priority, and a
// process has at most FILLS of them, so that bytes that a reader waits for come first.
//
// A copy that does not match its checksum stays as long as processes have it open: only the holder
// of the only lock may remove it (base/host_file.h). Others use a file of the next generation.
#include "store/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_lock.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/thread.h"
#include "base/unpack.h"
#include "store/cache.h"
#include "store/crypto.h"
#include "store/download.h"
#include "store/object.h"

enum { BLOCK_BYTES = 256 << 10, PAGE_BYTES = 1 << 16, WORD_BITS = 64 };
enum { RUN_BLOCKS = 32, FILL_BLOCKS = 8 }; // most blocks in one request, for a reader and ahead
enum { WIDTH = 8, FILLS = 16 };
static const uint64_t MOST_BYTES = UINT64_C(64) << 40; // above what stores can keep

typedef enum state { INCOMPLETE, WHOLE, DAMAGED } state;

typedef struct trailer {
    _Atomic uint64_t state;
    uint64_t begun_secs;        // since 1970
    _Atomic uint64_t present[]; // bits, by block
} trailer;

struct bel_partial {
    char *url;
    bel_object object;
    bel_store_info info;
    bel_host_file file;
    const char *data;
    trailer *trailer;
    size_t trailer_bytes, block_count;
    pthread_mutex_t write_mutex;
    pthread_mutex_t mutex; // protects the members below
    pthread_cond_t changed;
    uint64_t *claimed; // bits, by block
    size_t claims;     // their number, and that of blocks that are fetched again
    size_t next;       // blocks before it are present or claimed
    int users;         // the opener, and works that have not ended
    bool is_filling;   // this process has the lock, and fetches all blocks
    int fill_lock;     // -1: the file system has no locks, or it is not held
    int fillers;       // works that do it
    int fills_due;     // works to begin after the mutex is released
    bool is_compare_due;
    bool is_closed, has_changed;
    bool is_compared;  // this process has begun to compare, which it does once
    bool is_comparing; // and has not ended it
};

// --- The file ------------------------------------------------------------------------------------

static size_t words_of(size_t blocks)
{
    return (blocks + WORD_BITS - 1) / WORD_BITS;
}

// The trailer begins at a multiple of the largest page that processors have.
static uint64_t trailer_offset(uint64_t size)
{
    return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

// The trailer gets its room now: later, on a full disk, its memory could not be written.
static bel_status *make_holes(void *user, const char *path, int descriptor)
{
    const bel_partial *p = user;
    const uint64_t head[] = {INCOMPLETE, (uint64_t)bel_clock_wall()};
    off_t at = (off_t)trailer_offset(p->info.size_bytes);
    int error = posix_fallocate(descriptor, at, (off_t)p->trailer_bytes);
    if (error != 0) return bel_file_error(error, "extend", path);
    if (pwrite(descriptor, head, sizeof head, at) != (ssize_t)sizeof head)
        return bel_file_error(errno, "write", path);
    return NULL;
}

static bel_status *open_file(bel_partial *p, int generation)
{
    enum { PATIENCE_SECS = 60 };
    char *name = bel_strf("partial 1\n%s\n%s\n%llu\n%d", p->url, p->info.tag,
                          (unsigned long long)p->info.size_bytes, generation);
    const bel_cache_request request = {
        .name = name,
        .source = p->url,
        .doing = "being copied",
        .size_bytes = p->info.size_bytes,
        .patience_secs = PATIENCE_SECS,
        .writable = true,
        .make = make_holes,
        .user = p,
    };
    bel_status *status = bel_cache_open(&request, &p->file);
    bel_free(name);
    return status;
}

static bel_status *map_file(bel_partial *p)
{
    int descriptor = p->file.descriptor;
    void *data = mmap(NULL, (size_t)p->info.size_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return bel_file_error(errno, "map", p->file.path);
    p->data = data;
    void *rest = mmap(NULL, p->trailer_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                      (off_t)trailer_offset(p->info.size_bytes));
    if (rest == MAP_FAILED) return bel_file_error(errno, "map", p->file.path);
    p->trailer = rest;
    return NULL;
}

static void close_file(bel_partial *p)
{
    if (p->data != NULL) munmap((void *)(uintptr_t)p->data, (size_t)p->info.size_bytes);
    if (p->trailer != NULL) munmap(p->trailer, p->trailer_bytes);
    bel_host_file_close(&p->file);
    p->data = NULL;
    p->trailer = NULL;
}

// Locks the file beside the copy. Returns false if another process holds it, or on an error.
static bool lock_fill(bel_partial *p)
{
    char *path = bel_strf("%s.fill", p->file.path);
    bel_status *status = bel_linux_lock(path, 0, &p->fill_lock);
    bool mine = status == NULL;
    bel_status_ignore(status); // a reader that needs bytes fetches them
    bel_free(path);
    return mine;
}

// A process that waits at the removed file gets its lock, and also fetches all blocks: the bytes
// are the same.
static void unlock_fill(bel_partial *p)
{
    char *path = bel_strf("%s.fill", p->file.path);
    (void)unlink(path);
    bel_linux_unlock(p->fill_lock);
    p->fill_lock = -1;
    bel_free(path);
}

static bool is_present(const bel_partial *p, size_t block)
{
    uint64_t word =
        atomic_load_explicit(&p->trailer->present[block / WORD_BITS], memory_order_acquire);
    return (word >> block % WORD_BITS & 1) != 0;
}

static bool is_whole(const bel_partial *p)
{
    for (size_t b = 0; b < p->block_count; b += WORD_BITS) {
        size_t left = p->block_count - b;
        uint64_t all = left < WORD_BITS ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
        if (atomic_load(&p->trailer->present[b / WORD_BITS]) != all) return false;
    }
    return true;
}

// --- Fetching ------------------------------------------------------------------------------------

typedef struct run {
    size_t first, count; // blocks
} run;

static bool is_claimed(const bel_partial *p, size_t block)
{
    return (p->claimed[block / WORD_BITS] >> block % WORD_BITS & 1) != 0;
}

// Claims absent blocks from `first` on, before `end` and at most `most`; the count may be 0.
static run claim(bel_partial *p, size_t first, size_t end, size_t most)
{
    run r = {first, 0};
    while (r.count < most && first + r.count < end) {
        size_t block = first + r.count;
        if (is_present(p, block) || is_claimed(p, block)) break;
        p->claimed[block / WORD_BITS] |= UINT64_C(1) << block % WORD_BITS;
        r.count++;
    }
    p->claims += r.count;
    return r;
}

static bel_status *fetch(bel_partial *p, run r, bool *out_changed)
{
    uint64_t offset = (uint64_t)r.first * BLOCK_BYTES, left = p->info.size_bytes - offset;
    size_t size = r.count * BLOCK_BYTES;
    if (size > left) size = (size_t)left;
    bel_file_range range = {p->file.descriptor, offset, p->file.path, &p->write_mutex};
    bel_status *status = bel_object_read_state(&p->object, p->info.tag, offset, size,
                                               bel_file_range_take, &range, out_changed);
    return bel_cache_explain(status, p->url, p->info.size_bytes, "being copied");
}

static void fill(void *context);
static void compare(void *context);

// Releases the mutex, and begins the works that are due. Without threads a work runs at once, so no
// mutex may be held.
static void release(bel_partial *p)
{
    int fills = p->fills_due;
    bool compares = p->is_compare_due;
    p->users += fills + (compares ? 1 : 0);
    p->fills_due = 0;
    p->is_compare_due = false;
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < fills; i++)
        bel_store_begin_low(fill, p);
    if (compares) bel_store_begin_low(compare, p);
}

// Under the mutex: after the last fetch the process that fetches all blocks compares them, or lets
// another one continue.
static void settle(bel_partial *p)
{
    if (!p->is_filling || p->fillers > 0 || p->claims > 0 || p->is_compared) return;
    if (!p->is_closed && is_whole(p)) {
        p->is_compared = p->is_comparing = p->is_compare_due = true;
    } else {
        p->is_filling = false;
        unlock_fill(p);
    }
}

// Under the mutex.
static void set_present(bel_partial *p, run r)
{
    for (size_t b = r.first; b < r.first + r.count; b++)
        atomic_fetch_or_explicit(&p->trailer->present[b / WORD_BITS], UINT64_C(1) << b % WORD_BITS,
                                 memory_order_release);
}

// Under the mutex: ends a claim.
static void end_claim(bel_partial *p, run r)
{
    for (size_t b = r.first; b < r.first + r.count; b++)
        p->claimed[b / WORD_BITS] &= ~(UINT64_C(1) << b % WORD_BITS);
    p->claims -= r.count;
    settle(p);
    pthread_cond_broadcast(&p->changed);
}

// Fetches claimed blocks, and ends the claim.
static bel_status *fetch_claimed(bel_partial *p, run r)
{
    bool is_changed;
    bel_status *status = fetch(p, r, &is_changed);
    pthread_mutex_lock(&p->mutex);
    if (status == NULL) set_present(p, r);
    if (status != NULL && r.first < p->next) p->next = r.first;
    p->has_changed = p->has_changed || is_changed;
    end_claim(p, r);
    release(p);
    return status;
}

// Fetches a block that another thread has claimed for long. It counts as one more claim, which the
// caller has noted: no bytes may be written while they are compared.
static bel_status *fetch_again(bel_partial *p, size_t block)
{
    bool is_changed;
    run r = {block, 1};
    bel_status *status = fetch(p, r, &is_changed);
    pthread_mutex_lock(&p->mutex);
    if (status == NULL) set_present(p, r);
    p->has_changed = p->has_changed || is_changed;
    p->claims--;
    settle(p);
    pthread_cond_broadcast(&p->changed);
    release(p);
    return status;
}

static void leave(bel_partial *p)
{
    pthread_mutex_lock(&p->mutex);
    bool last = --p->users == 0;
    pthread_mutex_unlock(&p->mutex);
    if (!last) return;
    close_file(p);
    bel_object_close(&p->object);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    pthread_mutex_destroy(&p->write_mutex);
    bel_free(p->claimed);
    bel_free(p->url);
    bel_free(p);
}

// --- Fetching all blocks -------------------------------------------------------------------------

// Works that this process may still begin, for all copies.
static atomic_int fill_room = FILLS;

// Takes up to `most` of them. Returns their number.
static int take_fills(int most)
{
    int room = atomic_load(&fill_room), taken;
    do {
        taken = room < most ? room : most;
    } while (!atomic_compare_exchange_weak(&fill_room, &room, room - taken));
    return taken;
}

// Under the mutex: the next blocks to fetch; none if all others are present or claimed.
static run next_run(bel_partial *p)
{
    run r = {0, 0};
    while (p->next < p->block_count && r.count == 0) {
        r = claim(p, p->next, p->block_count, FILL_BLOCKS);
        p->next += r.count > 0 ? r.count : 1;
    }
    return r;
}

static void fill(void *context)
{
    bel_partial *p = context;
    pthread_mutex_lock(&p->mutex);
    run r = p->is_closed ? (run){0, 0} : next_run(p);
    pthread_mutex_unlock(&p->mutex);
    bel_status *status = r.count > 0 ? fetch_claimed(p, r) : NULL;
    bool more = status == NULL && r.count > 0;
    bel_status_ignore(status); // a reader that needs these bytes fetches them, and has the error
    pthread_mutex_lock(&p->mutex);
    if (more) {
        p->fills_due++;
    } else {
        p->fillers--;
        (void)atomic_fetch_add(&fill_room, 1);
    }
    settle(p);
    release(p);
    leave(p);
}

// Begins to fetch all blocks, or only to compare those of a whole copy, unless another process
// does, or other copies have all works of this one. The mutex is held, and then released by
// `release`.
static void begin_fill(bel_partial *p)
{
    bool wanted = !p->is_filling && !p->is_closed && !p->is_compared &&
                  atomic_load(&p->trailer->state) == INCOMPLETE;
    if (!wanted) return;
    int works = take_fills(is_whole(p) ? 1 : WIDTH);
    if (works == 0 || !lock_fill(p)) {
        (void)atomic_fetch_add(&fill_room, works);
        return;
    }
    p->is_filling = true;
    p->next = 0;
    p->fillers = p->fills_due = works;
}

// Asks for the checksums, of which a store may keep none. Returns false if it does not answer, or
// has another state of the object now.
static bool ask_for_sums(const bel_partial *p, bel_object_sums *out_sums)
{
    bel_store_info info = {0};
    bel_status *status = bel_object_stat(&p->object, &info, out_sums);
    bool answers = status == NULL && strcmp(info.tag, p->info.tag) == 0;
    bel_status_ignore(status); // bel_partial_finish tells its caller
    return answers;
}

// Compares all bytes with the checksums that the store keeps. Returns false if they differ.
static bool matches(bel_partial *p, const bel_object_sums *sums, bool *out_closed)
{
    enum { PIECE = 1 << 20 };
    char md5[BEL_HEX_BYTES] = "";
    uint32_t crc32c = 0;
    uint64_t crc64 = 0;
    bool has_md5 = sums->md5[0] != '\0';
    bel_digest *digest = has_md5 ? bel_digest_create(BEL_DIGEST_MD5) : NULL;
    *out_closed = false;
    for (uint64_t at = 0; at < p->info.size_bytes && !*out_closed; at += PIECE) {
        uint64_t left = p->info.size_bytes - at;
        size_t size = left < PIECE ? (size_t)left : PIECE;
        if (has_md5) bel_digest_update(digest, p->data + at, size);
        if (sums->has_crc32c) crc32c = bel_crc32c(crc32c, p->data + at, size);
        if (sums->has_crc64) crc64 = bel_crc64_nvme(crc64, p->data + at, size);
        pthread_mutex_lock(&p->mutex);
        *out_closed = p->is_closed;
        pthread_mutex_unlock(&p->mutex);
    }
    if (has_md5) bel_digest_finish_hex(digest, md5);
    return (!has_md5 || strcmp(md5, sums->md5) == 0) &&
           (!sums->has_crc32c || crc32c == sums->crc32c) &&
           (!sums->has_crc64 || crc64 == sums->crc64);
}

static void compare(void *context)
{
    bel_partial *p = context;
    bel_object_sums sums = {0};
    if (ask_for_sums(p, &sums)) {
        bool closed, good = matches(p, &sums, &closed);
        if (!closed) atomic_store(&p->trailer->state, good ? WHOLE : DAMAGED);
    }
    pthread_mutex_lock(&p->mutex);
    p->is_filling = p->is_comparing = false;
    unlock_fill(p); // a later job compares a copy whose checksum was not known
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    leave(p);
}

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

bel_status *bel_partial_check(bel_partial *p)
{
    pthread_mutex_lock(&p->mutex);
    bool changed = p->has_changed;
    pthread_mutex_unlock(&p->mutex);
    if (changed) return bel_object_changed(&p->object);
    if (atomic_load(&p->trailer->state) != DAMAGED) return NULL;
    char since[TIME_BYTES];
    return BEL_ERR(BEL_DATA_LOSS,
                   "%s: GET: the bytes do not match their checksum; hint: checkpoints and caches "
                   "that were made of them since %s are not to be used: remove them",
                   p->url, begin_text(p, since));
}

bel_status *bel_partial_finish(bel_partial *p, int64_t deadline_ns, bool *out_compared)
{
    enum { LOOK_NS = 100000000 }; // the process that compares may be another one
    pthread_mutex_lock(&p->mutex);
    for (int64_t now = bel_clock_ns(); now < deadline_ns && !bel_end_requested();
         now = bel_clock_ns()) {
        bool over = p->has_changed || (p->is_compared && !p->is_comparing);
        if (over || atomic_load(&p->trailer->state) != INCOMPLETE) break;
        begin_fill(p);
        release(p);
        pthread_mutex_lock(&p->mutex);
        int64_t look = now + LOOK_NS;
        (void)bel_cond_wait_until(&p->changed, &p->mutex, look < deadline_ns ? look : deadline_ns);
    }
    pthread_mutex_unlock(&p->mutex);
    uint64_t now_is = atomic_load(&p->trailer->state);
    *out_compared = now_is == WHOLE;
    return now_is == DAMAGED ? bel_partial_check(p) : NULL;
}

// Fetches claimed blocks for a reader. The others follow after that, so that the first record does
// not share the network with them.
static bel_status *fetch_for_reader(bel_partial *p, run r)
{
    BEL_TRY(fetch_claimed(p, r));
    pthread_mutex_lock(&p->mutex);
    begin_fill(p);
    release(p);
    return NULL;
}

// Fetches an absent block and those after it, before `end`, or waits for the thread that does.
static bel_status *bring(bel_partial *p, size_t block, size_t end)
{
    enum { WAIT_NS = 2000000000 };
    int64_t until = bel_clock_ns() + WAIT_NS;
    bool waits = true;
    pthread_mutex_lock(&p->mutex);
    while (waits && !is_present(p, block) && is_claimed(p, block))
        waits = bel_cond_wait_until(&p->changed, &p->mutex, until);
    run r = claim(p, block, end, RUN_BLOCKS);
    bool again = r.count == 0 && !is_present(p, block) && !waits;
    if (again) p->claims++;
    release(p);
    if (again) return fetch_again(p, block);
    return r.count > 0 ? fetch_for_reader(p, r) : NULL;
}

static run blocks_of(uint64_t offset, uint64_t size)
{
    size_t first = (size_t)(offset / BLOCK_BYTES);
    return (run){first, size > 0 ? (size_t)((offset + size - 1) / BLOCK_BYTES) + 1 - first : 0};
}

bel_status *bel_partial_need(bel_partial *p, uint64_t offset, uint64_t size)
{
    run r = blocks_of(offset, size);
    for (size_t b = r.first; b < r.first + r.count; b++)
        while (!is_present(p, b))
            BEL_TRY(bring(p, b, r.first + r.count));
    return NULL;
}

typedef struct wanted {
    bel_partial *partial;
    run blocks;
} wanted;

static void fetch_wanted(void *context)
{
    wanted *w = context;
    bel_partial *p = w->partial;
    pthread_mutex_lock(&p->mutex);
    bool closed = p->is_closed;
    if (closed) end_claim(p, w->blocks); // no reader waits for it
    release(p);
    if (!closed) bel_status_ignore(fetch_for_reader(p, w->blocks)); // the reader tries again
    leave(p);
    bel_free(w);
}

void bel_partial_want(bel_partial *p, uint64_t offset, uint64_t size)
{
    run all = blocks_of(offset, size);
    for (size_t b = all.first; b < all.first + all.count; b++) {
        if (is_present(p, b)) continue;
        pthread_mutex_lock(&p->mutex);
        run r = claim(p, b, all.first + all.count, RUN_BLOCKS);
        if (r.count > 0) p->users++;
        release(p);
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

// RESOURCE_EXHAUSTED: the disk has no room for the blocks that are absent.
static bel_status *check_room(bel_partial *p)
{
    struct statvfs disk;
    uint64_t absent = 0;
    for (size_t b = 0; b < p->block_count; b++)
        absent += is_present(p, b) ? 0 : BLOCK_BYTES;
    if (fstatvfs(p->file.descriptor, &disk) != 0) return NULL; // then writing finds it
    if ((uint64_t)disk.f_bavail * disk.f_frsize >= absent) return NULL;
    return bel_cache_explain(bel_file_error(ENOSPC, "extend", p->file.path), p->url,
                             p->info.size_bytes, "being copied");
}

// Opens and maps the file. One that does not match its checksum is removed, and made anew; if other
// processes have it open, it stays, and the next generation is used.
static bel_status *open_copy(bel_partial *p)
{
    enum { TRIES = 8 };
    for (int i = 0, generation = 0; i < TRIES; i++) {
        char since[TIME_BYTES];
        BEL_TRY(open_file(p, generation));
        BEL_TRY(map_file(p));
        if (atomic_load(&p->trailer->state) != DAMAGED) return check_room(p);
        bel_log_write(BEL_LOG_WARN,
                      "%s: this host's copy does not match its checksum, and is made anew; "
                      "checkpoints and caches that were made of it since %s are not to be used: "
                      "remove them",
                      p->url, begin_text(p, since));
        char *path = bel_xstrdup(p->file.path);
        p->file.stays = false;
        close_file(p);
        if (bel_file_exists(path)) generation++;
        bel_free(path);
    }
    return BEL_ERR(BEL_DATA_LOSS, "%s: %d copies of it on this host do not match their checksum",
                   p->url, TRIES);
}

// Reads the first block. *out_suits: the rest may be read in ranges.
static bel_status *begin(bel_partial *p, bool *out_suits)
{
    enum { MAGIC_BYTES = 18 };
    p->block_count = (size_t)((p->info.size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
    size_t words = words_of(p->block_count);
    p->trailer_bytes = sizeof *p->trailer + words * sizeof *p->trailer->present;
    p->claimed = bel_xcalloc(words, sizeof *p->claimed);
    BEL_TRY(open_copy(p));
    run first = claim(p, 0, 1, 1); // no other thread knows it yet
    if (first.count > 0) BEL_TRY(fetch_claimed(p, first));
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
    pthread_mutex_init(&p->write_mutex, NULL);
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
        leave(p);
        *out_partial = NULL;
        return status;
    }
    pthread_mutex_lock(&p->mutex);
    if (is_whole(p)) begin_fill(p); // it may not have been compared yet
    release(p);
    *out_partial = p;
    return NULL;
}

void bel_partial_close(bel_partial *p)
{
    if (p == NULL) return;
    pthread_mutex_lock(&p->mutex);
    p->is_closed = true;
    pthread_mutex_unlock(&p->mutex);
    leave(p);
}
