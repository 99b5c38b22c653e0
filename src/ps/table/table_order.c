// Order of a snapshot's rows by key, without a list of all keys beside it: a sample sort. Keys of a
// sample divide the keys into buckets of a few thousand rows. Row numbers go to their buckets in
// two passes over the keys: one counts, the next writes. Then each bucket is sorted with its keys,
// in memory for the largest of them. So the result takes 4 bytes a row, and the rest is small.
//
// The sample decides only how large the buckets are. Keys are distinct, so they have one order.
#include "base/alloc.h"
#include "base/sort.h"
#include "ps/table/table_inner.h"

enum { BUCKET_ROWS = 8192, SAMPLES = 8 }; // most rows of a bucket on average; samples for each

typedef struct ordering {
    const bel_table_snapshot_state *snapshot;
    int64_t count;
    uint32_t *order;
    uint32_t buckets; // a power of two
    int64_t *borders; // first keys of the buckets after the first: buckets - 1
    int64_t *starts;  // by bucket: its first place in `order`; then the end of the last one
} ordering;

static int64_t key_at(const ordering *o, int64_t row)
{
    return bel_table_snapshot_key(o->snapshot, (uint32_t)row);
}

// The rows of the sample are those of hashed numbers, as neighboring rows may have similar keys.
static bel_status *find_borders(ordering *o)
{
    int64_t n = (int64_t)o->buckets * SAMPLES;
    void *memory;
    size_t bytes = (size_t)n * 2 * sizeof(bel_keyed);
    BEL_TRY(bel_pages_create(bytes, false, "a sample of keys", &memory));
    bel_keyed *items = memory;
    for (int64_t i = 0; i < n; i++) {
        uint64_t row = bel_table_hash(i) % (uint64_t)o->count;
        items[i] = (bel_keyed){.key = key_at(o, (int64_t)row)};
    }
    const bel_keyed *sorted = bel_sort_keyed(items, items + n, n);
    for (uint32_t b = 1; b < o->buckets; b++)
        o->borders[b - 1] = sorted[(int64_t)b * SAMPLES].key;
    bel_pages_destroy(memory, bytes);
    return NULL;
}

// Finds the buckets of a group of rows from `first` on: a binary search for all of them at once,
// without branches.
static void find_buckets(const ordering *o, int64_t first, int n, uint32_t *out_buckets)
{
    int64_t keys[BEL_TABLE_GROUP];
    for (int i = 0; i < n; i++) {
        keys[i] = key_at(o, first + i);
        out_buckets[i] = 0;
    }
    for (uint32_t half = o->buckets / 2; half > 0; half /= 2) {
        const int64_t *borders = o->borders + half - 1;
        for (int i = 0; i < n; i++)
            out_buckets[i] += half & -(uint32_t)(borders[out_buckets[i]] <= keys[i]);
    }
}

// Counts the rows of each bucket in `starts` of the next one; returns the largest count.
static int64_t count_rows(ordering *o)
{
    uint32_t buckets[BEL_TABLE_GROUP];
    for (int64_t i = 0; i < o->count; i += BEL_TABLE_GROUP) {
        int n = bel_table_group(i, o->count);
        find_buckets(o, i, n, buckets);
        for (int k = 0; k < n; k++)
            o->starts[buckets[k] + 1]++;
    }
    int64_t largest = 0;
    for (uint32_t b = 0; b < o->buckets; b++) {
        if (o->starts[b + 1] > largest) largest = o->starts[b + 1];
        o->starts[b + 1] += o->starts[b];
    }
    return largest;
}

// Writes row numbers to their buckets. A bucket's start moves to its end, the next one's start.
static void divide_rows(ordering *o)
{
    uint32_t buckets[BEL_TABLE_GROUP];
    for (int64_t i = 0; i < o->count; i += BEL_TABLE_GROUP) {
        int n = bel_table_group(i, o->count);
        find_buckets(o, i, n, buckets);
        for (int k = 0; k < n; k++)
            o->order[o->starts[buckets[k]]++] = (uint32_t)(i + k);
    }
}

static bel_status *sort_buckets(ordering *o, int64_t largest)
{
    void *memory;
    size_t bytes = (size_t)largest * 2 * sizeof(bel_keyed);
    BEL_TRY(bel_pages_create(bytes, false, "sorting rows", &memory));
    bel_keyed *items = memory;
    int64_t first = 0;
    for (uint32_t b = 0; b < o->buckets; b++) {
        int64_t n = o->starts[b] - first;
        uint32_t *rows = o->order + first;
        for (int64_t i = 0; i < n; i++)
            items[i] = (bel_keyed){key_at(o, rows[i]), rows[i]};
        const bel_keyed *sorted = n > 0 ? bel_sort_keyed(items, items + n, n) : items;
        for (int64_t i = 0; i < n; i++)
            rows[i] = sorted[i].number;
        first += n;
    }
    bel_pages_destroy(memory, bytes);
    return NULL;
}

bel_status *bel_table_sort_rows(const bel_table_snapshot_state *snapshot, uint32_t *out_order)
{
    ordering o = {.snapshot = snapshot, .count = snapshot->count, .order = out_order, .buckets = 1};
    if (o.count == 0) return NULL;
    while (o.count / BUCKET_ROWS >= o.buckets)
        o.buckets *= 2;
    void *memory;
    size_t bytes = ((size_t)o.buckets * 2 + 1) * sizeof(int64_t);
    BEL_TRY(bel_pages_create(bytes, false, "buckets of rows", &memory));
    o.borders = memory;
    o.starts = o.borders + o.buckets;
    bel_status *status = find_borders(&o);
    if (status == NULL) {
        int64_t largest = count_rows(&o);
        divide_rows(&o);
        status = sort_buckets(&o, largest);
    }
    bel_pages_destroy(memory, bytes);
    return status;
}
