// Fetches records into the processor's caches before they are read. Records of a shuffled block are
// anywhere in the files, so each costs a walk through page tables and a wait for memory, at its
// entry of an index and again at its bytes. Records whose places are known wait together.
//
// A source fetches a record in BEL_AHEAD_STEPS steps, since a step needs the result of the one
// before: the list of kept rows, the index, the bytes. A record goes through its steps while the
// records before it are read, BEL_AHEAD_DISTANCE records a step. Only caches hold the result, at
// most BEL_AHEAD_BYTES of a record; nothing that is read depends on it.
#ifndef BELFRY_INPUT_AHEAD_H
#define BELFRY_INPUT_AHEAD_H

#include "input/offset_list.h"
#include "input/source.h"

enum { BEL_AHEAD_DISTANCE = 12, BEL_AHEAD_BYTES = 1024 };

// Records of a block that are read one after another.
typedef struct bel_ahead {
    const bel_source *source; // NULL: nothing is fetched
    const bel_position *positions;
    int64_t count;
    int64_t reached[BEL_AHEAD_STEPS]; // positions that are through each step
} bel_ahead;

// `positions` must stay. Records that follow one another are not fetched: processors do that.
bel_ahead bel_ahead_begin(const bel_source *source, const bel_position *positions, int64_t count);

// Before position `index` is read; each in turn, from 0 on.
void bel_ahead_reach(bel_ahead *ahead, int64_t index);

// Fetches up to BEL_AHEAD_BYTES. A wrong address is ignored.
static inline void bel_ahead_fetch(const void *from, size_t bytes)
{
    enum { LINE = 64 };
    const char *at = from;
    if (bytes > BEL_AHEAD_BYTES) bytes = BEL_AHEAD_BYTES;
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(at + i);
    if (bytes > 0) __builtin_prefetch(at + bytes - 1); // it may lie across one more line
}

// Step 1 or 2 of fetching record `index` of a file of `size` bytes whose records begin at `starts`:
// its offset, then its bytes.
void bel_ahead_fetch_record(const bel_offset_list *starts, size_t index, int step, const char *data,
                            size_t size);

#endif
