// Changes of rows since the base of deltas: the last snapshot of which all rows were written.
//
// Each row number has a byte. It says whether its row has changed, or was created, since the base
// and since the last snapshot, which may become the base after training has continued. So a mark
// costs a pass over the bytes, and a row costs nothing more between two snapshots after its first
// change. At this first change the hashes of the old row are added to `lost`: the sum of the rows
// that are as in the base is then the base's sum less that, and no row is read for the digest of a
// delta.
//
// A removed row that the base has is noted by its key. If the key gets a new row, that one is
// created, and the reader of the delta replaces the base's by it.
//
// Threads that update distinct rows write distinct bytes; `lost` has a lock. Removals, snapshots
// and clears are on one thread.
#include <string.h>

#include "base/alloc.h"
#include "base/sort.h"
#include "ps/table/table_inner.h"

void bel_table_changes_init(bel_table *table)
{
    bel_table_changes *changes = bel_xcalloc(1, sizeof *changes);
    changes->states.bits = BEL_TABLE_KEY_BLOCK_BITS;
    changes->states.bytes = (size_t)1 << BEL_TABLE_KEY_BLOCK_BITS;
    pthread_mutex_init(&changes->mutex, NULL);
    table->changes = changes;
}

void bel_table_changes_deinit(bel_table *table)
{
    bel_table_changes *changes = table->changes;
    if (changes == NULL) return;
    pthread_mutex_destroy(&changes->mutex);
    bel_free(changes->states.at);
    bel_free(changes->base.removed);
    bel_free(changes->snapshot.removed);
    bel_free(changes);
}

static void forget_since(bel_table_since *since)
{
    memset(since->lost, 0, sizeof since->lost);
    since->removed_count = 0;
}

void bel_table_changes_clear(bel_table *table)
{
    bel_table_changes *changes = table->changes;
    if (changes == NULL) return;
    changes->on = false;
    changes->base_version = changes->next_version = 0;
}

// --- Noting --------------------------------------------------------------------------------------

// Hashes of rows that were as in the base, and as in the last snapshot.
typedef struct lost {
    bel_hash128 base[BEL_TABLE_MOST_COLUMNS], snapshot[BEL_TABLE_MOST_COLUMNS];
} lost;

// Adds the hashes of a row that is still as in the snapshot.
static void lose(const bel_table *table, int64_t key, const float *record, uint8_t state, lost *out)
{
    bool as_in_base = (state & BEL_TABLE_CHANGED_SINCE_BASE) == 0;
    for (int c = 0; c < 1 + table->slot_count; c++) {
        const float *column = record + (size_t)c * (size_t)table->width;
        bel_hash128 hash = {0};
        bel_ckpt_hash_rows(&key, column, table->width, 1, &hash);
        bel_table_add_hash(&out->snapshot[c], hash);
        if (as_in_base) bel_table_add_hash(&out->base[c], hash);
    }
}

static void add_lost(bel_table *table, const lost *added)
{
    bel_table_changes *changes = table->changes;
    pthread_mutex_lock(&changes->mutex);
    for (int c = 0; c < 1 + table->slot_count; c++) {
        bel_table_add_hash(&changes->base.lost[c], added->base[c]);
        bel_table_add_hash(&changes->snapshot.lost[c], added->snapshot[c]);
    }
    pthread_mutex_unlock(&changes->mutex);
}

void bel_table_note_changes(bel_table *table, const int64_t *keys, const uint32_t *rows, int n)
{
    if (table->changes == NULL || !table->changes->on) return;
    int first = 0;
    for (; first < n; first++)
        if (rows[first] != BEL_TABLE_REFUSED &&
            (*bel_table_state(table, rows[first]) & BEL_TABLE_CHANGED_SINCE_SNAPSHOT) == 0)
            break;
    if (first == n) return;
    lost added = {0};
    for (int i = first; i < n; i++) {
        if (rows[i] == BEL_TABLE_REFUSED) continue;
        uint8_t *state = bel_table_state(table, rows[i]);
        if ((*state & BEL_TABLE_CHANGED_SINCE_SNAPSHOT) != 0) continue;
        lose(table, keys[i], bel_table_record(table, rows[i]), *state, &added);
        *state |= BEL_TABLE_CHANGED_SINCE_BASE | BEL_TABLE_CHANGED_SINCE_SNAPSHOT;
    }
    add_lost(table, &added);
}

static void note_key(bel_table_since *since, int64_t key)
{
    since->removed = bel_xgrow(since->removed, &since->removed_capacity,
                               (size_t)since->removed_count + 1, sizeof *since->removed);
    since->removed[since->removed_count++] = key;
}

void bel_table_note_removal(bel_table *table, int64_t key, uint32_t row)
{
    bel_table_changes *changes = table->changes;
    uint8_t *state = bel_table_state(table, row);
    if ((*state & BEL_TABLE_CHANGED_SINCE_SNAPSHOT) == 0) {
        lost added = {0};
        lose(table, key, bel_table_record(table, row), *state, &added);
        add_lost(table, &added);
    }
    if ((*state & BEL_TABLE_CREATED_SINCE_BASE) == 0) note_key(&changes->base, key);
    if ((*state & BEL_TABLE_CREATED_SINCE_SNAPSHOT) == 0) note_key(&changes->snapshot, key);
    *state = 0;
}

// --- Marks ---------------------------------------------------------------------------------------

void bel_table_set_base(bel_table *table, int64_t version, const bel_ckpt_shard *report)
{
    bel_table_changes *changes = table->changes;
    if (changes == NULL) return;
    const bel_hash128 *sums = bel_ckpt_shard_sums(report, table->name);
    pthread_mutex_lock(&changes->mutex);
    memcpy(changes->next_sums, sums, (size_t)(1 + table->slot_count) * sizeof *sums);
    changes->next_version = version;
    pthread_mutex_unlock(&changes->mutex);
    if (table->uses != NULL) bel_table_set_base(table->uses, version, report);
}

// The last snapshot is the base from now on.
static void take_base(bel_table_changes *changes)
{
    bel_table_since before = changes->base;
    changes->base = changes->snapshot;
    changes->snapshot = before; // for its memory
    changes->base_version = changes->next_version;
    changes->next_version = 0;
    memcpy(changes->base_sums, changes->next_sums, sizeof changes->base_sums);
}

static bel_hash128 difference(bel_hash128 a, bel_hash128 b)
{
    bel_hash128 result;
    bool borrow = __builtin_sub_overflow(a.low, b.low, &result.low);
    result.high = a.high - b.high - borrow;
    return result;
}

// Lists the rows that differ from the base's, and forgets the changes since the last snapshot.
static void pass_over_states(bel_table *table, bool has_new_base, bel_table_numbers *out_changed)
{
    enum { AT_ONCE = 8 };
    int64_t block = INT64_C(1) << BEL_TABLE_KEY_BLOCK_BITS;
    for (int64_t row = 0; row < table->top; row += AT_ONCE) {
        uint8_t *states = (uint8_t *)table->changes->states.at[row / block] + row % block;
        uint64_t all;
        memcpy(&all, states, sizeof all);
        if (all == 0) continue;
        for (int i = 0; i < AT_ONCE; i++) {
            int state = has_new_base ? states[i] >> BEL_TABLE_SINCE_SNAPSHOT_SHIFT
                                     : states[i] & ((1 << BEL_TABLE_SINCE_SNAPSHOT_SHIFT) - 1);
            states[i] = (uint8_t)state;
            if (state != 0) bel_table_note(out_changed, (uint32_t)(row + i));
        }
    }
}

// The delta of the snapshot that was just made.
static bel_table_delta *make_delta(const bel_table *table, const bel_table_numbers *changed)
{
    const bel_table_changes *changes = table->changes;
    bel_table_delta *delta = bel_xcalloc(1, sizeof *delta);
    size_t removed = (size_t)changes->base.removed_count;
    delta->base = changes->base_version;
    delta->changed = *changed;
    delta->removed = bel_xcalloc(removed, sizeof *delta->removed);
    delta->removed_count = changes->base.removed_count;
    if (removed > 0)
        memcpy(delta->removed, changes->base.removed, removed * sizeof *delta->removed);
    for (int c = 0; c < 1 + table->slot_count; c++)
        delta->rest[c] = difference(changes->base_sums[c], changes->base.lost[c]);
    return delta;
}

// Numbers without a row have the state 0, as those of unchanged rows.
void bel_table_changes_mark(bel_table *table)
{
    bel_table_changes *changes = table->changes;
    pthread_mutex_lock(&changes->mutex);
    bool has_new_base = changes->next_version > 0;
    if (has_new_base) take_base(changes);
    pthread_mutex_unlock(&changes->mutex);
    for (size_t b = 0; !changes->on && b < changes->states.count; b++)
        memset(changes->states.at[b], 0, changes->states.bytes);
    changes->on = true;
    bel_table_numbers changed = {0};
    pass_over_states(table, has_new_base, &changed);
    forget_since(&changes->snapshot);
    if (changes->base_version > 0) {
        table->snapshot->delta = make_delta(table, &changed);
    } else {
        forget_since(&changes->base);
        bel_free(changed.at);
    }
}

void bel_table_delta_destroy(bel_table_delta *delta)
{
    if (delta == NULL) return;
    bel_pages_destroy(delta->order, (size_t)delta->changed.count * sizeof *delta->order);
    bel_free(delta->changed.at);
    bel_free(delta->removed);
    bel_free(delta);
}

// --- Reading -------------------------------------------------------------------------------------

static bel_status *sort_keys(int64_t *keys, int64_t count)
{
    void *memory;
    size_t bytes = (size_t)count * 2 * sizeof(bel_keyed);
    if (count == 0) return NULL;
    BEL_TRY(bel_pages_create(bytes, false, "sorting removed keys", &memory));
    bel_keyed *items = memory;
    for (int64_t i = 0; i < count; i++)
        items[i] = (bel_keyed){.key = keys[i]};
    const bel_keyed *sorted = bel_sort_keyed(items, items + count, count);
    for (int64_t i = 0; i < count; i++)
        keys[i] = sorted[i].key;
    bel_pages_destroy(memory, bytes);
    return NULL;
}

// Keeps the removed keys that did not get another row: both lists ascend.
static void drop_created(const bel_table_snapshot_state *snapshot)
{
    bel_table_delta *delta = snapshot->delta;
    int64_t kept = 0, at = 0;
    for (int64_t i = 0; i < delta->removed_count; i++) {
        int64_t key = delta->removed[i];
        while (at < delta->changed.count &&
               bel_table_snapshot_key(snapshot, delta->order[at]) < key)
            at++;
        bool created =
            at < delta->changed.count && bel_table_snapshot_key(snapshot, delta->order[at]) == key;
        if (!created) delta->removed[kept++] = key;
    }
    delta->removed_count = kept;
}

static bel_status *make_order(const bel_table_snapshot_state *snapshot)
{
    bel_table_delta *delta = snapshot->delta;
    size_t bytes = (size_t)delta->changed.count * sizeof *delta->order;
    void *order;
    BEL_TRY(sort_keys(delta->removed, delta->removed_count));
    BEL_TRY(bel_pages_create(bytes, false, "the order of changed rows", &order));
    bel_status *status = bel_table_sort_rows(snapshot, &delta->changed, order);
    if (status != NULL) {
        bel_pages_destroy(order, bytes);
        return status;
    }
    delta->order = order;
    drop_created(snapshot);
    return NULL;
}

bel_status *bel_table_order_delta(const bel_table *table, int64_t base)
{
    const bel_table_snapshot_state *snapshot = table->snapshot;
    if (snapshot == NULL || snapshot->delta == NULL || snapshot->delta->base != base) {
        return BEL_ERR(
            BEL_FAILED_PRECONDITION,
            "table \"%s\": asked for the rows that changed since step %lld, it knows "
            "those since step %lld (0: none)",
            table->name, (long long)base,
            (long long)(snapshot != NULL && snapshot->delta != NULL ? snapshot->delta->base : 0));
    }
    if (snapshot->delta->order != NULL) return NULL;
    BEL_TRY_CTX(make_order(snapshot), "table \"%s\"", table->name);
    return NULL;
}
