// Pieces arrive in the order of their requests, because a stream keeps it. So a file is written
// from beginning to end, and its checksum is computed on the way. A few requests are outstanding at
// a time: enough to fill a network, with bounded memory at both ends. The first piece has the
// length of the file.
#include "fetch/fetch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/files.h"

enum { PIECE_BYTES = 4 << 20, UNDER_WAY = 4 };

struct bel_fetch {
    int64_t step;
    char *name;
    bel_file_writer *writer;
    int64_t size;  // -1: unknown yet
    int64_t asked; // end of the requested bytes
    int64_t got;
    uint32_t crc32c; // checksum of those bytes
};

bel_status *bel_fetch_begin(const char *folder, int64_t step, const char *name,
                            bel_fetch **out_fetch)
{
    bel_fetch *f = bel_xcalloc(1, sizeof *f);
    char *path = bel_path_join(folder, name);
    *f = (bel_fetch){.step = step, .name = bel_xstrdup(name), .size = -1};
    bel_status *status = bel_file_writer_open_beside(path, &f->writer);
    bel_free(path);
    if (status != NULL) {
        bel_fetch_destroy(f);
        return status;
    }
    *out_fetch = f;
    return NULL;
}

void bel_fetch_destroy(bel_fetch *fetch)
{
    if (fetch == NULL) return;
    if (fetch->writer != NULL) bel_file_writer_abandon(fetch->writer);
    bel_free(fetch->name);
    bel_free(fetch);
}

bool bel_fetch_next(bel_fetch *fetch, Bel__Fetch *out_request)
{
    int64_t most = fetch->size < 0 ? PIECE_BYTES : fetch->size;
    if (fetch->asked >= most || fetch->asked - fetch->got >= UNDER_WAY * (int64_t)PIECE_BYTES) {
        return false;
    }
    bel__fetch__init(out_request);
    out_request->step = fetch->step;
    out_request->file = fetch->name;
    out_request->offset = fetch->asked;
    fetch->asked += PIECE_BYTES;
    return true;
}

void bel_fetch_again(bel_fetch *fetch)
{
    fetch->asked = fetch->got;
}

bool bel_fetch_is_of(const bel_fetch *fetch, int64_t step, const char *name)
{
    return fetch != NULL && fetch->step == step && strcmp(fetch->name, name) == 0;
}

bel_status *bel_fetch_take(bel_fetch *fetch, const Bel__Piece *piece)
{
    if (piece->code != BEL_OK) {
        return BEL_ERR((bel_code)piece->code, "asked for %s of step %lld: %s", fetch->name,
                       (long long)fetch->step, piece->why);
    }
    if (piece->offset < fetch->got || piece->offset > fetch->got) return NULL; // repeated
    int64_t length = (int64_t)piece->data.len, left = piece->size - fetch->got;
    bool good = piece->size >= 0 && (fetch->size < 0 || piece->size == fetch->size) &&
                length == (left < PIECE_BYTES ? left : PIECE_BYTES);
    if (!good) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "malformed piece of %s: %lld bytes at %lld of a file of %lld", fetch->name,
                       (long long)length, (long long)piece->offset, (long long)piece->size);
    }
    fetch->size = piece->size;
    bel_file_writer_write(fetch->writer, piece->data.data, piece->data.len);
    fetch->crc32c = bel_crc32c(fetch->crc32c, piece->data.data, piece->data.len);
    fetch->got += length;
    return NULL;
}

bool bel_fetch_is_whole(const bel_fetch *fetch)
{
    return fetch->size >= 0 && fetch->got == fetch->size;
}

// The writer renames a finished file, so errors must be found before that.
bel_status *bel_fetch_end(bel_fetch *fetch, int64_t size, uint32_t crc32c)
{
    uint32_t crc = fetch->crc32c;
    if (size >= 0 && (fetch->size != size || crc != crc32c)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s of step %lld came with %lld bytes and CRC-32C %08x, expected %lld and "
                       "%08x",
                       fetch->name, (long long)fetch->step, (long long)fetch->size, crc,
                       (long long)size, crc32c);
    }
    bel_file_writer *writer = fetch->writer;
    fetch->writer = NULL;
    return bel_file_writer_finish(writer, NULL, NULL);
}

// --- The other end -------------------------------------------------------------------------------

// Accepts plain names of checkpoint files; no other file of this host is accessible.
static bool is_name(const char *name)
{
    static const char shard[] = "shard-";
    bool known =
        strcmp(name, BEL_CKPT_MANIFEST) == 0 || strncmp(name, shard, sizeof shard - 1) == 0;
    return known && strchr(name, '/') == NULL;
}

static bel_status *read_piece(const char *folder, const Bel__Fetch *request, Bel__Piece *piece)
{
    if (!is_name(request->file) || request->offset < 0 || request->step < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "it is no file of a checkpoint");
    }
    int64_t size;
    piece->data.data = bel_xmalloc(PIECE_BYTES);
    BEL_TRY(bel_ckpt_read_file(folder, request->step, request->file, request->offset, PIECE_BYTES,
                               piece->data.data, &piece->data.len, &size));
    piece->size = size;
    return NULL;
}

void bel_fetch_answer(const char *folder, Bel__Fetch *request, Bel__Piece *out_piece)
{
    bel__piece__init(out_piece);
    out_piece->step = request->step;
    out_piece->file = request->file;
    out_piece->offset = request->offset;
    bel_status *status = read_piece(folder, request, out_piece);
    if (status == NULL) return;
    out_piece->code = (int32_t)bel_status_code(status);
    out_piece->why = bel_xstrdup(bel_status_message(status));
    out_piece->data.len = 0;
    bel_status_destroy(status);
}

void bel_fetch_free_answer(Bel__Piece *piece)
{
    bel_free(piece->data.data);
    if (piece->code != BEL_OK) bel_free(piece->why);
}
