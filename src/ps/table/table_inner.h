// Inside view of a table, for the files table*.c of this room.
//
// A row has a number, given when it is made and never changed. Its record (values, then slots) lies
// in a block of records, its key in a block of keys; blocks never move. The index says which number
// a key has: an array of buckets of (hash, number) for each of PARTS parts of the keys. The
// hash is a bijection of the key, so a look-up touches the index and the record, and no key: what
// a look-up costs is the cache lines that it touches. Keys by number are there for snapshots.
//
// A hash is cut like this: 5 bits choose the part, the next 32 the place in its array, the lowest
// 27 the shard. Places are in the order of hashes, so that a larger array is filled from a smaller
// one in a single run over both.
#ifndef BELFRY_PS_TABLE_TABLE_INNER_H
#define BELFRY_PS_TABLE_TABLE_INNER_H

#include <stdatomic.h>

#include "base/rng.h"
#include "ps/table/table.h"

enum {
    BEL_TABLE_PART_BITS = 5,
    BEL_TABLE_PARTS = 1 << BEL_TABLE_PART_BITS,
    BEL_TABLE_GROUP = 128,         // keys looked up together: all their cache lines are on the way
    BEL_TABLE_BUCKET = 5,          // hashes and numbers that fit a cache line
    BEL_TABLE_KEY_BLOCK_BITS = 18, // keys of a block: 2 MiB
    BEL_TABLE_BLOCK_BYTES = 2 << 20, // of records, at least: what a huge page backs
    BEL_TABLE_LOCKS = 64,
    BEL_TABLE_MAX_SLOTS = BEL_MAX_STEP_FUNCTIONS * BEL_RULE_MAX_SLOTS,
};

#define BEL_TABLE_NO_ROW BEL_TABLE_NOWHERE

// A cache line of the index, filled from the front. All five hashes are compared without a branch:
// a guess that fails costs more than the comparisons.
typedef struct bel_table_bucket {
    uint64_t hash[BEL_TABLE_BUCKET];
    uint32_t row_after[BEL_TABLE_BUCKET]; // row number + 1; 0: free
    uint32_t unused;
} bel_table_bucket;

// Full buckets run over into the next one. Rows are never removed, so a bucket with a free place
// ends a search.
typedef struct bel_table_part {
    bel_table_bucket *buckets;
    uint64_t capacity; // buckets
    uint64_t used;     // rows
} bel_table_part;

// Blocks of one size, each of 2^bits items.
typedef struct bel_table_blocks {
    char **at;
    size_t count, capacity;
    size_t bytes; // of a block
    int bits;
} bel_table_blocks;

// The rows of a moment. A row that is changed afterwards is copied aside first, and its place noted
// under the lock of its number; a reader takes the same lock and looks where the row is.
typedef struct bel_table_snapshot_state {
    int64_t count;   // rows below this number belong to it
    uint32_t *saved; // [row]: place of its copy + 1; 0: not changed since
    char **keys;     // the directories of blocks as they were
    char **records;
    char **copies; // blocks of copies; as long as it can become
    size_t copy_blocks;
    _Atomic int64_t copy_count;
    uint32_t *order; // row numbers by key; NULL until the first reading
    pthread_mutex_t locks[BEL_TABLE_LOCKS];
} bel_table_snapshot_state;

struct bel_table {
    char *name;
    int width;
    bel_table_start start;
    float scale;
    bel_rng_key random;
    int slot_count;                          // of all layers
    int first_slots[BEL_MAX_STEP_FUNCTIONS]; // by layer
    char *columns[1 + BEL_TABLE_MAX_SLOTS];  // their names in checkpoints
    float slot_start[BEL_TABLE_MAX_SLOTS];
    int64_t memory_limit;
    int64_t count, bytes;
    size_t record_floats;
    bel_table_blocks keys, records;
    bel_table_part parts[BEL_TABLE_PARTS];
    // Of the update in progress: row numbers by position, and the positions of new rows by part.
    uint32_t *rows, *missing;
    int64_t scratch_capacity;
    bel_table_snapshot_state *snapshot;
};

// How many keys the group that begins at `at` has, of those before `end`; 0 past the end.
static inline int bel_table_group(int64_t at, int64_t end)
{
    if (at >= end) return 0;
    return (int)(end - at < BEL_TABLE_GROUP ? end - at : BEL_TABLE_GROUP);
}

static inline unsigned bel_table_part_of(uint64_t hash)
{
    return (unsigned)(hash >> (64 - BEL_TABLE_PART_BITS));
}

// 32 bits of the hash, as a fraction of the capacity: so places are in the order of hashes.
static inline uint64_t bel_table_place(const bel_table_part *part, uint64_t hash)
{
    return (uint64_t)(uint32_t)(hash >> BEL_TABLE_SHARD_BITS) * part->capacity >> 32;
}

// The low bits of a row's number are its place in the block, the others say which block.
static inline void *bel_table_item(char *const *blocks, int bits, size_t item_bytes, uint32_t row)
{
    return blocks[row >> bits] + (row & ((UINT32_C(1) << bits) - 1)) * item_bytes;
}

static inline int64_t *bel_table_key(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->keys.at, BEL_TABLE_KEY_BLOCK_BITS, sizeof(int64_t), row);
}

static inline float *bel_table_record(const bel_table *table, uint32_t row)
{
    return bel_table_item(table->records.at, table->records.bits,
                          table->record_floats * sizeof(float), row);
}

// Asks for the cache lines of `count` floats.
static inline void bel_table_prefetch(const float *record, size_t count)
{
    enum { LINE = 16, LINES = 16 }; // beyond that the processor sees the run by itself
    size_t end = count < LINE * LINES ? count : LINE * LINES;
    for (size_t i = 0; i < end; i += LINE)
        __builtin_prefetch(record + i);
    if (end % LINE != 0) __builtin_prefetch(record + end - 1); // it may lie across one more line
}

// --- table_index.c -------------------------------------------------------------------------------

bel_status *bel_table_index_init(bel_table *table) BEL_MUST_USE;
void bel_table_index_deinit(bel_table *table);

// Looking up n ≤ BEL_TABLE_GROUP keys in two strides, so that the second of one group can follow
// the first of the next. The first computes hashes and asks for the index. The second finds row
// numbers, BEL_TABLE_NO_ROW where there is none, and asks for `fetch_floats` floats of the records.
void bel_table_seek(const bel_table *table, const int64_t *keys, int n, uint64_t *out_hashes);
void bel_table_find(const bel_table *table, const uint64_t *hashes, int n, size_t fetch_floats,
                    uint32_t *out_rows);

// Finds the rows of n keys (table->rows, by position) and makes those that are missing, with their
// keys but without content: they have the numbers from the count before on. `places` as of
// bel_table_update_places. On an error nothing has changed.
bel_status *bel_table_admit(bel_table *table, bel_team *team, const int64_t *keys,
                            const uint32_t *places, int64_t n) BEL_MUST_USE;

// --- table_start.c -------------------------------------------------------------------------------

void bel_table_start_values(const bel_table *table, int64_t key, float *out_values);

// --- table_snapshot.c ----------------------------------------------------------------------------

// Room for copies of those of table->rows[0..n) that have none.
bel_status *bel_table_snapshot_reserve(bel_table *table, int64_t n) BEL_MUST_USE;
void bel_table_snapshot_save(bel_table *table, uint32_t row); // before it is changed

#endif
