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
    if (table->disk != NULL) snapshot->locations = copy_directory(&table->disk->locations);
    if (table->disk != NULL) snapshot->last_uses = copy_directory(&table->disk->last_uses);
    snapshot->copies =
        bel_xcalloc(((size_t)table->top >> table->records.bits) + 1, sizeof *snapshot->copies);
    for (int i = 0; i < BEL_TABLE_LOCKS; i++)
        pthread_mutex_init(&snapshot->locks[i], NULL);
    table->snapshot = snapshot;
    if (table->changes != NULL) bel_table_changes_mark(table);
    return NULL;
}

bel_status *bel_table_snapshot(bel_table *table)
{
    BEL_TRY(bel_table_disk_check(table));
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
    for (int64_t i = 0; i < table->retired.count; i++) {
        bel_table_disk_release(table, table->retired.at[i]);
        bel_table_note(&table->free, table->retired.at[i]);
    }
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
    bel_free(snapshot->locations);
    bel_free(snapshot->last_uses);
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
    float *copy = copy_at(table, place);
    memcpy(copy, bel_table_record(table, row), table->record_floats * sizeof(float));
    if (table->expire_after > 0) bel_table_note_use(table, copy, bel_table_last_use(table, row));
    pthread_mutex_t *lock = bel_table_snapshot_lock(snapshot, row);
    pthread_mutex_lock(lock);
    snapshot->saved[row] = (uint32_t)place + 1;
    pthread_mutex_unlock(lock);
}

void bel_table_snapshot_skip(bel_table *table, uint32_t row)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    if ((int64_t)row >= snapshot->top) return;
    pthread_mutex_t *lock = bel_table_snapshot_lock(snapshot, row);
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

// The table has no disk.
static const float *record_at(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->snapshot->records, table->records.bits,
                          table->record_floats * sizeof(float), row);
}

// The row's location, under its lock.
static uint32_t location_of(const bel_table_snapshot_state *snapshot, uint32_t row)
{
    const uint32_t *location =
        bel_table_item(snapshot->locations, BEL_TABLE_KEY_BLOCK_BITS, sizeof *location, row);
    return *location;
}

// The row's last use at the snapshot, under its lock.
static uint32_t last_use_of(const bel_table *table, uint32_t row)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    uint32_t saved = snapshot->saved[row];
    if (saved != 0) return bel_table_noted_use(table, copy_at(table, saved - 1));
    if (table->disk == NULL) return bel_table_noted_use(table, record_at(table, row));
    const uint32_t *use =
        bel_table_item(snapshot->last_uses, BEL_TABLE_KEY_BLOCK_BITS, sizeof *use, row);
    return *use;
}

// Returns the row's record if it is in memory, else NULL and its cell; under its lock.
static const float *find_record(const bel_table *table, uint32_t row, uint32_t *out_cell)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    uint32_t saved = snapshot->saved[row];
    if (saved != 0) return copy_at(table, saved - 1);
    if (table->disk == NULL) return record_at(table, row);
    uint32_t location = location_of(snapshot, row);
    if ((location & BEL_TABLE_IN_FILE) == 0) return bel_table_frame(table, location - 1);
    *out_cell = location & ~BEL_TABLE_IN_FILE;
    return NULL;
}

static void copy_record(const bel_table *table, const float *record, int64_t place,
                        const bel_table_outputs *out)
{
    size_t row_bytes = (size_t)table->width * sizeof(float);
    if (out->rows != NULL) memcpy(out->rows + place * table->width, record, row_bytes);
    for (int k = 0; out->slots != NULL && k < table->slot_count; k++) {
        if (out->slots[k] == NULL) continue;
        memcpy(out->slots[k] + place * table->width, record + (int64_t)(k + 1) * table->width,
               row_bytes);
    }
}

// Returns false if the row's record is in the file, and its cell.
static bool read_row(const bel_table *table, uint32_t row, int64_t place,
                     const bel_table_outputs *out, uint32_t *out_cell)
{
    bel_table_snapshot_state *snapshot = table->snapshot;
    const float *record = NULL;
    pthread_mutex_t *lock = bel_table_snapshot_lock(snapshot, row);
    pthread_mutex_lock(lock);
    if (out->ages != NULL) out->ages[place] = (float)(snapshot->now - last_use_of(table, row));
    bool wanted = out->rows != NULL || out->slots != NULL;
    if (wanted) record = find_record(table, row, out_cell);
    if (record != NULL) copy_record(table, record, place, out);
    pthread_mutex_unlock(lock);
    return record != NULL || !wanted;
}

// --- Records in the file -------------------------------------------------------------------------

// Rows of a block whose records were in the file. They are read without the rows' locks, as updates
// would wait for the disk. Each record has its row's number, so it shows whether its cell has had
// another one meanwhile. Then it is read again, with the lock.
typedef struct cold_rows {
    const bel_table *table;
    const uint32_t *rows; // the block's
    const bel_table_outputs *out;
    bel_keyed *cells; // positions in the block
    int64_t count;
    size_t capacity;
    bool *read; // by position
} cold_rows;

static bel_status *take_cold(void *context, uint32_t position, uint32_t row, const float *record)
{
    const cold_rows *c = context;
    c->read[position] = row == c->rows[position];
    if (c->read[position]) copy_record(c->table, record, position, c->out);
    return NULL;
}

// With the row's lock. A record that is not the row's is damaged now.
static bel_status *read_again(cold_rows *c, uint32_t position)
{
    uint32_t cell;
    const float *record = find_record(c->table, c->rows[position], &cell);
    if (record != NULL) {
        copy_record(c->table, record, position, c->out);
        return NULL;
    }
    const bel_keyed one = {cell, position};
    BEL_TRY(bel_table_file_fetch(c->table->disk->file, &one, 1, take_cold, c));
    return c->read[position] ? NULL : bel_table_file_damage(c->table->disk->file, cell);
}

// A record that was read is right if the row is still as in the snapshot, and in the same cell.
static bel_status *check_cold(cold_rows *c, const bel_keyed *read)
{
    uint32_t row = c->rows[read->number], cell = 0;
    pthread_mutex_t *lock = bel_table_snapshot_lock(c->table->snapshot, row);
    pthread_mutex_lock(lock);
    bool same = c->read[read->number] && find_record(c->table, row, &cell) == NULL &&
                (int64_t)cell == read->key;
    bel_status *status = same ? NULL : read_again(c, read->number);
    pthread_mutex_unlock(lock);
    return status;
}

static bel_status *read_cold(cold_rows *c, int64_t n)
{
    if (c->count == 0) return NULL;
    c->read = bel_xcalloc((size_t)n, sizeof *c->read);
    const bel_keyed *sorted = bel_sort_keyed(c->cells, c->cells + c->count, c->count);
    bel_status *status = bel_table_file_fetch(c->table->disk->file, sorted, c->count, take_cold, c);
    for (int64_t k = 0; k < c->count && status == NULL; k++)
        status = check_cold(c, &sorted[k]);
    bel_free(c->read);
    return bel_status_wrap(status, __FILE__, __LINE__, "table \"%s\"", c->table->name);
}

static void note_cold(cold_rows *c, uint32_t cell, int64_t position)
{
    c->cells = bel_xgrow(c->cells, &c->capacity, 2 * (size_t)(c->count + 1), sizeof *c->cells);
    c->cells[c->count++] = (bel_keyed){cell, (uint32_t)position};
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
    order += first;
    bool contents = out->rows != NULL || out->slots != NULL || out->ages != NULL;
    cold_rows cold = {.table = table, .rows = order, .out = out};
    for (int64_t i = 0; i < n; i++) {
        uint32_t cell;
        if (contents && i + AHEAD < n) {
            if (table->disk == NULL)
                bel_table_prefetch(record_at(table, order[i + AHEAD]), table->record_floats);
            __builtin_prefetch(&snapshot->saved[order[i + AHEAD]]);
        }
        if (out->keys != NULL) out->keys[i] = bel_table_snapshot_key(snapshot, order[i]);
        if (contents && !read_row(table, order[i], i, out, &cell)) note_cold(&cold, cell, i);
    }
    bel_status *status = read_cold(&cold, n);
    bel_free(cold.cells);
    return status;
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
        pthread_mutex_t *lock = bel_table_snapshot_lock(snapshot, (uint32_t)first);
        pthread_mutex_lock(lock);
        for (int64_t row = first; row < end; row++) {
            if (table->disk == NULL && row + AHEAD < snapshot->top)
                __builtin_prefetch(record_at(table, (uint32_t)(row + AHEAD)) +
                                   table->record_floats - 1);
            if ((absent[row / 64] >> row % 64 & 1) != 0) continue;
            uint32_t age = snapshot->now - last_use_of(table, (uint32_t)row);
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
