// Where a position of the stream comes from: the stages before map, composed into one function from
// stream position to (epoch, record number). Nothing here touches a record.
//
// Each stage turns a position of its output into one of its input, so a look-up walks from the last
// stage back to the source:
//
//   take     p           skip      p + count          shard   p · count + index
//   filter   kept[p]     repeat    p mod n, and the epoch is p div n
//   shuffle  window start + permutation(seed, epoch, window)[p − window start]
//   others   order(epoch)[p], a list that is made once for each epoch; -1 in it is a hole
#ifndef BELFRY_INPUT_POSITIONS_H
#define BELFRY_INPUT_POSITIONS_H

#include "input/description.h"
#include "input/epoch_orders.h"
#include "input/number_list.h"
#include "input/permutation.h"

typedef struct bel_position_stage {
    bel_stage stage;
    int64_t input_count;      // positions that go in
    int shuffle;              // BEL_STAGE_SHUFFLE: how many came before it
    bel_number_list kept;     // BEL_STAGE_FILTER
    bel_epoch_orders *orders; // of a stage whose order is no formula, else NULL
    int order;                // how many of these came before it
} bel_position_stage;

// Immutable once all stages are added, so thread-safe.
typedef struct bel_positions {
    bel_position_stage *stages;
    size_t count;
    size_t capacity;
    int shuffle_count, order_count;
    int64_t length;        // positions that come out; INT64_MAX when endless
    bool endless;          // without an end, and not cut by take
    bool repeated;         // a repeat came already
    int64_t epoch_records; // positions that go into the first repeat, or come out without one
} bel_positions;

// number -1: a hole, a position without a record.
typedef struct bel_position {
    int64_t epoch;
    int64_t number;
} bel_position;

// The permutations and orders last used, one per stage, since neighbours mostly share them. Bound
// to one thread at a time.
typedef struct bel_position_cache bel_position_cache;

void bel_positions_init(bel_positions *positions, int64_t record_count, bool endless);
void bel_positions_deinit(bel_positions *positions); // a zeroed one is fine

// Adds a stage other than filter. INVALID_ARGUMENT: the repeat of an empty stream, one window over
// an endless one.
bel_status *bel_positions_add(bel_positions *positions, const bel_stage *stage) BEL_MUST_USE;

// Adds a filter that keeps these positions, ascending. Takes the list.
void bel_positions_add_kept(bel_positions *positions, bel_number_list *kept);

// Adds a stage that gives `length` positions in the order that `orders` has for each epoch; takes
// it. INVALID_ARGUMENT: the stream that goes in is endless.
bel_status *bel_positions_add_ordered(bel_positions *positions, const bel_stage *stage,
                                      int64_t length, bel_epoch_orders *orders) BEL_MUST_USE;

bel_position_cache *bel_position_cache_create(const bel_positions *positions);
void bel_position_cache_destroy(bel_position_cache *cache);

// 0 <= position < length. `epoch`: of whoever reads the stream as a part of his own; else 0.
// Errors: those of making an order, RESOURCE_EXHAUSTED.
bel_status *bel_positions_at(const bel_positions *positions, bel_position_cache *cache,
                             int64_t epoch, int64_t position,
                             bel_position *out_position) BEL_MUST_USE;

// The same for `count` positions from `first` on, which costs less a position.
bel_status *bel_positions_range(const bel_positions *positions, bel_position_cache *cache,
                                int64_t epoch, int64_t first, int64_t count,
                                bel_position *out_positions) BEL_MUST_USE;

// One position by the first `stage_count` stages alone.
bel_status *bel_positions_before(const bel_positions *positions, size_t stage_count,
                                 bel_position_cache *cache, int64_t epoch, int64_t position,
                                 bel_position *out_position) BEL_MUST_USE;

#endif
