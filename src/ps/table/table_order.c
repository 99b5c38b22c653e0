// Order of a snapshot's rows by key, without a list of all keys beside it: a sample sort. Keys of a
// sample divide the keys into buckets of a few thousand rows. Row numbers go to their buckets in
// two passes over the keys: one counts, the next writes. Then each bucket is sorted with its keys,
// in memory for the largest of them. So the result takes 4 bytes a row, and the rest is small.
//
// The sample decides only how large the buckets are. Keys are distinct, so they have one order.
// Numbers without a row are left out: their keys are being written when rows get the numbers.
#include "base/alloc.h"
#include "base/sort.h"
#include "ps/table/table_inner.h"

enum { BUCKET_ROWS = 8192, SAMPLES = 8 }; // most rows of a bucket on average; samples for each

typedef struct ordering {
    const bel_table_snapshot_state *snapshot;
    const uint32_t *rows; // the rows to order; NULL: all
    int64_t count;        // rows
    uint64_t *absent;     // bit of each number without a row; NULL: all numbers have one
    uint32_t *order;
    uint32_t buckets; // a power of two
    int64_t *borders; // first keys of the buckets after the first: buckets - 1
    int64_t *starts;  // by bucket: its first place in `order`; then the end of the last one
} ordering;

static int64_t key_at(const ordering *o, int64_t row)
{
    return bel_table_snapshot_key(o->snapshot, (uint32_t)row);
}

static bool is_absent(const ordering *o, int64_t number)
{
    return o->absent != NULL && (o->absent[number / 64] >> (number % 64) & 1) != 0;
}

// Writes the next rows from number *at on, or from place *at of the given rows, up to a group of
// them, and advances *at. Returns how many there are; 0: no more.
static int next_rows(const ordering *o, int64_t *at, uint32_t *out_rows)
{
    int n = 0;
    for (; o->rows != NULL && n < BEL_TABLE_GROUP && *at < o->count; ++*at)
        out_rows[n++] = o->rows[*at];
    if (o->rows != NULL) return n;
    for (; n < BEL_TABLE_GROUP && *at < o->snapshot->top; ++*at) {
        out_rows[n] = (uint32_t)*at;
        n += !is_absent(o, *at);
    }
    return n;
}

// The rows of the sample are those of hashed numbers, as neighboring rows may have similar keys. A
// number without a row leads to the next one that has one.
static bel_status *find_borders(ordering *o)
{
    int64_t n = (int64_t)o->buckets * SAMPLES;
    void *memory;
    size_t bytes = (size_t)n * 2 * sizeof(bel_keyed);
    BEL_TRY(bel_pages_create(bytes, false, "a sample of keys", &memory));
    bel_keyed *items = memory;
    for (int64_t i = 0; i < n; i++) {
        int64_t top = o->rows != NULL ? o->count : o->snapshot->top;
        int64_t row = (int64_t)(bel_table_hash(i) % (uint64_t)top);
        if (o->rows != NULL) row = o->rows[row];
        while (o->rows == NULL && is_absent(o, row))
            row = row + 1 == top ? 0 : row + 1;
        items[i] = (bel_keyed){.key = key_at(o, row)};
    }
    const bel_keyed *sorted = bel_sort_keyed(items, items + n, n);
    for (uint32_t b = 1; b < o->buckets; b++)
        o->borders[b - 1] = sorted[(int64_t)b * SAMPLES].key;
    bel_pages_destroy(memory, bytes);
    return NULL;
}

// Finds the buckets of a group of rows: a binary search for all of them at once, without branches.
static void find_buckets(const ordering *o, const uint32_t *rows, int n, uint32_t *out_buckets)
{
    int64_t keys[BEL_TABLE_GROUP];
    for (int i = 0; i < n; i++) {
        keys[i] = key_at(o, rows[i]);
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
    uint32_t rows[BEL_TABLE_GROUP], buckets[BEL_TABLE_GROUP];
    int64_t at = 0, largest = 0;
    for (int n; (n = next_rows(o, &at, rows)) > 0;) {
        find_buckets(o, rows, n, buckets);
        for (int k = 0; k < n; k++)
            o->starts[buckets[k] + 1]++;
    }
    for (uint32_t b = 0; b < o->buckets; b++) {
        if (o->starts[b + 1] > largest) largest = o->starts[b + 1];
        o->starts[b + 1] += o->starts[b];
    }
    return largest;
}

// Writes row numbers to their buckets. A bucket's start moves to its end, the next one's start.
static void divide_rows(ordering *o)
{
    uint32_t rows[BEL_TABLE_GROUP], buckets[BEL_TABLE_GROUP];
    int64_t at = 0;
    for (int n; (n = next_rows(o, &at, rows)) > 0;) {
        find_buckets(o, rows, n, buckets);
        for (int k = 0; k < n; k++)
            o->order[o->starts[buckets[k]]++] = rows[k];
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

static bel_status *order_rows(ordering *o)
{
    BEL_TRY(find_borders(o));
    int64_t largest = count_rows(o);
    divide_rows(o);
    return sort_buckets(o, largest);
}

static void mark_absent(ordering *o)
{
    const bel_table_numbers *absent = &o->snapshot->absent;
    for (int64_t i = 0; i < absent->count; i++)
        o->absent[absent->at[i] / 64] |= UINT64_C(1) << absent->at[i] % 64;
    if (absent->count == 0) o->absent = NULL;
}

// One allocation has the borders, the starts and the bits.
bel_status *bel_table_sort_rows(const bel_table_snapshot_state *snapshot,
                                const bel_table_numbers *numbers, uint32_t *out_order)
{
    ordering o = {.snapshot = snapshot, .count = snapshot->count, .order = out_order, .buckets = 1};
    if (numbers != NULL) {
        o.rows = numbers->at;
        o.count = numbers->count;
    }
    if (o.count == 0) return NULL;
    while (o.count / BUCKET_ROWS >= o.buckets)
        o.buckets *= 2;
    void *memory;
    size_t words = snapshot->absent.count > 0 ? (size_t)snapshot->top / 64 + 1 : 0;
    size_t bytes = ((size_t)o.buckets * 2 + 1 + words) * sizeof(int64_t);
    BEL_TRY(bel_pages_create(bytes, false, "buckets of rows", &memory));
    o.borders = memory;
    o.starts = o.borders + o.buckets;
    o.absent = (uint64_t *)(o.starts + o.buckets + 1);
    mark_absent(&o);
    bel_status *status = order_rows(&o);
    bel_pages_destroy(memory, bytes);
    return status;
}
