// Sends lines from rank to rank by the calls that move tensors: the number of bytes, then the bytes
// in pieces, so that no rank holds more than one piece.
#include "predict/rank_lines.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "belfry/ddl.h"
#include "command/results.h"

enum { PIECE = 1 << 20 };

struct bel_rank_lines {
    bel_ddl *ddl;
    FILE *file;    // NULL: the first rank
    int64_t bytes; // bytes written to it
    char *piece;   // with a zero byte at the end
};

static bel_status *cannot(const char *action)
{
    return BEL_ERR(BEL_UNKNOWN, "a temporary file for lines: cannot %s: %s", action,
                   strerror(errno));
}

bel_status *bel_rank_lines_create(bel_rank_lines **out_lines)
{
    bel_ddl *ddl;
    BEL_TRY(bel_ddl_init(NULL, &ddl));
    bel_rank_lines *lines = bel_xcalloc(1, sizeof *lines);
    lines->ddl = ddl;
    lines->piece = bel_xcalloc(PIECE + 1, 1);
    if (bel_ddl_place_of(ddl).rank > 0 && (lines->file = tmpfile()) == NULL) {
        bel_status *status = cannot("make it");
        bel_rank_lines_destroy(lines, status);
        return status;
    }
    *out_lines = lines;
    return NULL;
}

void bel_rank_lines_destroy(bel_rank_lines *lines, const bel_status *why)
{
    if (lines == NULL) return;
    if (lines->file != NULL) (void)fclose(lines->file); // already read
    bel_ddl_abort(lines->ddl, bel_status_message(why));
    bel_free(lines->piece);
    bel_free(lines);
}

bel_status *bel_rank_lines_write(bel_rank_lines *lines, const char *text)
{
    size_t length = strlen(text);
    if (lines->file == NULL) return bel_results_write(text);
    if (fwrite(text, 1, length, lines->file) != length) return cannot("write");
    lines->bytes += (int64_t)length;
    return NULL;
}

// Broadcasts the lines of rank `from` to all ranks; the first one prints them.
static bel_status *pass_on(bel_rank_lines *lines, int from)
{
    int rank = bel_ddl_place_of(lines->ddl).rank;
    int64_t left = lines->bytes;
    const bel_tensor count = {BEL_DTYPE_I64, bel_shape_scalar(), &left};
    BEL_TRY(bel_ddl_bcast_from(lines->ddl, from, &count, 1));
    if (rank == from && fseek(lines->file, 0, SEEK_SET) != 0) return cannot("read");
    for (int64_t bytes; left > 0; left -= bytes) {
        bytes = left < PIECE ? left : PIECE;
        if (rank == from && fread(lines->piece, 1, (size_t)bytes, lines->file) != (size_t)bytes)
            return cannot("read");
        const bel_tensor piece = {BEL_DTYPE_U8, BEL_SHAPE(bytes), lines->piece};
        BEL_TRY(bel_ddl_bcast_from(lines->ddl, from, &piece, 1));
        lines->piece[bytes] = '\0';
        if (rank == 0) BEL_TRY(bel_results_write(lines->piece));
    }
    return NULL;
}

bel_status *bel_rank_lines_finish(bel_rank_lines *lines)
{
    int size = bel_ddl_place_of(lines->ddl).size;
    for (int r = 1; r < size; r++)
        BEL_TRY(pass_on(lines, r));
    bel_ddl *ddl = lines->ddl;
    lines->ddl = NULL;
    return bel_ddl_finalize(ddl);
}
