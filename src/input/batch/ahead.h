// Prefetching of records into the CPU caches. Records of a shuffled block are anywhere in the
// files. Each costs a page-table walk and a wait for memory, once for its index entry and once for
// its bytes. Prefetching makes these waits of several records overlap.
//
// A source fetches a record in BEL_AHEAD_STEPS steps: the list of kept rows, the index, the bytes.
// Each step needs the result of the one before. A record goes through its steps while the records
// before it are read, BEL_AHEAD_DISTANCE records a step. Only the caches hold the result, at most
// BEL_AHEAD_BYTES of a record. The data that is read never depends on it.
#ifndef BELFRY_INPUT_BATCH_AHEAD_H
#define BELFRY_INPUT_BATCH_AHEAD_H

#include "input/source/source.h"

enum { BEL_AHEAD_DISTANCE = 12 };

// Records of a block that are read one after another.
typedef struct bel_ahead {
    const bel_source *source; // NULL: no prefetching
    const bel_position *positions;
    int64_t count;
    int64_t reached[BEL_AHEAD_STEPS]; // number of positions that have finished each step
} bel_ahead;

// `positions` must outlive the result. Consecutive records are not fetched: the CPU does that.
bel_ahead bel_ahead_begin(const bel_source *source, const bel_position *positions, int64_t count);

// Call before reading position `index`, for each position in order from 0.
void bel_ahead_reach(bel_ahead *ahead, int64_t index);

#endif
