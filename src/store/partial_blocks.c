// The file of a partial copy: the object's bytes, with holes, and from the next page on a trailer:
// its state, and a bit for each block that is present. A bit is set after its bytes are written.
// The file system's cache keeps both, so a kill at any moment leaves a correct copy. The name of a
// file of the cache has the machine's boot id, so a power failure leaves none.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/linux_disk.h"
#include "base/linux_lock.h"
#include "base/str.h"
#include "store/cache.h"
#include "store/download.h"
#include "store/partial_blocks.h"

enum { PAGE_BYTES = 1 << 16 };

// --- The file ------------------------------------------------------------------------------------

size_t bel_partial_words(size_t blocks)
{
    return (blocks + BEL_WORD_BITS - 1) / BEL_WORD_BITS;
}

// The trailer begins at a multiple of the largest page that processors have.
static uint64_t trailer_offset(uint64_t size)
{
    return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

// All gets its room now: later, on a full disk, the trailer's memory could not be written, and
// training would end after its first steps.
static bel_status *make_holes(void *user, const char *path, int descriptor)
{
    const bel_partial *p = user;
    const uint64_t head[] = {BEL_PARTIAL_LACKS, (uint64_t)bel_clock_wall()};
    off_t at = (off_t)trailer_offset(p->info.size_bytes);
    BEL_TRY(bel_linux_reserve(path, descriptor, p->info.size_bytes));
    int error = posix_fallocate(descriptor, at, (off_t)p->trailer_bytes);
    if (error != 0) return bel_file_error(error, "extend", path);
    if (pwrite(descriptor, head, sizeof head, at) != (ssize_t)sizeof head)
        return bel_file_error(errno, "write", path);
    return NULL;
}

static bel_status *open_file(bel_partial *p)
{
    enum { PATIENCE_SECS = 60 };
    char *name = bel_strf("partial 2\n%s\n%s\n%llu", p->url, p->info.tag,
                          (unsigned long long)p->info.size_bytes);
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

bel_status *bel_partial_open_file(bel_partial *p)
{
    BEL_TRY(open_file(p));
    return map_file(p);
}

void bel_partial_close_file(bel_partial *p)
{
    if (p->data != NULL) munmap((void *)(uintptr_t)p->data, (size_t)p->info.size_bytes);
    if (p->trailer != NULL) munmap(p->trailer, p->trailer_bytes);
    bel_host_file_close(&p->file);
    p->data = NULL;
    p->trailer = NULL;
}

bool bel_partial_lock_fill(bel_partial *p)
{
    char *path = bel_strf("%s.fill", p->file.path);
    bel_status *status = bel_linux_lock(path, 0, &p->fill_lock);
    bool mine = status == NULL;
    bel_status_ignore(status); // a reader that needs bytes fetches them
    bel_free(path);
    return mine;
}

void bel_partial_unlock_fill(bel_partial *p)
{
    char *path = bel_strf("%s.fill", p->file.path);
    (void)unlink(path);
    bel_linux_unlock(p->fill_lock);
    p->fill_lock = -1;
    bel_free(path);
}

bool bel_partial_is_present(const bel_partial *p, size_t block)
{
    uint64_t word =
        atomic_load_explicit(&p->trailer->present[block / BEL_WORD_BITS], memory_order_acquire);
    return (word >> block % BEL_WORD_BITS & 1) != 0;
}

bool bel_partial_is_whole(const bel_partial *p)
{
    for (size_t b = 0; b < p->block_count; b += BEL_WORD_BITS) {
        size_t left = p->block_count - b;
        uint64_t all = left < BEL_WORD_BITS ? (UINT64_C(1) << left) - 1 : UINT64_MAX;
        if (atomic_load(&p->trailer->present[b / BEL_WORD_BITS]) != all) return false;
    }
    return true;
}

void bel_partial_set_present(bel_partial *p, bel_block_run r)
{
    for (size_t b = r.first; b < r.first + r.count; b++)
        atomic_fetch_or_explicit(&p->trailer->present[b / BEL_WORD_BITS],
                                 UINT64_C(1) << b % BEL_WORD_BITS, memory_order_release);
}

// --- Fetching ------------------------------------------------------------------------------------

bool bel_partial_is_claimed(const bel_partial *p, size_t block)
{
    return (p->claimed[block / BEL_WORD_BITS] >> block % BEL_WORD_BITS & 1) != 0;
}

bel_block_run bel_partial_claim(bel_partial *p, size_t first, size_t end, size_t most)
{
    bel_block_run r = {first, 0};
    while (r.count < most && first + r.count < end) {
        size_t block = first + r.count;
        if (bel_partial_is_present(p, block) || bel_partial_is_claimed(p, block)) break;
        p->claimed[block / BEL_WORD_BITS] |= UINT64_C(1) << block % BEL_WORD_BITS;
        r.count++;
    }
    p->claims += r.count;
    return r;
}

bel_status *bel_partial_fetch(bel_partial *p, bel_block_run r, bool *out_changed)
{
    uint64_t offset = (uint64_t)r.first * BEL_BLOCK_BYTES, left = p->info.size_bytes - offset;
    size_t size = r.count * BEL_BLOCK_BYTES;
    if (size > left) size = (size_t)left;
    bel_file_range range = {
        .descriptor = p->file.descriptor, .offset = offset, .path = p->file.path};
    bel_status *status = bel_object_read_state(&p->object, p->info.tag, offset, size,
                                               bel_file_range_take, &range, out_changed);
    status = bel_file_range_end(&range, status);
    return bel_cache_explain(status, p->url, p->info.size_bytes, "being copied");
}
