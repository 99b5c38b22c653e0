// Writes a table to a checkpoint and restores it. Columns are read block by block from the
// snapshot, during updates, without a copy of the table. Each number is checked on its way out, so
// a table that is not finite cannot be saved. On restore a shard loads the rows that the hash
// assigns to it, from a checkpoint of any number of shards, and reads one file if it can.
#include <math.h>

#include "ps/table/table_inner.h"

enum { MAX_STEPS = 1 << 24 }; // ages and counts are floats in a checkpoint

// Describes the checkpoint's table: column 0 is the values, the others are the rules' slots.
static bel_ckpt_table table_describe(const bel_table *table)
{
    return (bel_ckpt_table){
        .name = table->name,
        .width = table->width,
        .column_count = 1 + table->slot_count,
        .columns = (const char *const *)table->columns,
    };
}

// Describes the ages, which are a table of the same keys.
static bel_ckpt_table describe_ages(const bel_table *table)
{
    static const char *const columns[] = {"values"};
    return (bel_ckpt_table){
        .name = table->age_name, .width = 1, .column_count = 1, .columns = columns};
}

// --- Save ----------------------------------------------------------------------------------------

static bel_status *check_finite(const bel_table *table, const int64_t *keys, int column,
                                const float *rows, int64_t n)
{
    for (int64_t i = 0; i < n * table->width; i++) {
        if (isfinite(rows[i])) continue;
        return BEL_ERR(BEL_ABORTED,
                       "row %lld of table \"%s\" is not finite (%s), so nothing was saved; hint: a "
                       "lower learning_rate or clip_value often helps",
                       (long long)keys[i / table->width], table->name, table->columns[column]);
    }
    return NULL;
}

// Only one column's array is requested, so nothing else is copied.
static bel_status *read_rows(const bel_table *table, const uint32_t *order, int64_t first,
                             int64_t n, int64_t *out_keys, int column, float *out_floats)
{
    float *slots[BEL_TABLE_MAX_SLOTS] = {0};
    bel_table_outputs out = {.keys = out_keys};
    if (column == 0) out.rows = out_floats;
    if (column > 0) slots[column - 1] = out_floats;
    if (column > 0) out.slots = slots;
    BEL_TRY(bel_table_snapshot_read(table, order, first, n, &out));
    return column < 0 ? NULL : check_finite(table, out_keys, column, out_floats, n);
}

static bel_status *read_column(void *context, int64_t first, int64_t n, int64_t *out_keys,
                               int column, float *out_floats)
{
    return read_rows(context, NULL, first, n, out_keys, column, out_floats);
}

static bel_status *read_changed(void *context, int64_t first, int64_t n, int64_t *out_keys,
                                int column, float *out_floats)
{
    const bel_table *table = context;
    return read_rows(table, table->snapshot->delta->order, first, n, out_keys, column, out_floats);
}

static bel_status *read_age(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                            float *out_floats)
{
    (void)column;
    const bel_table_outputs out = {.keys = out_keys, .ages = out_floats};
    return bel_table_snapshot_read(context, NULL, first, n, &out);
}

static bel_status *read_changed_age(void *context, int64_t first, int64_t n, int64_t *out_keys,
                                    int column, float *out_floats)
{
    (void)column;
    const bel_table *table = context;
    const bel_table_outputs out = {.keys = out_keys, .ages = out_floats};
    return bel_table_snapshot_read(table, table->snapshot->delta->order, first, n, &out);
}

static bel_status *add_rest(void *context, bel_hash128 *sums)
{
    const bel_table *table = context;
    for (int c = 0; c < 1 + table->slot_count; c++)
        bel_table_add_hash(&sums[c], table->snapshot->delta->rest[c]);
    return NULL;
}

static bel_status *add_rest_of_ages(void *context, bel_hash128 *sums)
{
    return bel_table_snapshot_add_ages(context, sums);
}

int bel_table_rows(const bel_table *table, bel_ckpt_rows *out_rows)
{
    int count = 0;
    bel_ckpt_rows rows = {
        .table = table_describe(table),
        .row_count = table->snapshot != NULL ? bel_table_snapshot_count(table) : 0,
        .read = read_column,
        .context = (void *)(uintptr_t)table, // the reader casts it to const again
    };
    out_rows[count++] = rows;
    if (table->expire_after > 0) {
        rows.table = describe_ages(table);
        rows.read = read_age;
        out_rows[count++] = rows;
    }
    return table->uses == NULL ? count : count + bel_table_rows(table->uses, out_rows + count);
}

bel_status *bel_table_changed_rows(const bel_table *table, int64_t base, bel_ckpt_rows *out_rows,
                                   int *out_count)
{
    BEL_TRY(bel_table_order_delta(table, base));
    bel_table_delta *delta = table->snapshot->delta;
    bel_ckpt_change change = {.all = table->snapshot->count,
                              .removed = delta->removed,
                              .removed_count = delta->removed_count};
    delta->rows = delta->ages = change;
    delta->rows.add_rest = add_rest;
    delta->ages.add_rest = add_rest_of_ages;
    int count = 0, more = 0;
    bel_ckpt_rows rows = {.table = table_describe(table),
                          .row_count = delta->changed.count,
                          .read = read_changed,
                          .context = (void *)(uintptr_t)table,
                          .change = &delta->rows};
    out_rows[count++] = rows;
    if (table->expire_after > 0) {
        rows.table = describe_ages(table);
        rows.read = read_changed_age;
        rows.change = &delta->ages;
        out_rows[count++] = rows;
    }
    if (table->uses != NULL)
        BEL_TRY(bel_table_changed_rows(table->uses, base, out_rows + count, &more));
    *out_count = count + more;
    return NULL;
}

// --- Restore -------------------------------------------------------------------------------------

typedef struct restoring {
    bel_table *table;
    int shard, shard_count;
    int64_t own, others; // rows that were shown, of this and of other shards
    bool alike;          // the file of this shard's number has its rows and no others
} restoring;

// The hash decides, so a checkpoint of any number of shards can be loaded.
static bool is_mine(void *context, int64_t key)
{
    restoring *r = context;
    bool mine = bel_table_shard(key, r->shard_count) == r->shard;
    r->own += mine;
    r->others += !mine;
    return mine;
}

// Checks ages (least 0) and counts of uses (least 1), which are integers.
static bel_status *check_steps(const char *name, float least, const int64_t *keys,
                               const float *steps, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (steps[i] >= least && steps[i] <= MAX_STEPS && steps[i] == floorf(steps[i])) continue;
        return BEL_ERR(BEL_DATA_LOSS,
                       "table \"%s\", key %lld: expected an integer from %g to %d, got %g", name,
                       (long long)keys[i], (double)least, MAX_STEPS, (double)steps[i]);
    }
    return NULL;
}

static bel_status *table_state_take(void *context, int64_t n, const int64_t *keys,
                                    const float *const *columns)
{
    const restoring *r = context;
    if (r->table->counts_uses) BEL_TRY(check_steps(r->table->name, 1, keys, columns[0], n));
    return bel_table_load(r->table, keys, columns[0], columns + 1, n);
}

// Notes the last use of rows.
static bel_status *take_ages(void *context, int64_t n, const int64_t *keys,
                             const float *const *columns)
{
    const restoring *r = context;
    bel_table *table = r->table;
    BEL_TRY(check_steps(table->age_name, 0, keys, columns[0], n));
    for (int64_t i = 0; i < n; i += BEL_TABLE_GROUP) {
        uint64_t hashes[BEL_TABLE_GROUP];
        uint32_t rows[BEL_TABLE_GROUP];
        int group = bel_table_group(i, n);
        bel_table_seek(table, keys + i, group, hashes);
        bel_table_find(table, hashes, group, table->record_floats, rows);
        for (int j = 0; j < group; j++) {
            if (rows[j] == BEL_TABLE_NO_ROW)
                return BEL_ERR(BEL_DATA_LOSS, "table \"%s\": expected a row for key %lld, got none",
                               table->age_name, (long long)keys[i + j]);
            bel_table_set_last_use(table, rows[j], table->now - (uint32_t)columns[0][i + j]);
        }
    }
    return NULL;
}

// A checkpoint of as many shards has this shard's rows, and no others, in one file. If that is not
// so, the rows were assigned otherwise, and all files are read. Rows, ages and uses are assigned
// alike.
static bel_status *restore_rows(restoring *r, const bel_ckpt_reader *reader,
                                const bel_ckpt_table *expected, const bel_ckpt_row_sink *sink)
{
    int files = bel_ckpt_file_count(reader), own = files == r->shard_count ? r->shard : -1;
    r->own = r->others = 0;
    if (own >= 0) BEL_TRY(bel_ckpt_read_table_file(reader, expected, own, sink));
    r->alike = r->alike || (r->own > 0 && r->others == 0);
    if (r->alike) return NULL;
    for (int f = 0; f < files; f++)
        if (f != own) BEL_TRY(bel_ckpt_read_table_file(reader, expected, f, sink));
    return NULL;
}

static bel_status *restore_table(restoring *r, const bel_ckpt_reader *reader)
{
    bel_table *table = r->table;
    const bel_ckpt_row_sink rows = {.wants = is_mine, .take = table_state_take, .context = r};
    const bel_ckpt_row_sink ages = {.wants = is_mine, .take = take_ages, .context = r};
    bel_ckpt_table values = table_describe(table), aged = describe_ages(table);
    table->now = (uint32_t)bel_ckpt_reader_info(reader)->step;
    BEL_TRY(restore_rows(r, reader, &values, &rows));
    if (table->expire_after == 0 || !bel_ckpt_has_table(reader, table->age_name)) return NULL;
    return restore_rows(r, reader, &aged, &ages);
}

bel_status *bel_table_restore(bel_table *table, const bel_ckpt_reader *reader, int shard,
                              int shard_count)
{
    restoring r = {.table = table, .shard = shard, .shard_count = shard_count};
    BEL_TRY(restore_table(&r, reader));
    if (table->uses == NULL) return NULL;
    table->uses->now = table->now; // also if no key waits there
    if (!bel_ckpt_has_table(reader, table->uses->name)) return NULL;
    r.table = table->uses;
    return restore_table(&r, reader);
}

static bel_status *take_values(void *context, int64_t n, const int64_t *keys,
                               const float *const *columns)
{
    const restoring *r = context;
    return bel_table_load(r->table, keys, columns[0], NULL, n);
}

bel_status *bel_table_warm_up(bel_table *table, const bel_ckpt_reader *reader, const char *there,
                              int shard, int shard_count)
{
    restoring r = {.table = table, .shard = shard, .shard_count = shard_count};
    const bel_ckpt_row_sink sink = {.wants = is_mine, .take = take_values, .context = &r};
    return bel_ckpt_read_rows(reader, there, table->width, &sink);
}
