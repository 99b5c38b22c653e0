// Copies of structs that begin with their size, made once at the library's border: the code inside
// always has whole structs. Sizes are read by memcpy, as the struct's type is unknown here. Nothing
// is read or written beyond the size that the caller gave.
#include "base/sized.h"

#include <string.h>

// No struct of the interface is larger in any version. Beyond it the size is unset memory.
enum { MOST_BYTES = 1 << 14 };

bool bel_sized_is_zero(const void *sized, size_t from, size_t size)
{
    const char *bytes = sized;
    for (size_t i = from; i < size; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static bel_status *read_size(const void *sized, const char *type, size_t *out_size)
{
    memcpy(out_size, sized, sizeof *out_size);
    if (*out_size >= sizeof *out_size && *out_size <= MOST_BYTES) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: size must be sizeof(%s), got %zu", type, type,
                   *out_size);
}

bel_status *bel_sized_take(void *out, size_t out_size, const void *given, const char *type)
{
    memset(out, 0, out_size);
    return bel_sized_take_over(out, out_size, given, type);
}

bel_status *bel_sized_take_over(void *out, size_t out_size, const void *given, const char *type)
{
    memcpy(out, &out_size, sizeof out_size);
    if (given == NULL) return NULL;
    size_t size;
    BEL_TRY(read_size(given, type, &size));
    if (!bel_sized_is_zero(given, out_size, size)) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "%s: the program sets a field that this version of the library lacks: it has "
            "%zu bytes of %zu",
            type, out_size, size);
    }
    size_t known = size < out_size ? size : out_size;
    memcpy((char *)out + sizeof size, (const char *)given + sizeof size, known - sizeof size);
    return NULL;
}

bel_status *bel_sized_check(const void *sized, const char *type)
{
    size_t size;
    return sized != NULL ? read_size(sized, type, &size) : NULL;
}

void bel_sized_give(void *out, const void *from, size_t from_size)
{
    if (out == NULL) return;
    size_t size;
    memcpy(&size, out, sizeof size);
    if (size < sizeof size) return; // unset: the call that reads the struct reports it
    size_t known = size < from_size ? size : from_size;
    memset((char *)out + sizeof size, 0, size - sizeof size);
    memcpy((char *)out + sizeof size, (const char *)from + sizeof size, known - sizeof size);
}
