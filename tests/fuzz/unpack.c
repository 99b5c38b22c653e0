// gzip and zlib streams, unpacked as a whole, up to a limit, and piece by piece: all three agree.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/unpack.h"
#include "fuzz/fuzz.h"

enum { MOST = 1 << 16 };

typedef struct pieces {
    const char *whole; // NULL: it is not to be compared
    size_t size, at;
} pieces;

static bel_status *take(void *user, const void *data, size_t size)
{
    pieces *p = user;
    if (p->whole != NULL) {
        bool same = size <= p->size - p->at && memcmp(p->whole + p->at, data, size) == 0;
        fuzz_expect(same, "the same bytes in pieces");
    }
    p->at += size;
    return p->at > 4 * MOST ? BEL_ERR(BEL_CANCELLED, "enough") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!bel_is_gzip(data, size) && !bel_is_zlib(data, size)) return 0;
    char *whole = NULL;
    pieces p = {0};
    bool good = fuzz_is_good(bel_unpack_at_most("x.gz", data, size, MOST, &whole, &p.size));
    if (good && whole != NULL) {
        fuzz_expect(p.size <= MOST && whole[p.size] == '\0', "no more than was asked for");
        p.whole = whole;
    }
    bool in_pieces = fuzz_is_good(bel_unpack_to("x.gz", data, size, take, &p));
    if (p.whole != NULL) fuzz_expect(in_pieces && p.at == p.size, "all bytes in pieces");
    if (!good) fuzz_expect(!in_pieces, "one judgement of a stream");
    bel_free(whole);
    return 0;
}
