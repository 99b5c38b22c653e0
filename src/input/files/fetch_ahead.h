// Prefetching of one record's bytes into the CPU caches (batch/ahead.h says when).
#ifndef BELFRY_INPUT_FILES_FETCH_AHEAD_H
#define BELFRY_INPUT_FILES_FETCH_AHEAD_H

#include "input/files/offset_list.h"

enum { BEL_AHEAD_BYTES = 512 };

// Fetches up to BEL_AHEAD_BYTES. A wrong address is ignored.
static inline void bel_ahead_fetch(const void *from, size_t bytes)
{
    enum { LINE = 64 };
    const char *at = from;
    if (bytes > BEL_AHEAD_BYTES) bytes = BEL_AHEAD_BYTES;
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(at + i);
    if (bytes > 0) __builtin_prefetch(at + bytes - 1); // it may be in one more line
}

// Runs step 1 or 2 for record `index` of a file of `size` bytes whose records begin at `starts`.
// Step 1 fetches the record's offset, step 2 its bytes.
void bel_ahead_fetch_record(const bel_offset_list *starts, size_t index, int step, const char *data,
                            size_t size);

#endif
