// Records enter their buckets in the order in which they come; a bucket with a full batch emits it.
// At the end each bucket emits the rest, filled up with holes: positions without a record, which
// make their batch smaller. So a batch holds records of only one bucket. An epoch has an integral
// number of batches, and the same number of positions for every order of its records.
#include "input/order/buckets.h"

#include "base/alloc.h"

int64_t bel_buckets_length(const bel_buckets *buckets, const int64_t *counts)
{
    int64_t length = 0, size = buckets->batch_size;
    for (int b = 0; b < buckets->bucket_count; b++)
        length += (counts[b] + size - 1) / size * size;
    return length;
}

// Bucket: the positions since its last batch.
typedef struct bucket {
    int64_t *items;
    size_t count, capacity;
} bucket;

static bel_status *give_out(bucket *from, int64_t batch_size, bel_number_list *to)
{
    for (int64_t i = 0; i < batch_size; i++) {
        int64_t position = i < (int64_t)from->count ? from->items[i] : -1;
        BEL_TRY(bel_number_list_append(to, position));
    }
    from->count = 0;
    return NULL;
}

static bel_status *buckets_fill(const bel_buckets *buckets, int64_t epoch, bucket *list,
                                bel_position_cache *cache, bel_number_list *to)
{
    for (int64_t i = 0; i < buckets->count; i++) {
        bel_position at;
        BEL_TRY(
            bel_positions_before(buckets->positions, buckets->stage_count, cache, epoch, i, &at));
        if (at.number < 0) continue;
        bucket *its = &list[buckets->of[at.number]];
        its->items = bel_xgrow(its->items, &its->capacity, its->count + 1, sizeof *its->items);
        its->items[its->count++] = i;
        if ((int64_t)its->count == buckets->batch_size)
            BEL_TRY(give_out(its, buckets->batch_size, to));
    }
    for (int b = 0; b < buckets->bucket_count; b++)
        if (list[b].count > 0) BEL_TRY(give_out(&list[b], buckets->batch_size, to));
    return NULL;
}

bel_status *bel_buckets_make(const void *context, int64_t epoch, bel_number_list *out_positions)
{
    const bel_buckets *buckets = context;
    bucket *list = bel_xcalloc((size_t)buckets->bucket_count, sizeof *list);
    bel_position_cache *cache = bel_position_cache_create(buckets->positions);
    bel_status *status = buckets_fill(buckets, epoch, list, cache, out_positions);
    bel_position_cache_destroy(cache);
    for (int b = 0; b < buckets->bucket_count; b++)
        bel_free(list[b].items);
    bel_free(list);
    return status;
}
