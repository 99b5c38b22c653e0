// Mapping from stream position to (epoch, record number), composed of the stages before map. It
// never touches a record.
//
// Each stage maps a position of its output to one of its input, so a look-up walks from the last
// stage back to the source:
//
//   take     p           skip      p + count          shard   p · count + index
//   filter   kept[p]     repeat    p mod n, in epoch p div n
//   shuffle  window start + permutation(seed, epoch, window)[p − window start]
//   others   order(epoch)[p], a list that is built once for each epoch; -1 in it is a hole
#ifndef BELFRY_INPUT_ORDER_POSITIONS_H
#define BELFRY_INPUT_ORDER_POSITIONS_H

#include "input/files/number_list.h"
#include "input/order/epoch_orders.h"
#include "input/order/permutation.h"
#include "input/order/stage.h"

typedef struct bel_position_stage {
    bel_stage stage;
    int64_t input_count;      // number of input positions
    int shuffle;              // BEL_STAGE_SHUFFLE: number of shuffles before it
    bel_number_list kept;     // BEL_STAGE_FILTER
    bel_epoch_orders *orders; // orders that are not a formula; NULL for other stages
    int order;                // number of stages with `orders` before it
} bel_position_stage;

// Immutable once all stages are added, so thread-safe.
typedef struct bel_positions {
    bel_position_stage *stages;
    size_t count;
    size_t capacity;
    int shuffle_count, order_count;
    int64_t length;        // number of output positions; INT64_MAX if endless
    bool endless;          // without an end, and not cut by take
    bool repeated;         // has a repeat
    int64_t epoch_records; // the first repeat's input positions; without a repeat, `length`
} bel_positions;

// number -1: a hole, a position without a record.
typedef struct bel_position {
    int64_t epoch;
    int64_t number;
} bel_position;

// Cache of the permutation or order last used by each stage, since neighbors mostly share it.
// Bound to one thread at a time.
typedef struct bel_position_cache bel_position_cache;

void bel_positions_init(bel_positions *positions, int64_t record_count, bool endless);
void bel_positions_deinit(bel_positions *positions); // accepts a zeroed one

// Adds a shard, take, skip, shuffle or repeat. INVALID_ARGUMENT: repeat of an empty stream, or
// shuffle of an endless one in a single window.
bel_status *bel_positions_add(bel_positions *positions, const bel_stage *stage) BEL_MUST_USE;

// Adds a filter that keeps these positions, ascending. Takes ownership of the list.
void bel_positions_add_kept(bel_positions *positions, bel_number_list *kept);

// Adds a stage of `length` positions in the order that `orders` has for each epoch. Takes ownership
// of `orders`. INVALID_ARGUMENT: the input stream is endless.
bel_status *bel_positions_add_ordered(bel_positions *positions, const bel_stage *stage,
                                      int64_t length, bel_epoch_orders *orders) BEL_MUST_USE;

bel_position_cache *bel_position_cache_create(const bel_positions *positions);
void bel_position_cache_destroy(bel_position_cache *cache);

// Looks up one position, 0 <= position < length. `epoch`: the epoch of the outer stream that reads
// this one; without an outer stream 0. Errors: those of making an order, RESOURCE_EXHAUSTED.
bel_status *bel_positions_at(const bel_positions *positions, bel_position_cache *cache,
                             int64_t epoch, int64_t position,
                             bel_position *out_position) BEL_MUST_USE;

// The same for `count` positions from `first` on, at a lower cost per position.
bel_status *bel_positions_range(const bel_positions *positions, bel_position_cache *cache,
                                int64_t epoch, int64_t first, int64_t count,
                                bel_position *out_positions) BEL_MUST_USE;

// Looks up one position through only the first `stage_count` stages.
bel_status *bel_positions_before(const bel_positions *positions, size_t stage_count,
                                 bel_position_cache *cache, int64_t epoch, int64_t position,
                                 bel_position *out_position) BEL_MUST_USE;

#endif
