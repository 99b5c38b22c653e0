// Download of an object into an open file, for files and for copies.
#ifndef BELFRY_STORE_DOWNLOAD_H
#define BELFRY_STORE_DOWNLOAD_H

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

// Range of a file that takes the pieces of a body, from `offset` on. The pieces are gathered: a
// write of many pages costs the kernel half of what writes of four pages cost.
typedef struct bel_file_range {
    int descriptor;
    uint64_t offset;
    const char *path; // names the file in errors
    char *gathered;   // bytes from `at` on that are not written yet
    uint64_t at;
    size_t size, capacity;
} bel_file_range;

// A bel_http_take whose context is a bel_file_range. Each try of a request begins at 0.
bel_status *bel_file_range_take(void *taker, uint64_t at, const void *data,
                                size_t size) BEL_MUST_USE;

// Writes what is gathered, unless `status` is an error, which it returns then.
bel_status *bel_file_range_end(bel_file_range *range, bel_status *status) BEL_MUST_USE;

#endif
