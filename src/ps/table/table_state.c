// Writes a table to a checkpoint and restores it. Columns are read block by block from the
// snapshot, during updates, without a copy of the table. Each number is checked on its way out, so
// a table that is not finite cannot be saved. On restore a shard loads the rows that the hash
// assigns to it, from a checkpoint of any number of shards, and reads one file if it can.
#include <math.h>

#include "ps/table/table_inner.h"

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
static bel_status *read_column(void *context, int64_t first, int64_t n, int64_t *out_keys,
                               int column, float *out_floats)
{
    const bel_table *table = context;
    if (column == BEL_CKPT_KEYS) {
        return bel_table_snapshot_range(table, first, n, out_keys, NULL, NULL);
    }
    float *slots[BEL_TABLE_MAX_SLOTS] = {0}, *values = column == 0 ? out_floats : NULL;
    if (column > 0) slots[column - 1] = out_floats;
    BEL_TRY(bel_table_snapshot_range(table, first, n, out_keys, values, slots));
    return check_finite(table, out_keys, column, out_floats, n);
}

bel_ckpt_rows bel_table_rows(const bel_table *table)
{
    return (bel_ckpt_rows){
        .table = table_describe(table),
        .row_count = table->snapshot != NULL ? bel_table_snapshot_count(table) : 0,
        .read = read_column,
        .context = (void *)(uintptr_t)table, // the reader casts it to const again
    };
}

// --- Restore -------------------------------------------------------------------------------------

typedef struct restoring {
    bel_table *table;
    int shard, shard_count;
    int64_t own, others; // rows that were shown, of this and of other shards
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

static bel_status *table_state_take(void *context, int64_t n, const int64_t *keys,
                                    const float *const *columns)
{
    const restoring *r = context;
    return bel_table_load(r->table, keys, columns[0], columns + 1, n);
}

// A checkpoint of as many shards has this shard's rows, and no others, in one file. If that is not
// so, the rows were assigned otherwise, and all files are read.
bel_status *bel_table_restore(bel_table *table, const bel_ckpt_reader *reader, int shard,
                              int shard_count)
{
    restoring r = {.table = table, .shard = shard, .shard_count = shard_count};
    bel_ckpt_table expected = table_describe(table);
    const bel_ckpt_row_sink sink = {.wants = is_mine, .take = table_state_take, .context = &r};
    int files = bel_ckpt_file_count(reader), own = files == shard_count ? shard : -1;
    if (own >= 0) BEL_TRY(bel_ckpt_read_table_file(reader, &expected, own, &sink));
    if (r.own > 0 && r.others == 0) return NULL;
    for (int f = 0; f < files; f++)
        if (f != own) BEL_TRY(bel_ckpt_read_table_file(reader, &expected, f, &sink));
    return NULL;
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
