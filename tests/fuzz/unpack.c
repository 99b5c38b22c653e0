// Fuzz target for gzip and zlib streams, unpacked at once up to a limit, and piece by piece. If
// both succeed, they agree. (libdeflate does not check a gzip header's checksum, which zlib does.)
#include <string.h>

#include "base/alloc.h"
#include "base/unpack.h"
#include "fuzz/fuzz.h"

enum { MOST = 1 << 16 };

typedef struct pieces {
    const char *whole; // NULL: no comparison
    size_t size, at;
    bool differs;
} pieces;

static bel_status *take(void *user, const void *data, size_t size)
{
    pieces *p = user;
    bool compared = p->whole != NULL && p->size - p->at >= size;
    p->differs = p->differs || (compared && memcmp(p->whole + p->at, data, size) != 0);
    p->at += size;
    return p->at > 4 * MOST ? BEL_ERR(BEL_CANCELLED, "enough") : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!bel_is_gzip(data, size) && !bel_is_zlib(data, size)) return 0;
    char *whole = NULL;
    pieces p = {0};
    if (fuzz_is_good(bel_unpack_at_most("x.gz", data, size, MOST, &whole, &p.size)))
        p.whole = whole;
    if (whole != NULL)
        fuzz_expect(p.size <= MOST && whole[p.size] == '\0', "no more than was asked for");
    bool both = fuzz_is_good(bel_unpack_to("x.gz", data, size, take, &p)) && p.whole != NULL;
    if (both) fuzz_expect(p.at == p.size && !p.differs, "the same bytes in pieces");
    bel_free(whole);
    return 0;
}
