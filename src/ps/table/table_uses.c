// The first uses of keys: until an update has named a key `admit_after` times, the key waits, and
// only their number is stored. The counts are a table of rows of one float. So index, snapshots,
// checkpoints, limits and expiry are those of tables. A count is at least 1 and below admit_after:
// the use that would reach it makes the row, and the count is removed.
//
// A key that is to be admitted, but gets no row as the table is full, keeps its count. Its next use
// tries again.
#include "ps/table/table_inner.h"

// Lists the keys that have no row, in order of positions.
static void list_waiting(bel_table *table, const int64_t *keys, int64_t n, int64_t missing)
{
    bel_table_waiting *wait = &table->wait;
    size_t room = (size_t)missing;
    wait->keys = bel_xgrow(wait->keys, &wait->key_capacity, room, sizeof *wait->keys);
    wait->positions =
        bel_xgrow(wait->positions, &wait->position_capacity, room, sizeof *wait->positions);
    wait->count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (table->rows[i] != BEL_TABLE_NO_ROW) continue;
        wait->keys[wait->count] = keys[i];
        wait->positions[wait->count++] = (uint32_t)i;
    }
}

// Counts a use; returns true if the key is to be admitted. Its count is then unchanged.
static bool count_use(bel_table *uses, int64_t old_top, int64_t key, uint32_t row,
                      int64_t admit_after)
{
    float *count = bel_table_record(uses, row);
    bel_table_note_changes(uses, &key, &row, 1);
    bel_table_prepare(uses, old_top, key, row, count);
    if ((int64_t)*count + 1 >= admit_after) return true;
    *count += 1;
    return false;
}

bel_status *bel_table_count_uses(bel_table *table, bel_team *team, const int64_t *keys, int64_t n,
                                 int64_t *out_missing)
{
    enum { AHEAD = 16 };
    bel_table *uses = table->uses;
    bel_table_waiting *wait = &table->wait;
    list_waiting(table, keys, n, *out_missing);
    int64_t old_top = uses->top, unknown;
    BEL_TRY(bel_table_look_up(uses, team, wait->keys, NULL, wait->count, &unknown));
    BEL_TRY(bel_table_admit(uses, team, wait->keys, wait->count, unknown, true));
    *out_missing = 0;
    for (int64_t j = 0; j < wait->count; j++) {
        uint32_t row = uses->rows[j];
        uint32_t later = j + AHEAD < wait->count ? uses->rows[j + AHEAD] : BEL_TABLE_REFUSED;
        if (later != BEL_TABLE_REFUSED) bel_table_prefetch(bel_table_record(uses, later), 1);
        bool admitted = row != BEL_TABLE_REFUSED &&
                        count_use(uses, old_top, wait->keys[j], row, table->admit_after);
        if (!admitted) table->rows[wait->positions[j]] = BEL_TABLE_REFUSED;
        *out_missing += admitted;
    }
    return NULL;
}

void bel_table_settle_uses(bel_table *table)
{
    const bel_table_waiting *wait = &table->wait;
    for (int64_t j = 0; j < wait->count; j++)
        if (table->rows[wait->positions[j]] != BEL_TABLE_REFUSED)
            bel_table_remove(table->uses, wait->keys[j]);
    bel_table_count_bytes(table->uses);
}
