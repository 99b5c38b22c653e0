// Undetermined dimensions are filled in once it is known which ranks can share memory. With order
// fixed a group is then their largest power of two, because such a group adds along the tree and
// one of three would not. A user's dimensions are never changed, only refused.
#include "ddl/mode.h"

#include <stdint.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

bel_status *bel_ddl_mode_parse(const char *text, bel_ddl_mode *out)
{
    bel_ddl_mode mode = {.letter = text[0]};
    bool good = text[0] != '\0' && strchr(BEL_DDL_LETTERS, text[0]) != NULL &&
                (text[1] == '\0' || (text[1] == ':' && text[0] != 'm'));
    const char *at = text[0] == '\0' || text[1] == '\0' ? "" : text + 2;
    if (good && text[1] == ':') {
        for (int d = 0; d < BEL_DDL_DIMS; d++)
            mode.dims[d] = 1;
        for (int d = 0; good; d++) {
            size_t length = strcspn(at, "x");
            int64_t size;
            good = d < BEL_DDL_DIMS && bel_parse_i64(at, length, &size) && size >= 1 &&
                   size <= BEL_DDL_MAX_RANKS;
            if (good) mode.dims[d] = (int)size;
            at += length;
            if (*at == '\0') break;
            at++;
        }
    }
    if (!good) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "mode \"%s\": expected s, o, r or p, with at most three dimensions "
                       "from 1 to %d as in s:4x2, or m",
                       text, BEL_DDL_MAX_RANKS);
    }
    *out = mode;
    return NULL;
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

bool bel_ddl_mode_keeps_tree(const bel_ddl_mode *mode)
{
    int last = BEL_DDL_DIMS - 1;
    while (last > 0 && mode->dims[last] == 1)
        last--;
    for (int d = 0; d < last; d++)
        if (!is_power_of_two(mode->dims[d])) return false;
    return true;
}

static void fill_in(bel_ddl_mode *mode, int size, int together, bel_ddl_order order)
{
    int group = together;
    if (order == BEL_DDL_FIXED && group != size) group &= -group; // its largest power of two
    mode->dims[0] = group;
    mode->dims[1] = size / group;
    mode->dims[2] = 1;
}

bel_status *bel_ddl_mode_complete(bel_ddl_mode *mode, int size, int together, bel_ddl_order order)
{
    char text[BEL_DDL_MODE_TEXT];
    if (mode->dims[0] == 0) fill_in(mode, size, together, order);
    int64_t product = (int64_t)mode->dims[0] * mode->dims[1] * mode->dims[2];
    if (product != size) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "mode %s: expected dimensions whose product is %d, the number of ranks, got "
                       "%lld",
                       bel_ddl_mode_text(mode, text), size, (long long)product);
    }
    if (together % mode->dims[0] != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "mode %s: expected a first dimension that divides %d, the ranks that share "
                       "memory on each host%s",
                       bel_ddl_mode_text(mode, text), together,
                       together == 1 ? " (none do where a host's ranks do not follow each other)"
                                     : "");
    }
    if (order == BEL_DDL_FAST) return NULL;
    if (mode->letter == 'r' || mode->letter == 'm') {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "mode %s adds in a different order: expected order fast with it",
                       bel_ddl_mode_text(mode, text));
    }
    if (!bel_ddl_mode_keeps_tree(mode)) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "mode %s does not add along the tree over ranks: expected dimensions that "
                       "are powers of two but for the last one, or order fast",
                       bel_ddl_mode_text(mode, text));
    }
    return NULL;
}

const char *bel_ddl_mode_text(const bel_ddl_mode *mode, char out[BEL_DDL_MODE_TEXT])
{
    int length = bel_snprintf(out, BEL_DDL_MODE_TEXT, "%c", mode->letter);
    for (int d = 0; d < BEL_DDL_DIMS && mode->dims[0] > 0 && mode->letter != 'm'; d++)
        length += bel_snprintf(out + length, BEL_DDL_MODE_TEXT - (size_t)length, "%c%d",
                               d == 0 ? ':' : 'x', mode->dims[d]);
    return out;
}

// Distance between ranks with successive coordinates.
static int stride_of(const bel_ddl_mode *mode, int dim)
{
    int stride = 1;
    for (int d = 0; d < dim; d++)
        stride *= mode->dims[d];
    return stride;
}

int bel_ddl_mode_coordinate(const bel_ddl_mode *mode, int dim, int rank)
{
    return rank / stride_of(mode, dim) % mode->dims[dim];
}

int bel_ddl_mode_neighbor(const bel_ddl_mode *mode, int dim, int rank, int coordinate)
{
    int own = bel_ddl_mode_coordinate(mode, dim, rank);
    return rank + (coordinate - own) * stride_of(mode, dim);
}
