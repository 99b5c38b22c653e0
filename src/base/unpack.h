// Packed data that lies in memory as a whole: gzip, also of several members one behind the other,
// and zlib streams, through libdeflate.
#ifndef BELFRY_BASE_UNPACK_H
#define BELFRY_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

// What its first bytes say: gzip has a magic, a zlib stream only a header that fits, as one of 32
// files may by chance.
bool bel_is_gzip(const void *data, size_t size);
bool bel_is_zlib(const void *data, size_t size);

// Unpacks it all, with one zero byte behind it; free with bel_free. What stands behind the last
// gzip member and begins none is left out, as gzip does. DATA_LOSS, with `path` in front: truncated
// or corrupt, checksums included.
bel_status *bel_unpack(const char *path, const void *packed, size_t size, char **out_data,
                       size_t *out_size) BEL_MUST_USE;

#endif
