// Look-up of positions through the stages. Lengths saturate at INT64_MAX, which also means
// "endless", so position arithmetic below a length cannot overflow. A look-up needs only a stage's
// number of input positions. A filter also has a list, and slide and bucket stages have orders.
//
// The key of a shuffle's permutation is its seed, its place among the shuffles, the epoch and the
// window. The epoch comes from the repeats after the shuffle, by division on the way back to the
// source. A shuffle before repeat therefore has a new order in each epoch, and a shuffle after
// repeat has windows across epochs. The cache saves making the same permutation again for
// neighbors. It never changes a result.
#include "input/order/positions.h"

#include "base/alloc.h"
#include "base/check.h"

typedef struct cached_permutation {
    int64_t epoch;
    int64_t window; // -1: unset
    bel_permutation permutation;
} cached_permutation;

struct bel_position_cache {
    int count;
    int hold_count;
    bel_epoch_hold *holds; // [hold_count], one for each stage with orders
    cached_permutation entries[];
};

void bel_positions_init(bel_positions *positions, int64_t record_count, bool endless)
{
    *positions =
        (bel_positions){.length = record_count, .endless = endless, .epoch_records = record_count};
}

void bel_positions_deinit(bel_positions *positions)
{
    for (size_t i = 0; i < positions->count; i++) {
        bel_number_list_deinit(&positions->stages[i].kept);
        bel_epoch_orders_destroy(positions->stages[i].orders);
    }
    bel_free(positions->stages);
    *positions = (bel_positions){0};
}

static bel_position_stage *positions_push(bel_positions *positions, const bel_stage *stage)
{
    positions->stages = bel_xgrow(positions->stages, &positions->capacity, positions->count + 1,
                                  sizeof *positions->stages);
    bel_position_stage *added = &positions->stages[positions->count++];
    *added = (bel_position_stage){.stage = *stage, .input_count = positions->length};
    return added;
}

static int64_t positions_multiply(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// The count of numbers below `length` that are `index` modulo `count`.
static int64_t shard_length(int64_t length, int64_t count, int64_t index)
{
    return length <= index ? 0 : (length - index - 1) / count + 1;
}

bel_status *bel_positions_add(bel_positions *positions, const bel_stage *stage)
{
    int64_t length = positions->length;
    bool endless = positions->endless;
    int shuffle = positions->shuffle_count;
    switch (stage->kind) {
    case BEL_STAGE_SHARD: length = shard_length(length, stage->count, stage->index); break;
    case BEL_STAGE_TAKE:
        if (stage->count < length) length = stage->count;
        endless = endless && stage->count == INT64_MAX;
        break;
    case BEL_STAGE_SKIP: length = stage->count < length ? length - stage->count : 0; break;
    case BEL_STAGE_SHUFFLE:
        if (endless && stage->count == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "shuffle: cannot order a stream that is repeated forever in one window; "
                           "shuffle before repeat, or give a buffer_size");
        }
        positions->shuffle_count++;
        break;
    case BEL_STAGE_REPEAT:
        if (length == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "repeat: expected records to repeat, but the "
                                                 "stages before leave none");
        }
        endless = endless || stage->count == BEL_REPEAT_FOREVER;
        length = endless ? INT64_MAX : positions_multiply(length, stage->count);
        break;
    case BEL_STAGE_FILTER:
    case BEL_STAGE_SLIDE:
    case BEL_STAGE_BUCKET: BEL_CHECK(false); // added by separate functions
    }
    positions_push(positions, stage)->shuffle = shuffle;
    positions->length = length;
    positions->endless = endless;
    positions->repeated = positions->repeated || stage->kind == BEL_STAGE_REPEAT;
    if (!positions->repeated) positions->epoch_records = length;
    return NULL;
}

void bel_positions_add_kept(bel_positions *positions, bel_number_list *kept)
{
    positions_push(positions, &(bel_stage){.kind = BEL_STAGE_FILTER})->kept = *kept;
    positions->length = (int64_t)kept->count;
    positions->epoch_records = positions->length;
    *kept = (bel_number_list){0};
}

bel_status *bel_positions_add_ordered(bel_positions *positions, const bel_stage *stage,
                                      int64_t length, bel_epoch_orders *orders)
{
    if (positions->endless) {
        bel_epoch_orders_destroy(orders);
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: cannot order a stream that has no end; it belongs before repeat",
                       stage->kind == BEL_STAGE_SLIDE ? "shuffle_sliding" : "bucket_by_length");
    }
    bel_position_stage *added = positions_push(positions, stage);
    added->orders = orders;
    added->order = positions->order_count++;
    positions->length = length;
    if (!positions->repeated) positions->epoch_records = length;
    return NULL;
}

// --- Looking up ----------------------------------------------------------------------------------

bel_position_cache *bel_position_cache_create(const bel_positions *positions)
{
    size_t count = (size_t)positions->shuffle_count;
    bel_position_cache *cache = bel_xcalloc(1, sizeof *cache + count * sizeof(cached_permutation));
    cache->count = positions->shuffle_count;
    cache->hold_count = positions->order_count;
    cache->holds = bel_xcalloc((size_t)positions->order_count, sizeof *cache->holds);
    for (size_t i = 0; i < count; i++)
        cache->entries[i].window = -1;
    return cache;
}

void bel_position_cache_destroy(bel_position_cache *cache)
{
    if (cache == NULL) return;
    for (int i = 0; i < cache->hold_count; i++)
        bel_epoch_hold_release(&cache->holds[i]);
    bel_free(cache->holds);
    bel_free(cache);
}

// These functions look up several positions at a time, stage by stage, in place in `at`. A position
// below 0 is a hole, which the stages closer to the source do not change.

static bel_status *order_all(const bel_position_stage *stage, bel_position_cache *cache,
                             bel_position *at, int64_t count)
{
    BEL_CHECK(stage->order < cache->hold_count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t *numbers;
        size_t length;
        if (at[i].number < 0) continue;
        BEL_TRY(bel_epoch_orders_get(stage->orders, at[i].epoch, &cache->holds[stage->order],
                                     &numbers, &length));
        BEL_CHECK(at[i].number < (int64_t)length);
        at[i].number = numbers[at[i].number];
    }
    return NULL;
}

// The permutation of a window. It is made again if the epoch or the window differs from that of the
// last look-up.
static const bel_permutation *permutation_of(const bel_position_stage *stage,
                                             bel_position_cache *cache, int64_t epoch,
                                             int64_t window, int64_t window_size)
{
    BEL_CHECK(stage->shuffle < cache->count);
    cached_permutation *cached = &cache->entries[stage->shuffle];
    if (cached->epoch != epoch || cached->window != window) {
        int64_t left = stage->input_count - window * window_size; // the last may be smaller
        bel_permutation_init(&cached->permutation, left < window_size ? left : window_size,
                             stage->stage.seed, stage->shuffle, epoch, window);
        cached->epoch = epoch;
        cached->window = window;
    }
    return &cached->permutation;
}

// Windows are numbered from 0 in the epoch. Position p is element p - start of its window.
// Neighbors in `at` that are in one window go through its permutation together.
static void shuffle_all(const bel_position_stage *stage, bel_position_cache *cache,
                        bel_position *at, int64_t count)
{
    int64_t window_size = stage->stage.count > 0 ? stage->stage.count : stage->input_count;
    for (int64_t i = 0; i < count;) {
        if (at[i].number < 0) {
            i++;
            continue;
        }
        int64_t epoch = at[i].epoch, window = at[i].number / window_size;
        int64_t start = window * window_size, elements[BEL_PERMUTATION_TOGETHER];
        const bel_permutation *permutation =
            permutation_of(stage, cache, epoch, window, window_size);
        int n = 0;
        for (; n < BEL_PERMUTATION_TOGETHER && i + n < count; n++) {
            elements[n] = at[i + n].number - start;
            bool same = elements[n] >= 0 && elements[n] < window_size;
            if (!same || at[i + n].epoch != epoch) break;
        }
        bel_permutation_apply(permutation, elements, n);
        for (int k = 0; k < n; k++)
            at[i + k].number = start + elements[k];
        i += n;
    }
}

// The epoch on the inner side of a repeat. An outer repeat counts complete runs of this one. Epochs
// are only keys, so they may wrap around. Wrapping takes two repeats whose counts no run ever
// reaches.
static int64_t inner_epoch(const bel_position_stage *stage, int64_t outer, int64_t turn)
{
    bool forever = stage->stage.count == BEL_REPEAT_FOREVER; // an outer repeat needs a take between
    uint64_t run = forever ? 1 : (uint64_t)stage->stage.count;
    return (int64_t)((uint64_t)outer * run + (uint64_t)turn);
}

// Neighbors are mostly in the same turn, which saves the division.
static void repeat_all(const bel_position_stage *stage, bel_position *at, int64_t count)
{
    int64_t turn = 0, start = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t position = at[i].number;
        if (position < 0) continue;
        if (position < start || position - start >= stage->input_count) {
            turn = position / stage->input_count;
            start = turn * stage->input_count;
        }
        at[i].epoch = inner_epoch(stage, at[i].epoch, turn);
        at[i].number = position - start;
    }
}

static bel_status *positions_apply(const bel_position_stage *stage, bel_position_cache *cache,
                                   bel_position *at, int64_t count)
{
    const bel_stage *s = &stage->stage;
    switch (s->kind) {
    case BEL_STAGE_SHARD:
        for (int64_t i = 0; i < count; i++)
            if (at[i].number >= 0) at[i].number = at[i].number * s->count + s->index;
        break;
    case BEL_STAGE_TAKE: break;
    case BEL_STAGE_SKIP:
        for (int64_t i = 0; i < count; i++)
            if (at[i].number >= 0) at[i].number += s->count;
        break;
    case BEL_STAGE_SHUFFLE: shuffle_all(stage, cache, at, count); break;
    case BEL_STAGE_REPEAT: repeat_all(stage, at, count); break;
    case BEL_STAGE_FILTER:
        for (int64_t i = 0; i < count; i++)
            if (at[i].number >= 0) at[i].number = stage->kept.items[at[i].number];
        break;
    case BEL_STAGE_SLIDE:
    case BEL_STAGE_BUCKET: return order_all(stage, cache, at, count);
    }
    return NULL;
}

bel_status *bel_positions_before(const bel_positions *positions, size_t stage_count,
                                 bel_position_cache *cache, int64_t epoch, int64_t position,
                                 bel_position *out_position)
{
    bel_position at = {.epoch = epoch, .number = position};
    for (size_t i = stage_count; i-- > 0;)
        BEL_TRY(positions_apply(&positions->stages[i], cache, &at, 1));
    *out_position = at;
    return NULL;
}

bel_status *bel_positions_at(const bel_positions *positions, bel_position_cache *cache,
                             int64_t epoch, int64_t position, bel_position *out_position)
{
    BEL_CHECK(position >= 0 && position < positions->length);
    return bel_positions_before(positions, positions->count, cache, epoch, position, out_position);
}

bel_status *bel_positions_range(const bel_positions *positions, bel_position_cache *cache,
                                int64_t epoch, int64_t first, int64_t count,
                                bel_position *out_positions)
{
    BEL_CHECK(first >= 0 && count >= 0 && count <= positions->length - first);
    for (int64_t i = 0; i < count; i++)
        out_positions[i] = (bel_position){.epoch = epoch, .number = first + i};
    for (size_t i = positions->count; i-- > 0;)
        BEL_TRY(positions_apply(&positions->stages[i], cache, out_positions, count));
    return NULL;
}
