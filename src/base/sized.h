// Structs that programs pass to the library: their first member, `size_t size`, is the caller's
// sizeof, so a program works with a library of another version (belfry/belfry.h).
//
// An earlier program passes a shorter struct: the fields that it lacks are 0. A later program
// passes a longer one, which works as long as the fields that this library lacks are 0. No struct
// ends in padding, which would be neither (tests/cli/abi.py).
#ifndef BELFRY_BASE_SIZED_H
#define BELFRY_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/status.h"

// Copies `given` (NULL: nothing) into `out` of out_size bytes; the other bytes are 0, and out's
// size is out_size. INVALID_ARGUMENT, with nothing copied: the given size is unset, or a field that
// this library lacks is set. `type` names the struct.
bel_status *bel_sized_take(void *out, size_t out_size, const void *given,
                           const char *type) BEL_MUST_USE;

// The same over defaults: fields that `given` lacks keep their values in `out`.
bel_status *bel_sized_take_over(void *out, size_t out_size, const void *given,
                                const char *type) BEL_MUST_USE;

// For a struct that the library fills in. INVALID_ARGUMENT: its size is unset. NULL is fine.
bel_status *bel_sized_check(const void *sized, const char *type) BEL_MUST_USE;

// Copies `from`, of from_size bytes, to `out`: at most as many bytes as out's checked size says,
// which stays. Later ones are 0. NULL for `out`, or a size that is unset: nothing is done.
void bel_sized_give(void *out, const void *from, size_t from_size);

// Whether the bytes of a struct from offset `from` up to `size` are 0.
bool bel_sized_is_zero(const void *sized, size_t from, size_t size);

#endif
