// Inner parts of partial copies (partial.h): the file with its blocks, and the works that fetch all
// of them.
#ifndef BELFRY_STORE_PARTIAL_BLOCKS_H
#define BELFRY_STORE_PARTIAL_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/host_file.h"
#include "store/object.h"
#include "store/partial.h"

enum { BEL_BLOCK_BYTES = 256 << 10, BEL_WORD_BITS = 64 };

typedef enum bel_partial_state {
    BEL_PARTIAL_LACKS,
    BEL_PARTIAL_WHOLE,
    BEL_PARTIAL_DAMAGED
} bel_partial_state;

typedef struct bel_partial_trailer {
    _Atomic uint64_t state;     // a bel_partial_state
    uint64_t begun_secs;        // since 1970
    _Atomic uint64_t present[]; // bits, by block
} bel_partial_trailer;

struct bel_partial {
    char *url;
    bel_object object;
    bel_store_info info;
    bel_host_file file;
    const char *data;
    bel_partial_trailer *trailer;
    size_t trailer_bytes, block_count;
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

// Consecutive blocks.
typedef struct bel_block_run {
    size_t first, count;
} bel_block_run;

// --- The file (partial_blocks.c) -----------------------------------------------------------------

bel_status *bel_partial_open_file(bel_partial *p) BEL_MUST_USE;
void bel_partial_close_file(bel_partial *p);
size_t bel_partial_words(size_t blocks); // for the bits of blocks

// Locks the file beside the copy. Returns false if another process holds it, or on an error.
bool bel_partial_lock_fill(bel_partial *p);
// A process that waits at the removed file gets its lock, and also fetches all blocks: the bytes
// are the same.
void bel_partial_unlock_fill(bel_partial *p);

bool bel_partial_is_present(const bel_partial *p, size_t block);
bool bel_partial_is_whole(const bel_partial *p);
// Under the mutex.
void bel_partial_set_present(bel_partial *p, bel_block_run r);
bool bel_partial_is_claimed(const bel_partial *p, size_t block);
// Under the mutex: claims absent blocks from `first` on, before `end` and at most `most`; the count
// may be 0.
bel_block_run bel_partial_claim(bel_partial *p, size_t first, size_t end, size_t most);
// Reads blocks from the store and writes them into the file. *out_changed: the error is that the
// object has another state now.
bel_status *bel_partial_fetch(bel_partial *p, bel_block_run r, bool *out_changed) BEL_MUST_USE;

// --- Works (partial_fill.c) ----------------------------------------------------------------------

// Releases the mutex, and begins the works that are due. Without threads a work runs at once, so no
// mutex may be held.
void bel_partial_release(bel_partial *p);
// Under the mutex: ends a claim.
void bel_partial_end_claim(bel_partial *p, bel_block_run r);
// Fetches claimed blocks, and ends the claim.
bel_status *bel_partial_fetch_claimed(bel_partial *p, bel_block_run r) BEL_MUST_USE;
// Fetches a block that another thread has claimed for long. It counts as one more claim, which the
// caller has noted: no bytes may be written while they are compared.
bel_status *bel_partial_fetch_again(bel_partial *p, size_t block) BEL_MUST_USE;
// Begins to fetch all blocks, or only to compare those of a whole copy, unless another process
// does, or other copies have all works of this one. The mutex is held, and then released by
// bel_partial_release.
void bel_partial_begin_fill(bel_partial *p);
// Ends the use by the caller; the last user frees it.
void bel_partial_leave(bel_partial *p);

#endif
