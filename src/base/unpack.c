// Unpacker of gzip and zlib streams. libdeflate unpacks a stream in one call, about twice as fast
// as zlib does piece by piece, but needs memory for all of it. It therefore unpacks to memory, and
// zlib unpacks in pieces. A gzip stream ends with its size, modulo 2^32; a zlib stream does not.
// Memory is therefore estimated, and a stream that needs more is unpacked again with twice as much.
// Claimed sizes are limited to what deflate can do, 1,032 times the packed size.
#define ZLIB_CONST // zlib may not change its input
#include "base/unpack.h"

#include <libdeflate.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"

enum { GZIP_LEAST = 18, MOST_RATIO = 1032, USUAL_RATIO = 4, SPARE = 64 };

static bel_status *corrupt_file(const char *path, bool gzip)
{
    return BEL_ERR(BEL_DATA_LOSS, "%s: %s stream is truncated or corrupt", path,
                   gzip ? "gzip" : "zlib");
}

static bel_status *no_memory(const char *path)
{
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: not enough memory to unpack it", path);
}

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

// --- Into memory ---------------------------------------------------------------------------------

typedef struct unpacking {
    struct libdeflate_decompressor *decompressor;
    bool gzip;
    char *data; // room for `capacity` bytes and a zero
    size_t used, capacity, most;
} unpacking;

// Estimates the unpacked size of a stream of `size` bytes.
static size_t guess(const unpacking *u, const unsigned char *packed, size_t size)
{
    size_t most = size > SIZE_MAX / 2 / MOST_RATIO ? SIZE_MAX / 2 : size * MOST_RATIO;
    size_t wanted = size > SIZE_MAX / 2 / USUAL_RATIO ? SIZE_MAX / 2 : size * USUAL_RATIO;
    if (u->gzip && size >= GZIP_LEAST) {
        const unsigned char *tail = packed + size - 4;
        uint32_t said =
            tail[0] | (uint32_t)tail[1] << 8 | (uint32_t)tail[2] << 16 | (uint32_t)tail[3] << 24;
        if (said >= size / 2) wanted = said; // else the tail is another stream's, or wrapped around
    }
    return (wanted < most ? wanted : most) + SPARE;
}

static void make_room(unpacking *u, size_t room)
{
    if (u->capacity - u->used >= room) return;
    u->capacity = u->used + room;
    u->data = bel_xrealloc(u->data, u->capacity + 1);
}

// Unpacks one gzip member or zlib stream at the beginning of `packed`. INSUFFICIENT_SPACE: it is
// larger than allowed, or probably so, and is then not tried.
static enum libdeflate_result unpack_one(unpacking *u, const unsigned char *packed, size_t size,
                                         size_t *out_taken)
{
    size_t room = guess(u, packed, size), left = u->most - u->used;
    if (room - SPARE > left) return LIBDEFLATE_INSUFFICIENT_SPACE;
    for (;;) {
        if (room > left) room = left;
        make_room(u, room);
        size_t made = 0;
        enum libdeflate_result result =
            (u->gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
                u->decompressor, packed, size, u->data + u->used, u->capacity - u->used, out_taken,
                &made);
        if (result == LIBDEFLATE_SUCCESS) u->used += made;
        if (result != LIBDEFLATE_INSUFFICIENT_SPACE || room == left) return result;
        room = room > left / 2 ? left : room * 2;
    }
}

bel_status *bel_unpack_at_most(const char *path, const void *packed, size_t size, size_t most,
                               char **out_data, size_t *out_size)
{
    const unsigned char *from = packed;
    unpacking u = {.decompressor = libdeflate_alloc_decompressor(),
                   .gzip = bel_is_gzip(packed, size),
                   .most = most < SIZE_MAX / 4 ? most : SIZE_MAX / 4};
    if (u.decompressor == NULL) return no_memory(path);
    enum libdeflate_result result = LIBDEFLATE_BAD_DATA;
    bool more = u.gzip || bel_is_zlib(packed, size);
    for (size_t taken = 0; more; from += taken, size -= taken) {
        result = unpack_one(&u, from, size, &taken);
        if (result != LIBDEFLATE_SUCCESS) break;
        more = u.gzip && bel_is_gzip(from + taken, size - taken);
    }
    libdeflate_free_decompressor(u.decompressor);
    *out_data = NULL;
    if (result != LIBDEFLATE_SUCCESS) {
        bel_free(u.data);
        return result == LIBDEFLATE_INSUFFICIENT_SPACE ? NULL : corrupt_file(path, u.gzip);
    }
    u.data[u.used] = '\0';
    *out_data = u.data;
    *out_size = u.used;
    return NULL;
}

bel_status *bel_unpack(const char *path, const void *packed, size_t size, char **out_data,
                       size_t *out_size)
{
    BEL_TRY(bel_unpack_at_most(path, packed, size, SIZE_MAX, out_data, out_size));
    return *out_data != NULL ? NULL : no_memory(path);
}

// --- In pieces -----------------------------------------------------------------------------------

// zlib counts its input in 32 bits, so a stream of gigabytes is passed in parts.
static bel_status *inflate_to(z_stream *stream, const char *path, bool gzip,
                              const unsigned char *packed, size_t size, bel_unpack_take *take,
                              void *user)
{
    enum { ROOM = 1 << 18, PART = 1 << 30 };
    unsigned char *made = bel_xmalloc(ROOM);
    bel_status *status = NULL;
    stream->next_in = packed;
    for (bool more = true; more && status == NULL;) {
        size_t left = size - (size_t)(stream->next_in - packed);
        stream->avail_in = left < PART ? (unsigned)left : PART;
        stream->next_out = made;
        stream->avail_out = ROOM;
        int result = inflate(stream, Z_NO_FLUSH);
        bool whole = result == Z_STREAM_END;
        left = size - (size_t)(stream->next_in - packed);
        // Without room left it returns Z_BUF_ERROR only if there is also no more input.
        if (result != Z_OK && !whole) {
            status = result == Z_MEM_ERROR ? no_memory(path) : corrupt_file(path, gzip);
            break;
        }
        status = take(user, made, ROOM - stream->avail_out);
        more = !whole || (gzip && bel_is_gzip(stream->next_in, left));
        if (whole && more) (void)inflateReset(stream); // the next member
    }
    bel_free(made);
    return status;
}

bel_status *bel_unpack_to(const char *path, const void *packed, size_t size, bel_unpack_take *take,
                          void *user)
{
    enum { WINDOW = 15, AND_GZIP = 16 };
    bool gzip = bel_is_gzip(packed, size);
    z_stream stream = {0};
    if (inflateInit2(&stream, gzip ? WINDOW + AND_GZIP : WINDOW) != Z_OK) return no_memory(path);
    bel_status *status = inflate_to(&stream, path, gzip, packed, size, take, user);
    (void)inflateEnd(&stream);
    return status;
}
