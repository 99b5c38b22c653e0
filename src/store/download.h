// Download of an object into an open file, for files and for copies.
#ifndef BELFRY_STORE_DOWNLOAD_H
#define BELFRY_STORE_DOWNLOAD_H

#include <pthread.h>

#include "store/http.h"
#include "store/store.h"

// Writes the object into the file `descriptor`, whose earlier content is dropped. With `tag`, only
// that state of the object. Ranges are read several at once, and the bytes are compared with the
// checksum that the store reports. An object of at most BEL_DOWNLOAD_RANGE_BYTES is read by the
// calling thread only. `path` names the file in errors. *out_info may be NULL. Errors: those of
// bel_store_read and of files.
enum { BEL_DOWNLOAD_RANGE_BYTES = 8 << 20 };
bel_status *bel_download_to(const char *url, const char *tag, const char *path, int descriptor,
                            bel_store_info *out_info) BEL_MUST_USE;

// Takes pieces of a body into a file, from `offset` on. `taker` is a bel_file_range.
typedef struct bel_file_range {
    int descriptor;
    uint64_t offset;
    const char *path;       // names the file in errors
    pthread_mutex_t *mutex; // held to write to the file: in the kernel writers would spin
} bel_file_range;
bel_status *bel_file_range_take(void *taker, uint64_t at, const void *data,
                                size_t size) BEL_MUST_USE;

#endif
