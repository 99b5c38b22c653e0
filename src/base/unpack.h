// Unpacking of data in memory: gzip, also with several members, and zlib streams. The result is in
// memory, too, or, if that is too much, is passed in pieces. Bytes after the last gzip member that
// begin no member are ignored, as gzip does.
#ifndef BELFRY_BASE_UNPACK_H
#define BELFRY_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Detect the format by the first bytes: gzip has a magic; a zlib stream only has a plausible
// header, as one of 32 other files has by chance.
bool bel_is_gzip(const void *data, size_t size);
bool bel_is_zlib(const void *data, size_t size);

// Unpacks all of it, followed by one zero byte; free with bel_free. DATA_LOSS, with `path` first:
// truncated or corrupt, checksums included.
bel_status *bel_unpack(const char *path, const void *packed, size_t size, char **out_data,
                       size_t *out_size) BEL_MUST_USE;

// The same for at most `most` bytes: *out_data is NULL if there are more, or if the packed size or
// the size at its end indicates that, possibly wrongly.
bel_status *bel_unpack_at_most(const char *path, const void *packed, size_t size, size_t most,
                               char **out_data, size_t *out_size) BEL_MUST_USE;

// Passes the result to `take`, piece by piece in order: little memory, but slower. Returns errors
// of `take` unchanged.
typedef bel_status *bel_unpack_take(void *user, const void *data, size_t size);
bel_status *bel_unpack_to(const char *path, const void *packed, size_t size, bel_unpack_take *take,
                          void *user) BEL_MUST_USE;

#endif
