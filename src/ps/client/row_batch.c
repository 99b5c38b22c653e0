// A batch's ids are sorted together with their positions. The sort is stable, so the positions of a
// key are in ascending order, which is the order in which gradients are summed. All arrays are in
// one allocation for the largest batch; nothing is allocated later. Usual widths have specialized
// loops, and rows ahead are prefetched: a sum accesses memory at random.
#include "ps/client/row_batch.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/sort.h"
#include "belfry/graph.h"

enum { AHEAD = 8, LINE_FLOATS = 16 }; // rows prefetched ahead of their sum; floats of a cache line

struct bel_row_batch {
    int64_t capacity;
    int64_t id_count; // positions with an id
    int64_t key_count;
    void *memory; // holds all arrays below
    size_t memory_bytes;
    bel_keyed *items, *spare;
    int64_t *keys;
    int32_t *starts;    // [key]: its first index in `positions`; one more at the end
    int32_t *positions; // in order of keys, then of positions
    int32_t *index;
};

bel_status *bel_row_batch_create(int64_t capacity, bel_row_batch **out_batch)
{
    BEL_CHECK(capacity >= 0);
    if (capacity > INT32_MAX - 1) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "a batch of rows: expected at most %d ids, got %lld",
                       INT32_MAX - 1, (long long)capacity);
    }
    size_t room = (size_t)capacity + 1;
    size_t bytes = room * (2 * sizeof(bel_keyed) + sizeof(int64_t) + 3 * sizeof(int32_t));
    void *memory;
    BEL_TRY(bel_pages_create(bytes, false, "the ids of a batch", &memory));
    bel_row_batch *batch = bel_xcalloc(1, sizeof *batch);
    batch->capacity = capacity;
    batch->memory = memory;
    batch->memory_bytes = bytes;
    batch->items = memory;
    batch->spare = batch->items + room;
    batch->keys = (int64_t *)(void *)(batch->spare + room);
    batch->starts = (int32_t *)(void *)(batch->keys + room);
    batch->positions = batch->starts + room;
    batch->index = batch->positions + room;
    *out_batch = batch;
    return NULL;
}

void bel_row_batch_destroy(bel_row_batch *batch)
{
    if (batch == NULL) return;
    bel_pages_destroy(batch->memory, batch->memory_bytes);
    bel_free(batch);
}

// Key k's sorted ids are at starts[k] to starts[k + 1].
void bel_row_batch_set(bel_row_batch *batch, const int64_t *ids, int64_t n)
{
    BEL_CHECK(n >= 0 && n <= batch->capacity);
    int32_t keys = 0, named = 0;
    for (int64_t i = 0; i < n; i++) {
        batch->index[i] = -1;
        if (ids[i] != BEL_NO_ID) batch->items[named++] = (bel_keyed){ids[i], (uint32_t)i};
    }
    const bel_keyed *sorted = bel_sort_keyed(batch->items, batch->spare, named);
    for (int32_t i = 0; i < named; i++) {
        if (i == 0 || sorted[i].key != sorted[i - 1].key) {
            batch->keys[keys] = sorted[i].key;
            batch->starts[keys++] = i;
        }
        batch->positions[i] = (int32_t)sorted[i].number;
        batch->index[sorted[i].number] = keys - 1;
    }
    batch->starts[keys] = named;
    batch->id_count = named;
    batch->key_count = keys;
}

int64_t bel_row_batch_count(const bel_row_batch *batch)
{
    return batch->key_count;
}

const int64_t *bel_row_batch_keys(const bel_row_batch *batch)
{
    return batch->keys;
}

const int32_t *bel_row_batch_index(const bel_row_batch *batch)
{
    return batch->index;
}

// Sums rows of one width, so that the compiler unrolls the short ones.
static inline __attribute__((always_inline)) void sum_rows(const bel_row_batch *batch,
                                                           const float *restrict gradients,
                                                           int width, float *restrict out_sums)
{
    const int32_t *positions = batch->positions;
    for (int64_t k = 0; k < batch->key_count; k++, out_sums += width) {
        int32_t at = batch->starts[k], end = batch->starts[k + 1];
        int32_t later = at + AHEAD < (int32_t)batch->id_count ? at + AHEAD : at;
        const float *soon = gradients + (int64_t)positions[later] * width;
        for (int i = 0; i < width; i += LINE_FLOATS)
            __builtin_prefetch(soon + i);
        memcpy(out_sums, gradients + (int64_t)positions[at] * width,
               (size_t)width * sizeof *out_sums);
        for (at++; at < end; at++) {
            const float *row = gradients + (int64_t)positions[at] * width;
            for (int i = 0; i < width; i++)
                out_sums[i] += row[i];
        }
    }
}

// The usual widths of embeddings get a loop of constant length.
void bel_row_batch_sum(const bel_row_batch *batch, const float *gradients, int width,
                       float *out_sums)
{
    switch (width) {
    case 8: sum_rows(batch, gradients, 8, out_sums); break;
    case 16: sum_rows(batch, gradients, 16, out_sums); break;
    case 32: sum_rows(batch, gradients, 32, out_sums); break;
    default: sum_rows(batch, gradients, width, out_sums); break;
    }
}
