// Where a position of the stream comes from: the stages before map, composed into one function from
// stream position to (epoch, record number). Nothing here touches a record.
//
// Each stage turns a position of its output into one of its input, so a look-up walks from the last
// stage back to the source:
//
//   take     p           skip      p + count          shard   p · count + index
//   filter   kept[p]     repeat    p mod n, and the epoch is p div n
//   shuffle  window start + permutation(seed, epoch, window)[p − window start]
#ifndef BELFRY_INPUT_POSITIONS_H
#define BELFRY_INPUT_POSITIONS_H

#include "input/description.h"
#include "input/number_list.h"
#include "input/permutation.h"

typedef struct bel_position_stage {
    bel_stage stage;
    int64_t input_count;  // positions that go in
    int shuffle;          // BEL_STAGE_SHUFFLE: how many came before it
    bel_number_list kept; // BEL_STAGE_FILTER
} bel_position_stage;

// Immutable once all stages are added, so thread-safe.
typedef struct bel_positions {
    bel_position_stage *stages;
    size_t count;
    size_t capacity;
    int shuffle_count;
    int64_t length;        // positions that come out; INT64_MAX when endless
    bool endless;          // without an end, and not cut by take
    bool repeated;         // a repeat came already
    int64_t epoch_records; // positions that go into the first repeat, or come out without one
} bel_positions;

typedef struct bel_position {
    int64_t epoch;
    int64_t number;
} bel_position;

// The permutations last used, one per shuffle stage, since neighbours mostly share them. Bound to
// one thread at a time.
typedef struct bel_position_cache bel_position_cache;

void bel_positions_init(bel_positions *positions, int64_t record_count, bool endless);
void bel_positions_deinit(bel_positions *positions); // a zeroed one is fine

// Adds a stage other than filter. INVALID_ARGUMENT: the repeat of an empty stream, one window over
// an endless one.
bel_status *bel_positions_add(bel_positions *positions, const bel_stage *stage) BEL_MUST_USE;

// Adds a filter that keeps these positions, ascending. Takes the list.
void bel_positions_add_kept(bel_positions *positions, bel_number_list *kept);

bel_position_cache *bel_position_cache_create(const bel_positions *positions);
void bel_position_cache_destroy(bel_position_cache *cache);

// 0 <= position < length. `epoch`: of whoever reads the stream as a part of his own; else 0.
bel_position bel_positions_at(const bel_positions *positions, bel_position_cache *cache,
                              int64_t epoch, int64_t position);

#endif
