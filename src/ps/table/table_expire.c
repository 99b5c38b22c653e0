// Removal of rows that no update has named for `expire_after` versions, and of small ones that none
// has named for a quarter of them. Each version looks at the rows of one slice of the hashes: a
// range of the index, as the index is in the order of hashes. So when a row goes depends only on
// the version, its last use, its values and its key, and the cost of looking at all rows is divided
// among many versions.
#include "ps/table/table_inner.h"

// Rows whose records are under way.
typedef struct look {
    bel_table *table;
    uint64_t slice;
    uint32_t rows[BEL_TABLE_GROUP];
    int count;
} look;

static uint64_t slice_of(const bel_table *table, uint64_t hash)
{
    return table->slice_bits == 0 ? 0 : hash >> (64 - table->slice_bits);
}

// Whether this is the first look at a row after the age at which small rows go.
static bool becomes_idle(const bel_table *table, uint32_t age)
{
    int64_t idle = table->expire_after < 4 ? 1 : table->expire_after / 4;
    return table->expire_below > 0 && age >= idle && age - idle < INT64_C(1) << table->slice_bits;
}

// Notes those rows of a group that are due, or if they are small. Their numbers do: a removal may
// move other rows of the index, but changes no number.
static void look_at_group(look *l)
{
    bel_table *table = l->table;
    for (int i = 0; i < l->count; i++) {
        uint32_t age = table->now - bel_table_last_use(table, l->rows[i]);
        if (age >= table->expire_after) {
            bel_table_note(&table->due, l->rows[i]);
        } else if (becomes_idle(table, age)) {
            bel_table_note(&table->idle, l->rows[i]);
        }
    }
    l->count = 0;
}

static void look_at_bucket(look *l, const bel_table_bucket *bucket)
{
    const bel_table *table = l->table;
    for (int i = 0; i < BEL_TABLE_BUCKET && bucket->row_after[i] != 0; i++) {
        if (slice_of(table, bucket->hash[i]) != l->slice) continue;
        uint32_t row = bucket->row_after[i] - 1;
        bel_table_prefetch_last_use(table, row);
        l->rows[l->count++] = row;
        if (l->count == BEL_TABLE_GROUP) look_at_group(l);
    }
}

// Looks at the rows whose hash is from `first` to `last`, of one part. They are in the buckets of
// these hashes, and in those after them into which full buckets overflow; in no bucket twice.
static void look_at_range(look *l, uint64_t first, uint64_t last)
{
    const bel_table_part *part = &l->table->parts[bel_table_part_of(first)];
    uint64_t bucket = bel_table_place(part, first);
    uint64_t wanted = bel_table_place(part, last) - bucket + 1;
    bool full = true;
    for (uint64_t seen = 0; seen < part->capacity && (seen < wanted || full); seen++) {
        look_at_bucket(l, &part->buckets[bucket]);
        full = part->buckets[bucket].row_after[BEL_TABLE_BUCKET - 1] != 0;
        bucket = bucket + 1 == part->capacity ? 0 : bucket + 1;
    }
}

// A slice is a range of one part, or several whole parts.
static void look_at_slice(look *l)
{
    int bits = l->table->slice_bits;
    uint64_t first = bits == 0 ? 0 : l->slice << (64 - bits), last = first | (UINT64_MAX >> bits);
    const uint64_t rest = UINT64_MAX >> BEL_TABLE_PART_BITS;
    for (unsigned p = bel_table_part_of(first); p <= bel_table_part_of(last); p++) {
        uint64_t begin = (uint64_t)p << (64 - BEL_TABLE_PART_BITS), end = begin | rest;
        look_at_range(l, begin > first ? begin : first, end < last ? end : last);
    }
    look_at_group(l);
}

static bool is_small(const bel_table *table, uint32_t row)
{
    const float *values = bel_table_record(table, row);
    double sum = 0;
    for (int i = 0; i < table->width; i++)
        sum += (double)values[i] * (double)values[i];
    return sum < table->expire_below * table->expire_below;
}

// Notes the small ones of the idle rows.
static bel_status *note_small(bel_table *table)
{
    int64_t n = table->idle.count;
    for (int64_t first = 0, end; first < n; first = end) {
        end = first + bel_table_portion(table, first, n);
        BEL_TRY(bel_table_disk_bring(table, NULL, NULL, table->idle.at + first, end - first));
        for (int64_t i = first; i < end; i++)
            if (is_small(table, table->idle.at[i])) bel_table_note(&table->due, table->idle.at[i]);
    }
    return NULL;
}

// The contents of removed rows are needed only to note their changes.
static bel_status *remove_due(bel_table *table)
{
    bool reads = table->changes != NULL && table->changes->on;
    int64_t n = table->due.count;
    for (int64_t first = 0, end; first < n; first = end) {
        end = first + (reads ? bel_table_portion(table, first, n) : n - first);
        if (reads)
            BEL_TRY(bel_table_disk_bring(table, NULL, NULL, table->due.at + first, end - first));
        for (int64_t i = first; i < end; i++)
            bel_table_remove(table, *bel_table_key(table, table->due.at[i]));
    }
    return NULL;
}

bel_status *bel_table_end_step(bel_table *table, int64_t version)
{
    if (table->uses != NULL) BEL_TRY(bel_table_end_step(table->uses, version));
    table->now = (uint32_t)version;
    if (table->expire_after == 0) return NULL;
    look l = {.table = table,
              .slice = (uint64_t)version & ((UINT64_C(1) << table->slice_bits) - 1)};
    table->due.count = table->idle.count = 0;
    look_at_slice(&l);
    BEL_TRY(note_small(table));
    BEL_TRY(remove_due(table));
    table->expired += table->due.count;
    if (table->due.count > 0) bel_table_count_bytes(table);
    return NULL;
}
