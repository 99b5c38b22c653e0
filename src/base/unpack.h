// Packed data that lies in memory as a whole: gzip, also of several members one behind the other,
// and zlib streams. What it becomes is in memory as well, or, where that is too much, handed over
// in pieces. What stands behind the last gzip member and begins none is left out, as gzip does.
#ifndef BELFRY_BASE_UNPACK_H
#define BELFRY_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// What its first bytes say: gzip has a magic, a zlib stream only a header that fits, as one of 32
// files may by chance.
bool bel_is_gzip(const void *data, size_t size);
bool bel_is_zlib(const void *data, size_t size);

// Unpacks it all, with one zero byte behind it; free with bel_free. DATA_LOSS, with `path` in
// front: truncated or corrupt, checksums included.
bel_status *bel_unpack(const char *path, const void *packed, size_t size, char **out_data,
                       size_t *out_size) BEL_MUST_USE;

// The same for at most `most` bytes: *out_data is NULL when there are more, or when the packed
// bytes' number or end says so, which need not be right.
bel_status *bel_unpack_at_most(const char *path, const void *packed, size_t size, size_t most,
                               char **out_data, size_t *out_size) BEL_MUST_USE;

// Gives what it becomes to `take`, piece by piece in its order: little memory, but slower. Returns
// what `take` has failed with as it is.
typedef bel_status *bel_unpack_take(void *user, const void *data, size_t size);
bel_status *bel_unpack_to(const char *path, const void *packed, size_t size, bel_unpack_take *take,
                          void *user) BEL_MUST_USE;

#endif
