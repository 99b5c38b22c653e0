// Fetching of all blocks of a partial copy, and their comparison. One process of a host, which
// locks a file beside the copy, fetches the blocks that no reader needed, in order, by WIDTH works
// that each begin the next one when they end. They have a low priority, and a process has at most
// FILLS of them, so that bytes that a reader waits for come first. A claim of blocks that ends may
// end the fetching, so claims end here, too.
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "store/crypto.h"
#include "store/partial_blocks.h"

enum { FILL_BLOCKS = 8, WIDTH = 8, FILLS = 16 }; // blocks in one request; works

static void fill(void *context);
static void compare(void *context);

void bel_partial_release(bel_partial *p)
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
    if (!p->is_closed && bel_partial_is_whole(p)) {
        p->is_compared = p->is_comparing = p->is_compare_due = true;
    } else {
        p->is_filling = false;
        bel_partial_unlock_fill(p);
    }
}

void bel_partial_end_claim(bel_partial *p, bel_block_run r)
{
    for (size_t b = r.first; b < r.first + r.count; b++)
        p->claimed[b / BEL_WORD_BITS] &= ~(UINT64_C(1) << b % BEL_WORD_BITS);
    p->claims -= r.count;
    settle(p);
    pthread_cond_broadcast(&p->changed);
}

bel_status *bel_partial_fetch_claimed(bel_partial *p, bel_block_run r)
{
    bool is_changed;
    bel_status *status = bel_partial_fetch(p, r, &is_changed);
    pthread_mutex_lock(&p->mutex);
    if (status == NULL) bel_partial_set_present(p, r);
    if (status != NULL && r.first < p->next) p->next = r.first;
    p->has_changed = p->has_changed || is_changed;
    bel_partial_end_claim(p, r);
    bel_partial_release(p);
    return status;
}

bel_status *bel_partial_fetch_again(bel_partial *p, size_t block)
{
    bool is_changed;
    bel_block_run r = {block, 1};
    bel_status *status = bel_partial_fetch(p, r, &is_changed);
    pthread_mutex_lock(&p->mutex);
    if (status == NULL) bel_partial_set_present(p, r);
    p->has_changed = p->has_changed || is_changed;
    p->claims--;
    settle(p);
    pthread_cond_broadcast(&p->changed);
    bel_partial_release(p);
    return status;
}

void bel_partial_leave(bel_partial *p)
{
    pthread_mutex_lock(&p->mutex);
    bool last = --p->users == 0;
    pthread_mutex_unlock(&p->mutex);
    if (!last) return;
    bel_partial_close_file(p);
    bel_object_close(&p->object);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    bel_free(p->claimed);
    bel_free(p->url);
    bel_free(p);
}

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
static bel_block_run next_run(bel_partial *p)
{
    bel_block_run r = {0, 0};
    while (p->next < p->block_count && r.count == 0) {
        r = bel_partial_claim(p, p->next, p->block_count, FILL_BLOCKS);
        p->next += r.count > 0 ? r.count : 1;
    }
    return r;
}

static void fill(void *context)
{
    bel_partial *p = context;
    pthread_mutex_lock(&p->mutex);
    bel_block_run r = p->is_closed ? (bel_block_run){0, 0} : next_run(p);
    pthread_mutex_unlock(&p->mutex);
    bel_status *status = r.count > 0 ? bel_partial_fetch_claimed(p, r) : NULL;
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
    bel_partial_release(p);
    bel_partial_leave(p);
}

void bel_partial_begin_fill(bel_partial *p)
{
    bool wanted = !p->is_filling && !p->is_closed && !p->is_compared &&
                  atomic_load(&p->trailer->state) == BEL_PARTIAL_LACKS;
    if (!wanted) return;
    int works = take_fills(bel_partial_is_whole(p) ? 1 : WIDTH);
    if (works == 0 || !bel_partial_lock_fill(p)) {
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
        if (!closed)
            atomic_store(&p->trailer->state, good ? BEL_PARTIAL_WHOLE : BEL_PARTIAL_DAMAGED);
    }
    pthread_mutex_lock(&p->mutex);
    p->is_filling = p->is_comparing = false;
    bel_partial_unlock_fill(p); // a later job compares a copy whose checksum was not known
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mutex);
    bel_partial_leave(p);
}
