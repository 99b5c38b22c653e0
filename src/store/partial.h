// Partial copy of a large object on this host: it can be read before it is whole. Readers name the
// bytes that they need. Those that are absent are fetched at once, and the rest after the first of
// them, in the object's order. So the first record of an object of any size costs a few requests.
//
// All processes of the host that use the object share the copy and its list of present blocks. One
// of them fetches the rest. If it is killed, another one continues when it misses bytes. A whole
// copy stays in this host's cache (store/cache.h). Its bytes are compared with the checksum that
// the store keeps when the last one is here, or by the next process that opens the copy. Until then
// only lengths and tags are compared: bel_partial_finish waits for it.
#ifndef BELFRY_STORE_PARTIAL_H
#define BELFRY_STORE_PARTIAL_H

#include "store/store.h"

// Objects of this size and more are copied in part, in stores that have tags and serve ranges.
#define BEL_PARTIAL_BYTES (UINT64_C(64) << 20)

// Thread-safe.
typedef struct bel_partial bel_partial;

// Opens the copy of an object's present state, with at least its first block. *out_partial is NULL
// if the object is smaller, packed, of a web server, or of a store without ranges. *out_info: the
// object's state in each case. Errors: those of bel_store_read and bel_cache_open.
bel_status *bel_partial_open(const char *url, bel_partial **out_partial,
                             bel_store_info *out_info) BEL_MUST_USE;

// True if size and tag stand for the object's bytes, whether its copy is partial or not: it is
// large, and in a store with tags. This depends on nothing that a process has learned.
bool bel_partial_is_named(const char *url, const bel_store_info *info);

// Returns at once, also while bytes are being fetched; accepts NULL.
void bel_partial_close(bel_partial *partial);

// The object's bytes. Those that were not needed before may be zeros.
const char *bel_partial_data(const bel_partial *partial);

// Waits until the range, which is in the object, is present. DATA_LOSS: the object has changed, or
// the copy does not match its checksum. Errors of bel_store_read and of files.
bel_status *bel_partial_need(bel_partial *partial, uint64_t offset, uint64_t size) BEL_MUST_USE;

// Begins to fetch a range, and returns at once. bel_partial_need waits for it and has its error.
void bel_partial_want(bel_partial *partial, uint64_t offset, uint64_t size);

// Waits until all bytes are present and compared, at most until `deadline_ns` (bel_clock_ns) or a
// request to end. *out_compared: they match the checksum, or the store has none. False: they were
// not compared. DATA_LOSS: they do not match.
bel_status *bel_partial_finish(bel_partial *partial, int64_t deadline_ns,
                               bool *out_compared) BEL_MUST_USE;

// DATA_LOSS, as above, without waiting.
bel_status *bel_partial_check(bel_partial *partial) BEL_MUST_USE;

#endif
