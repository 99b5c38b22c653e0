// A snapshot: the rows at one moment, readable during updates.
//
// The start copies no row. An update copies a row before its first change since the start.
// Invariant: `saved` of a row is written under the row's lock, and only by the thread that updates
// the row. So an updater may read it without the lock. A reader looks and copies under the lock, so
// it sees the old row, in the record or in the copy.
//
// A removed row's key and record stay as they are until the end (`retired`). The numbers that were
// free at the start are listed then: a reader leaves them out, as rows may get them meanwhile.
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "ps/table/table_inner.h"

static size_t saved_bytes(const bel_table_snapshot_state *snapshot)
{
    return (size_t)snapshot->top * sizeof(uint32_t);
}

// A lock is for 64 neighbors, so that a pass over all rows in the order of their numbers takes few.
static pthread_mutex_t *lock_of(bel_table_snapshot_state *snapshot, uint32_t row)
{
    return &snapshot->locks[row / BEL_TABLE_LOCKED % BEL_TABLE_LOCKS];
}

static size_t order_bytes(const bel_table_snapshot_state *snapshot)
{
    return (size_t)snapshot->count * sizeof(uint32_t);
}

// The table's directory may move when it grows; the blocks stay in place.
static char **copy_directory(const bel_table_blocks *blocks)
{
    char **copy = bel_xcalloc(blocks->count, sizeof *copy);
    if (blocks->count > 0) memcpy(copy, blocks->at, blocks->count * sizeof *copy);
    return copy;
}

static void copy_numbers(const bel_table_numbers *from, bel_table_numbers *to)
{
    to->at = bel_xgrow(to->at, &to->capacity, (size_t)from->count, sizeof *to->at);
    to->count = from->count;
    if (from->count > 0) memcpy(to->at, from->at, (size_t)from->count * sizeof *to->at);
}

static bel_status *snapshot_one(bel_table *table)
{
    BEL_CHECK(table->snapshot == NULL);
    void *saved;
    BEL_TRY_CTX(
        bel_pages_create((size_t)table->top * sizeof(uint32_t), false, "a snapshot", &saved),
        "table \"%s\"", table->name);
    bel_table_snapshot_state *snapshot = bel_xcalloc(1, sizeof *snapshot);
    snapshot->count = table->count;
    snapshot->top = table->top;
    snapshot->now = table->now;
    snapshot->saved = saved;
    copy_numbers(&table->free, &snapshot->absent);
    snapshot->keys = copy_directory(&table->keys);
    snapshot->records = copy_directory(&table->records);
    snapshot->copies = bel_xcalloc(table->records.count, sizeof *snapshot->copies);
    for (int i = 0; i < BEL_TABLE_LOCKS; i++)
        pthread_mutex_init(&snapshot->locks[i], NULL);
    table->snapshot = snapshot;
    if (table->changes != NULL) bel_table_changes_mark(table);
    return NULL;
}

bel_status *bel_table_snapshot(bel_table *table)
{
    if (table->uses != NULL) BEL_TRY(snapshot_one(table->uses));
    bel_status *status = snapshot_one(table);
    if (status != NULL && table->uses != NULL) bel_table_snapshot_end(table->uses);
    return status;
}

void bel_table_snapshot_end(bel_table *table)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    if (table->uses != NULL) bel_table_snapshot_end(table->uses);
    if (snapshot == NULL) return;
    for (int64_t i = 0; i < table->retired.count; i++)
        bel_table_note(&table->free, table->retired.at[i]);
    table->retired.count = 0;
    for (size_t i = 0; i < snapshot->copy_blocks; i++)
        bel_pages_destroy(snapshot->copies[i], table->records.bytes);
    for (int i = 0; i < BEL_TABLE_LOCKS; i++)
        pthread_mutex_destroy(&snapshot->locks[i]);
    bel_pages_destroy(snapshot->saved, saved_bytes(snapshot));
    bel_pages_destroy(snapshot->order, order_bytes(snapshot));
    bel_table_delta_destroy(snapshot->delta);
    bel_free(snapshot->absent.at);
    bel_free(snapshot->keys);
    bel_free(snapshot->records);
    bel_free(snapshot->copies);
    bel_free(snapshot);
    table->snapshot = NULL;
}

int64_t bel_table_snapshot_count(const bel_table *table)
{
    BEL_CHECK(table->snapshot != NULL);
    return table->snapshot->count;
}

// --- Updates -------------------------------------------------------------------------------------

static void *copy_at(const bel_table *table, int64_t place)
{
    return bel_table_item(table->snapshot->copies, table->records.bits,
                          table->record_floats * sizeof(float), (uint32_t)place);
}

// Counts rows of the snapshot without a copy. All copies fit the number of blocks that the table
// had.
bel_status *bel_table_snapshot_reserve(bel_table *table, int64_t n)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    int64_t wanted = atomic_load_explicit(&snapshot->copy_count, memory_order_relaxed);
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = table->rows[i];
        wanted += (int64_t)row < snapshot->top && snapshot->saved[row] == 0;
    }
    while ((int64_t)snapshot->copy_blocks << table->records.bits < wanted) {
        void *block;
        BEL_TRY_CTX(bel_pages_create(table->records.bytes, false, "rows of a snapshot", &block),
                    "table \"%s\" has %lld rows in %lld bytes, and copies of %lld", table->name,
                    (long long)table->count, (long long)table->bytes, (long long)wanted);
        snapshot->copies[snapshot->copy_blocks++] = block;
    }
    return NULL;
}

// The copy is complete before `saved` names it. Its place is any free one, so the counter is
// relaxed.
void bel_table_snapshot_save(bel_table *table, uint32_t row)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    if ((int64_t)row >= snapshot->top || snapshot->saved[row] != 0) return;
    int64_t place = atomic_fetch_add_explicit(&snapshot->copy_count, 1, memory_order_relaxed);
    memcpy(copy_at(table, place), bel_table_record(table, row),
           table->record_floats * sizeof(float));
    pthread_mutex_t *lock = lock_of(snapshot, row);
    pthread_mutex_lock(lock);
    snapshot->saved[row] = (uint32_t)place + 1;
    pthread_mutex_unlock(lock);
}

void bel_table_snapshot_skip(bel_table *table, uint32_t row)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    if ((int64_t)row >= snapshot->top) return;
    pthread_mutex_t *lock = lock_of(snapshot, row);
    pthread_mutex_lock(lock);
    snapshot->saved[row] = BEL_TABLE_NOT_IN;
    pthread_mutex_unlock(lock);
}

// --- Reading -------------------------------------------------------------------------------------

// Sorts the rows by key, at the first reading, for all readings.
static bel_status *make_order(const bel_table *table)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    void *order;
    BEL_TRY(bel_pages_create(order_bytes(snapshot), false, "the order of rows", &order));
    bel_status *status = bel_table_sort_rows(snapshot, NULL, order);
    if (status == NULL) {
        snapshot->order = order;
    } else {
        bel_pages_destroy(order, order_bytes(snapshot));
    }
    return status;
}

static const float *record_at(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->snapshot->records, table->records.bits,
                          table->record_floats * sizeof(float), row);
}

static void read_row(const bel_table *table, uint32_t row, int64_t place,
                     const bel_table_outputs *out)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    size_t row_bytes = (size_t)table->width * sizeof(float);
    pthread_mutex_t *lock = lock_of(snapshot, row);
    pthread_mutex_lock(lock);
    uint32_t saved = snapshot->saved[row];
    const float *record = saved != 0 ? copy_at(table, saved - 1) : record_at(table, row);
    if (out->rows != NULL) memcpy(out->rows + place * table->width, record, row_bytes);
    for (int k = 0; out->slots != NULL && k < table->slot_count; k++) {
        if (out->slots[k] == NULL) continue;
        memcpy(out->slots[k] + place * table->width, record + (int64_t)(k + 1) * table->width,
               row_bytes);
    }
    if (out->ages != NULL)
        out->ages[place] = (float)(snapshot->now - bel_table_last_use(table, record));
    pthread_mutex_unlock(lock);
}

// Rows are in the order of their creation, so reading by key is random access: rows ahead are
// prefetched.
bel_status *bel_table_snapshot_read(const bel_table *table, const uint32_t *order, int64_t first,
                                    int64_t n, const bel_table_outputs *out)
{
    enum { AHEAD = 16 };
    const bel_table_snapshot_state *snapshot = table->snapshot;
    if (order == NULL && snapshot->order == NULL)
        BEL_TRY_CTX(make_order(table), "table \"%s\"", table->name);
    if (order == NULL) order = snapshot->order;
    bool contents = out->rows != NULL || out->slots != NULL || out->ages != NULL;
    for (int64_t i = 0; i < n; i++) {
        uint32_t row = order[first + i];
        if (contents && i + AHEAD < n) {
            uint32_t later = order[first + i + AHEAD];
            bel_table_prefetch(record_at(table, later), table->record_floats);
            __builtin_prefetch(&snapshot->saved[later]);
        }
        if (out->keys != NULL) out->keys[i] = bel_table_snapshot_key(snapshot, row);
        if (contents) read_row(table, row, i, out);
    }
    return NULL;
}

bel_status *bel_table_snapshot_range(const bel_table *table, int64_t first, int64_t n,
                                     int64_t *out_keys, float *out_rows, float *const *out_slots)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    BEL_CHECK(snapshot != NULL && first >= 0 && n >= 0 && n <= snapshot->count - first);
    const bel_table_outputs out = {.keys = out_keys, .rows = out_rows, .slots = out_slots};
    return bel_table_snapshot_read(table, NULL, first, n, &out);
}

// A pass over the records in the order of their numbers, 64 with one lock. Numbers without a row at
// the snapshot's start are listed in `absent`: their bits.
static void add_ages(const bel_table *table, const uint64_t *absent, bel_hash128 *sum)
{
    enum { AHEAD = 32 };
    bel_table_snapshot_state *snapshot = table->snapshot;
    uint32_t since_base = snapshot->now - (uint32_t)snapshot->delta->base;
    int64_t keys[BEL_TABLE_LOCKED];
    float ages[BEL_TABLE_LOCKED];
    for (int64_t first = 0; first < snapshot->top; first += BEL_TABLE_LOCKED) {
        int64_t end = first + BEL_TABLE_LOCKED, n = 0;
        if (end > snapshot->top) end = snapshot->top;
        pthread_mutex_t *lock = lock_of(snapshot, (uint32_t)first);
        pthread_mutex_lock(lock);
        for (int64_t row = first; row < end; row++) {
            if (row + AHEAD < snapshot->top)
                __builtin_prefetch(record_at(table, (uint32_t)(row + AHEAD)) +
                                   table->record_floats - 1);
            if ((absent[row / 64] >> row % 64 & 1) != 0) continue;
            uint32_t saved = snapshot->saved[row];
            const float *record =
                saved != 0 ? copy_at(table, saved - 1) : record_at(table, (uint32_t)row);
            uint32_t age = snapshot->now - bel_table_last_use(table, record);
            if (age < since_base) continue; // the delta has it
            keys[n] = bel_table_snapshot_key(snapshot, (uint32_t)row);
            ages[n++] = (float)age;
        }
        pthread_mutex_unlock(lock);
        bel_ckpt_hash_rows(keys, ages, 1, n, sum);
    }
}

bel_status *bel_table_snapshot_add_ages(const bel_table *table, bel_hash128 *sum)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    const bel_table_numbers *absent = &snapshot->absent;
    void *bits;
    size_t bytes = ((size_t)snapshot->top / 64 + 1) * sizeof(uint64_t);
    BEL_TRY_CTX(bel_pages_create(bytes, false, "rows of a snapshot", &bits), "table \"%s\"",
                table->name);
    uint64_t *words = bits;
    for (int64_t i = 0; i < absent->count; i++)
        words[absent->at[i] / 64] |= UINT64_C(1) << absent->at[i] % 64;
    add_ages(table, words, sum);
    bel_pages_destroy(bits, bytes);
    return NULL;
}
