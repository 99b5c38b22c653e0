// libdeflate unpacks a stream in one call, about twice as fast as zlib does piece by piece, but
// must be given room for all of it. A gzip stream says its size, modulo 2^32, in its last bytes; a
// zlib stream does not. So room is guessed, and a stream that needs more is unpacked again with
// twice as much. What a stream can claim is bounded by what deflate can do, 1,032 times the packed
// size.
#include "base/unpack.h"

#include <libdeflate.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { GZIP_LEAST = 18, MOST_RATIO = 1032, USUAL_RATIO = 4, SPARE = 64 };

bool bel_is_gzip(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

// Method 8, a window of up to 32 KiB, no dictionary, and a check that the two bytes are a multiple
// of 31 (RFC 1950).
bool bel_is_zlib(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    if (size < 2 || (bytes[0] & 0x0f) != 8 || bytes[0] >> 4 > 7 || (bytes[1] & 0x20) != 0)
        return false;
    return (bytes[0] * 256 + bytes[1]) % 31 == 0;
}

typedef struct unpacking {
    struct libdeflate_decompressor *decompressor;
    bool gzip;
    char *data; // room for `capacity` bytes and a zero
    size_t used, capacity;
} unpacking;

// What a stream of `size` bytes most likely needs.
static size_t guess(const unpacking *u, const unsigned char *packed, size_t size)
{
    size_t most = size > SIZE_MAX / 2 / MOST_RATIO ? SIZE_MAX / 2 : size * MOST_RATIO;
    size_t wanted = size > SIZE_MAX / 2 / USUAL_RATIO ? SIZE_MAX / 2 : size * USUAL_RATIO;
    if (u->gzip && size >= GZIP_LEAST) {
        const unsigned char *tail = packed + size - 4;
        uint32_t said =
            tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
        if (said >= size / 2)
            wanted = said; // else the tail is not this stream's, or wrapped around
    }
    return (wanted < most ? wanted : most) + SPARE;
}

static void make_room(unpacking *u, size_t room)
{
    if (u->capacity - u->used >= room) return;
    u->capacity = u->used + room;
    u->data = bel_xrealloc(u->data, u->capacity + 1);
}

// One gzip member or zlib stream at the beginning of `packed`.
static enum libdeflate_result unpack_one(unpacking *u, const unsigned char *packed, size_t size,
                                         size_t *out_taken)
{
    size_t room = guess(u, packed, size);
    for (;;) {
        make_room(u, room);
        size_t made = 0;
        enum libdeflate_result result =
            (u->gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
                u->decompressor, packed, size, u->data + u->used, u->capacity - u->used, out_taken,
                &made);
        if (result == LIBDEFLATE_SUCCESS) u->used += made;
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE || room > SIZE_MAX / 4) return result;
        room *= 2;
    }
}

bel_status *bel_unpack(const char *path, const void *packed, size_t size, char **out_data,
                       size_t *out_size)
{
    const unsigned char *from = packed;
    unpacking u = {.decompressor = libdeflate_alloc_decompressor(),
                   .gzip = bel_is_gzip(packed, size)};
    if (u.decompressor == NULL) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: not enough memory to unpack it", path);
    }
    enum libdeflate_result result = LIBDEFLATE_BAD_DATA;
    bool more = u.gzip || bel_is_zlib(packed, size);
    for (size_t taken = 0; more; from += taken, size -= taken) {
        result = unpack_one(&u, from, size, &taken);
        if (result != LIBDEFLATE_SUCCESS) break;
        more = u.gzip && bel_is_gzip(from + taken, size - taken);
    }
    libdeflate_free_decompressor(u.decompressor);
    if (result != LIBDEFLATE_SUCCESS) {
        bel_free(u.data);
        return BEL_ERR(BEL_DATA_LOSS, "%s: %s stream is truncated or corrupt", path,
                       u.gzip ? "gzip" : "zlib");
    }
    u.data[u.used] = '\0';
    *out_data = u.data;
    *out_size = u.used;
    return NULL;
}
